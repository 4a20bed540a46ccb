//! What only a simulator can check: that nothing is told before it is held, that a position names one content, that
//! nobody works under an older leadership; and the situations that notices and messages give away.

use std::collections::{BTreeMap, BTreeSet};

use floodline::guarantees::history::Seen;
use floodline::protocol::Input;
use floodline::protocol::ids::{Jac, JobKey, Leadership, NodeId, Number, Position, StreamId, TaskKey};
use floodline::protocol::message::{Batch, Down, Purpose, Refusal, Request, Response, Submitted, Up};
use floodline::protocol::notice::Notice;
use floodline::protocol::time::Time;
use floodline::protocol::view::{Admission, JobState, JobView};

use crate::calls::Caller;
use crate::marks::Mark;
use crate::process::{Heard, Question};
use crate::world::World;

/// What the simulator remembers about the whole cluster.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// What somebody was told for good: that a job is acknowledged, or how it ended.
    pub(crate) promised: BTreeMap<JobKey, JobState>,
    /// What was held at some time.
    held: BTreeMap<JobKey, JobState>,
    /// The highest JAC of each worker's journalled admissions.
    pub(crate) jacs: BTreeMap<NodeId, Jac>,
    /// Leaderships that have begun.
    begun: BTreeSet<Leadership>,
    /// Admissions that their leader has journalled.
    pub(crate) admitted: BTreeSet<(JobKey, Admission)>,
    /// Ended and dropped since (section 8).
    pub(crate) dropped: BTreeSet<JobKey>,
    /// Promised and unfinished when everybody was killed.
    pub(crate) interrupted: BTreeSet<JobKey>,
    /// Brought back by a disk when nobody else had it.
    pub(crate) brought_back: BTreeSet<JobKey>,
    pub(crate) contents: BTreeMap<(Leadership, Number), u64>,
    pub(crate) pasts: BTreeMap<Leadership, u64>,
    second_copies: BTreeSet<(TaskKey, u32)>,
    pub(crate) positions: BTreeMap<u64, Position>,
}

impl World {
    /// Looks at an input before its worker does.
    pub(crate) fn before_step(&mut self, at: usize, input: &Input) {
        let (now, host) = (self.now, &self.hosts[at]);
        let Some(process) = &host.process else { return };
        let clock = |time| host.clocks(process.born, time).time;
        let gap = clock(now).since(clock(process.stepped_at));
        let longest = self.plan.settings.election_timeout_min;
        let Some(process) = &mut self.hosts[at].process else { return };
        (process.stepped_at, process.was_frozen) = (now, gap > longest);
        process.led_before = process.leads.clone();
        process.ended_now = None;
        self.note_clock(at);
        self.note_shortage(at, input);
        self.note_reminder(at, input);
        let Some(process) = &mut self.hosts[at].process else { return };
        match input {
            Input::LeaderStirred { stream } | Input::LeaderSent { stream, .. } if process.ups.contains_key(stream) => {
                process.leader_heard = Some((*stream, now));
            }
            Input::LeaderEnded { .. } => process.leader_heard = None,
            _ => {}
        }
        match input {
            Input::FollowerOpened { stream } => {
                process.heard.insert(*stream, Heard { at: now, number: None });
            }
            Input::FollowerSent { stream, frame } => {
                if let Some(heard) = process.heard.get_mut(stream) {
                    heard.at = now;
                    // What it said once stays said while it joins anew: its disk has that.
                    heard.number = match frame {
                        Up::Ack { number, .. } => heard.number.max(*number),
                        Up::Join { .. } => None,
                        Up::Hashes(_) | Up::Upload(_) => heard.number,
                    };
                }
            }
            Input::FollowerEnded { stream } => {
                process.heard.remove(stream);
            }
            // What comes late on a stream that it has closed it does not take.
            Input::LeaderSent { stream, .. } if !process.ups.contains_key(stream) => {}
            Input::LeaderSent { frame: Down::Batch(Batch { leadership, held, .. }), .. } => {
                process.hear_held(leadership, *held);
            }
            Input::LeaderSent { frame: Down::Heartbeat(heartbeat), .. } => {
                process.hear_held(&heartbeat.leadership, heartbeat.held);
            }
            Input::Called { token, request: Request::ExecuteTask(execute) } => {
                let fenced = process.newest.as_ref().is_some_and(|newest| execute.leadership < *newest);
                let again = !process.tasks_asked.insert(execute.task.clone());
                if let Some(asked) = process.tokens.get_mut(token) {
                    asked.what = Question::Execute { task: execute.task.clone(), fenced, again };
                }
            }
            Input::Called { token, request: Request::SubmitJob(submit) } => {
                let lost = process.worker.cluster().leadership.is_none();
                if let Some(asked) = process.tokens.get_mut(token) {
                    asked.what = Question::Submit(submit.key.clone(), lost);
                }
            }
            Input::Computed { compute, .. } => {
                process.computing.remove(compute);
            }
            _ => {}
        }
    }

    /// A leadership ends with a gap longer than ELECTION_TIMEOUT_MIN in its leader's own loop (section 6, 1).
    pub(crate) fn check_thawed(&mut self, at: usize) {
        let Some(process) = self.hosts[at].process.as_ref().filter(|process| process.was_frozen) else { return };
        if process.leads.is_some() && process.leads == process.led_before {
            let text = format!("{} stood still too long and leads on as {:?}", process.member.node, process.leads);
            self.break_("freeze (section 6, 1)", text);
        }
    }

    /// After a step of a leader: what is held now, by what its followers told it.
    pub(crate) fn after_step(&mut self, at: usize) {
        let (now, host) = (self.now, &self.hosts[at]);
        let Some(process) = host.process.as_ref().filter(|process| process.leads.is_some()) else { return };
        let clock = |time| host.clocks(process.born, time).time;
        let timeout = self.plan.settings.election_timeout_max;
        let fresh = |heard: &&Heard| clock(now).since(clock(heard.at)) < timeout;
        let own = process.disk.position().number;
        let mut numbers: Vec<Number> =
            process.heard.values().filter(fresh).map(|heard| heard.number.unwrap_or_default()).collect();
        numbers.push(own);
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let holders = if numbers.len() < 3 { numbers.len() } else { numbers.len() / 2 + 1 };
        let fewest = usize::try_from(self.plan.settings.min_members).unwrap_or(1);
        let held = numbers.get(holders.max(fewest) - 1).map_or(Number(0), |least| own.min(*least));
        let leads = process.leads.clone();
        if let (Some(process), Some(leads)) = (&mut self.hosts[at].process, leads) {
            process.hear_held(&leads, held);
        }
    }

    fn begins_to_lead(&mut self, at: usize, leadership: &Leadership, workers: u32) {
        let Some(process) = &mut self.hosts[at].process else { return };
        let (identity, stale) = (process.identity(), leadership.jac < process.jac);
        (process.leads, process.announced, process.admitted) = (Some(leadership.clone()), false, 0);
        (process.held, process.newest) = (None, Some(leadership.clone()));
        process.heard.clear();
        self.truth.begun.insert(leadership.clone());
        self.see(Seen::Led { process: identity, leadership: leadership.clone() });
        self.check_fence_of_disk(at, leadership);
        self.check_reminded(at, leadership, workers);
        if stale {
            let text = format!("{leadership} wins with a JAC that has risen since");
            self.break_("candidacy (section 6, 4)", text);
        }
    }

    pub(crate) fn notice(&mut self, at: usize, notice: &Notice) {
        let cap = self.plan.settings.max_jobs_per_term;
        let Some(process) = &mut self.hosts[at].process else { return };
        let identity = process.identity();
        match notice {
            Notice::Following(leadership) => self.follows(at, leadership),
            Notice::LeadershipBegan { leadership, workers, .. } => self.begins_to_lead(at, leadership, *workers),
            Notice::LeadershipMovedUp(_, to) => {
                process.leads = Some(to.clone());
                // Numbers run on, and what was held is.
                process.held = process.held.take().map(|(_, held)| (to.clone(), held));
                process.newest = Some(to.clone());
                process.heard.values_mut().for_each(|heard| heard.number = None);
                self.truth.begun.insert(to.clone());
                self.marks.hit(Mark::MovedUp);
                self.see(Seen::Led { process: identity, leadership: to.clone() });
            }
            Notice::LeadershipEnded(leadership, why) => {
                let hands_over = *why == "it hands over";
                process.leads = None;
                process.ended_now = Some(leadership.clone());
                if hands_over && process.disk.jobs().any(|job| job.ended.is_none()) {
                    self.marks.hit(Mark::HandedOver);
                }
                if process.admitted >= cap {
                    self.marks.hit(Mark::Rotation);
                }
            }
            Notice::JobAdmitted { .. } => {
                process.admitted += 1;
                self.check_quorum(at);
                if let Some(split) = &mut self.split {
                    split.admitted[usize::from(split.sides[at])] += 1;
                }
            }
            Notice::ElectionReached { election, .. } => self.check_taking_part(at, &election.initiator),
            Notice::ElectionStarted { .. } => {
                process.electing = true;
                self.elections_without_directory();
            }
            Notice::ElectionEnded { .. } => process.electing = false,
            Notice::TaskHandedOut { task, attempt, second: true, .. } => {
                self.marks.hit(Mark::SecondCopy);
                self.truth.second_copies.insert((task.clone(), *attempt));
            }
            Notice::TaskEnded { task, attempt, failure: None, .. } => {
                let was_second = self.truth.second_copies.contains(&(task.clone(), *attempt));
                if was_second {
                    self.marks.hit(Mark::SecondCopyWon);
                }
            }
            Notice::TaskEnded { .. } => self.marks.hit(Mark::TaskFailed),
            Notice::Fenced { .. } => self.marks.hit(Mark::Fenced),
            Notice::OutcomeRaised(..) => self.marks.hit(Mark::OutcomeRaised),
            Notice::JobEnded(job, state, _) => {
                self.see(Seen::JobEnded { by: identity, job: job.clone(), state: *state });
                if *state == JobState::Failed {
                    self.marks.hit(Mark::JobFailed);
                }
                if self.truth.interrupted.remove(job) {
                    self.marks.hit(Mark::ResumedAfterAllDied);
                }
            }
            Notice::ValuesDiffer(task) => self.break_("values differ", format!("{task:?}")),
            _ => {}
        }
    }

    /// Workers whose streams a process has and that it heard lately, itself counted.
    pub(crate) fn live_at(&self, at: usize) -> usize {
        let (now, host, settings) = (self.now, &self.hosts[at], &self.plan.settings);
        let Some(process) = &host.process else { return 0 };
        let clock = |time| host.clocks(process.born, time).time;
        let fresh = |heard: &&Heard| clock(now).since(clock(heard.at)) < settings.election_timeout_max;
        process.heard.values().filter(fresh).count() + 1
    }

    fn note_shortage(&mut self, at: usize, input: &Input) {
        let asked = matches!(input, Input::Called { request: Request::SubmitJob(_), .. });
        let leads = self.hosts[at].process.as_ref().is_some_and(|process| process.leads.is_some());
        if asked && leads && self.live_at(at) < self.plan.settings.min_members as usize {
            self.marks.hit(Mark::QuorumMissing);
        }
    }

    /// A leader with fewer live workers than FLOODLINE_MIN_MEMBERS admits nothing (section 2).
    fn check_quorum(&mut self, at: usize) {
        let (live, fewest) = (self.live_at(at), self.plan.settings.min_members);
        if live < fewest as usize {
            let text = format!("{} admits with {live} live workers of {fewest}", self.hosts[at].node);
            self.break_("quorum (section 2)", text);
        }
    }

    /// Who leads, or hears a leader that lives, refuses every election but that leader's own (section 6, 3).
    fn check_taking_part(&mut self, at: usize, initiator: &NodeId) {
        let (now, host) = (self.now, &self.hosts[at]);
        let Some(process) = &host.process else { return };
        let clock = |time| host.clocks(process.born, time).time;
        let fresh = self.plan.settings.heartbeat_interval * 2;
        let hears = |(stream, heard): &(StreamId, Time)| {
            process.ups.contains_key(stream) && clock(now).since(clock(*heard)) < fresh
        };
        let leader = match (&process.leads, &process.newest) {
            (Some(leads), _) => Some(leads),
            (None, Some(follows)) if process.leader_heard.as_ref().is_some_and(hears) => Some(follows),
            (None, _) => None,
        };
        if let Some(leader) = leader.filter(|leader| leader.leader != *initiator) {
            let text = format!("{} takes part in {initiator}'s election and hears {leader}", process.member.node);
            self.break_("refusal (section 6, 3)", text);
        }
    }

    /// What a worker had journalled under a leadership it does not forget with its process: nothing older than that
    /// is followed or led again.
    fn check_fence_of_disk(&mut self, at: usize, leadership: &Leadership) {
        let Some(process) = &self.hosts[at].process else { return };
        let Some(fence) = &process.fence else { return };
        if leadership < fence {
            let text = format!("{} follows {leadership}, and its disk knows {fence}", process.member.node);
            self.break_("fence of the disk (section 8)", text);
        } else if process.leads.is_none() {
            self.marks.hit(Mark::FenceRestored);
        }
    }

    pub(crate) fn follows(&mut self, at: usize, leadership: &Leadership) {
        let Some(process) = &mut self.hosts[at].process else { return };
        process.newest = Some(leadership.clone());
        let process = process.identity();
        self.see(Seen::Follows { process, leadership: leadership.clone() });
        self.check_fence_of_disk(at, leadership);
        self.note_prevented(at, leadership);
    }

    /// The winner is told first: nobody else hears of a leadership before it has begun (section 6, 4).
    fn check_begun(&mut self, at: usize, leadership: &Leadership) {
        if !self.truth.begun.contains(leadership) {
            let text = format!("{} announces {leadership}, which has not begun", self.hosts[at].node);
            self.break_("announcement (section 6, 4)", text);
        }
    }

    pub(crate) fn jac_told(&mut self, at: usize, jac: Jac) {
        let Some(process) = self.hosts[at].process.as_mut().filter(|process| process.told != Some(jac)) else { return };
        process.told = Some(jac);
        let owner = process.identity();
        let admitted = self.truth.jacs.get(&owner.node).copied().unwrap_or_default();
        if jac > admitted {
            let text = format!("{} tells JAC {jac}, and has admitted no more than {admitted}", owner.node);
            self.break_("JAC (section 1)", text);
        }
        self.see(Seen::JacTold { owner, jac });
    }

    pub(crate) fn check_request(&mut self, at: usize, request: &Request, leads: Option<Leadership>) {
        match request {
            Request::Elect(elect) => {
                if !elect.around.is_empty() {
                    self.marks.hit(Mark::FloodRepeated);
                }
                if !elect.excluded.is_empty() {
                    self.marks.hit(Mark::WinnerExcluded);
                }
            }
            Request::Announce(announce) if announce.purpose == Purpose::Flood => {
                self.check_begun(at, &announce.leader.leadership);
                if let Some(process) = &mut self.hosts[at].process {
                    process.announced = true;
                }
            }
            Request::ExecuteTask(execute) => {
                // A step may hand out and then hand over: what it did as leader goes out after that.
                let ended = self.hosts[at].process.as_ref().and_then(|process| process.ended_now.as_ref());
                let own = leads.as_ref().or(ended) == Some(&execute.leadership);
                if !own {
                    let node = self.hosts[at].node.clone();
                    self.break_(
                        "fence (section 7)",
                        format!("{node} hands out under {}, leads {leads:?}", execute.leadership),
                    );
                }
            }
            Request::Ping(Some(status)) | Request::AddNeighbor(status) => self.jac_told(at, status.jac),
            _ => {}
        }
    }

    pub(crate) fn check_reply(
        &mut self,
        at: usize,
        what: &Question,
        caller: Option<Caller>,
        answer: &Result<Response, Refusal>,
    ) {
        let by_client = matches!(caller, Some(Caller::Client { .. }));
        let Ok(answer) = answer else { return };
        match (what, answer) {
            (Question::Elect(term), Response::Elect(found)) => {
                if !found.refusals.is_empty() {
                    self.marks.hit(Mark::FloodRefused);
                }
                if found.highest_term > *term {
                    self.marks.hit(Mark::StaleElection);
                }
            }
            (Question::Settle, Response::Announce(settled)) if settled.accepted => self.marks.hit(Mark::LeadersSettled),
            (Question::Submit(key, lost), Response::Submitted(Submitted::Held(view))) => {
                if *lost && by_client {
                    self.marks.hit(Mark::WaitedForLeader);
                }
                self.check_held(at, key, view);
                self.shown(at, view, by_client);
                // To a worker that passes it on as well: it is as good as told.
                self.promise(key, JobState::Running);
            }
            (Question::Submit(..), Response::Submitted(Submitted::NoRoom)) if by_client => {
                self.break_("submit (section 7)", "a client was told NoRoom".to_owned());
            }
            (Question::Cancel, Response::Job(view)) => {
                if by_client && !view.state.is_terminal() {
                    let text =
                        format!("{} told {} as {:?} to who cancelled it", self.hosts[at].node, view.key.id, view.state);
                    self.break_("cancel (section 7)", text);
                }
                if view.state == JobState::Cancelled {
                    self.marks.hit(Mark::CancelTold);
                }
                self.shown(at, view, by_client);
            }
            (Question::Execute { task, fenced, again }, Response::Task(done)) if done.result.is_ok() => {
                if *fenced {
                    let text = format!("{} computed {task:?} for an older leadership", self.hosts[at].node);
                    self.break_("G3 fence", text);
                }
                if *again {
                    self.marks.hit(Mark::ResultKept);
                }
            }
            (_, Response::Job(view)) => self.shown(at, view, by_client),
            (_, Response::Jobs(views)) => views.iter().for_each(|view| self.shown_own(at, view)),
            (_, Response::Ping(status) | Response::AddNeighbor { status, .. }) => self.jac_told(at, status.jac),
            _ => {}
        }
    }

    /// A view leaves a node.
    pub(crate) fn shown(&mut self, at: usize, view: &std::sync::Arc<JobView>, to_client: bool) {
        if view.state.is_terminal() {
            self.check_held(at, &view.key, view);
            self.promise(&view.key, view.state);
        }
        let by = self.hosts[at].process.as_ref().map(|process| process.identity());
        if let Some(by) = by.filter(|_| to_client) {
            self.see(Seen::Relayed { by, view: view.clone() });
        }
    }

    /// A view of a node's own replica leaves it.
    pub(crate) fn shown_own(&mut self, at: usize, view: &std::sync::Arc<JobView>) {
        self.shown(at, view, true);
        if let Some(process) = &self.hosts[at].process {
            let by = process.identity();
            self.see(Seen::Shown { by, view: view.clone() });
        }
    }

    fn promise(&mut self, key: &JobKey, state: JobState) {
        let promised = self.truth.promised.entry(key.clone()).or_insert(state);
        *promised = state.max(*promised);
    }

    /// OK, cancels and outcomes are told when held, not before (sections 1 and 7).
    pub(crate) fn check_held(&mut self, at: usize, key: &JobKey, view: &JobView) {
        let told = if view.state.is_terminal() { view.state } else { JobState::Running };
        self.check_told(at, key, told, view.stamp.as_ref().map(|stamp| stamp.number));
    }

    pub(crate) fn check_told(&mut self, at: usize, key: &JobKey, told: JobState, stamp: Option<Number>) {
        if self.truth.held.get(key).is_some_and(|held| *held >= told) {
            return;
        }
        let Some(process) = &self.hosts[at].process else { return };
        let on_disk = process.disk.job(key).filter(|_| process.disk.state(key).is_some_and(|state| state >= told));
        let first = process.first_numbers.get(key).map(|(_, first)| *first);
        let number = match on_disk {
            Some((_, number)) if told.is_terminal() => Some(number),
            // The outcome may be younger than the admission, which is what OK rests on.
            Some((_, number)) => Some(first.map_or(number, |first| first.min(number))),
            // Held by others, and not yet written here.
            None if process.leads.is_some() => None,
            // It may be told from memory: others hold what is on its way to this disk.
            None if told.is_terminal() => stamp.or_else(|| process.number_on_its_way(key, told)),
            None => first.or(stamp),
        };
        let held = process.held.as_ref().map(|(_, held)| *held).max(process.held_now);
        if number.is_some() && number <= held {
            self.truth.held.insert(key.clone(), told);
            return;
        }
        let (node, leads) = (&process.member.node, process.leads.is_some());
        let text =
            format!("{node} (leads: {leads}) told {} as {told:?}: its number is {number:?}, held {held:?}", key.id);
        self.break_("held (section 1)", text);
    }
}
