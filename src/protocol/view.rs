//! What people see of the cluster and of a job: plain data, made from the state and never part of it.
//!
//! Owns the shapes behind section 11's JSON. Never decides anything.

use std::sync::Arc;
use std::time::Duration;

use crate::jobs::{Kind, Value};

use super::ids::{Digest, Jac, JobId, JobKey, Leadership, Member, NodeId, Number, Term};
use super::time::Wall;
use super::trace::{Trace, TraceId};

/// A job's state as told to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Waits at a worker for admission; not acknowledged.
    Queued,
    /// Admitted, not ended.
    Running,
    /// Ended on request.
    Cancelled,
    /// Ended without an answer.
    Failed,
    /// Ended with its answer.
    Succeeded,
}

impl JobState {
    /// Whether nothing but a join with a higher outcome changes it (section 8).
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            JobState::Queued | JobState::Running => false,
            JobState::Cancelled | JobState::Failed | JobState::Succeeded => true,
        }
    }
}

/// Why a job failed that had not ended by its deadline.
pub const DEADLINE_PASSED: &str = "its deadline passed";

/// When a record was last changed: the progress number and the leadership that gave it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Term of the leadership.
    pub term: Term,
    /// The mutation.
    pub number: Number,
    /// Leader of the leadership.
    pub leader: NodeId,
}

/// A place in a leadership's count of admissions (section 8: one record with the job).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Admission {
    /// Term of the admitting leadership.
    pub term: Term,
    /// Its leader.
    pub leader: NodeId,
    /// The how-manieth admission of that leadership, from 1.
    pub place: u32,
    /// The leader's JAC after it.
    pub jac: Jac,
    /// Into how many slices it cut the job.
    pub slices: u32,
}

/// One job, as a replica has it and may tell it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    /// Id and digest.
    pub key: JobKey,
    /// Its kind.
    pub kind: Kind,
    /// Its state. A terminal one is shown when it is held, not before.
    pub state: JobState,
    /// The answer, once it succeeded.
    pub answer: Option<Value>,
    /// Why it failed.
    pub error: Option<Arc<str>>,
    /// Its last change; none while queued.
    pub stamp: Option<Stamp>,
    /// Distinct tasks completed.
    pub completed: u32,
    /// Tasks of the cut that leads.
    pub total: u32,
    /// When its client's submission was admitted first (queued: taken).
    pub submitted_at: Wall,
    /// When it ended.
    pub finished_at: Option<Wall>,
    /// Every admission: one, or one per side of a split.
    pub admissions: Vec<Admission>,
    /// What each worker did, by node id.
    pub workers: Vec<WorkerShare>,
    /// The tasks of the cut that leads, in order.
    pub tasks: Vec<TaskView>,
    /// Where its submission stands in a trace, if anybody traces it.
    pub trace: Option<Trace>,
}

/// What one worker did for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerShare {
    /// The worker.
    pub node: NodeId,
    /// Tasks that it completed.
    pub completed: u32,
    /// Tasks that it has.
    pub running: u32,
    /// Its time in completed computations.
    pub busy: Duration,
}

/// One task of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// Which slice, from 0.
    pub slice: u32,
    /// Its state.
    pub state: TaskState,
    /// The attempt that completed it, else the last one; 0 before the first.
    pub attempt: u32,
    /// Who has it or completed it.
    pub worker: Option<NodeId>,
    /// Time in computation, once completed.
    pub took: Option<Duration>,
    /// Its partial result, once completed.
    pub partial: Option<Value>,
}

/// A task's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskState {
    /// Nobody has it.
    Pending,
    /// An attempt is out.
    Running,
    /// Its partial result is known.
    Completed,
}

/// The cluster as one node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    /// The leadership that it follows, if any.
    pub leadership: Option<Leadership>,
    /// Admissions so far in it, as last heard.
    pub admitted: u32,
    /// How many a leadership may admit.
    pub cap: u32,
    /// Submissions that wait at this node.
    pub queued: u32,
    /// Every worker known, by node id, dead ones included while they are remembered.
    pub nodes: Vec<NodeView>,
}

/// A worker, as one node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Who.
    pub member: Member,
    /// A directory lists it, a link to it is up, or it answered lately.
    pub alive: bool,
    /// Its JAC, as last heard.
    pub jac: Jac,
    /// Its links, as last heard.
    pub links: Vec<NodeId>,
    /// Tasks that it computes, as last heard.
    pub running: u32,
}

/// The kind of an event that says: events before this one are forgotten, what they told must be asked anew.
pub const RESYNC: &str = "resync";

/// Something that happened at a node, as people are told of it (`events` of section 11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Counts the events of the node that serves them, from 1.
    pub seq: u64,
    /// When.
    pub at: Wall,
    /// Where it happened.
    pub node: NodeId,
    /// What, in lower case with dashes.
    pub kind: Arc<str>,
    /// The term it is about.
    pub term: Option<Term>,
    /// The job it is about.
    pub job: Option<JobId>,
    /// The slice it is about.
    pub task: Option<u32>,
    /// The attempt it is about.
    pub attempt: Option<u32>,
    /// One sentence.
    pub text: Arc<str>,
    /// The trace of the election or job that it is about, if its node traces that.
    pub trace: Option<TraceId>,
}

/// `ID:DIGEST`, the name of a job whose id two payloads share.
#[must_use]
pub fn full_name(id: &str, digest: &Digest) -> String {
    format!("{id}:{digest}")
}
