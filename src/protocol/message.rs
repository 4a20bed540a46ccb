//! What nodes and clients say to one another, as plain data: unary calls, and the two directions of Replicate.
//!
//! Owns the vocabulary of section 3 of the contract. Never how it is encoded: that is `wire`'s.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::jobs::{Payload, Value};

use super::ids::{
    Address, Candidate, Digest, ElectionId, Identity, Incarnation, Jac, JobId, JobKey, Leadership, Member, NodeId,
    Number, Position, TaskKey, Term,
};
use super::ledger::{Past, Stamped};
use super::time::Wall;
use super::trace::Trace;
use super::view::{ClusterView, JobView};

/// A unary call to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A hop of an election flood.
    Elect(Elect),
    /// A leadership is made known.
    Announce(Announce),
    /// Link up, both ways.
    AddNeighbor(Status),
    /// The caller takes down its link.
    RemoveNeighbor(Identity),
    /// Are you there, and whom do you follow?
    Ping(Option<Status>),
    /// Take a job.
    SubmitJob(SubmitJob),
    /// End a job.
    CancelJob(JobQuery),
    /// One job, as this node's replica has it.
    GetJob(JobQuery),
    /// Jobs by key, in order.
    ListJobs(ListJobs),
    /// The cluster as this node sees it.
    GetCluster,
    /// Compute one slice. The answer comes when it is computed.
    ExecuteTask(ExecuteTask),
    /// An attempt is not wanted any more.
    CancelTask(CancelTask),
}

/// The answer to a [`Request`], each to the one of like name.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// To `Elect`: what a whole branch of the flood found.
    Elect(ElectAnswer),
    /// To `Announce`.
    Announce(AnnounceAnswer),
    /// To `AddNeighbor`: whether the link is up, and the answerer's own status.
    AddNeighbor {
        /// Whether the link is up on the answerer's side.
        accepted: bool,
        /// Who answers.
        status: Status,
    },
    /// To `RemoveNeighbor` and `CancelTask`: done.
    Done,
    /// To `Ping`.
    Ping(Status),
    /// To `SubmitJob`.
    Submitted(Submitted),
    /// To `CancelJob` and `GetJob`.
    Job(Arc<JobView>),
    /// To `ListJobs`, in the order of their keys.
    Jobs(Vec<Arc<JobView>>),
    /// To `GetCluster`.
    Cluster(Box<ClusterView>),
    /// To `ExecuteTask`.
    Task(TaskAnswer),
}

/// Why a call was answered with an error. Data inside the core, a gRPC status at its door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The canonical code.
    pub code: Code,
    /// What, which value, what to do.
    pub message: String,
    /// After how long a repeat makes sense, where one does.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// A refusal that a repeat does not mend.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), retry_after: None }
    }

    /// The same, with the time after which a repeat makes sense.
    #[must_use]
    pub fn retry_in(mut self, after: Duration) -> Refusal {
        self.retry_after = Some(after);
        self
    }
}

/// The canonical codes that the core uses (google.rpc.Code).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The caller's input can never be right.
    InvalidArgument,
    /// No such job.
    NotFound,
    /// The id is taken by another payload.
    AlreadyExists,
    /// Not in this state: an older leadership, a stale term.
    FailedPrecondition,
    /// A bound is reached.
    ResourceExhausted,
    /// Not now; elsewhere or later.
    Unavailable,
    /// The attempt was cancelled.
    Cancelled,
    /// Time ran out.
    DeadlineExceeded,
}

/// Why a call of ours brought no answer of its own kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// The peer answered with an error.
    Refused(Refusal),
    /// Not connected, connection broken, or the outbox to that peer is full; the text says which.
    Unreachable(String),
    /// No answer within the deadline of the call.
    TimedOut,
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallFailure::Refused(refusal) => write!(f, "refused: {}", refusal.message),
            CallFailure::Unreachable(why) => write!(f, "unreachable: {why}"),
            CallFailure::TimedOut => f.write_str("no answer in time"),
        }
    }
}

/// A leadership and where its leader is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The leadership.
    pub leadership: Leadership,
    /// Its leader.
    pub member: Member,
}

/// What a worker says of itself in each ping and when it links up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Who speaks.
    pub member: Member,
    /// Whom it follows at present (itself, when it leads); none while it looks for a leader.
    pub following: Option<Leader>,
    /// Its own JAC. For display only: candidacies state theirs in the flood.
    pub jac: Jac,
    /// Its links.
    pub links: Vec<NodeId>,
    /// Tasks that it computes now.
    pub running: u32,
    /// The JAC that it remembers for whom it speaks to; 0 if none (section 6).
    pub remembers: Jac,
}

/// A directed edge of the overlay over which a call failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The caller.
    pub from: NodeId,
    /// Who gave no answer.
    pub to: NodeId,
}

/// A hop of an election flood (section 6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elect {
    /// The election.
    pub election: ElectionId,
    /// The term that it fills.
    pub term: Term,
    /// Who sends this hop.
    pub from: Member,
    /// The leadership that it replaces; nobody forwards to that leader, and only followers of another refuse.
    pub replaces: Option<Leadership>,
    /// Edges that failed in the flood before, to be left out. At most [`limits::EDGES`](super::limits::EDGES).
    pub around: Vec<Edge>,
    /// Winners that could not be reached; they offer nothing. At most [`limits::EXCLUDED`](super::limits::EXCLUDED).
    pub excluded: Vec<Identity>,
    /// The time that the recipient's whole branch has, up to 10 s.
    pub budget: Duration,
}

/// What a branch of the flood found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElectAnswer {
    /// The recipient had met this election before: the caller ignores the branch.
    pub duplicate: bool,
    /// The best candidate of the branch.
    pub best: Option<Candidate>,
    /// Workers of the branch that took part.
    pub nodes: u32,
    /// Edges of the branch that failed. At most [`limits::EDGES`](super::limits::EDGES).
    pub failed: Vec<Edge>,
    /// Living leaders that the branch named. At most [`limits::REFUSALS`](super::limits::REFUSALS), newest first.
    pub refusals: Vec<Leader>,
    /// The highest term that the branch has met; above the election's own, the election is stale.
    pub highest_term: Term,
}

/// To what end a leadership is made known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The initiator tells the winner, first of all.
    Won,
    /// The COORDINATOR flood over the overlay; handled once.
    Flood,
    /// A follower tells its own leader of a leadership that it met.
    Met,
    /// One living leader calls another: which of us stays?
    Settle,
}

/// A leadership is made known (section 6, 4 and 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announce {
    /// To what end.
    pub purpose: Purpose,
    /// Who sends this hop.
    pub from: Member,
    /// The leadership, and where its leader is.
    pub leader: Leader,
    /// The election that it came from; none for a leader that moved up.
    pub election: Option<ElectionId>,
    /// The leadership that it replaces.
    pub replaces: Option<Leadership>,
    /// Workers that the flood counted (`Won`, `Flood`) or that the calling leader reaches (`Settle`).
    pub workers: u32,
}

/// The answer to [`Announce`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnounceAnswer {
    /// Taken. False for duplicates and worse ones; to `Settle` true says that the callee steps down.
    pub accepted: bool,
    /// Whom the callee follows after this call.
    pub following: Option<Leader>,
    /// How many workers the callee reaches as a leader; 0 if it leads not.
    pub reaches: u32,
}

/// A job as its client hands it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitJob {
    /// Id and digest.
    pub key: JobKey,
    /// What to compute.
    pub payload: Payload,
    /// When it fails unless it has ended by then; of a job that is admitted already the earlier one counts.
    pub deadline: Option<Wall>,
    /// Set by a worker that passes it on to its leader, so that nobody passes it on twice.
    pub forwarded: bool,
    /// Where its submission stands in a trace, if anybody traces it.
    pub trace: Option<Trace>,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq)]
pub enum Submitted {
    /// Acknowledged: the job is held (section 1).
    Held(Arc<JobView>),
    /// To a forwarded one only: the leader has no room now; it waits where it is.
    NoRoom,
}

/// A job's name as people type it: an id, or `ID:DIGEST` where one id has two payloads (section 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobQuery {
    /// The id.
    pub id: JobId,
    /// The digest, if given.
    pub digest: Option<Digest>,
    /// Set by a worker that passes it on.
    pub forwarded: bool,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListJobs {
    /// The last key of the page before.
    pub after: Option<JobKey>,
    /// At most so many, 1 to [`limits::PAGE`](super::limits::PAGE).
    pub limit: u32,
}

/// A hand-out of a task. It carries its slice only (section 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecuteTask {
    /// The fence: under which leadership.
    pub leadership: Leadership,
    /// Which task.
    pub task: TaskKey,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// What to compute.
    pub slice: Payload,
}

/// An attempt is not wanted any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelTask {
    /// The fence.
    pub leadership: Leadership,
    /// Which task.
    pub task: TaskKey,
    /// Which attempt.
    pub attempt: u32,
}

/// What an attempt came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskAnswer {
    /// The partial result, or why there is none.
    pub result: Result<Value, TaskFailure>,
    /// Time in computation.
    pub took: Duration,
}

/// Why an attempt brought no result (section 7: failures are data).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFailure {
    /// Whether another attempt may do better.
    pub retryable: bool,
    /// Whether it counts against the task; a lost worker, a full queue and a cancelled attempt do not.
    pub charged: bool,
    /// For people.
    pub reason: Arc<str>,
}

/// A follower's frames on its Replicate stream.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "few are under way at once, and each is moved, not copied")]
pub enum Up {
    /// The first frame, and again after [`Down::Rejoin`]: where this replica stands.
    Join {
        /// Who follows.
        status: Status,
        /// What its replica holds.
        position: Position,
        /// How many jobs its replica holds: a lower bound of what a hash exchange would carry.
        jobs: u64,
    },
    /// To [`Down::WantHashes`]: one per job.
    Hashes(Vec<(JobKey, u64)>),
    /// To [`Down::WantRecords`] and [`Down::WantJobs`]: what was asked for, whole.
    Upload(Vec<Stamped>),
    /// To every frame, at once; and again when more has been journalled.
    Ack {
        /// Journalled up to here, in the numbers of the present leadership; none while joining.
        number: Option<Number>,
        /// Its own JAC, for display.
        jac: Jac,
        /// Tasks that it computes now.
        running: u32,
        /// Its links.
        links: Vec<NodeId>,
    },
}

/// A leader's frames on a Replicate stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Down {
    /// Not your leader (any more); the stream ends. Names whom it follows.
    NotLeader(Option<Leader>),
    /// A live process with this higher incarnation owns the follower's node id: the follower must end.
    Superseded(Incarnation),
    /// The leader stays and moved to a higher term: join again, on this stream.
    Rejoin(Leader),
    /// Your records with numbers above this one, please.
    WantRecords(Number),
    /// A hash per job, please.
    WantHashes,
    /// All records of these jobs, please.
    WantJobs(Vec<JobKey>),
    /// What changed, whole: applied in one write with the new position.
    Batch(Batch),
    /// The leader lives.
    Heartbeat(Heartbeat),
    /// What the leader knows of every worker, for display; at most every 500 ms.
    Roster(Vec<Status>),
}

/// Changes of the ledger up to a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The leadership that sends it.
    pub leadership: Leadership,
    /// All records that changed after what the follower has.
    pub records: Vec<Stamped>,
    /// The number that its replica holds with them.
    pub number: Number,
    /// The leader's past, in the batch that ends a joining; it stays the same afterwards.
    pub past: Option<Past>,
    /// What is held (section 1).
    pub held: Number,
    /// In the batch that ends a joining: the JAC that the leader remembers for the follower (section 6).
    pub remembers: Jac,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The leadership.
    pub leadership: Leadership,
    /// What is held (section 1): outcomes up to here may be told.
    pub held: Number,
    /// Submissions that the leader would admit now.
    pub room: u32,
    /// Admissions so far in this leadership.
    pub admitted: u32,
}

/// A directory's name in the settings: its place in FLOODLINE_BOOTSTRAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectoryId(pub u32);

/// A call to a directory (section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryRequest {
    /// Take a lease.
    Register(Member),
    /// Renew it.
    Heartbeat(Identity),
    /// Give it back.
    Deregister(Identity),
}

/// A directory's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryAnswer {
    /// The lease runs so long from now.
    Leased(Duration),
    /// The lease is not known here (any more): register again.
    UnknownLease,
    /// A higher incarnation of this node id owns the lease: the caller must end.
    Superseded(Incarnation),
    /// The lease is given back.
    Left,
}

/// A point in a directory's history. A restarted directory has another incarnation, so no old number fits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision {
    /// Which start of the directory.
    pub incarnation: Incarnation,
    /// Counts its changes.
    pub number: u64,
}

/// A message of WatchMembership: a snapshot first, then changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembershipEvent {
    /// All members.
    Snapshot(Revision, Vec<Member>),
    /// One came, or came back in a higher incarnation.
    Joined(Revision, Member),
    /// One left or fell silent.
    Left(Revision, Identity),
    /// The changes since the asked revision are not known (any more): a snapshot follows.
    Resync,
}

/// Where a call of this node's goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// Who is meant; unknown for an address of FLOODLINE_PEERS that has not answered yet.
    pub node: Option<NodeId>,
    /// Where it is dialled.
    pub address: Address,
}

impl From<&Member> for Peer {
    fn from(member: &Member) -> Peer {
        Peer { node: Some(member.node.clone()), address: member.address.clone() }
    }
}
