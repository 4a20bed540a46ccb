//! Carrying out what a step decided, one effect after the other in the order of the fields, with death between any
//! two of them.

use std::time::Duration;

use floodline::jobs::Payload;
use floodline::protocol::Input;
use floodline::protocol::effects::{Call, ComputeEffect, Effects, Ending, Save, StreamEffect};
use floodline::protocol::ids::{CallId, ComputeId, JobKey, ReplyToken};
use floodline::protocol::message::{DirectoryId, DirectoryRequest, Refusal, Response, Revision};
use floodline::protocol::notice::Notice;
use floodline::protocol::time::Time;

use crate::calls::Caller;
use crate::compact::compact;
use crate::marks::Mark;
use crate::process::Life;
use crate::registry::RegistryEvent;
use crate::work;
use crate::world::{Happening, World};

/// One effect.
#[derive(Debug)]
enum Deed {
    Save(Save),
    Reply(ReplyToken, Result<Response, Refusal>),
    Abandon(CallId),
    Call(Call),
    Directory(DirectoryId, DirectoryRequest),
    Watch(DirectoryId, Revision),
    Stream(StreamEffect),
    Compute(ComputeEffect),
    Moved(JobKey),
    End(Ending),
}

fn in_order(effects: &mut Effects) -> Vec<Deed> {
    let mut deeds: Vec<Deed> = effects.saves.drain(..).map(Deed::Save).collect();
    deeds.extend(effects.replies.drain(..).map(|(token, answer)| Deed::Reply(token, answer)));
    deeds.extend(effects.abandoned.drain(..).map(Deed::Abandon));
    deeds.extend(effects.calls.drain(..).map(Deed::Call));
    deeds.extend(effects.directories.drain(..).map(|(directory, request)| Deed::Directory(directory, request)));
    deeds.extend(effects.watches.drain(..).map(|(directory, after)| Deed::Watch(directory, after)));
    deeds.extend(effects.streams.drain(..).map(Deed::Stream));
    deeds.extend(effects.computations.drain(..).map(Deed::Compute));
    deeds.extend(std::mem::take(&mut effects.moved).into_iter().map(Deed::Moved));
    deeds.extend(effects.ended.take().map(Deed::End));
    deeds
}

impl World {
    /// Carries out a step's effects, or as many of them as the process lives to.
    pub(crate) fn perform(&mut self, at: usize, effects: &mut Effects) {
        let Some(life) = self.hosts[at].process.as_ref().map(|process| process.life) else { return };
        let notices = std::mem::take(&mut effects.notices);
        let doomed = self.is_doomed(at, &notices, &effects.calls);
        self.after_step(at);
        for effect in &effects.streams {
            // Who was dropped in this step does not count in it any more.
            if let (StreamEffect::CloseDown(stream), Some(process)) = (effect, &mut self.hosts[at].process) {
                process.heard.remove(stream);
            }
        }
        self.after_step(at);
        if let Some(process) = &mut self.hosts[at].process {
            // What it leads may end in this step, after it has answered who waited.
            let held = process.held.as_ref().filter(|(of, _)| process.leads.as_ref() == Some(of));
            process.held_now = held.map(|(_, held)| *held);
        }
        for notice in &notices {
            self.tell(|world| format!("{}    {}", world.hosts[at].node, compact(notice)));
            self.notice(at, notice);
            self.note_attempt(at, notice);
        }
        self.check_lost(at, &notices, &effects.saves);
        self.after_step(at);
        self.check_thawed(at);
        for notice in &notices {
            if let Notice::JobEnded(job, state, _) = notice {
                self.check_told(at, job, *state, None);
            }
        }
        let written = effects.saves.last().map(|save| save.jac);
        let deeds = in_order(effects);
        let count = deeds.len() as u64;
        let dies_at = if doomed { self.dice.below(count + 1) } else { u64::MAX };
        for (done, deed) in (0..).zip(deeds) {
            if done == dies_at && self.dies(at, done > 0) {
                return;
            }
            self.tell(|world| format!("{} -> {}", world.hosts[at].node, compact(&deed)));
            self.carry_out(at, life, deed);
        }
        if count == dies_at && self.dies(at, false) {
            return;
        }
        if let (Some(jac), Some(process)) = (written, &mut self.hosts[at].process) {
            process.jac = jac;
        }
    }

    /// Dies in mid-step, unless what it has promised meanwhile is nowhere else.
    fn dies(&mut self, at: usize, between: bool) -> bool {
        if !self.may_die(at) {
            return false;
        }
        if between {
            self.marks.hit(Mark::KilledBetweenEffects);
        }
        self.kill(at);
        true
    }

    fn carry_out(&mut self, at: usize, life: Life, deed: Deed) {
        match deed {
            Deed::Save(save) => self.save(at, life, save),
            Deed::Reply(token, answer) => self.reply(at, token, answer),
            Deed::Abandon(call) => self.abandon(at, call),
            Deed::Call(call) => self.carry_call(at, life, call),
            Deed::Directory(directory, request) => {
                self.ask_directory(at, life, directory, request);
            }
            Deed::Watch(directory, after) => self.watch_directory(at, life, directory, after),
            Deed::Stream(effect) => self.stream(at, life, effect),
            Deed::Compute(effect) => self.compute(at, life, effect),
            Deed::Moved(job) => self.pump_all(at, &job),
            Deed::End(ending) => self.end(at, &ending),
        }
    }

    fn carry_call(&mut self, at: usize, life: Life, call: Call) {
        let from = self.hosts[at].process.as_ref().and_then(|process| process.leads.clone());
        self.check_request(at, &call.request, from);
        let to = self.host_at(&call.to.address);
        self.send(Caller::Worker { host: at, life, call: call.id }, to, call.request, call.within);
    }

    fn save(&mut self, at: usize, life: Life, save: Save) {
        self.check_save(at, &save);
        let (now, most) = (self.now, self.plan.disks.save);
        let takes = self.dice.span(most / 10, most);
        let Some(process) = self.process(at, life) else { return };
        process.saving.push_back(save);
        // Saves complete in order.
        process.saved_by = process.saved_by.max(now + takes);
        let by = process.saved_by;
        self.queue.add(by, Happening::Saved(at, life));
    }

    pub(crate) fn saved(&mut self, at: usize, life: Life) {
        let Some(process) = self.process(at, life) else { return };
        let Some(save) = process.saving.pop_front() else { return };
        process.disk.apply(&save);
        self.journalled(at, &save);
        self.check_disk(at);
        self.deliver(at, life, Input::Saved { save: save.id });
    }

    fn compute(&mut self, at: usize, life: Life, effect: ComputeEffect) {
        match effect {
            ComputeEffect::Start(id, _, slice) => self.start_computing(at, life, id, &slice),
            ComputeEffect::Cancel(id) => {
                let soon = self.dice.span(Duration::from_micros(10), Duration::from_millis(50));
                let Some(process) = self.process(at, life) else { return };
                if process.computing.insert(id, true) == Some(false) {
                    let input = Input::Computed { compute: id, value: None, took: soon };
                    self.after(soon, Happening::Input(at, life, input));
                }
            }
        }
    }

    fn start_computing(&mut self, at: usize, life: Life, id: ComputeId, slice: &Payload) {
        let most = *self.dice.pick(&[2, 20, 20, 60, 300]).unwrap_or(&20);
        let mut took = self.dice.span(Duration::from_micros(20), Duration::from_millis(most));
        // Some take so long that a second copy goes out.
        if self.plan.calm || self.dice.below(40) > 0 {
            took *= self.hosts[at].compute_factor.min(if self.quiet_since.is_some() { 3 } else { 30 });
        } else {
            took += Duration::from_millis(1_500);
        }
        let fails = !self.plan.calm && self.quiet_since.is_none() && self.dice.below(100) == 0;
        let value = if fails { None } else { work::compute(slice) };
        let Some(process) = self.process(at, life) else { return };
        process.computing.insert(id, false);
        let (running, most) = (process.computing.len(), process.member.concurrency);
        let node = process.member.node.clone();
        if running > most as usize {
            self.break_("concurrency (effects.rs)", format!("{node} computes {running} at once, may {most}"));
        }
        if self.hosts[at].process.as_ref().is_some_and(|process| process.joined_late) {
            self.marks.hit(Mark::WorkedAfterJoining);
        }
        self.after(took, Happening::Input(at, life, Input::Computed { compute: id, value, took }));
    }
}

impl World {
    pub(crate) fn ask_directory(&mut self, at: usize, life: Life, directory: DirectoryId, request: DirectoryRequest) {
        let delay = self.net.delay(&mut self.dice);
        let place = directory.0 as usize;
        if place >= self.registries.len() {
            self.break_("directories", format!("{} asks {directory:?}, which it was not given", self.hosts[at].node));
            return;
        }
        self.after(delay, Happening::Registry(place, RegistryEvent::Asked(at, life, request)));
    }

    pub(crate) fn watch_directory(&mut self, at: usize, life: Life, directory: DirectoryId, after: Revision) {
        let delay = self.net.delay(&mut self.dice);
        let place = directory.0 as usize;
        if place < self.registries.len() {
            self.after(delay, Happening::Registry(place, RegistryEvent::Watched(at, life, after)));
        }
    }

    /// A process that has no time until then.
    pub(crate) fn busy_until(&mut self, at: usize, until: Time) {
        if let Some(process) = &mut self.hosts[at].process {
            process.free_at = process.free_at.max(until);
        }
    }
}
