//! The ledger: all jobs and tasks, replicated on every worker (section 8).
//!
//! Owns the records, the number of each one's last change and the replica's position. A leader changes records
//! ([`mod@write`]); a follower only takes over what its leader sends. Never decides what happens to a job.
//!
//! Numbers run on from one leadership to the next, so on one replica each number names one record at most.

pub mod changes;
pub mod job;
mod read;
pub mod task;
mod write;

use std::collections::{BTreeMap, BTreeSet};

pub use changes::{Past, Record, RecordName, Stamped};
pub use job::{Job, Outcome};
pub use task::{Attempt, Completion, Task};
pub use write::Merged;

use crate::jobs::Payload;

use super::ids::{JobKey, Leadership, NodeId, Number, Position};
use super::time::Wall;
use super::view::Stamp;

/// A replica of the ledger.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// Whose replica this is.
    owner: NodeId,
    jobs: BTreeMap<JobKey, Entry>,
    /// Which record changed last at which number: replication sends a range of it.
    changes: BTreeMap<Number, RecordName>,
    position: Position,
    past: Past,
    /// Ended jobs whose outcome is not known to be held yet.
    untold: BTreeSet<JobKey>,
    unfinished: BTreeSet<JobKey>,
    /// Records changed since the last [`Ledger::take_unsaved`].
    unsaved: BTreeSet<RecordName>,
    past_unsaved: bool,
}

/// All that belongs to one job.
#[derive(Clone, Debug)]
struct Entry {
    job: Job,
    stamp: Stamp,
    /// Dropped when the job has ended: nobody computes it again.
    payload: Option<(Payload, Stamp)>,
    cuts: BTreeMap<u32, Cut>,
    /// The latest change of any of its records.
    last: Stamp,
    /// The outcome last shown. A higher one takes its place when it is held; a job never goes back to running.
    told: Option<(Outcome, Wall)>,
}

/// The tasks of one way of slicing a job; those never handed out have no record.
#[derive(Clone, Debug, Default)]
struct Cut {
    tasks: BTreeMap<u32, (Task, Stamp)>,
    completed: u32,
}

impl Ledger {
    /// A replica as a journal held it; an empty one from nothing.
    #[must_use]
    pub fn restore(owner: NodeId, records: Vec<Stamped>, position: Position, past: Past) -> Ledger {
        let mut ledger = Ledger {
            owner,
            jobs: BTreeMap::new(),
            changes: BTreeMap::new(),
            position: Position::default(),
            past,
            untold: BTreeSet::new(),
            unfinished: BTreeSet::new(),
            unsaved: BTreeSet::new(),
            past_unsaved: false,
        };
        write::headers_first(records).for_each(|stamped| ledger.put(stamped));
        ledger.position = position;
        ledger.unsaved.clear();
        ledger
    }

    /// Where this replica stands.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Its last number.
    #[must_use]
    pub fn number(&self) -> Number {
        self.position.number
    }

    /// The leaderships that it followed before the present one.
    #[must_use]
    pub fn past(&self) -> &Past {
        &self.past
    }

    /// How many jobs it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// From now on changes are made, or taken over, under `leadership`; numbers run on.
    pub fn enter(&mut self, leadership: Leadership) {
        if self.position.leadership.as_ref() == Some(&leadership) {
            return;
        }
        if let Some(left) = self.position.leadership.replace(leadership) {
            self.past.leave(left, self.position.number);
            self.past_unsaved = true;
        }
    }

    /// Up to which number this replica shares its content with one that followed `leadership`: all of it in the
    /// present one, up to the end in a past one, nothing (0) with an empty replica. None if it never followed it.
    #[must_use]
    pub fn shared_with(&self, leadership: Option<&Leadership>) -> Option<Number> {
        match leadership {
            None => Some(Number(0)),
            Some(theirs) if self.position.leadership.as_ref() == Some(theirs) => Some(self.position.number),
            Some(theirs) => self.past.left_at(theirs),
        }
    }

    /// Records that changed since this was called last, for the journal, and the past if it changed. A new
    /// leadership alone is nothing to write: it is stored with the first record made under it (section 6).
    pub fn take_unsaved(&mut self) -> (Vec<Stamped>, Option<Past>) {
        let names = std::mem::take(&mut self.unsaved);
        let records: Vec<Stamped> = names.iter().filter_map(|name| self.record(name)).collect();
        let past = if records.is_empty() { None } else { self.take_unsaved_past() };
        (records, past)
    }

    /// The past, if it changed since it was taken last.
    pub(crate) fn take_unsaved_past(&mut self) -> Option<Past> {
        std::mem::take(&mut self.past_unsaved).then(|| self.past.clone())
    }
}

#[cfg(test)]
mod tests;
