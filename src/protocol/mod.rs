//! The worker's protocol as a pure state machine: one event in, its effects out (section 14 of the contract).
//!
//! Owns all protocol state of one worker. Never waits, reads a clock, rolls dice of its own, does I/O or logs: time
//! and chance come in, effects go out. The same machine runs in every node and in the simulator.
//!
//! | input | handler | section |
//! | --- | --- | --- |
//! | `Elect`, its answers | [`election`]: flood, campaign | 6 |
//! | `Announce`, its answers | [`election`]: announce, settle | 6 |
//! | leader's frames, its stream's end | [`following`], [`leadership`] | 6, 8 |
//! | followers' streams and frames | [`replication`], [`holding`] | 1, 8 |
//! | `AddNeighbor`, `RemoveNeighbor`, `Ping`, membership | [`neighbours`] | 4, 5 |
//! | `SubmitJob` | [`queue`] | 7 |
//! | `CancelJob`, `GetJob`, `ListJobs`, `GetCluster` | [`requests`] | 7, 9 |
//! | `ExecuteTask`, `CancelTask`, `Computed` | [`executor`] | 7 |
//! | answers to hand-outs, workers lost | [`schedule`] | 7 |
//! | `Saved` | [`saving`] | 8 |
//! | `Stop` | [`stop`] | 2 |

#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::wildcard_enum_match_arm)]

mod calls;
pub mod dice;
pub mod effects;
mod election;
mod executor;
mod following;
mod holding;
pub mod ids;
pub mod input;
mod leadership;
mod leases;
pub mod ledger;
pub mod limits;
mod members;
pub mod message;
mod neighbours;
pub mod notice;
mod overlay;
pub mod progress;
mod queue;
mod replication;
mod requests;
mod saving;
mod schedule;
#[cfg(test)]
mod situations;
mod stop;
#[cfg(test)]
mod testkit;
pub mod time;
pub mod trace;
pub mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub use effects::Effects;
pub use input::Input;
pub use limits::{Rotation, Settings};
pub use requests::Shown;

use calls::{Calls, Errand, Open};
use dice::Dice;
use effects::Call;
use election::Elections;
use executor::Executor;
use ids::{
    Address, AttemptName, CallId, Jac, JobId, JobKey, Leadership, Member, NodeId, Position, StreamId, TaskKey, Term,
};
use leadership::{Leading, Role};
use leases::Leases;
use ledger::{Ledger, Past, Stamped};
use members::Members;
use message::{CallFailure, Code, Leader, Peer, Refusal, Request, Response, TaskAnswer};
use neighbours::StaticPeer;
use overlay::Overlay;
use queue::Queue;
use saving::Saving;
use stop::Stopping;
use time::{Now, Time};

/// Things that one step leaves to itself; more than these wait for the next step.
const LOCAL_AT_ONCE: usize = 100_000;

/// What a worker starts from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Who it is, with its incarnation for this start.
    pub member: Member,
    /// How many directories it knows.
    pub directories: u32,
    /// Workers to try even when no directory answers.
    pub peers: Vec<Address>,
    /// The settings.
    pub settings: Settings,
    /// What its journal held.
    pub stored: Stored,
    /// Seed of its dice.
    pub seed: u64,
}

/// What a journal holds at a start. A new one holds the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// All records.
    pub records: Vec<Stamped>,
    /// Where the replica stood.
    pub position: Position,
    /// The leaderships followed before.
    pub past: Past,
    /// The highest term known.
    pub term: Term,
    /// Its own JAC.
    pub jac: Jac,
    /// The JACs that it remembers for other workers.
    pub remembered: BTreeMap<NodeId, Jac>,
    /// Jobs whose outcome was told.
    pub told: BTreeSet<JobKey>,
}

/// What a step does to itself, as if it had come from outside.
#[derive(Clone, Debug)]
pub(crate) enum Local {
    /// A call that could not even be opened.
    Failed(Errand, Peer),
    /// A task of this worker's own leadership, computed here.
    OwnTask(TaskKey, AttemptName, TaskAnswer),
}

/// A worker.
#[derive(Clone, Debug)]
pub struct Worker {
    me: Member,
    settings: Settings,
    dice: Dice,
    now: Now,
    members: Members,
    leases: Leases,
    peers: Vec<StaticPeer>,
    overlay: Overlay,
    upkeep_due: Time,
    stranger_due: Time,
    calls: Calls,
    elections: Elections,
    role: Role,
    /// The newest leadership ever followed: it only rises (G3).
    followed: Option<Leader>,
    /// It has started and asks others for a leader and for what they remember of its JAC, until then at most: it is
    /// no candidate so long (section 6).
    asking_until: Option<Time>,
    /// The leadership that was lost last: hearsay does not bring it back.
    lost: Option<Leadership>,
    /// Leaderships met lately, so that each is acted on once in a while.
    met: BTreeMap<Leadership, Time>,
    /// Owned by this worker alone: +1 with each admission, in the same write (G4).
    jac: Jac,
    ledger: Ledger,
    saving: Saving,
    queue: Queue,
    executor: Executor,
    /// Streams of followers that this worker had as leader, until it can name the next one.
    retired: BTreeSet<StreamId>,
    last_stream: StreamId,
    stopping: Option<Stopping>,
    local: VecDeque<Local>,
}

impl Worker {
    /// A worker that has not started yet: give it [`Input::Started`] first.
    #[must_use]
    pub fn new(setup: Setup) -> Worker {
        let Setup { member, directories, peers, settings, stored, seed } = setup;
        let node = member.node.clone();
        // Whoever led what its replica followed: nothing older is followed (G3). Where that leader is now is not
        // known; asked in its place, this worker can tell that nobody leads so.
        let fence = |leadership: Leadership| {
            let (node, incarnation) = (leadership.leader.clone(), leadership.incarnation);
            Leader { leadership, member: Member { node, incarnation, ..member.clone() } }
        };
        let followed = stored.position.leadership.clone().map(fence);
        let Stored { term, jac, .. } = stored;
        let ledger = Ledger::of_journal(node.clone(), stored);
        let jac = jac.max(ledger.jac_of(&node));
        let elections = Elections::new(term);
        Worker {
            members: Members::new(node),
            executor: Executor::new(member.concurrency),
            saving: Saving::new(ledger.number(), jac),
            me: member,
            settings,
            dice: Dice::new(seed),
            now: Now::default(),
            leases: Leases::new(directories),
            peers: peers.into_iter().map(StaticPeer::new).collect(),
            overlay: Overlay::default(),
            upkeep_due: Time::ZERO,
            stranger_due: Time::ZERO,
            calls: Calls::default(),
            elections,
            role: Role::Starting,
            followed,
            asking_until: None,
            lost: None,
            met: BTreeMap::new(),
            jac,
            ledger,
            queue: Queue::default(),
            retired: BTreeSet::new(),
            last_stream: StreamId(0),
            stopping: None,
            local: VecDeque::new(),
        }
    }

    /// Takes one event and adds what follows from it to `out`.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Effects) {
        let gap = now.time.since(self.now.time);
        self.now = Now { time: now.time.max(self.now.time), wall: now.wall };
        if self.stopping == Some(Stopping::Ended) {
            return;
        }
        if self.is_leading() && gap > Leading::may_pause(&self.settings) {
            // It may have been frozen: its followers' acknowledgements in its queue only look young.
            self.step_down("its own loop stood still", out);
        }
        self.handle(input, out);
        self.run_local(out);
        self.run_timers(out);
        self.run_local(out);
        self.finish_step(out);
    }

    fn handle(&mut self, input: Input, out: &mut Effects) {
        match input {
            Input::Started => self.asking_until = Some(self.now.time + self.settings.election_timeout_max),
            Input::TimerFired => {}
            Input::Called { token, request } => self.on_request(token, request, out),
            Input::CallerGone { token } => {
                self.queue.caller_gone(token);
                self.executor_caller_gone(token);
            }
            Input::Answered { call, result } => {
                if let Some(open) = self.calls.close(call) {
                    self.on_answered(open, result, out);
                }
            }
            Input::FollowerOpened { stream } => self.on_follower_opened(stream, out),
            Input::FollowerSent { stream, frame } => self.on_follower_sent(stream, frame, out),
            Input::FollowerEnded { stream } => self.on_follower_ended(stream, out),
            Input::LeaderSent { stream, frame } => self.on_leader_sent(stream, frame, out),
            Input::LeaderStirred { stream } => self.on_leader_stirred(stream, out),
            Input::LeaderEnded { stream } => self.on_leader_ended(stream, out),
            Input::DirectoryAnswered { directory, result } => self.on_directory_answered(directory, &result, out),
            Input::Membership { directory, event } => self.on_membership(directory, &event, out),
            Input::WatchEnded { directory } => self.leases.watch_ended(self.now.time, directory),
            Input::Saved { save } => self.on_saved(save, out),
            Input::Computed { compute, value, took } => self.on_computed(compute, value, took, out),
            Input::Stop => self.on_stop(out),
        }
    }

    /// Makes a call. None if too many wait: then it fails at the end of this step.
    pub(crate) fn call(
        &mut self,
        to: Peer,
        request: Request,
        within: Duration,
        errand: Errand,
        out: &mut Effects,
    ) -> Option<CallId> {
        let opened = self.calls.open(self.now.time, within, to.clone(), errand.clone());
        match opened {
            Some(id) => out.calls.push(Call { id, to, request, within }),
            None => self.local.push_back(Local::Failed(errand, to)),
        }
        opened
    }

    /// A call came to something: by its errand.
    fn on_answered(&mut self, open: Open, result: Result<Response, CallFailure>, out: &mut Effects) {
        let Open { errand, to, .. } = open;
        let no_answer = matches!(result, Err(CallFailure::Unreachable(_) | CallFailure::TimedOut));
        self.judge_link(&to, no_answer, out);
        match &errand {
            Errand::Hop(election) => self.on_hop_answered(election, &to, result.and_then(of_elect), out),
            Errand::TellWinner(election) => self.on_winner_told(election, result.and_then(of_announce), out),
            Errand::Settle(other, stranded) => self.on_settled(other, *stranded, result.and_then(of_announce), out),
            Errand::NamedLeader(election, named) => {
                self.on_named_leader(election, named, result.and_then(of_ping), out);
            }
            Errand::LeaderLives(asked) => self.on_leader_lives(asked, result.and_then(of_ping), out),
            Errand::Link | Errand::LinkPing | Errand::Ask => {
                self.on_status_answered(&errand, &to, result.and_then(of_status), out);
            }
            Errand::Submission(id) => self.on_submission_answered(*id, result.and_then(of_submission), out),
            Errand::PassedOn(token, withdrawn) => {
                let told = result.and_then(of_job).map(Response::Job);
                out.replies.push((*token, told.map_err(|failure| passed_on_failure(failure, withdrawn.as_ref()))));
            }
            Errand::Attempt(task, name) => self.on_attempt_answered(task, name, result.and_then(of_task), out),
            Errand::Tell | Errand::CancelAttempt | Errand::Unlink => {}
        }
    }

    fn run_local(&mut self, out: &mut Effects) {
        for _ in 0..LOCAL_AT_ONCE {
            match self.local.pop_front() {
                None => return,
                Some(Local::OwnTask(task, name, answer)) => self.end_attempt(&task, &name, answer, out),
                Some(Local::Failed(errand, to)) => {
                    let (open, full) = (Open::closed(errand, to), "too many calls wait".to_owned());
                    self.on_answered(open, Err(CallFailure::Unreachable(full)), out);
                }
            }
        }
    }

    fn run_timers(&mut self, out: &mut Effects) {
        while let Some((id, open)) = self.calls.overdue(self.now.time) {
            out.abandoned.push(id);
            self.on_answered(open, Err(CallFailure::TimedOut), out);
        }
        self.keep_leases(out);
        self.keep_links(out);
        self.role_timer(out);
        self.stop_further(out);
    }

    /// What follows from any step: work goes out, changes are saved, sent and told, and a leader whose jobs are
    /// done steps down.
    fn finish_step(&mut self, out: &mut Effects) {
        self.activate_if_ready(out);
        self.end_postponed(out);
        self.end_late_jobs(out);
        self.retain(out);
        self.pump_queue(out);
        self.dispatch(out);
        self.run_local(out);
        self.save(out);
        self.replicate(out);
        self.advance_held(out);
        self.answer_held(out);
        self.rotate_if_done(out);
        if let Role::Leading(leading) = &self.role
            && leading.heartbeat_due <= self.now.time
        {
            self.heartbeat(out);
        }
    }

    /// A leader that has admitted its five jobs and finished all work steps down, and begins the next election
    /// itself: a rotation costs milliseconds, not a timeout (section 6, 1). One that hands over, or has drained for
    /// too long, leaves what is unfinished to the next.
    fn rotate_if_done(&mut self, out: &mut Effects) {
        let Role::Leading(leading) = &self.role else { return };
        let Some(full_since) = leading.full_since.filter(|_| leading.active) else { return };
        let done = self.ledger.unfinished().next().is_none() && leading.held >= self.ledger.number();
        let hands_over = match self.settings.rotation {
            Rotation::Handover => true,
            Rotation::Drain => self.now.time.since(full_since) >= self.settings.drain_limit,
        };
        if (done || hands_over) && !self.holds_submissions() && self.stopping.is_none() {
            let (why, cause) = if done {
                ("it has served its jobs", "the leader has served its jobs")
            } else {
                ("it hands over", "the leader hands over")
            };
            // Its last word: followers show the outcomes that are held now, whoever comes next.
            self.heartbeat(out);
            self.step_down(why, out);
            self.start_election(cause, out);
        }
    }

    /// When [`Input::TimerFired`] is due next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        if self.stopping == Some(Stopping::Ended) {
            return None;
        }
        let paused = match &self.role {
            Role::Leading(leading) => leading.schedule.next_deadline(self.now.time),
            Role::Starting | Role::Seeking(_) | Role::Following(_) => None,
        };
        let queue = self.queue.next_deadline(self.now.time);
        let running = if self.stopping.is_none() {
            let pings = self.overlay.next_deadline();
            [self.leases.next_deadline(), pings, Some(self.upkeep_due)]
        } else {
            [None, None, None]
        };
        let jobs = self.job_deadline();
        let all = [self.calls.next_deadline(), self.role_deadline(), self.stop_deadline(), paused, queue, jobs];
        all.into_iter().chain(running).flatten().min()
    }
}

/// An answer of the wrong kind is a peer's bug: it counts as none.
fn wrong_kind() -> CallFailure {
    CallFailure::Unreachable("the answer is of another kind than the call".to_owned())
}

/// What a caller is told whose cancel or query was passed on in vain; `withdrawn` is the job that waited here.
fn passed_on_failure(failure: CallFailure, withdrawn: Option<&JobId>) -> Refusal {
    let gone = |text: String| Refusal::new(Code::Unavailable, text).retry_in(Duration::from_millis(100));
    match failure {
        CallFailure::Refused(refusal) => match withdrawn {
            Some(id) if refusal.code == Code::NotFound => requests::never_admitted(id),
            _ => refusal,
        },
        CallFailure::Unreachable(why) => gone(format!("the leader can't be reached ({why}): try again")),
        CallFailure::TimedOut => gone("the leader did not answer in time: try again".to_owned()),
    }
}

macro_rules! answer_of {
    ($name:ident, $pattern:pat => $value:expr, $kind:ty) => {
        fn $name(response: Response) -> Result<$kind, CallFailure> {
            if let $pattern = response { Ok($value) } else { Err(wrong_kind()) }
        }
    };
}

answer_of!(of_elect, Response::Elect(answer) => answer, message::ElectAnswer);
answer_of!(of_announce, Response::Announce(answer) => answer, message::AnnounceAnswer);
answer_of!(of_ping, Response::Ping(status) => status, message::Status);
answer_of!(of_submission, Response::Submitted(answer) => answer, message::Submitted);
answer_of!(of_job, Response::Job(view) => view, std::sync::Arc<view::JobView>);
answer_of!(of_task, Response::Task(answer) => answer, TaskAnswer);

fn of_status(response: Response) -> Result<(bool, message::Status), CallFailure> {
    match response {
        Response::Ping(status) => Ok((true, status)),
        Response::AddNeighbor { accepted, status } => Ok((accepted, status)),
        Response::Elect(_)
        | Response::Announce(_)
        | Response::Done
        | Response::Submitted(_)
        | Response::Job(_)
        | Response::Jobs(_)
        | Response::Cluster(_)
        | Response::Task(_) => Err(wrong_kind()),
    }
}
