//! The streams of followers to this node, when it leads.
//!
//! Owns an outbox per stream. Never waits for a follower: one that does not read loses its stream. Invariant: every
//! open stream holds a place in the queue for saying that it ended, and says so once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::protocol::Input;
use crate::protocol::ids::StreamId;
use crate::protocol::limits;
use crate::protocol::message::Down;

/// Frames under way to one follower: the batches that a leader sends ahead, and heartbeats for minutes of silence.
const OUTBOX: usize = limits::BATCHES_IN_FLIGHT * 4;

/// The open streams.
#[derive(Debug, Default)]
pub(super) struct Followers {
    last: AtomicU64,
    open: Mutex<BTreeMap<StreamId, Outbox>>,
}

#[derive(Debug)]
struct Outbox {
    frames: mpsc::Sender<Down>,
    place: mpsc::OwnedPermit<Input>,
}

impl Followers {
    /// One more, under a fresh name; none when there are too many.
    pub(super) fn enter(&self, place: mpsc::OwnedPermit<Input>) -> Option<(StreamId, mpsc::Receiver<Down>)> {
        let mut open = self.open();
        if open.len() >= limits::FOLLOWERS {
            return None;
        }
        let stream = StreamId(self.last.fetch_add(1, Ordering::Relaxed).saturating_add(1));
        let (frames, receiver) = mpsc::channel(OUTBOX);
        open.insert(stream, Outbox { frames, place });
        Some((stream, receiver))
    }

    /// Puts a frame into a stream's outbox. A stream that is full or no longer read has ended with that.
    pub(super) fn send(&self, stream: StreamId, frame: Down) {
        let sent = self.open().get(&stream).is_none_or(|outbox| outbox.frames.try_send(frame).is_ok());
        if !sent {
            self.end(stream);
        }
    }

    /// A stream has ended, by the follower or the network.
    pub(super) fn end(&self, stream: StreamId) {
        let ended = self.open().remove(&stream);
        if let Some(outbox) = ended {
            outbox.place.send(Input::FollowerEnded { stream });
        }
    }

    /// The leader ends a stream: what is under way still goes out, and nobody is told.
    pub(super) fn forget(&self, stream: StreamId) {
        self.open().remove(&stream);
    }

    /// Ends all streams, after what is under way.
    pub(super) fn close(&self) {
        self.open().clear();
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<StreamId, Outbox>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
