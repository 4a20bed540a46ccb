//! The loop: takes what has happened, stamps it with the time, gives it to the worker, and carries out what follows.
//!
//! Owns the node's [`Worker`], alone. Never decides anything, and never waits but for the next event. Invariants:
//! there is one queue, so that everything has one order; the effects of all inputs that were taken together are
//! carried out together, before the next ones are taken. Section 14 of the contract.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::clock::Clock;
use super::handle::Shared;
use super::perform::Performer;
use crate::journal::JournalFailed;
use crate::protocol::effects::Ending;
use crate::protocol::{Effects, Input, Worker};

/// Inputs taken together at most: enough to share a journal's flush, few enough that a timer is never late by much.
const BATCH: usize = 256;

/// A worker and its loop.
#[derive(Debug)]
pub(super) struct Actor {
    worker: Worker,
    clock: Clock,
    inbox: mpsc::Receiver<Input>,
    taken: Vec<Input>,
    performer: Performer,
    shared: Arc<Shared>,
}

impl Actor {
    pub(super) fn new(
        worker: Worker,
        clock: Clock,
        inbox: mpsc::Receiver<Input>,
        performer: Performer,
        shared: Arc<Shared>,
    ) -> Actor {
        Actor { worker, clock, inbox, taken: vec![Input::Started], performer, shared }
    }

    /// The life of a node.
    pub(super) async fn run(mut self) -> Result<Ending, JournalFailed> {
        let ending = loop {
            let mut effects = Effects::default();
            for input in self.taken.drain(..) {
                let cause = self.performer.comes(&input);
                self.worker.step(self.clock.now(), input, &mut effects);
                let notices = std::mem::take(&mut effects.notices);
                self.performer.tell(cause, notices, &self.clock);
            }
            let performed = self.performer.perform(effects, &self.worker, &self.clock);
            let taken = match performed {
                Ok(None) => self.take().await,
                Ok(Some(ending)) => break Ok(ending),
                Err(failed) => Err(failed),
            };
            if let Err(failed) = taken {
                tracing::error!(%failed, "the journal failed: this node leads no longer, acknowledges nothing and ends");
                break Err(failed);
            }
        };
        self.end().await;
        ending
    }

    /// Waits for an event and takes all that is queued by then, up to a batch.
    async fn take(&mut self) -> Result<(), JournalFailed> {
        let due = self.worker.next_deadline().into_iter().chain(self.performer.next_deadline()).min();
        tokio::select! {
            // A journal that has failed before all: what comes after it may be a promise. Then the timer, so that a busy queue doesn't hold it up; what is queued then comes with it, so that
            // timers don't hold up the queue.
            biased;
            failed = self.performer.journal_failed() => return Err(failed),
            () = self.clock.reaches(due) => {
                let now = self.clock.now().time;
                due.into_iter().for_each(|due| self.performer.late(now.since(due)));
                self.taken.push(Input::TimerFired);
                let queued = std::iter::from_fn(|| self.inbox.try_recv().ok());
                self.taken.extend(queued.take(BATCH));
            }
            _ = self.inbox.recv_many(&mut self.taken, BATCH) => {}
        }
        Ok(())
    }

    /// Lets go of everybody who waits for this node, and of its threads.
    async fn end(mut self) {
        self.inbox.close();
        while self.inbox.try_recv().is_ok() {}
        drop(self.inbox);
        self.shared.close();
        self.performer.end().await;
        self.shared.feeders.wait().await;
    }
}
