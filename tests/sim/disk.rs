//! What a journal holds, made from the saves that a worker asked for; and a hash of it, kept up save by save.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use floodline::jobs::Payload;
use floodline::protocol::Stored;
use floodline::protocol::effects::Save;
use floodline::protocol::ids::{Incarnation, Jac, JobKey, Leadership, NodeId, Number, Position, Term};
use floodline::protocol::ledger::{Job, Past, Record, RecordName, Stamped};
use floodline::protocol::view::JobState;

/// A journal's content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    records: BTreeMap<RecordName, Stamped>,
    position: Position,
    past: Past,
    term: Term,
    jac: Jac,
    remembered: BTreeMap<NodeId, Jac>,
    told: BTreeSet<JobKey>,
    incarnation: Incarnation,
    hash: u64,
}

impl Disk {
    pub(crate) fn apply(&mut self, save: &Save) {
        save.records.iter().for_each(|stamped| self.put(stamped.clone()));
        save.removed.iter().for_each(|name| self.remove(name));
        for (job, told) in &save.told {
            if *told {
                self.told.insert(job.clone());
            } else {
                self.told.remove(job);
            }
        }
        for (node, jac) in &save.remembered {
            match jac {
                Some(jac) => self.remembered.insert(node.clone(), *jac),
                None => self.remembered.remove(node),
            };
        }
        self.position = save.position.clone();
        self.past = save.past.clone().unwrap_or_else(|| std::mem::take(&mut self.past));
        self.term = save.term;
        self.jac = save.jac;
        self.incarnation = self.incarnation.max(save.incarnation);
    }

    /// A journal knows of each start before anyone else does.
    pub(crate) fn opened(&mut self, incarnation: Incarnation) {
        self.incarnation = incarnation;
    }

    pub(crate) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    fn put(&mut self, stamped: Stamped) {
        self.hash ^= hash(&stamped);
        if let Some(before) = self.records.insert(stamped.record.name(), stamped) {
            self.hash ^= hash(&before);
        }
    }

    fn remove(&mut self, name: &RecordName) {
        if let Some(before) = self.records.remove(name) {
            self.hash ^= hash(&before);
        }
    }

    pub(crate) fn stored(&self) -> Stored {
        Stored {
            records: self.records.values().cloned().collect(),
            position: self.position.clone(),
            past: self.past.clone(),
            term: self.term,
            jac: self.jac,
            remembered: self.remembered.clone(),
            told: self.told.clone(),
        }
    }

    /// The same for equal records with equal stamps.
    pub(crate) fn content_hash(&self) -> u64 {
        self.hash
    }

    /// The number of each job's own record, by the leadership in which it stands.
    pub(crate) fn numbers(&self) -> BTreeMap<JobKey, (Leadership, Number)> {
        let Some(leadership) = &self.position.leadership else { return BTreeMap::new() };
        let number = |job: &Job| self.job(&job.key).map(|(_, number)| (job.key.clone(), (leadership.clone(), number)));
        self.jobs().filter_map(number).collect()
    }

    /// The highest JAC that it knows of a worker.
    pub(crate) fn jac_stated(&self, node: &NodeId) -> Jac {
        let admissions = self.jobs().flat_map(|job| &job.admissions).filter(|admission| admission.leader == *node);
        let stated = admissions.map(|admission| admission.jac).max().unwrap_or_default();
        self.remembered.get(node).copied().unwrap_or_default().max(stated)
    }

    pub(crate) fn past(&self) -> &Past {
        &self.past
    }

    pub(crate) fn position(&self) -> &Position {
        &self.position
    }

    pub(crate) fn job(&self, key: &JobKey) -> Option<(&Job, Number)> {
        match self.records.get(&RecordName::Job(key.clone())) {
            Some(Stamped { record: Record::Job(job), stamp }) => Some((job, stamp.number)),
            Some(_) | None => None,
        }
    }

    pub(crate) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.records.values().filter_map(|stamped| match &stamped.record {
            Record::Job(job) => Some(job),
            Record::Payload(..) | Record::Task(..) | Record::Floors(_) => None,
        })
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &Stamped> {
        self.records.values()
    }

    /// What is here and not there, and the other way round.
    pub(crate) fn difference(&self, other: &Disk) -> [Vec<Stamped>; 2] {
        let beyond = |one: &Disk, other: &Disk| {
            one.records
                .iter()
                .filter(|(name, stamped)| other.records.get(*name) != Some(*stamped))
                .map(|(_, s)| s.clone())
                .collect()
        };
        [beyond(self, other), beyond(other, self)]
    }

    /// The state in which it holds a job; none if it does not.
    pub(crate) fn state(&self, key: &JobKey) -> Option<JobState> {
        let (job, _) = self.job(key)?;
        Some(state_of(job))
    }
}

pub(crate) fn state_of(job: &Job) -> JobState {
    job.ended.as_ref().map_or(JobState::Running, |ended| ended.outcome.state())
}

fn hash(stamped: &Stamped) -> u64 {
    // With its fixed keys: the same in every run.
    let mut hasher = DefaultHasher::new();
    stamped.stamp.hash(&mut hasher);
    match &stamped.record {
        Record::Job(job) => (0, job).hash(&mut hasher),
        Record::Payload(key, payload) => {
            (1, key).hash(&mut hasher);
            match payload {
                Payload::Max(numbers) => numbers.hash(&mut hasher),
                Payload::PrimeCount(numbers) => numbers.hash(&mut hasher),
                Payload::PrimeSum { start, end } => (start, end).hash(&mut hasher),
            }
        }
        Record::Task(key, task) => (2, key, task).hash(&mut hasher),
        Record::Floors(floors) => (3, floors).hash(&mut hasher),
    }
    hasher.finish()
}
