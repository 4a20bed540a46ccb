//! What is kept of ended jobs (section 8): of the last ones all, of more of them a line, of the others nothing.
//!
//! Owns the order in which ended jobs are dropped, and the floors up to which they are. The leader raises the floors,
//! which are a record like any other: so what a replica has dropped is a function of its records, and replicas at
//! one position are equal, whatever their settings. An outcome that is not told yet is not dropped.

use std::collections::BTreeSet;

use crate::protocol::ids::{JobKey, Number};
use crate::protocol::time::Wall;

use super::{Entry, Ledger, Record, RecordName, Stamped};

/// A job's turn among the ended ones: the wall clock in ms when it ended, but later than any turn that its leader
/// knew. So a clock that steps back makes no job older than those that ended before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn(pub u64);

impl Turn {
    /// No turn lies above this: beyond it there would be no later one.
    pub const LAST: Turn = Turn(1 << 62);

    fn after(self, wall: Wall) -> Turn {
        Turn(wall.0.max(self.0.saturating_add(1))).min(Turn::LAST)
    }
}

/// Up to where ended jobs are dropped; none while all are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Floors {
    /// Up to here nothing is left but a line: id, digest, outcome, admissions.
    pub breakdown: Option<(Turn, JobKey)>,
    /// Up to here nothing at all.
    pub line: Option<(Turn, JobKey)>,
    /// The highest number at which a job changed of which nothing is left. A replica that stands below it may have
    /// missed that job's end, which no change tells any more.
    pub gone: Number,
}

/// How many ended jobs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// With their breakdown.
    pub breakdowns: usize,
    /// In all, at least as a line.
    pub lines: usize,
}

/// The ended jobs of a replica, in the order in which they are dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    whole: BTreeSet<(Turn, JobKey)>,
    lines: BTreeSet<(Turn, JobKey)>,
}

/// What is left of an ended job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Whole,
    Line,
    Nothing,
}

impl Floors {
    /// The higher of both, each for itself. Numbers of two parts do not compare: `gone` stays.
    pub(super) fn join(&mut self, other: &Floors) {
        self.breakdown = self.breakdown.take().max(other.breakdown.clone());
        self.line = self.line.take().max(other.line.clone());
    }

    pub(super) fn left_of(&self, turn: Turn, key: &JobKey) -> Left {
        let under =
            |floor: &Option<(Turn, JobKey)>| floor.as_ref().is_some_and(|(at, last)| (turn, key) <= (*at, last));
        if under(&self.line) {
            Left::Nothing
        } else if under(&self.breakdown) {
            Left::Line
        } else {
            Left::Whole
        }
    }
}

impl Ledger {
    /// The turn of a job that ends now.
    pub(super) fn next_turn(&self, wall: Wall) -> Turn {
        let last = [self.kept.whole.last(), self.kept.lines.last()].into_iter().flatten().map(|(turn, _)| *turn).max();
        let floor = self.floors.0.breakdown.as_ref().map(|(turn, _)| *turn);
        last.max(floor).unwrap_or_default().after(wall)
    }

    /// What is left of a job by the floors; all of one that has not ended.
    pub(super) fn left_of(&self, entry: &Entry) -> Left {
        entry.job.ended.as_ref().map_or(Left::Whole, |ended| self.floors.0.left_of(ended.turn, &entry.job.key))
    }

    /// Drops what is too many, oldest turn first. For a leader: its followers drop by its floors. Gives the jobs
    /// that are gone.
    pub fn retain(&mut self, keep: Keep) -> BTreeSet<JobKey> {
        let mut floors = self.floors.0.clone();
        let (whole, lines) = (self.kept.whole.len(), self.kept.lines.len());
        let told = |(_, key): &&(Turn, JobKey)| self.is_told(key);
        let excess = whole.saturating_sub(keep.breakdowns);
        let to_lines = || self.kept.whole.iter().take(excess).take_while(told);
        floors.breakdown = to_lines().last().cloned().max(floors.breakdown);
        let excess = (whole + lines).saturating_sub(keep.lines.max(keep.breakdowns));
        let gone = self.kept.lines.iter().chain(to_lines()).take(excess).take_while(told);
        floors.line = gone.last().cloned().max(floors.line);
        if floors == self.floors.0 {
            return BTreeSet::new();
        }
        floors.gone = floors.gone.max(self.last_under(&floors));
        let stamp = self.next_stamp();
        self.put(Stamped { stamp, record: Record::Floors(floors) })
    }

    /// Up to which number replicas may have missed the end of a job that is gone.
    #[must_use]
    pub fn gone(&self) -> Number {
        self.floors.0.gone
    }

    /// The last change of any job here of which these floors leave nothing.
    pub(super) fn last_under(&self, floors: &Floors) -> Number {
        let ended = self.kept.lines.iter().chain(&self.kept.whole);
        let gone = ended.take_while(|(turn, key)| floors.left_of(*turn, key) == Left::Nothing);
        let numbers = gone.filter_map(|(_, key)| self.jobs.get(key).map(|entry| entry.stamp.number));
        numbers.max().unwrap_or_default()
    }

    /// Keeps no more of ended jobs than the floors say. Gives the jobs that are gone.
    pub(super) fn drop_under_floors(&mut self) -> BTreeSet<JobKey> {
        let floors = self.floors.0.clone();
        let is_over = |(turn, key): &(Turn, JobKey)| floors.left_of(*turn, key);
        let whole: Vec<_> = self.kept.whole.iter().take_while(|at| is_over(at) != Left::Whole).cloned().collect();
        for at in whole {
            self.kept.whole.remove(&at);
            self.drop_tasks(&at.1);
            self.kept.lines.insert(at);
        }
        let gone: Vec<_> = self.kept.lines.iter().take_while(|at| is_over(at) == Left::Nothing).cloned().collect();
        gone.into_iter().map(|(_, key)| self.forget(key)).collect()
    }

    /// Sorts a job in by its end; `before` is where it stood.
    pub(super) fn sort_in(&mut self, key: &JobKey, before: Option<Turn>) {
        if let Some(turn) = before {
            self.kept.whole.remove(&(turn, key.clone()));
            self.kept.lines.remove(&(turn, key.clone()));
        }
        let Some(entry) = self.jobs.get(key) else { return };
        let Some(turn) = entry.job.ended.as_ref().map(|ended| ended.turn) else { return };
        match self.left_of(entry) {
            Left::Whole => {
                self.kept.whole.insert((turn, key.clone()));
            }
            Left::Line => {
                self.drop_tasks(key);
                self.kept.lines.insert((turn, key.clone()));
            }
            Left::Nothing => {
                self.forget(key.clone());
            }
        }
    }

    fn drop_tasks(&mut self, key: &JobKey) {
        let Some(entry) = self.jobs.get_mut(key) else { return };
        for (slices, cut) in std::mem::take(&mut entry.cuts) {
            for (slice, (_, stamp)) in cut.tasks {
                let task = super::TaskKey { job: key.clone(), slices, slice };
                self.remove(RecordName::Task(task), stamp.number);
            }
        }
    }

    /// Nothing is left of a job.
    fn forget(&mut self, key: JobKey) -> JobKey {
        self.drop_tasks(&key);
        let is_told = self.jobs.get(&key).is_some_and(|entry| entry.told.is_some());
        if let Some(entry) = self.jobs.remove(&key) {
            if let Some((_, stamp)) = entry.payload {
                self.remove(RecordName::Payload(key.clone()), stamp.number);
            }
            if let Some(ended) = &entry.job.ended {
                self.kept.whole.remove(&(ended.turn, key.clone()));
                self.kept.lines.remove(&(ended.turn, key.clone()));
            }
            self.remove(RecordName::Job(key.clone()), entry.stamp.number);
        }
        if self.untold.remove(&key) || is_told {
            self.unsaved_told.insert(key.clone());
        }
        self.unfinished.remove(&key);
        key
    }
}
