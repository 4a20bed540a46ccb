//! One task's record and its join (section 8): completed beats all, else the higher attempt, within one attempt
//! ended beats running.
//!
//! Owns the order of a task's states. A task that was never handed out has no record.

use std::time::Duration;

use crate::jobs::Value;
use crate::protocol::ids::{AttemptName, NodeId};

/// The last hand-out of a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Its whole name; a higher one is later.
    pub name: AttemptName,
    /// Who has it.
    pub worker: NodeId,
    /// Given back: a task whose last attempt has ended is pending.
    pub ended: bool,
}

/// A partial result. It stays for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Completion {
    /// The attempt that brought it.
    pub attempt: AttemptName,
    /// Who computed it.
    pub worker: NodeId,
    /// The value.
    pub value: Value,
    /// Time in computation.
    pub took: Duration,
}

/// A task's record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Task {
    /// Its result, once known.
    pub completion: Option<Completion>,
    /// Its last hand-out; dropped at completion, so that equal outcomes are equal records.
    pub attempt: Option<Attempt>,
    /// Failures charged to it. Kept apart from the attempts, since a lost worker is not the task's fault.
    pub charged: u32,
}

impl Task {
    /// The number of its last attempt; 0 before the first.
    #[must_use]
    pub fn last_attempt(&self) -> u32 {
        let done = self.completion.as_ref().map_or(0, |done| done.attempt.number);
        let last = self.attempt.as_ref().map_or(0, |last| last.name.number);
        done.max(last)
    }

    /// Takes in another copy's record. Commutative, associative, idempotent.
    ///
    /// Says whether the two had completions with different values, which is a bug or a broken machine.
    pub fn join(&mut self, other: &Task) -> bool {
        self.charged = self.charged.max(other.charged);
        let mut differ = false;
        self.completion = match (self.completion.take(), &other.completion) {
            (None, theirs) => theirs.clone(),
            (ours, None) => ours,
            (Some(ours), Some(theirs)) => {
                differ = ours.value != theirs.value;
                let key = |done: &Completion| (done.attempt.clone(), done.worker.clone(), done.value, done.took);
                Some(if key(&ours) <= key(theirs) { ours } else { theirs.clone() })
            }
        };
        let last = |attempt: &Attempt| (attempt.name.clone(), attempt.ended, attempt.worker.clone());
        self.attempt = match (self.attempt.take(), &other.attempt) {
            (None, theirs) => theirs.clone(),
            (ours, None) => ours,
            (Some(ours), Some(theirs)) => Some(if last(&ours) >= last(theirs) { ours } else { theirs.clone() }),
        };
        if self.completion.is_some() {
            self.attempt = None;
        }
        differ
    }
}
