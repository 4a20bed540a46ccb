//! What happened, said once: each notice becomes an event for people, a log line, later a span and a metric.
//!
//! Owns the list of happenings and their one-sentence form. Never decides where a notice goes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::ids::{Address, Candidate, ElectionId, Identity, Jac, JobId, JobKey, Leadership, NodeId, TaskKey, Term};
use super::message::CallFailure;
use super::trace::Trace;
use super::view::JobState;

/// One happening at this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A member is new to this node, or came back in a higher incarnation.
    MemberJoined(Identity),
    /// A member left or its lease ran out.
    MemberLeft(Identity),
    /// A link is up.
    LinkUp(NodeId),
    /// A link is down, and why.
    LinkDown(NodeId, &'static str),
    /// This node began an election.
    ElectionStarted {
        /// Which.
        election: ElectionId,
        /// The term that it fills.
        term: Term,
        /// Why.
        cause: &'static str,
        /// The leadership that it replaces.
        replaces: Option<Leadership>,
        /// The JAC of this node.
        jac: Jac,
    },
    /// An election reached this node for the first time, and it takes part.
    ElectionReached {
        /// Which.
        election: ElectionId,
        /// Its term.
        term: Term,
        /// From whom.
        from: NodeId,
        /// The JAC of this node.
        jac: Jac,
        /// The time that this node's branch has.
        budget: Duration,
    },
    /// A hop of an election in which this node takes no part.
    ElectionDeclined {
        /// Which.
        election: ElectionId,
        /// Its term.
        term: Term,
        /// From whom.
        from: NodeId,
        /// Why.
        why: Declined,
    },
    /// A call of an election's flood brought no answer.
    EdgeFailed {
        /// Which election.
        election: ElectionId,
        /// Who was called.
        to: NodeId,
        /// What came instead.
        failure: CallFailure,
    },
    /// All of this node's branches of an election are in.
    BranchEnded {
        /// Which election.
        election: ElectionId,
        /// Workers below this node that took part, itself included.
        nodes: u32,
        /// The best candidate among them.
        best: Option<Candidate>,
    },
    /// This node's own election has a winner, who is told first.
    WinnerChosen {
        /// Which election.
        election: ElectionId,
        /// Who leads if it takes the part.
        winner: Leadership,
    },
    /// This node's own election came to an end.
    ElectionEnded {
        /// Which.
        election: ElectionId,
        /// Its term.
        term: Term,
        /// What it came to, in words.
        outcome: String,
    },
    /// This node leads.
    LeadershipBegan {
        /// The leadership.
        leadership: Leadership,
        /// Workers that the flood counted.
        workers: u32,
        /// The election that it came from.
        election: Option<ElectionId>,
    },
    /// This node admits jobs now.
    LeadershipActive(Leadership, u32),
    /// This node stays leader in a higher term than one that it met.
    LeadershipMovedUp(Leadership, Leadership),
    /// This node leads no longer, and why.
    LeadershipEnded(Leadership, &'static str),
    /// This node follows a leadership.
    Following(Leadership),
    /// A follower's replica joined this leader's.
    FollowerJoined(NodeId, &'static str),
    /// A follower is no longer live.
    FollowerLost(NodeId, &'static str),
    /// A submission waits here until the leader has room.
    SubmissionWaits {
        /// The job.
        job: JobKey,
        /// Where its submission stands in a trace.
        trace: Option<Trace>,
    },
    /// A submission is on its way to this leader.
    SubmissionSent(JobKey, NodeId),
    /// Whoever waited here for a submission got an answer.
    SubmissionAnswered {
        /// The job.
        job: JobKey,
        /// Why it was not taken; none if it was.
        refused: Option<String>,
    },
    /// A job was admitted.
    JobAdmitted {
        /// The job.
        job: JobKey,
        /// In which term.
        term: Term,
        /// Its place in the leadership.
        place: u32,
        /// The leader's JAC after it.
        jac: Jac,
        /// Where its submission stands in a trace.
        trace: Option<Trace>,
    },
    /// This new leader goes on with a job that another one had admitted.
    JobTakenUp {
        /// The job.
        job: JobKey,
        /// Where its submission stands in a trace.
        trace: Option<Trace>,
    },
    /// A job's outcome is held, and told; and where its submission stands in a trace.
    JobEnded(JobKey, JobState, Option<Trace>),
    /// The other side of a split, or a holder thought lost, had ended a job in a higher state.
    OutcomeRaised(JobKey, JobState, JobState),
    /// An attempt was handed out.
    TaskHandedOut {
        /// The task.
        task: TaskKey,
        /// Which attempt.
        attempt: u32,
        /// To whom.
        worker: NodeId,
        /// A second copy of a slow one.
        second: bool,
    },
    /// A leader's hand-out was taken here.
    TaskTaken {
        /// The task.
        task: TaskKey,
        /// Which attempt.
        attempt: u32,
        /// Under which leadership.
        from: Leadership,
    },
    /// An attempt ended; none for completed, else why.
    TaskEnded {
        /// The task.
        task: TaskKey,
        /// Which attempt.
        attempt: u32,
        /// Who had it.
        worker: NodeId,
        /// Why it brought nothing.
        failure: Option<Arc<str>>,
    },
    /// An attempt is not wanted any more: another one came first, or the job has ended.
    TaskCalledOff {
        /// The task.
        task: TaskKey,
        /// Which attempt.
        attempt: u32,
        /// Who has it.
        worker: NodeId,
    },
    /// A completion or hand-out was refused by its fence.
    Fenced {
        /// The task.
        task: TaskKey,
        /// Which attempt.
        attempt: u32,
        /// Why.
        reason: &'static str,
    },
    /// Two completions of one task have different values: a bug or a broken machine.
    ValuesDiffer(TaskKey),
    /// The worker was asked to stop.
    Stopping,
    /// A peer of FLOODLINE_PEERS turned out to be this node or is of no use, and why.
    PeerIgnored(Address, &'static str),
}

/// Why a node takes no part in an election that reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declined {
    /// It had met it before, on another way.
    Duplicate,
    /// It hears a leader.
    LeaderLives,
    /// It has met a higher term.
    Stale,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Declined::Duplicate => "it was here before",
            Declined::LeaderLives => "a leader lives",
            Declined::Stale => "its term is stale",
        })
    }
}

/// A notice as people read it (`events` of section 11), without seq, time and node, which its reader adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// In lower case with dashes.
    pub kind: &'static str,
    /// The term it is about.
    pub term: Option<Term>,
    /// The job it is about.
    pub job: Option<JobId>,
    /// The slice it is about.
    pub task: Option<u32>,
    /// The attempt it is about.
    pub attempt: Option<u32>,
    /// One sentence.
    pub text: String,
}

impl Notice {
    /// The notice as an event.
    #[must_use]
    pub fn told(&self) -> Told {
        let (job, task, attempt) = self.subject();
        Told { kind: self.kind(), term: self.term(), job, task, attempt, text: self.text() }
    }

    fn kind(&self) -> &'static str {
        match self {
            Notice::MemberJoined(_) => "member-joined",
            Notice::MemberLeft(_) => "member-left",
            Notice::LinkUp(_) => "link-up",
            Notice::LinkDown(..) => "link-down",
            Notice::ElectionStarted { .. } => "election-started",
            Notice::ElectionReached { .. } => "election-reached",
            Notice::ElectionDeclined { .. } => "election-declined",
            Notice::EdgeFailed { .. } => "edge-failed",
            Notice::BranchEnded { .. } => "branch-ended",
            Notice::WinnerChosen { .. } => "winner-chosen",
            Notice::ElectionEnded { .. } => "election-ended",
            Notice::LeadershipBegan { .. } => "leadership-began",
            Notice::LeadershipActive(..) => "leadership-active",
            Notice::LeadershipMovedUp(..) => "leadership-moved-up",
            Notice::LeadershipEnded(..) => "leadership-ended",
            Notice::Following(_) => "following",
            Notice::FollowerJoined(..) => "follower-joined",
            Notice::FollowerLost(..) => "worker-lost",
            Notice::SubmissionWaits { .. } => "submission-waits",
            Notice::SubmissionSent(..) => "submission-sent",
            Notice::SubmissionAnswered { .. } => "submission-answered",
            Notice::JobAdmitted { .. } => "job-admitted",
            Notice::JobTakenUp { .. } => "job-taken-up",
            Notice::JobEnded(..) => "job-ended",
            Notice::OutcomeRaised(..) => "outcome-raised",
            Notice::TaskHandedOut { .. } => "task-handed-out",
            Notice::TaskTaken { .. } => "task-taken",
            Notice::TaskEnded { .. } => "task-ended",
            Notice::TaskCalledOff { .. } => "task-called-off",
            Notice::Fenced { .. } => "fenced",
            Notice::ValuesDiffer(_) => "values-differ",
            Notice::Stopping => "stopping",
            Notice::PeerIgnored(..) => "peer-ignored",
        }
    }

    fn term(&self) -> Option<Term> {
        match self {
            Notice::ElectionStarted { term, .. }
            | Notice::ElectionReached { term, .. }
            | Notice::ElectionDeclined { term, .. }
            | Notice::ElectionEnded { term, .. }
            | Notice::JobAdmitted { term, .. } => Some(*term),
            Notice::LeadershipBegan { leadership, .. }
            | Notice::LeadershipActive(leadership, _)
            | Notice::LeadershipMovedUp(_, leadership)
            | Notice::LeadershipEnded(leadership, _)
            | Notice::WinnerChosen { winner: leadership, .. }
            | Notice::TaskTaken { from: leadership, .. }
            | Notice::Following(leadership) => Some(leadership.term),
            Notice::MemberJoined(_)
            | Notice::MemberLeft(_)
            | Notice::LinkUp(_)
            | Notice::LinkDown(..)
            | Notice::EdgeFailed { .. }
            | Notice::BranchEnded { .. }
            | Notice::FollowerJoined(..)
            | Notice::FollowerLost(..)
            | Notice::SubmissionWaits { .. }
            | Notice::SubmissionSent(..)
            | Notice::SubmissionAnswered { .. }
            | Notice::JobTakenUp { .. }
            | Notice::JobEnded(..)
            | Notice::OutcomeRaised(..)
            | Notice::TaskHandedOut { .. }
            | Notice::TaskEnded { .. }
            | Notice::TaskCalledOff { .. }
            | Notice::Fenced { .. }
            | Notice::ValuesDiffer(_)
            | Notice::Stopping
            | Notice::PeerIgnored(..) => None,
        }
    }

    /// The job, slice and attempt that it is about.
    fn subject(&self) -> (Option<JobId>, Option<u32>, Option<u32>) {
        match self {
            Notice::SubmissionWaits { job, .. }
            | Notice::SubmissionSent(job, _)
            | Notice::SubmissionAnswered { job, .. }
            | Notice::JobAdmitted { job, .. }
            | Notice::JobTakenUp { job, .. }
            | Notice::JobEnded(job, ..)
            | Notice::OutcomeRaised(job, ..) => (Some(job.id.clone()), None, None),
            Notice::TaskHandedOut { task, attempt, .. }
            | Notice::TaskTaken { task, attempt, .. }
            | Notice::TaskEnded { task, attempt, .. }
            | Notice::TaskCalledOff { task, attempt, .. }
            | Notice::Fenced { task, attempt, .. } => (Some(task.job.id.clone()), Some(task.slice), Some(*attempt)),
            Notice::ValuesDiffer(task) => (Some(task.job.id.clone()), Some(task.slice), None),
            Notice::MemberJoined(_)
            | Notice::MemberLeft(_)
            | Notice::LinkUp(_)
            | Notice::LinkDown(..)
            | Notice::ElectionStarted { .. }
            | Notice::ElectionReached { .. }
            | Notice::ElectionDeclined { .. }
            | Notice::EdgeFailed { .. }
            | Notice::BranchEnded { .. }
            | Notice::WinnerChosen { .. }
            | Notice::ElectionEnded { .. }
            | Notice::LeadershipBegan { .. }
            | Notice::LeadershipActive(..)
            | Notice::LeadershipMovedUp(..)
            | Notice::LeadershipEnded(..)
            | Notice::Following(_)
            | Notice::FollowerJoined(..)
            | Notice::FollowerLost(..)
            | Notice::Stopping
            | Notice::PeerIgnored(..) => (None, None, None),
        }
    }

    fn text(&self) -> String {
        match self {
            Notice::MemberJoined(who) => format!("{} is a member", who.node),
            Notice::MemberLeft(who) => format!("{} is no member any more", who.node),
            Notice::LinkUp(node) => format!("linked to {node}"),
            Notice::LinkDown(node, why) => format!("link to {node} is down: {why}"),
            Notice::ElectionStarted { election, cause, .. } => format!("election {election} begins: {cause}"),
            Notice::ElectionReached { election, from, .. } => format!("election {election} came from {from}"),
            Notice::ElectionDeclined { election, from, why, .. } => {
                format!("election {election} came from {from} and stops here: {why}")
            }
            Notice::EdgeFailed { election, to, failure } => {
                format!("election {election} does not get to {to}: {failure}")
            }
            Notice::BranchEnded { election, nodes, best } => {
                let best = best.as_ref().map_or_else(
                    || "no candidate".to_owned(),
                    |best| format!("best is {} with JAC {}", best.member.node, best.jac),
                );
                format!("election {election} has come back; workers from here on: {nodes}, {best}")
            }
            Notice::WinnerChosen { election, winner } => {
                format!("election {election} chose {} with JAC {}, who is told first", winner.leader, winner.jac)
            }
            Notice::ElectionEnded { election, outcome, .. } => format!("election {election}: {outcome}"),
            Notice::LeadershipBegan { leadership, workers, .. } => {
                format!("{leadership} leads with JAC {}; workers that took part: {workers}", leadership.jac)
            }
            Notice::LeadershipActive(leadership, workers) => {
                format!("{leadership} admits jobs; workers joined: {workers}")
            }
            Notice::LeadershipMovedUp(from, to) => format!("{from} stays leader as {to}"),
            Notice::LeadershipEnded(leadership, why) => format!("{leadership} steps down: {why}"),
            Notice::Following(leadership) => format!("follows {leadership}"),
            Notice::FollowerJoined(node, how) => format!("{node} joined by {how}"),
            Notice::FollowerLost(node, why) => format!("{node} is not live: {why}"),
            Notice::SubmissionWaits { job, .. } => format!("{} waits until the leader has room", job.id),
            Notice::SubmissionSent(job, leader) => format!("{} is sent to {leader}", job.id),
            Notice::SubmissionAnswered { job, refused: None } => format!("{} is acknowledged", job.id),
            Notice::SubmissionAnswered { job, refused: Some(why) } => format!("{} is refused: {why}", job.id),
            Notice::JobTakenUp { job, .. } => format!("{} goes on under this leader", job.id),
            Notice::JobAdmitted { job, place, jac, .. } => {
                format!("{} is admitted as number {place} of its term; JAC is now {jac}", job.id)
            }
            Notice::JobEnded(job, state, _) => format!("{} ended: {state:?}", job.id),
            Notice::OutcomeRaised(job, from, to) => format!("{} was {from:?} and is {to:?} after a join", job.id),
            Notice::TaskHandedOut { task, worker, second, .. } => {
                let what = if *second { "second copy of task" } else { "task" };
                format!("{what} {} of {} goes to {worker}", task.slice, task.job.id)
            }
            Notice::TaskTaken { task, from, .. } => {
                format!("task {} of {} is taken from {from}", task.slice, task.job.id)
            }
            Notice::TaskEnded { task, worker, failure, .. } => {
                let outcome = failure.as_deref().unwrap_or("completed");
                format!("task {} of {} at {worker}: {outcome}", task.slice, task.job.id)
            }
            Notice::TaskCalledOff { task, worker, .. } => {
                format!("task {} of {} is called off at {worker}", task.slice, task.job.id)
            }
            Notice::Fenced { task, reason, .. } => {
                format!("task {} of {} is refused: {reason}", task.slice, task.job.id)
            }
            Notice::ValuesDiffer(task) => format!("two completions of task {} of {} differ", task.slice, task.job.id),
            Notice::Stopping => "asked to stop".to_owned(),
            Notice::PeerIgnored(at, why) => format!("peer {at} is left out: {why}"),
        }
    }
}
