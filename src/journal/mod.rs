//! The journal: what a node writes down before it tells anyone.
//!
//! Owns the thread that writes. Never decides what is written. Invariant: saves complete in the order in which they
//! came, and [`Input::Saved`] says so through the queue of the loop, which never waits for the disk. Section 8.
//!
//! This one keeps nothing: it answers each save from memory, so a node that ends has forgotten everything.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tokio::sync::mpsc;

use crate::protocol::effects::Save;
use crate::protocol::ids::SaveId;
use crate::protocol::{Input, Stored};

/// Saves that may wait. A journal that is so far behind has failed: a node must not promise on with it.
const BACKLOG: usize = 65_536;
/// Saves answered at once at most.
const BATCH: usize = 1_024;

/// The journal can't be written any more; its node acknowledges nothing and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal takes no more writes")]
pub struct JournalFailed;

/// The journal of one node.
#[derive(Debug)]
pub struct Journal {
    saves: SyncSender<SaveId>,
    thread: JoinHandle<()>,
}

impl Journal {
    /// A journal in memory, and what it holds: nothing. What is written comes back as `Saved` in `queue`.
    ///
    /// # Errors
    /// When the system gives no thread more.
    pub fn in_memory(queue: mpsc::Sender<Input>) -> io::Result<(Journal, Stored)> {
        tracing::warn!("this node has no data directory: nothing of it survives its end");
        let (saves, written) = sync_channel(BACKLOG);
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(move || write(&written, &queue))?;
        Ok((Journal { saves, thread }, Stored::default()))
    }

    /// Takes saves, in order. Does not wait.
    ///
    /// # Errors
    /// [`JournalFailed`] when it is too far behind.
    pub fn save(&self, saves: Vec<Save>) -> Result<(), JournalFailed> {
        saves.into_iter().try_for_each(|save| self.saves.try_send(save.id)).map_err(|_| JournalFailed)
    }

    /// Writes what it has taken and ends.
    pub fn end(self) {
        drop(self.saves);
        if self.thread.join().is_err() {
            tracing::error!("the journal had ended by a panic, which is a bug");
        }
    }
}

/// The thread's life: takes what has gathered, and answers it with one `Saved`.
fn write(saves: &Receiver<SaveId>, queue: &mpsc::Sender<Input>) {
    while let Ok(first) = saves.recv() {
        let save = saves.try_iter().take(BATCH).last().unwrap_or(first);
        // Waits for a place in the queue if it has to. The loop empties that without waiting for the journal; it
        // fails only when the loop has ended.
        if queue.blocking_send(Input::Saved { save }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{Incarnation, Jac, Position, Term};

    fn save(id: u64) -> Save {
        Save {
            id: SaveId(id),
            records: Vec::new(),
            removed: Vec::new(),
            position: Position::default(),
            past: None,
            term: Term(0),
            jac: Jac(0),
            incarnation: Incarnation(1),
            remembered: Vec::new(),
        }
    }

    #[tokio::test]
    async fn every_save_is_answered_in_order_and_several_may_share_an_answer() {
        let (queue, mut inbox) = mpsc::channel(1);
        let (journal, stored) = Journal::in_memory(queue).expect("there are threads");
        assert_eq!(stored, Stored::default());
        journal.save((1..=500).map(save).collect()).expect("it is not behind");
        journal.save((501..=1_000).map(save).collect()).expect("it is not behind");
        let mut last = 0;
        while last < 1_000 {
            match inbox.recv().await {
                Some(Input::Saved { save }) => {
                    assert!(save.0 > last);
                    last = save.0;
                }
                other => panic!("not a save: {other:?}"),
            }
        }
        tokio::task::spawn_blocking(move || journal.end()).await.expect("it ends");
        assert_eq!(inbox.recv().await, None);
    }

    #[tokio::test]
    async fn a_journal_that_is_too_far_behind_has_failed() {
        let (queue, inbox) = mpsc::channel(1);
        let (journal, _) = Journal::in_memory(queue).expect("there are threads");
        // Nobody takes its answers, so that it stands still after the first two.
        let many = (1..=(BACKLOG + 3 * BATCH) as u64).map(save).collect();
        assert_eq!(journal.save(many), Err(JournalFailed));
        drop(inbox);
        tokio::task::spawn_blocking(move || journal.end()).await.expect("it ends");
    }
}
