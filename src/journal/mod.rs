//! The journal: what a node writes down before it tells anyone.
//!
//! Owns the thread that writes, the folder with its slots, and the stored form. Never decides what is written.
//! Invariants: saves complete in the order in which they came, and [`Input::Saved`] says so through the queue of the
//! loop, which never waits for the disk; after a failure nothing is ever reported as saved. Section 8.
//!
//! `slot` says which of the replicas that share a folder has which part of it, `recovery` what becomes of a file that
//! is torn or corrupt, `store` what is kept. Without a folder everything is answered from memory, and a node that ends
//! has forgotten it.

mod disk;
mod identity;
mod key;
mod recovery;
mod slot;
mod store;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

pub use disk::Flush;

use crate::jobs::Payload;
use crate::protocol::effects::Save;
use crate::protocol::ids::{Incarnation, NodeId, SaveId};
use crate::protocol::ledger::Record;
use crate::protocol::time::Wall;
use crate::protocol::{Input, Stored};
use slot::Slot;
use store::{Fault, Store};

/// Saves that may wait. A journal that is so far behind has failed: a node must not promise on with it.
const BACKLOG: usize = 65_536;
/// The same in bytes. A single save may be larger.
const BACKLOG_BYTES: usize = 256 << 20;
/// Saves written at once at most.
const BATCH: usize = 1_024;
/// A batch takes no further save after so many bytes: what is written at once is held in memory twice.
const BATCH_BYTES: usize = 8 << 20;

/// Which folder, and for whom.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The folder; made if there is none.
    pub folder: PathBuf,
    /// What comes before a save is told.
    pub flush: Flush,
    /// The node id, if one was given.
    pub node: Option<NodeId>,
    /// The node id of a slot that is made anew where none was given.
    pub host: NodeId,
}

/// A journal that is open, and what it held.
#[derive(Debug)]
pub struct Opened {
    /// The journal.
    pub journal: Journal,
    /// What it held.
    pub stored: Stored,
    /// Whose it is.
    pub node: NodeId,
    /// Which start of that node this is: higher than any before, and on the disk already.
    pub incarnation: Incarnation,
}

/// A journal that can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum CannotOpen {
    /// The system refuses.
    #[error("cannot {what} {}: {cause}; mend that, or give another folder in FLOODLINE_DATA_DIR", .path.display())]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// Another process chooses a slot at this moment.
    #[error("other nodes choose their slots in {} all the time; try again", .folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// Another process has it.
    #[error("another process runs as {node} on {}; end it, or give this node another FLOODLINE_NODE_ID or FLOODLINE_DATA_DIR", .slot.display())]
    Taken {
        /// Which slot.
        slot: PathBuf,
        /// Whose it is.
        node: NodeId,
    },
    /// No slot is left.
    #[error(
        "the data directory has {} slots, which is the most, and none is left for {node}; give another folder in FLOODLINE_DATA_DIR",
        slot::MOST
    )]
    Full {
        /// For whom.
        node: NodeId,
    },
    /// A newer program wrote it.
    #[error("{} is of version {version}, and this program knows {} at most; it is left as it is: start the newer program, or give another folder in FLOODLINE_DATA_DIR", .file.display(), store::SCHEMA)]
    Newer {
        /// Which file.
        file: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The store of one node lies in the slot of another one.
    #[error("{} is the journal of {stored}, but it lies in the slot of {expected}; move it back to where it was", .file.display())]
    OtherNode {
        /// Which file.
        file: PathBuf,
        /// Whose it is.
        stored: NodeId,
        /// Whose it should be.
        expected: NodeId,
    },
}

impl CannotOpen {
    fn io(what: &'static str, path: &Path, cause: io::Error) -> CannotOpen {
        CannotOpen::Io { what, path: path.to_owned(), cause }
    }

    /// Whether it may be otherwise in a moment: a process that was just killed holds its slot a little longer.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            CannotOpen::Busy { .. } | CannotOpen::Taken { .. } => true,
            CannotOpen::Io { .. }
            | CannotOpen::Full { .. }
            | CannotOpen::Newer { .. }
            | CannotOpen::OtherNode { .. } => false,
        }
    }
}

/// The journal can't be written any more; its node acknowledges nothing and ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalFailed {
    /// The system refused to write.
    #[error("cannot write {}: {cause}", .file.display())]
    Write {
        /// Which file.
        file: PathBuf,
        /// Why not.
        cause: String,
    },
    /// More waits to be written than a node may promise.
    #[error("{saves} saves of {bytes} bytes wait to be written: the disk is too slow or stands still")]
    Behind {
        /// So many.
        saves: usize,
        /// So large in all, as far as is counted.
        bytes: usize,
    },
    /// Its thread broke down.
    #[error("its thread ended, which is a bug")]
    Ended,
}

/// The journal of one node.
#[derive(Debug)]
pub struct Journal {
    saves: mpsc::Sender<Save>,
    backlog: Arc<Backlog>,
    failed: oneshot::Receiver<JournalFailed>,
    thread: JoinHandle<()>,
}

/// What was taken and is not written yet.
#[derive(Debug, Default)]
struct Backlog {
    saves: AtomicUsize,
    bytes: AtomicUsize,
}

impl Journal {
    /// A journal in memory, and what it holds: nothing. What is written comes back as `Saved` in `queue`.
    ///
    /// # Errors
    /// When the system gives no thread more.
    pub fn in_memory(queue: mpsc::Sender<Input>) -> io::Result<Journal> {
        tracing::warn!("this node has no data directory: nothing of it survives its end");
        Journal::start(Medium::Memory, queue)
    }

    /// The journal of a folder. Waits for the disk.
    ///
    /// # Errors
    /// [`CannotOpen`], with what to do about it.
    pub fn open(wanted: &Wanted, wall: Wall, queue: mpsc::Sender<Input>) -> Result<Opened, CannotOpen> {
        let mut slot = Slot::take(wanted, wall)?;
        let (store, kept) = recovery::open(&slot, wanted.flush, wall)?;
        let last = slot.identity.incarnation.max(kept.incarnation);
        let incarnation = Incarnation::at_start(last, wall);
        slot.start(incarnation)?;
        let file = slot.store();
        tracing::info!(
            node = %kept.node, incarnation = incarnation.0, file = %file.display(), records = kept.stored.records.len(),
            jac = kept.stored.jac.0, "the journal is open"
        );
        let node = kept.node;
        let medium = Medium::Disk { store, file: file.clone(), _slot: Some(slot) };
        let journal =
            Journal::start(medium, queue).map_err(|cause| CannotOpen::io("start a thread for", &file, cause))?;
        Ok(Opened { journal, stored: kept.stored, node, incarnation })
    }

    fn start(medium: Medium, queue: mpsc::Sender<Input>) -> io::Result<Journal> {
        // One that takes its places as it needs them: those of the standard library are all there from the beginning,
        // which would be most of the memory of an idle node.
        let (saves, taken) = mpsc::channel(BACKLOG);
        let (fail, failed) = oneshot::channel();
        let backlog = Arc::new(Backlog::default());
        let writer = Writer { medium, taken, backlog: Arc::clone(&backlog), queue };
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run(fail))?;
        Ok(Journal { saves, backlog, failed, thread })
    }

    /// Takes saves, in order. Does not wait.
    ///
    /// # Errors
    /// [`JournalFailed`] when it is too far behind, or has failed before.
    pub fn save(&mut self, saves: Vec<Save>) -> Result<(), JournalFailed> {
        for save in saves {
            let weight = weight(&save);
            let waiting = self.backlog.bytes.load(Ordering::Acquire);
            if waiting > 0 && waiting.saturating_add(weight) > BACKLOG_BYTES {
                return Err(self.behind());
            }
            // Before it is sent, since it may be written by the time that `try_send` returns.
            self.backlog.saves.fetch_add(1, Ordering::AcqRel);
            self.backlog.bytes.fetch_add(weight, Ordering::AcqRel);
            self.saves.try_send(save).map_err(|error| match error {
                TrySendError::Full(_) => self.behind(),
                TrySendError::Closed(_) => self.failed.try_recv().unwrap_or(JournalFailed::Ended),
            })?;
        }
        Ok(())
    }

    fn behind(&self) -> JournalFailed {
        let Backlog { saves, bytes } = &*self.backlog;
        JournalFailed::Behind { saves: saves.load(Ordering::Acquire), bytes: bytes.load(Ordering::Acquire) }
    }

    /// Waits until it fails, which is for ever with a disk that works. Not to be asked again after that.
    pub async fn failed(&mut self) -> JournalFailed {
        (&mut self.failed).await.unwrap_or(JournalFailed::Ended)
    }

    /// Writes what it has taken and ends.
    pub fn end(self) {
        drop(self.saves);
        if self.thread.join().is_err() {
            tracing::error!("the journal had ended by a panic, which is a bug");
        }
    }
}

/// What is written to.
#[derive(Debug)]
enum Medium {
    Memory,
    Disk {
        store: Store,
        file: PathBuf,
        /// After the store, which it guards.
        _slot: Option<Slot>,
    },
}

impl Medium {
    fn write(&self, saves: &[Save]) -> Result<(), JournalFailed> {
        let Medium::Disk { store, file, .. } = self else { return Ok(()) };
        store.write(saves).map_err(|fault| {
            let cause = match fault {
                Fault::Io(cause) => cause.to_string(),
                Fault::Corrupt(why) => why,
                Fault::Newer(version) => format!("it is of version {version}"),
            };
            JournalFailed::Write { file: file.clone(), cause }
        })
    }
}

/// The thread.
#[derive(Debug)]
struct Writer {
    medium: Medium,
    taken: mpsc::Receiver<Save>,
    backlog: Arc<Backlog>,
    queue: mpsc::Sender<Input>,
}

impl Writer {
    /// Its life: takes what has gathered, writes it, and answers it with one `Saved`.
    fn run(mut self, fail: oneshot::Sender<JournalFailed>) {
        while let Some(first) = self.taken.blocking_recv() {
            let (batch, bytes) = self.gather(first);
            let last = batch.last().map_or(SaveId(0), |save| save.id);
            if let Err(failed) = self.medium.write(&batch) {
                // Whoever is gone has ended already.
                fail.send(failed).ok();
                return;
            }
            self.backlog.saves.fetch_sub(batch.len(), Ordering::AcqRel);
            self.backlog.bytes.fetch_sub(bytes, Ordering::AcqRel);
            drop(batch);
            // Waits for a place in the queue if it has to. The loop empties that without waiting for the journal; it
            // fails only when the loop has ended.
            if self.queue.blocking_send(Input::Saved { save: last }).is_err() {
                return;
            }
        }
    }

    fn gather(&mut self, first: Save) -> (Vec<Save>, usize) {
        let mut bytes = weight(&first);
        let mut batch = vec![first];
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Ok(save) = self.taken.try_recv() else { break };
            bytes = bytes.saturating_add(weight(&save));
            batch.push(save);
        }
        (batch, bytes)
    }
}

/// About the bytes that a save takes, in memory as well as in the store.
fn weight(save: &Save) -> usize {
    /// Of a record besides a list in it, with its key.
    const RECORD: usize = 256;
    let list = |record: &Record| match record {
        Record::Payload(_, Payload::Max(numbers)) => numbers.len().saturating_mul(8),
        Record::Payload(_, Payload::PrimeCount(numbers)) => numbers.len().saturating_mul(8),
        Record::Payload(_, Payload::PrimeSum { .. }) | Record::Job(_) | Record::Task(..) | Record::Floors(_) => 0,
    };
    let past = save.past.as_ref().map_or(0, |past| past.parts().count());
    let small = 1 + save.records.len() + save.removed.len() + save.remembered.len() + save.told.len() + past;
    let lists = save.records.iter().map(|stamped| list(&stamped.record));
    lists.fold(small.saturating_mul(RECORD), usize::saturating_add)
}

#[cfg(test)]
mod tests;
