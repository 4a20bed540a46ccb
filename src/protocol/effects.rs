//! All that a worker can do to the world. A step fills these; the shell carries them out in the order of the fields.
//!
//! Nothing here waits: whatever rests on a save is decided when [`Input::Saved`](super::input::Input::Saved) comes
//! back, so each effect of a step may be carried out at once.

use std::collections::BTreeSet;

use crate::jobs::Payload;

use super::ids::{
    CallId, ComputeId, Incarnation, Jac, JobKey, Member, NodeId, Position, ReplyToken, SaveId, StreamId, TaskKey, Term,
};
use super::ledger::{Past, RecordName, Stamped};
use super::message::{DirectoryId, DirectoryRequest, Down, Peer, Refusal, Request, Response, Revision, Up};
use super::notice::Notice;

/// The outputs of one or more steps.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// Writes to the journal, in order; each is one transaction.
    pub saves: Vec<Save>,
    /// Answers to callers.
    pub replies: Vec<(ReplyToken, Result<Response, Refusal>)>,
    /// Calls that nobody waits for any more.
    pub abandoned: Vec<CallId>,
    /// Calls to peers.
    pub calls: Vec<Call>,
    /// Calls to directories; each comes back as one `DirectoryAnswered`.
    pub directories: Vec<(DirectoryId, DirectoryRequest)>,
    /// Membership streams to open, resuming after a revision.
    pub watches: Vec<(DirectoryId, Revision)>,
    /// What happens on Replicate streams, in order.
    pub streams: Vec<StreamEffect>,
    /// Computations to start and to stop, in order.
    pub computations: Vec<ComputeEffect>,
    /// What happened, for events, traces and logs.
    pub notices: Vec<Notice>,
    /// Jobs whose progress moved, for subscribers.
    pub moved: BTreeSet<JobKey>,
    /// The worker has ended; the process must, too.
    pub ended: Option<Ending>,
}

/// A call to a peer. Its deadline is the worker's: the shell's own timeout is a backstop.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Names it.
    pub id: CallId,
    /// Where it goes.
    pub to: Peer,
    /// What it asks.
    pub request: Request,
    /// When the worker gives up on it, as a span from now; the shell waits ten times as long.
    pub within: std::time::Duration,
}

/// One write to the journal, whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Save {
    /// Names it; they complete in order.
    pub id: SaveId,
    /// Records that changed.
    pub records: Vec<Stamped>,
    /// Records that are kept no longer; none of them is among `records`.
    pub removed: Vec<RecordName>,
    /// Where the replica stands with them.
    pub position: Position,
    /// The leaderships followed before, if they changed.
    pub past: Option<Past>,
    /// The highest term known.
    pub term: Term,
    /// This worker's JAC.
    pub jac: Jac,
    /// This worker's incarnation.
    pub incarnation: Incarnation,
    /// JACs of workers that this one remembers for them, as far as they changed (section 6); none: it is forgotten.
    pub remembered: Vec<(NodeId, Option<Jac>)>,
    /// Jobs whose outcome has come to be told, or is another one since and is not told yet. Written with the next save
    /// that is made anyway: until then a node that starts again shows such a job as running.
    pub told: Vec<(JobKey, bool)>,
}

/// Something on a Replicate stream.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEffect {
    /// Open one to a leader.
    Open {
        /// Its name from now on.
        stream: StreamId,
        /// The leader.
        to: Member,
    },
    /// A frame to the leader.
    Up(StreamId, Up),
    /// A frame to a follower.
    Down(StreamId, Down),
    /// End the stream to the leader; nothing more comes from it.
    CloseUp(StreamId),
    /// End a follower's stream, after what was sent; nothing more comes from it.
    CloseDown(StreamId),
}

/// Something for the compute pool.
#[derive(Clone, Debug, PartialEq)]
pub enum ComputeEffect {
    /// Compute a task's slice. At most the member's `concurrency` run at once.
    Start(ComputeId, TaskKey, Payload),
    /// Stop within 50 ms; it comes back as `Computed` without a value.
    Cancel(ComputeId),
}

/// Why a worker has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was asked to, and is done.
    Stopped,
    /// A higher incarnation owns this node id.
    Superseded(Incarnation),
}
