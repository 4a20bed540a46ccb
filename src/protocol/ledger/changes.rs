//! Records on their way: what a replica sends of its ledger, each with the stamp of its last change.
//!
//! Owns the form in which records travel and are stored, and the past of a replica (section 8).

use std::collections::VecDeque;

use crate::jobs::Payload;
use crate::protocol::ids::{JobKey, Leadership, Number, TaskKey};
use crate::protocol::limits;
use crate::protocol::view::Stamp;

use super::job::Job;
use super::retention::Floors;
use super::task::Task;

/// One record of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A job as a whole.
    Job(Job),
    /// What a job computes; kept until it has ended.
    Payload(JobKey, Payload),
    /// One task.
    Task(TaskKey, Task),
    /// Which ended jobs are dropped.
    Floors(Floors),
}

impl Record {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> RecordName {
        match self {
            Record::Job(job) => RecordName::Job(job.key.clone()),
            Record::Payload(key, _) => RecordName::Payload(key.clone()),
            Record::Task(key, _) => RecordName::Task(key.clone()),
            Record::Floors(_) => RecordName::Floors,
        }
    }

    /// The job that it belongs to; none for the floors.
    #[must_use]
    pub fn job(&self) -> Option<&JobKey> {
        match self {
            Record::Job(job) => Some(&job.key),
            Record::Payload(key, _) => Some(key),
            Record::Task(key, _) => Some(&key.job),
            Record::Floors(_) => None,
        }
    }
}

/// A record and when it last changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped {
    /// Its last change.
    pub stamp: Stamp,
    /// The record.
    pub record: Record,
}

/// Which record of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordName {
    /// A job as a whole.
    Job(JobKey),
    /// What it computes.
    Payload(JobKey),
    /// One task.
    Task(TaskKey),
    /// Which ended jobs are dropped.
    Floors,
}

/// The leaderships that a replica has followed, oldest first, each with the number at which it was left.
/// The last [`limits::PAST`] are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past(VecDeque<(Leadership, Number)>);

impl Past {
    /// From its parts, oldest first; keeps the last [`limits::PAST`].
    #[must_use]
    pub fn from_parts(parts: impl IntoIterator<Item = (Leadership, Number)>) -> Past {
        let mut past = Past::default();
        parts.into_iter().for_each(|(leadership, at)| past.leave(leadership, at));
        past
    }

    /// Its parts, oldest first.
    pub fn parts(&self) -> impl Iterator<Item = &(Leadership, Number)> {
        self.0.iter()
    }

    /// Remembers that a leadership was followed up to `at`.
    pub fn leave(&mut self, leadership: Leadership, at: Number) {
        if self.0.len() >= limits::PAST {
            self.0.pop_front();
        }
        self.0.push_back((leadership, at));
    }

    /// Up to which number a leadership was followed, if it was.
    #[must_use]
    pub fn left_at(&self, leadership: &Leadership) -> Option<Number> {
        self.0.iter().rev().find(|(followed, _)| followed == leadership).map(|(_, at)| *at)
    }
}
