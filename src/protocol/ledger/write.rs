//! Changing a replica: a leader's mutations, the join of what a follower brings, and a follower's taking over.
//!
//! Every mutation is upwards in the join's order, so that no later join undoes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::jobs::{Payload, Value};
use crate::protocol::ids::{AttemptName, Jac, JobKey, Leadership, NodeId, Number, Position, TaskKey, Term};
use crate::protocol::limits;
use crate::protocol::time::Wall;
use crate::protocol::trace::Trace;
use crate::protocol::view::{Admission, JobState, Stamp};

use super::retention::Left;
use super::{Attempt, Completion, Cut, Ended, Entry, Job, Ledger, Outcome, Past, Record, RecordName, Stamped, Task};

/// What a join changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Jobs of which any record changed.
    pub jobs: BTreeSet<JobKey>,
    /// Tasks that had been completed with two different values.
    pub differ: Vec<TaskKey>,
    /// Jobs that the other side's floors dropped here, too.
    pub gone: BTreeSet<JobKey>,
}

impl Ledger {
    /// Takes in a job: one record with its admission, one with its payload.
    pub fn admit(
        &mut self,
        key: &JobKey,
        payload: Payload,
        admission: Admission,
        deadline: Option<Wall>,
        trace: Option<Trace>,
        wall: Wall,
    ) {
        let job = Job {
            key: key.clone(),
            kind: payload.kind(),
            submitted_at: wall,
            admissions: BTreeSet::from([admission]),
            deadline,
            trace,
            ended: None,
        };
        let stamp = self.next_stamp();
        self.put(Stamped { stamp, record: Record::Job(job) });
        let stamp = self.next_stamp();
        self.put(Stamped { stamp, record: Record::Payload(key.clone(), payload) });
    }

    /// Hands a task out under a new attempt.
    pub fn hand_out(&mut self, key: &TaskKey, name: AttemptName, worker: NodeId) {
        self.change_task(key, |task| task.attempt = Some(Attempt { name, worker, ended: false }));
    }

    /// Ends a task's last attempt, which makes it pending; with `charged` the failure counts against the task.
    pub fn give_back(&mut self, key: &TaskKey, charged: bool) {
        self.change_task(key, |task| {
            if let Some(attempt) = &mut task.attempt {
                attempt.ended = true;
            }
            task.charged = task.charged.saturating_add(u32::from(charged));
        });
    }

    /// Records a partial result. Says whether an earlier one has another value.
    pub fn complete(
        &mut self,
        key: &TaskKey,
        attempt: AttemptName,
        worker: NodeId,
        value: Value,
        took: Duration,
    ) -> bool {
        let done = Task { completion: Some(Completion { attempt, worker, value, took }), ..Task::default() };
        let mut differ = false;
        self.change_task(key, |task| differ = task.join(&done));
        differ
    }

    /// Ends a job; a job that has ended stays as it is.
    pub fn end(&mut self, key: &JobKey, outcome: Outcome, wall: Wall) {
        let Some(entry) = self.jobs.get(key).filter(|entry| entry.job.ended.is_none()) else { return };
        let (total, completed) = entry.leading_cut();
        let ended = Ended { outcome, at: wall, turn: self.next_turn(wall), completed, total };
        let job = Job { ended: Some(ended), ..entry.job.clone() };
        let stamp = self.next_stamp();
        self.put(Stamped { stamp, record: Record::Job(job) });
    }

    /// Joins what a follower brought. What changes takes new numbers, and so does what stands at `above` or below:
    /// the follower's copy of it may have another number, and both must end equal (section 8). None where all records
    /// of these jobs go back to the follower in any case.
    pub fn merge(&mut self, records: Vec<Stamped>, above: Option<Number>) -> Merged {
        let mut merged = Merged::default();
        for stamped in headers_first(records) {
            self.merge_record(stamped, above, &mut merged);
        }
        merged
    }

    fn merge_record(&mut self, theirs: Stamped, above: Option<Number>, merged: &mut Merged) {
        let name = theirs.record.name();
        let ours = self.record(&name);
        let joined = join(ours.as_ref().map(|ours| &ours.record), &theirs.record, merged);
        let unchanged = ours.as_ref().is_some_and(|ours| ours.record == joined);
        let goes_back = |above| ours.as_ref().is_some_and(|ours| ours.stamp.number > above);
        if unchanged && above.is_none_or(goes_back) {
            return;
        }
        if let Record::Floors(mut floors) = joined {
            floors.gone = self.gone().max(self.last_under(&floors));
            let stamp = self.next_stamp();
            merged.gone.extend(self.put(Stamped { stamp, record: Record::Floors(floors) }));
            return;
        }
        let Some(key) = theirs.record.job().cloned() else { return };
        if self.is_long_forgotten(&joined) {
            self.insist_on(&key);
            return;
        }
        if !self.would_keep(&joined) {
            return;
        }
        if !unchanged {
            merged.jobs.insert(key);
        }
        let stamp = self.next_stamp();
        self.put(Stamped { stamp, record: joined });
    }

    /// Whether a joined record ends a job that is at work here at a turn of which nothing is kept: it was handed in
    /// again after it had been dropped.
    fn is_long_forgotten(&self, joined: &Record) -> bool {
        let Record::Job(job) = joined else { return false };
        let ended = job.ended.as_ref().filter(|_| self.unfinished.contains(&job.key));
        ended.is_some_and(|ended| self.floors.0.left_of(ended.turn, &job.key) == Left::Nothing)
    }

    /// A job stays as it is here, and all its records go out anew: the follower's copy of it goes.
    fn insist_on(&mut self, key: &JobKey) {
        for stamped in self.records_of(std::slice::from_ref(key)) {
            let stamp = self.next_stamp();
            self.put(Stamped { stamp, ..stamped });
        }
    }

    /// A follower takes over its leader's records as they are, with the new position, in one piece.
    pub fn take_over(
        &mut self,
        leadership: &Leadership,
        records: Vec<Stamped>,
        number: Number,
        past: Option<Past>,
    ) -> BTreeSet<JobKey> {
        let mut jobs = BTreeSet::new();
        for stamped in headers_first(records) {
            jobs.extend(stamped.record.job().cloned());
            jobs.extend(self.put(stamped));
        }
        self.position = Position { leadership: Some(leadership.clone()), number };
        if let Some(past) = past {
            self.past_unsaved |= self.past != past;
            self.past = past;
        }
        jobs
    }

    /// Outcomes up to `held` may be told now. Gives the jobs whose shown outcome this changes: from, to.
    pub fn tell(&mut self, held: Number) -> Vec<(JobKey, Option<JobState>, JobState)> {
        let ready = |key: &&JobKey| self.jobs.get(*key).is_some_and(|entry| entry.stamp.number <= held);
        let keys: Vec<JobKey> = self.untold.iter().filter(ready).cloned().collect();
        let mut told = Vec::new();
        for key in keys {
            let outcome = |ledger: &Ledger| ledger.jobs.get(&key)?.told.as_ref().map(|ended| ended.outcome.clone());
            let before = outcome(self);
            self.tell_job(&key);
            let now = outcome(self);
            if before != now {
                let before = before.map(|outcome| outcome.state());
                told.extend(now.map(|outcome| (key.clone(), before, outcome.state())));
            }
        }
        told
    }

    /// A job's present outcome is told from now on.
    pub(super) fn tell_job(&mut self, key: &JobKey) {
        self.untold.remove(key);
        if let Some(entry) = self.jobs.get_mut(key) {
            if entry.told != entry.job.ended {
                self.unsaved_told.insert(key.clone());
            }
            entry.told.clone_from(&entry.job.ended);
        }
    }

    /// Stores a record with its stamp in place of the one that was there. Gives the jobs that are gone with it.
    pub(super) fn put(&mut self, stamped: Stamped) -> BTreeSet<JobKey> {
        if !self.would_keep(&stamped.record) {
            return BTreeSet::new();
        }
        let name = stamped.record.name();
        if let Some(old) = self.stamp_of(&name).map(|stamp| stamp.number) {
            self.forget_change(old, &name);
        }
        self.changes.insert(stamped.stamp.number, name.clone());
        self.position.number = self.position.number.max(stamped.stamp.number);
        self.removed.remove(&name);
        self.unsaved.insert(name);
        let Stamped { stamp, record } = stamped;
        match record {
            Record::Job(job) => self.put_job(job, stamp),
            Record::Payload(key, payload) => {
                if let Some(entry) = self.jobs.get_mut(&key) {
                    entry.payload = Some((payload, stamp));
                }
            }
            Record::Task(key, task) => {
                if let Some(entry) = self.jobs.get_mut(&key.job) {
                    entry.cuts.entry(key.slices).or_default().put(key.slice, task, stamp);
                }
            }
            Record::Floors(floors) => {
                self.floors = (floors, Some(stamp));
                return self.drop_under_floors();
            }
        }
        BTreeSet::new()
    }

    /// Payloads and tasks belong to a job that is here, no payload to one that has ended, no task to a line.
    fn would_keep(&self, record: &Record) -> bool {
        match record {
            Record::Job(_) | Record::Floors(_) => true,
            Record::Payload(key, _) => self.jobs.get(key).is_some_and(|entry| entry.job.ended.is_none()),
            Record::Task(key, _) => self.jobs.get(&key.job).is_some_and(|entry| self.left_of(entry) == Left::Whole),
        }
    }

    fn put_job(&mut self, job: Job, stamp: Stamp) {
        let key = job.key.clone();
        for admission in &job.admissions {
            self.remember_jac(&admission.leader, admission.jac);
        }
        let before = self.jobs.get(&key).map(|entry| &entry.job);
        if let Some(at) = before.and_then(|job| job.deadline) {
            self.deadlines.remove(&(at, key.clone()));
        }
        let before = before.and_then(|job| job.ended.as_ref().map(|ended| ended.turn));
        if job.ended.is_some() {
            self.unfinished.remove(&key);
            self.untold.insert(key.clone());
            self.drop_payload(&key);
        } else {
            self.unfinished.insert(key.clone());
            self.deadlines.extend(job.deadline.map(|at| (at, key.clone())));
        }
        match self.jobs.get_mut(&key) {
            Some(entry) => {
                if entry.told.is_some() && entry.told != job.ended {
                    self.unsaved_told.insert(key.clone());
                }
                entry.job = job;
                entry.stamp = stamp;
            }
            None => {
                let cuts = BTreeMap::new();
                self.jobs.insert(key.clone(), Entry { job, stamp, payload: None, cuts, told: None });
            }
        }
        self.sort_in(&key, before);
    }

    /// Somebody's word on a worker's JAC: the higher stays. When too many are known the lowest goes, which is missed
    /// least.
    pub(crate) fn remember_jac(&mut self, node: &NodeId, jac: Jac) {
        if self.jac_of(node) >= jac {
            return;
        }
        if self.jacs.len() >= limits::REMEMBERED && !self.jacs.contains_key(node) {
            let lowest = self.jacs.iter().min_by_key(|(_, jac)| **jac).map(|(node, jac)| (node.clone(), *jac));
            match lowest {
                Some((lowest, known)) if known < jac => {
                    self.jacs.remove(&lowest);
                    self.unsaved_jacs.insert(lowest);
                }
                _ => return,
            }
        }
        self.jacs.insert(node.clone(), jac);
        self.unsaved_jacs.insert(node.clone());
    }

    fn drop_payload(&mut self, key: &JobKey) {
        let payload = self.jobs.get_mut(key).and_then(|entry| entry.payload.take());
        if let Some((_, stamp)) = payload {
            self.remove(RecordName::Payload(key.clone()), stamp.number);
        }
    }

    /// A record that changed last at `number` is kept no longer.
    pub(super) fn remove(&mut self, name: RecordName, number: Number) {
        self.forget_change(number, &name);
        self.unsaved.remove(&name);
        self.removed.insert(name);
    }

    /// A record that a follower takes over may carry the number of another one of its old ledger, which the same
    /// batch replaces as well: only the record's own entry goes.
    fn forget_change(&mut self, number: Number, name: &RecordName) {
        if self.changes.get(&number) == Some(name) {
            self.changes.remove(&number);
        }
    }

    fn change_task(&mut self, key: &TaskKey, change: impl FnOnce(&mut Task)) {
        let mut task = self.task(key).cloned().unwrap_or_default();
        change(&mut task);
        let stamp = self.next_stamp();
        self.put(Stamped { stamp, record: Record::Task(key.clone(), task) });
    }

    fn stamp_of(&self, name: &RecordName) -> Option<&Stamp> {
        match name {
            RecordName::Job(key) => self.jobs.get(key).map(|entry| &entry.stamp),
            RecordName::Payload(key) => self.jobs.get(key)?.payload.as_ref().map(|(_, stamp)| stamp),
            RecordName::Task(key) => {
                self.jobs.get(&key.job)?.cuts.get(&key.slices)?.tasks.get(&key.slice).map(|(_, stamp)| stamp)
            }
            RecordName::Floors => self.floors.1.as_ref(),
        }
    }

    pub(super) fn next_stamp(&mut self) -> Stamp {
        self.position.number = self.position.number.next();
        let (term, leader) = match &self.position.leadership {
            Some(leadership) => (leadership.term, leadership.leader.clone()),
            None => (Term(0), self.owner.clone()),
        };
        Stamp { term, number: self.position.number, leader }
    }
}

impl Cut {
    fn put(&mut self, slice: u32, task: Task, stamp: Stamp) {
        let completed = u32::from(task.completion.is_some());
        let before = self.tasks.insert(slice, (task, stamp));
        let before = before.map_or(0, |(task, _)| u32::from(task.completion.is_some()));
        self.completed = self.completed.saturating_add(completed).saturating_sub(before);
    }
}

/// The join of one record with the same one of another copy.
fn join(ours: Option<&Record>, theirs: &Record, merged: &mut Merged) -> Record {
    match (ours, theirs) {
        (Some(Record::Job(mine)), Record::Job(other)) => {
            let mut job = mine.clone();
            job.join(other);
            Record::Job(job)
        }
        (Some(Record::Task(key, mine)), Record::Task(_, other)) => {
            let mut task = mine.clone();
            if task.join(other) {
                merged.differ.push(key.clone());
            }
            Record::Task(key.clone(), task)
        }
        (Some(Record::Floors(mine)), Record::Floors(other)) => {
            let mut floors = mine.clone();
            floors.join(other);
            Record::Floors(floors)
        }
        // A payload is named by its digest: theirs is ours.
        (Some(Record::Payload(key, mine)), _) => Record::Payload(key.clone(), mine.clone()),
        (_, _) => theirs.clone(),
    }
}

/// Payloads and tasks belong to a job's own record, which may have changed after them; and what is kept of a job
/// hangs on the floors.
pub(super) fn headers_first(mut records: Vec<Stamped>) -> impl Iterator<Item = Stamped> {
    records.sort_by_key(|stamped| match stamped.record {
        Record::Floors(_) => 0,
        Record::Job(_) => 1,
        Record::Payload(..) | Record::Task(..) => 2,
    });
    records.into_iter()
}
