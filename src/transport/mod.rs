//! The way out: calls to peers and directories, and the stream to the leader.
//!
//! Owns connections, and what is under way on them. Never waits: every method returns at once, and what comes of it
//! (answer, failure, overflow) comes back as an [`Input`]. Never decides how long a call may take: that is a timer of
//! the protocol, and its own limit is ten times as long. Invariants: each call is answered once, unless it was
//! abandoned; all tasks end at [`Transport::shutdown`]. Sections 3 to 6 of the contract.

mod calls;
mod dial;
mod directories;
mod listen;
mod peers;
mod replicate;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Settings;
use crate::protocol::Input;
use crate::protocol::effects::Call;
use crate::protocol::ids::{CallId, Member, StreamId};
use crate::protocol::message::{CallFailure, DirectoryId, DirectoryRequest, Peer, Revision, Up};
use crate::protocol::trace::Trace;

use calls::{Caller, lane_of};
use directories::Directories;
use peers::Peers;
use replicate::UpStream;

pub use listen::Listener;

/// How much longer than the protocol this end waits for an answer, so that a held failpoint can stop the clock.
const BACKSTOP: u32 = 10;

/// A node's connections.
#[derive(Debug)]
pub struct Transport {
    caller: Caller,
    peers: Peers,
    directories: Directories,
    under_way: UnderWay,
    /// The streams to leaders that are not closed yet; the protocol has one at a time.
    up: BTreeMap<StreamId, UpStream>,
    tasks: Tasks,
}

impl Transport {
    /// Connects to nobody yet. What comes back goes to `inputs`.
    #[must_use]
    pub fn new(settings: &Settings, inputs: mpsc::Sender<Input>) -> Transport {
        Transport {
            caller: Caller::new(&settings.cluster),
            peers: Peers::default(),
            directories: Directories::new(settings.bootstrap.clone()),
            under_way: UnderWay::default(),
            up: BTreeMap::new(),
            tasks: Tasks { inputs, tracker: TaskTracker::new(), ended: CancellationToken::new() },
        }
    }

    /// Calls a peer, for something that stands there in a trace. Comes back as [`Input::Answered`].
    pub fn call(&mut self, call: Call, trace: Option<Trace>) {
        let Call { id, to, request, within } = call;
        let line = match self.peers.line(&to, lane_of(&request), Instant::now()) {
            Ok(line) => line,
            Err(why) => {
                let failed = Input::Answered { call: id, result: Err(CallFailure::Unreachable(why)) };
                self.tasks.tell(failed);
                return;
            }
        };
        let caller = self.caller.within(trace);
        let handle = self.tasks.spawn(async move {
            let answer = caller.ask(line, request);
            let result = tokio::time::timeout(backstop(within), answer).await;
            Input::Answered { call: id, result: result.unwrap_or(Err(CallFailure::TimedOut)) }
        });
        self.under_way.add(id, handle);
    }

    /// Nobody waits for a call any more: the peer learns of it, and nothing comes back.
    pub fn abandon(&mut self, call: CallId) {
        self.under_way.abandon(call);
    }

    /// Calls a directory. Comes back as [`Input::DirectoryAnswered`].
    pub fn directory(&mut self, directory: DirectoryId, request: DirectoryRequest) {
        match self.directories.line(directory) {
            Ok(line) => {
                let answer = directories::ask(self.caller.clone(), line, request);
                self.tasks.spawn(async move { Input::DirectoryAnswered { directory, result: answer.await } });
            }
            Err(why) => {
                self.tasks.tell(Input::DirectoryAnswered { directory, result: Err(CallFailure::Unreachable(why)) });
            }
        }
    }

    /// Opens a directory's membership stream after a revision, in place of one that is open. Comes back as
    /// [`Input::Membership`] for each message, and as [`Input::WatchEnded`].
    pub fn watch(&mut self, directory: DirectoryId, after: Revision) {
        match self.directories.channel(directory) {
            Ok(channel) => {
                let watch =
                    directories::watch(self.caller.clone(), channel, directory, after, self.tasks.inputs.clone());
                let handle = self.tasks.spawn(watch);
                self.directories.watched(directory, handle);
            }
            Err(_) => self.tasks.tell(Input::WatchEnded { directory }),
        }
    }

    /// Opens a Replicate stream to a leader. Comes back as [`Input::LeaderSent`] for each frame,
    /// [`Input::LeaderStirred`] for each part of one, and [`Input::LeaderEnded`].
    pub fn open_up(&mut self, stream: StreamId, leader: Member) {
        tracing::debug!(%stream, leader = %leader.node, "opens a stream to the leader");
        let dialer = self.peers.dialer(&Peer::from(&leader), Instant::now());
        let (open, ends) = UpStream::new(stream, self.caller.clone(), self.tasks.inputs.clone());
        let handle = self.tasks.spawn_silent(ends.run(dialer));
        self.up.insert(stream, open.with(handle));
    }

    /// Sends a frame to the leader. A stream whose outbox is full ends.
    pub fn up(&mut self, stream: StreamId, frame: Up) {
        // An unknown one has ended already, which is on its way to the protocol.
        let Some(open) = self.up.get(&stream) else { return };
        if let Err(why) = open.send(frame) {
            tracing::debug!(%stream, why, "ends the stream to the leader");
            open.abort();
            self.up.remove(&stream);
            self.tasks.tell(Input::LeaderEnded { stream });
        }
    }

    /// Ends a stream to the leader, after what was sent. Nothing more comes from it.
    pub fn close_up(&mut self, stream: StreamId) {
        if let Some(open) = self.up.remove(&stream) {
            open.close();
        }
    }

    /// Ends everything that is under way. Nothing comes back any more.
    pub fn shutdown(&self) {
        self.tasks.ended.cancel();
        self.tasks.tracker.close();
    }

    /// Waits until all tasks have ended, after [`Transport::shutdown`].
    pub async fn ended(&self) {
        self.tasks.tracker.wait().await;
    }
}

fn backstop(within: Duration) -> Duration {
    within.saturating_mul(BACKSTOP)
}

/// The tasks of a transport, each of which ends with an input or at shutdown.
#[derive(Debug)]
struct Tasks {
    inputs: mpsc::Sender<Input>,
    tracker: TaskTracker,
    ended: CancellationToken,
}

impl Tasks {
    /// Spawned even for an input that is known at once, since the queue may be full and nothing here waits. As many
    /// of them may wait there as the protocol has calls and streams.
    fn tell(&self, input: Input) {
        self.spawn(std::future::ready(input));
    }

    fn spawn(&self, work: impl Future<Output = Input> + Send + 'static) -> AbortHandle {
        let inputs = self.inputs.clone();
        self.spawn_silent(async move {
            let input = work.await;
            // It fails when the node has ended: then nobody is left who wants to know.
            inputs.send(input).await.ok();
        })
    }

    fn spawn_silent(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let ended = self.ended.clone();
        let task = self.tracker.spawn(async move {
            ended.run_until_cancelled(work).await;
        });
        task.abort_handle()
    }
}

/// Calls that may still be abandoned. The protocol bounds them ([`crate::protocol::limits::CALLS`]).
#[derive(Debug, Default)]
struct UnderWay {
    calls: BTreeMap<CallId, AbortHandle>,
    /// The number of entries at which the ended ones are dropped.
    sweep_at: usize,
}

impl UnderWay {
    fn add(&mut self, call: CallId, handle: AbortHandle) {
        if self.calls.len() >= self.sweep_at {
            self.calls.retain(|_, handle| !handle.is_finished());
            // Twice what is left, so that a sweep costs each call a constant share.
            self.sweep_at = (self.calls.len() * 2).max(64);
        }
        self.calls.insert(call, handle);
    }

    fn abandon(&mut self, call: CallId) {
        if let Some(handle) = self.calls.remove(&call) {
            handle.abort();
        }
    }
}
