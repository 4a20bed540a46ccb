//! The ledger: all jobs and tasks, replicated on every worker (section 8).
//!
//! Owns the records, the number of each one's last change and the replica's position. A leader changes records
//! ([`mod@write`]); a follower only takes over what its leader sends. Never decides what happens to a job.
//!
//! Numbers run on from one leadership to the next, so on one replica each number names one record at most.

pub mod changes;
pub mod job;
mod read;
pub mod retention;
pub mod task;
mod write;

use std::collections::{BTreeMap, BTreeSet};

pub use changes::{Past, Record, RecordName, Stamped};
pub use job::{Ended, Job, Outcome};
pub use retention::{Floors, Keep, Turn};
pub use task::{Attempt, Completion, Task};
pub use write::Merged;

use crate::jobs::Payload;

use super::Stored;
use super::ids::{Jac, JobKey, Leadership, NodeId, Number, Position, TaskKey};
use super::time::Wall;
use super::view::Stamp;

use retention::Kept;

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
    /// Deadlines of unfinished jobs.
    deadlines: BTreeSet<(Wall, JobKey)>,
    /// The floors of retention and when they rose last.
    floors: (Floors, Option<Stamp>),
    kept: Kept,
    /// The highest JAC that any admission stated for its leader; outlives the job. Bound: [`REMEMBERED`](super::limits::REMEMBERED).
    jacs: BTreeMap<NodeId, Jac>,
    /// Records changed since the last [`Ledger::take_unsaved`].
    unsaved: BTreeSet<RecordName>,
    /// Records that went since then.
    removed: BTreeSet<RecordName>,
    unsaved_jacs: BTreeSet<NodeId>,
    unsaved_told: BTreeSet<JobKey>,
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
    /// The outcome last shown. A higher one takes its place when it is held; a job never goes back to running.
    told: Option<Ended>,
}

/// The tasks of one way of slicing a job; those never handed out have no record.
#[derive(Clone, Debug, Default)]
struct Cut {
    tasks: BTreeMap<u32, (Task, Stamp)>,
    completed: u32,
}

/// Changes on their way to the journal.
#[derive(Debug, Default, PartialEq)]
pub struct Unsaved {
    /// Records that changed.
    pub records: Vec<Stamped>,
    /// Records that are gone.
    pub removed: Vec<RecordName>,
    /// The past, if it changed.
    pub past: Option<Past>,
    /// JACs remembered, as far as they rose; none: it is forgotten.
    pub jacs: Vec<(NodeId, Option<Jac>)>,
    /// Jobs whose outcome is told now, or not any more.
    pub told: Vec<(JobKey, bool)>,
}

impl Ledger {
    /// A replica as a journal held it; an empty one from nothing.
    #[must_use]
    pub fn restore(owner: NodeId, records: Vec<Stamped>, position: Position, past: Past) -> Ledger {
        Ledger::of_journal(owner, Stored { records, position, past, ..Stored::default() })
    }

    /// The same, with the JACs that it remembered for workers and the outcomes that it had told.
    #[must_use]
    pub fn of_journal(owner: NodeId, stored: Stored) -> Ledger {
        let Stored { records, position, past, remembered, told, .. } = stored;
        let mut ledger = Ledger {
            owner,
            jobs: BTreeMap::new(),
            changes: BTreeMap::new(),
            position: Position::default(),
            past,
            untold: BTreeSet::new(),
            unfinished: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            floors: (Floors::default(), None),
            kept: Kept::default(),
            jacs: remembered,
            unsaved: BTreeSet::new(),
            removed: BTreeSet::new(),
            unsaved_jacs: BTreeSet::new(),
            unsaved_told: BTreeSet::new(),
            past_unsaved: false,
        };
        write::headers_first(records).for_each(|stamped| {
            ledger.put(stamped);
        });
        ledger.position = position;
        told.iter().for_each(|key| ledger.tell_job(key));
        ledger.unsaved.clear();
        ledger.unsaved_jacs.clear();
        ledger.unsaved_told.clear();
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
    pub fn count(&self) -> usize {
        self.jobs.len()
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

    /// Whether any record changed or went since the last [`Ledger::take_unsaved`].
    #[must_use]
    pub fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty() || !self.removed.is_empty()
    }

    /// What changed since this was called last, for the journal. A new leadership alone is nothing to write: it is
    /// stored with the first record made under it (section 6).
    pub fn take_unsaved(&mut self) -> Unsaved {
        let names = std::mem::take(&mut self.unsaved);
        let records: Vec<Stamped> = names.iter().filter_map(|name| self.record(name)).collect();
        let removed: Vec<RecordName> = std::mem::take(&mut self.removed).into_iter().collect();
        let past = if records.is_empty() && removed.is_empty() { None } else { self.take_unsaved_past() };
        let jacs = std::mem::take(&mut self.unsaved_jacs);
        let jacs = jacs.into_iter().map(|node| (node.clone(), self.jacs.get(&node).copied())).collect();
        let told = std::mem::take(&mut self.unsaved_told);
        let told = told.into_iter().map(|key| (key.clone(), self.has_told_outcome(&key))).collect();
        Unsaved { records, removed, past, jacs, told }
    }

    /// The past, if it changed since it was taken last.
    pub(crate) fn take_unsaved_past(&mut self) -> Option<Past> {
        std::mem::take(&mut self.past_unsaved).then(|| self.past.clone())
    }
}

#[cfg(test)]
mod tests;
