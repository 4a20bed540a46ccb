//! How processes end: killed between two effects, alone or all at once, or stopped in order; and what each leaves
//! behind, on its disk and at those that it talked to.
//!
//! Nothing is destroyed here that somebody was promised: a worker without a disk does not die, and a disk is not
//! lost, while it has the last copy. A disk with the last copy comes back, at the latest when nothing is hurt any more.

use std::time::Duration;

use floodline::guarantees::history::{End, Seen};
use floodline::protocol::effects::{Ending, Save};
use floodline::protocol::ids::JobKey;
use floodline::protocol::ledger::{Record, RecordName};
use floodline::protocol::view::JobState;

use crate::disk::Disk;
use crate::marks::Mark;
use crate::process::{Process, Question};
use crate::settle::RETURN;
use crate::world::{Happening, World};

impl World {
    /// Whether a death of this process leaves a copy of everything that somebody was promised.
    pub(crate) fn may_die(&self, at: usize) -> bool {
        let others = || self.running().any(|(other, process)| other != at && !process.stopping);
        self.plan.disks.kept || (others() && self.is_spare(at))
    }

    /// Whether what this worker has, and its disk, is nowhere the last copy.
    fn is_spare(&self, at: usize) -> bool {
        self.truth.promised.iter().all(|(job, promised)| self.survives_without(at, job, *promised))
    }

    /// Whether some other worker that stays, or its disk, holds a job, ended as it was told to have ended.
    fn survives_without(&self, at: usize, job: &JobKey, promised: JobState) -> bool {
        let others = (0..self.hosts.len()).filter(|other| *other != at);
        let stays = |other: usize| match &self.hosts[other].process {
            Some(process) => self.plan.disks.kept || !process.stopping,
            None => true,
        };
        others.filter(|other| stays(*other)).any(|other| holds(self.copy_at(other), job, promised))
    }

    /// A job that somebody was promised and whose copies are all at places where nobody runs.
    pub(crate) fn without_copy(&self) -> Option<&JobKey> {
        let here = |job, promised| self.running().any(|(_, process)| holds(&process.disk, job, promised));
        self.truth.promised.iter().find(|(job, promised)| !here(job, **promised)).map(|(job, _)| job)
    }

    /// What is journalled at a place.
    fn copy_at(&self, at: usize) -> &Disk {
        let host = &self.hosts[at];
        host.process.as_ref().map_or(&host.disk, |process| &process.disk)
    }

    /// Ends a process between two effects. What it had in memory is lost, and so are some of the writes on their way.
    pub(crate) fn kill(&mut self, at: usize) {
        let disks = self.plan.disks;
        let wiped = !disks.kept || (self.dice.below(100) < disks.wiped && self.is_spare(at));
        self.end_violently(at, wiped);
        if self.dice.below(6) > 0 {
            let after = self.dice.span(Duration::from_millis(30), Duration::from_secs(4));
            self.after(after, Happening::Start(at));
        }
    }

    /// Whether a process may die with its disk.
    pub(crate) fn may_lose(&self, at: usize) -> bool {
        self.may_die(at) && self.is_spare(at)
    }

    pub(crate) fn kill_and_wipe(&mut self, at: usize) {
        self.end_violently(at, true);
    }

    fn end_violently(&mut self, at: usize, wiped: bool) {
        let Some(process) = self.hosts[at].process.take() else { return };
        self.tell(|_| format!("{} is killed", process.member.node));
        self.mark_death(&process);
        self.see(Seen::Ended { process: process.identity(), how: End::Killed });
        self.bury(&process);
        self.leave_disk(at, process, wiped);
    }

    /// Everybody dies at once, and the disks are all that is left.
    pub(crate) fn kill_all(&mut self) {
        let all: Vec<usize> = self.running().map(|(at, _)| at).collect();
        if !self.plan.disks.kept || all.is_empty() {
            return;
        }
        self.tell(|_| "everybody is killed".to_owned());
        let unfinished = |(_, process): (usize, &Process)| {
            process.disk.jobs().filter(|job| job.ended.is_none()).map(|job| job.key.clone()).collect::<Vec<_>>()
        };
        let jobs: Vec<JobKey> = self.running().flat_map(unfinished).collect();
        self.truth.interrupted.extend(jobs.into_iter().filter(|job| self.truth.promised.contains_key(job)));
        for at in all {
            self.kill(at);
        }
    }

    /// Of the writes on their way some reached the disk, in order and each whole.
    fn leave_disk(&mut self, at: usize, mut process: Process, wiped: bool) {
        let host = &mut self.hosts[at];
        host.has_disk = !wiped;
        if wiped {
            host.disk = Disk::default();
            self.tell(|world| format!("{} has no disk any more", world.hosts[at].node));
            return;
        }
        let on_their_way = process.saving.len() as u64;
        let reached = self.dice.below(on_their_way + 1);
        if reached < on_their_way {
            self.marks.hit(Mark::TailLost);
        }
        for save in process.saving.drain(..).take(usize::try_from(reached).unwrap_or(0)) {
            process.disk.apply(&save);
            self.journalled(at, &save);
        }
        self.hosts[at].disk = process.disk;
    }

    /// A write is on a disk: what it says has happened, whatever comes.
    pub(crate) fn journalled(&mut self, at: usize, save: &Save) {
        let node = self.hosts[at].node.clone();
        self.note_dropped(save);
        for stamped in &save.records {
            let Record::Job(job) = &stamped.record else { continue };
            for admission in job.admissions.iter().filter(|admission| admission.leader == node) {
                self.truth.admitted.insert((job.key.clone(), admission.clone()));
                let highest = self.truth.jacs.entry(node.clone()).or_default();
                *highest = admission.jac.max(*highest);
                self.see(Seen::Admitted { job: job.key.clone(), admission: admission.clone() });
            }
        }
    }

    /// What is left out of a ledger by its rule of retention is owed to nobody any more.
    fn note_dropped(&mut self, save: &Save) {
        if !save.records.iter().any(|stamped| matches!(stamped.record, Record::Floors(_))) {
            return;
        }
        for name in &save.removed {
            match name {
                RecordName::Job(job) => {
                    self.truth.promised.remove(job);
                    self.truth.dropped.insert(job.clone());
                }
                RecordName::Task(_) => self.marks.hit(Mark::BreakdownDropped),
                RecordName::Payload(_) | RecordName::Floors => {}
            }
        }
    }

    /// A worker says that it has ended.
    pub(crate) fn end(&mut self, at: usize, ending: &Ending) {
        let Some(mut process) = self.hosts[at].process.take() else { return };
        let how = match ending {
            Ending::Stopped if process.stopping => End::Stopped,
            Ending::Stopped => End::Broke,
            Ending::Superseded(_) => End::Superseded,
        };
        self.tell(|_| format!("{} ended: {ending:?}", process.member.node));
        self.see(Seen::Ended { process: process.identity(), how });
        if how == End::Superseded {
            self.break_("superseded", format!("{} ended, but no other process has its id", process.member.node));
        }
        let tried = self.plan.settings.stop_grace / 4;
        let in_vain = process.stopped_at.is_some_and(|at| self.now.since(at) >= tried);
        if !self.plan.disks.kept && (in_vain || self.was_hurt || process.worker.cluster().leadership.is_none()) {
            self.lose_last_copies(at);
        }
        self.bury(&process);
        // Who ends in order has written all.
        for save in std::mem::take(&mut process.saving) {
            process.disk.apply(&save);
            self.journalled(at, &save);
        }
        let host = &mut self.hosts[at];
        host.has_disk = self.plan.disks.kept;
        host.disk = if host.has_disk { process.disk } else { Disk::default() };
        let few = self.running().count() < self.fewest();
        // Who is down by then stays so.
        let needed = self.quiet_since.is_some() && (few || self.without_copy().is_some());
        if needed || self.dice.below(2) == 0 {
            let after = self.dice.span(Duration::from_millis(100), Duration::from_secs(4));
            self.after(after, Happening::Start(at));
        } else {
            self.hosts[at].away = true;
        }
    }

    /// A worker without a disk stopped in order and found nobody to hand its jobs to.
    fn lose_last_copies(&mut self, at: usize) {
        let last = |(job, promised): (&JobKey, &JobState)| !self.survives_without(at, job, *promised);
        let gone: Vec<JobKey> =
            self.truth.promised.iter().filter(|entry| last(*entry)).map(|(job, _)| job.clone()).collect();
        for job in gone {
            self.truth.promised.remove(&job);
            self.gone(&job);
        }
    }

    /// With how many workers a cluster gets on.
    pub(crate) fn fewest(&self) -> usize {
        usize::try_from(self.plan.settings.min_members).unwrap_or(1).max(1)
    }

    /// Nothing is hurt any more: most that are down come back, and at least one holder of everything promised.
    pub(crate) fn all_come_back(&mut self) {
        let mut up: Vec<bool> = self.hosts.iter().map(|host| host.process.is_some()).collect();
        for (at, up) in up.iter_mut().enumerate() {
            *up |= !self.hosts[at].away && self.dice.below(4) > 0;
        }
        for (job, promised) in &self.truth.promised {
            let holds = |at: &usize| holds(self.copy_at(*at), job, *promised);
            let holders: Vec<usize> = (0..up.len()).filter(holds).collect();
            if let Some(first) = holders.first().filter(|_| !holders.iter().any(|holder| up[*holder])) {
                up[*first] = true;
            }
        }
        // As many as a leader needs; a cluster without that waits, which is what was asked of it.
        for at in 0..up.len() {
            let running = up.iter().filter(|up| **up).count();
            up[at] |= running < self.fewest();
        }
        for at in (0..up.len()).filter(|at| up[*at]) {
            let after = self.dice.span(Duration::ZERO, RETURN);
            self.after(after, Happening::Start(at));
        }
    }

    fn mark_death(&mut self, process: &Process) {
        let mid_job = process.disk.jobs().any(|job| job.ended.is_none());
        let relays = process.tokens.values().any(|asked| matches!(asked.what, Question::Elect(_)));
        let won = process.tokens.values().any(|asked| asked.what == Question::Won);
        let marks = [
            (Mark::LeaderKilledMidJob, process.leads.is_some() && mid_job),
            (Mark::InitiatorKilledMidFlood, process.electing),
            (Mark::RelayKilledMidFlood, relays),
            (Mark::WinnerKilledBeforeAnnouncing, won || (process.leads.is_some() && !process.announced)),
            (Mark::WorkerKilledMidTask, process.computing.values().any(|cancelled| !cancelled)),
            (Mark::UnsavedLost, !process.saving.is_empty()),
        ];
        marks.iter().filter(|(_, reached)| *reached).for_each(|(mark, _)| self.marks.hit(*mark));
    }

    /// What a process leaves behind: callers without an answer, callees without a caller, broken streams.
    fn bury(&mut self, process: &Process) {
        for asked in process.tokens.values() {
            self.callee_died(asked.flight);
        }
        for flight in process.calls.values() {
            self.caller_died(*flight);
        }
        for (pipe, at_leader) in
            process.ups.values().map(|pipe| (*pipe, false)).chain(process.downs.values().map(|pipe| (*pipe, true)))
        {
            self.end_died(pipe, at_leader);
        }
        for (subscriber, subscription) in &process.subscribers {
            self.server_died(*subscriber, subscription.serial());
        }
        self.registries.iter_mut().for_each(|registry| registry.forget(process.life));
    }
}

fn holds(copy: &Disk, job: &JobKey, promised: JobState) -> bool {
    copy.state(job).is_some_and(|state| state >= promised)
}
