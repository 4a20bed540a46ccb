//! All that can happen to a worker. Each comes with both clocks, and nothing else comes in.

use std::time::Duration;

use crate::jobs::Value;

use super::ids::{CallId, ComputeId, ReplyToken, SaveId, StreamId};
use super::message::{CallFailure, DirectoryAnswer, DirectoryId, Down, MembershipEvent, Request, Response, Up};

/// One event. What comes for a name that the worker has forgotten changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The process is up; first of all, once.
    Started,
    /// The time of [`Worker::next_deadline`](super::Worker::next_deadline) has come. Early or doubled ones are harmless.
    TimerFired,
    /// Somebody calls. `token` is the shell's, fresh, and is answered at most once.
    Called {
        /// Names the waiting caller.
        token: ReplyToken,
        /// What it wants.
        request: Request,
    },
    /// A caller went away or ran out of time.
    CallerGone {
        /// Who.
        token: ReplyToken,
    },
    /// A call of ours came to something.
    Answered {
        /// Which.
        call: CallId,
        /// What.
        result: Result<Response, CallFailure>,
    },
    /// A follower opened a Replicate stream to this node. `stream` is the shell's, fresh.
    FollowerOpened {
        /// Names it.
        stream: StreamId,
    },
    /// A follower's frame.
    FollowerSent {
        /// On which stream.
        stream: StreamId,
        /// What.
        frame: Up,
    },
    /// A follower's stream ended, for whatever reason.
    FollowerEnded {
        /// Which.
        stream: StreamId,
    },
    /// A frame of the leader's, on the stream that this worker opened.
    LeaderSent {
        /// On which stream.
        stream: StreamId,
        /// What.
        frame: Down,
    },
    /// A part of a large frame came: a sign of life, no more.
    LeaderStirred {
        /// On which stream.
        stream: StreamId,
    },
    /// The stream to the leader ended or never came up.
    LeaderEnded {
        /// Which.
        stream: StreamId,
    },
    /// A directory answered or could not be reached.
    DirectoryAnswered {
        /// Which directory.
        directory: DirectoryId,
        /// What it said.
        result: Result<DirectoryAnswer, CallFailure>,
    },
    /// A message of a directory's membership stream.
    Membership {
        /// Which directory.
        directory: DirectoryId,
        /// What changed.
        event: MembershipEvent,
    },
    /// A membership stream ended.
    WatchEnded {
        /// Which directory's.
        directory: DirectoryId,
    },
    /// The journal has this save and all before it.
    Saved {
        /// Up to which.
        save: SaveId,
    },
    /// A computation ended.
    Computed {
        /// Which.
        compute: ComputeId,
        /// Its value; none if it was cancelled or failed.
        value: Option<Value>,
        /// Time in computation.
        took: Duration,
    },
    /// SIGTERM: step down, hand back, leave; [`Effects::ended`](super::effects::Effects::ended) says when it is done.
    Stop,
}
