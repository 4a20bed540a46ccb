//! What happened, said once: each notice becomes an event for people, a log line, later a span and a metric.
//!
//! Owns the list of happenings and their one-sentence form. Never decides where a notice goes.

use std::sync::Arc;

use super::ids::{Address, ElectionId, Identity, Jac, JobId, JobKey, Leadership, NodeId, TaskKey, Term};
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
    },
    /// An election reached this node for the first time.
    ElectionReached {
        /// Which.
        election: ElectionId,
        /// Its term.
        term: Term,
        /// From whom.
        from: NodeId,
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
    },
    /// A job's outcome is held, and told.
    JobEnded(JobKey, JobState),
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
            Notice::ElectionEnded { .. } => "election-ended",
            Notice::LeadershipBegan { .. } => "leadership-began",
            Notice::LeadershipActive(..) => "leadership-active",
            Notice::LeadershipMovedUp(..) => "leadership-moved-up",
            Notice::LeadershipEnded(..) => "leadership-ended",
            Notice::Following(_) => "following",
            Notice::FollowerJoined(..) => "follower-joined",
            Notice::FollowerLost(..) => "worker-lost",
            Notice::JobAdmitted { .. } => "job-admitted",
            Notice::JobEnded(..) => "job-ended",
            Notice::OutcomeRaised(..) => "outcome-raised",
            Notice::TaskHandedOut { .. } => "task-handed-out",
            Notice::TaskEnded { .. } => "task-ended",
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
            | Notice::ElectionEnded { term, .. }
            | Notice::JobAdmitted { term, .. } => Some(*term),
            Notice::LeadershipBegan { leadership, .. }
            | Notice::LeadershipActive(leadership, _)
            | Notice::LeadershipMovedUp(_, leadership)
            | Notice::LeadershipEnded(leadership, _)
            | Notice::Following(leadership) => Some(leadership.term),
            Notice::MemberJoined(_)
            | Notice::MemberLeft(_)
            | Notice::LinkUp(_)
            | Notice::LinkDown(..)
            | Notice::FollowerJoined(..)
            | Notice::FollowerLost(..)
            | Notice::JobEnded(..)
            | Notice::OutcomeRaised(..)
            | Notice::TaskHandedOut { .. }
            | Notice::TaskEnded { .. }
            | Notice::Fenced { .. }
            | Notice::ValuesDiffer(_)
            | Notice::Stopping
            | Notice::PeerIgnored(..) => None,
        }
    }

    /// The job, slice and attempt that it is about.
    fn subject(&self) -> (Option<JobId>, Option<u32>, Option<u32>) {
        match self {
            Notice::JobAdmitted { job, .. } | Notice::JobEnded(job, _) | Notice::OutcomeRaised(job, ..) => {
                (Some(job.id.clone()), None, None)
            }
            Notice::TaskHandedOut { task, attempt, .. }
            | Notice::TaskEnded { task, attempt, .. }
            | Notice::Fenced { task, attempt, .. } => (Some(task.job.id.clone()), Some(task.slice), Some(*attempt)),
            Notice::ValuesDiffer(task) => (Some(task.job.id.clone()), Some(task.slice), None),
            Notice::MemberJoined(_)
            | Notice::MemberLeft(_)
            | Notice::LinkUp(_)
            | Notice::LinkDown(..)
            | Notice::ElectionStarted { .. }
            | Notice::ElectionReached { .. }
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
            Notice::ElectionEnded { election, outcome, .. } => format!("election {election}: {outcome}"),
            Notice::LeadershipBegan { leadership, workers } => {
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
            Notice::JobAdmitted { job, place, jac, .. } => {
                format!("{} is admitted as number {place} of its term; JAC is now {jac}", job.id)
            }
            Notice::JobEnded(job, state) => format!("{} ended: {state:?}", job.id),
            Notice::OutcomeRaised(job, from, to) => format!("{} was {from:?} and is {to:?} after a join", job.id),
            Notice::TaskHandedOut { task, worker, second, .. } => {
                let what = if *second { "second copy of task" } else { "task" };
                format!("{what} {} of {} goes to {worker}", task.slice, task.job.id)
            }
            Notice::TaskEnded { task, worker, failure, .. } => {
                let outcome = failure.as_deref().unwrap_or("completed");
                format!("task {} of {} at {worker}: {outcome}", task.slice, task.job.id)
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
