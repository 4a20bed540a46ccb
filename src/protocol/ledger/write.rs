//! Changing a replica: a leader's mutations, the join of what a follower brings, and a follower's taking over.
//!
//! Every mutation is upwards in the join's order, so that no later join undoes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::jobs::{Payload, Value};
use crate::protocol::ids::{AttemptName, JobKey, Leadership, NodeId, Number, Position, TaskKey, Term};
use crate::protocol::time::Wall;
use crate::protocol::view::{Admission, JobState, Stamp};

use super::{Attempt, Completion, Cut, Entry, Job, Ledger, Outcome, Past, Record, RecordName, Stamped, Task};

/// What a join changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Jobs of which any record changed.
    pub jobs: BTreeSet<JobKey>,
    /// Jobs whose told outcome was replaced by a higher one: from, to.
    pub raised: Vec<(JobKey, JobState, JobState)>,
    /// Tasks that had been completed with two different values.
    pub differ: Vec<TaskKey>,
}

impl Ledger {
    /// Takes in a job: one record with its admission, one with its payload.
    pub fn admit(&mut self, key: &JobKey, payload: Payload, admission: Admission, wall: Wall) {
        let job = Job {
            key: key.clone(),
            kind: payload.kind(),
            submitted_at: wall,
            admissions: BTreeSet::from([admission]),
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
        let job = Job { ended: Some((outcome, wall)), ..entry.job.clone() };
        let stamp = self.next_stamp();
        self.put(Stamped { stamp, record: Record::Job(job) });
    }

    /// Joins what a follower brought. What changes takes new numbers, and so does what stands at `above` or below:
    /// the follower's copy of it may have another number, and both must end equal (section 8).
    pub fn merge(&mut self, records: Vec<Stamped>, above: Number) -> Merged {
        let mut merged = Merged::default();
        for stamped in headers_first(records) {
            self.merge_record(stamped, above, &mut merged);
        }
        merged
    }

    fn merge_record(&mut self, theirs: Stamped, above: Number, merged: &mut Merged) {
        let name = name_of(&theirs.record);
        let ours = self.record(&name);
        let key = job_of(&theirs.record).clone();
        let joined = match (ours.as_ref().map(|ours| &ours.record), &theirs.record) {
            (Some(Record::Job(mine)), Record::Job(other)) => {
                let mut job = mine.clone();
                job.join(other);
                Record::Job(job)
            }
            (Some(Record::Task(task_key, mine)), Record::Task(_, other)) => {
                let mut task = mine.clone();
                if task.join(other) {
                    merged.differ.push(task_key.clone());
                }
                Record::Task(task_key.clone(), task)
            }
            // A payload is named by its digest: theirs is ours.
            (Some(Record::Payload(key, mine)), _) => Record::Payload(key.clone(), mine.clone()),
            (_, _) => theirs.record.clone(),
        };
        let unchanged = ours.as_ref().is_some_and(|ours| ours.record == joined);
        if unchanged && ours.is_some_and(|ours| ours.stamp == theirs.stamp && ours.stamp.number > above) {
            return;
        }
        if !self.would_keep(&joined) {
            return;
        }
        if !unchanged {
            merged.jobs.insert(key.clone());
        }
        let before = self.jobs.get(&key).and_then(|entry| entry.told.as_ref().map(|(outcome, _)| outcome.state()));
        let stamp = self.next_stamp();
        self.put(Stamped { stamp, record: joined });
        let after = self.jobs.get(&key).and_then(|entry| entry.job.ended.as_ref().map(|(outcome, _)| outcome.state()));
        if let (Some(before), Some(after)) = (before, after)
            && before != after
        {
            merged.raised.push((key, before, after));
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
            jobs.insert(job_of(&stamped.record).clone());
            self.put(stamped);
        }
        self.position = Position { leadership: Some(leadership.clone()), number };
        if let Some(past) = past {
            self.past_unsaved |= self.past != past;
            self.past = past;
        }
        jobs
    }

    /// Outcomes up to `held` may be told now. Gives the jobs whose shown state this changes.
    pub fn tell(&mut self, held: Number) -> Vec<(JobKey, JobState)> {
        let ready = |key: &&JobKey| self.jobs.get(*key).is_some_and(|entry| entry.stamp.number <= held);
        let keys: Vec<JobKey> = self.untold.iter().filter(ready).cloned().collect();
        let mut told = Vec::new();
        for key in keys {
            self.untold.remove(&key);
            let Some(entry) = self.jobs.get_mut(&key) else { continue };
            if entry.told != entry.job.ended {
                entry.told = entry.job.ended.clone();
                told.extend(entry.told.as_ref().map(|(outcome, _)| (key.clone(), outcome.state())));
            }
        }
        told
    }

    /// Stores a record with its stamp in place of the one that was there.
    pub(super) fn put(&mut self, stamped: Stamped) {
        if !self.would_keep(&stamped.record) {
            return;
        }
        let name = name_of(&stamped.record);
        if let Some(old) = self.stamp_of(&name).map(|stamp| stamp.number) {
            self.forget_change(old, &name);
        }
        self.changes.insert(stamped.stamp.number, name.clone());
        self.position.number = self.position.number.max(stamped.stamp.number);
        self.unsaved.insert(name);
        let Stamped { stamp, record } = stamped;
        match record {
            Record::Job(job) => self.put_job(job, stamp),
            Record::Payload(key, payload) => {
                if let Some(entry) = self.jobs.get_mut(&key) {
                    entry.last = entry.last.clone().max(stamp.clone());
                    entry.payload = Some((payload, stamp));
                }
            }
            Record::Task(key, task) => {
                if let Some(entry) = self.jobs.get_mut(&key.job) {
                    entry.last = entry.last.clone().max(stamp.clone());
                    entry.cuts.entry(key.slices).or_default().put(key.slice, task, stamp);
                }
            }
        }
    }

    /// Payloads and tasks belong to a job that is here, and no payload to one that has ended.
    fn would_keep(&self, record: &Record) -> bool {
        match record {
            Record::Job(_) => true,
            Record::Payload(key, _) => self.jobs.get(key).is_some_and(|entry| entry.job.ended.is_none()),
            Record::Task(key, _) => self.jobs.contains_key(&key.job),
        }
    }

    fn put_job(&mut self, job: Job, stamp: Stamp) {
        let key = job.key.clone();
        if job.ended.is_some() {
            self.unfinished.remove(&key);
            self.untold.insert(key.clone());
            self.drop_payload(&key);
        } else {
            self.unfinished.insert(key.clone());
        }
        match self.jobs.get_mut(&key) {
            Some(entry) => {
                entry.job = job;
                entry.last = entry.last.clone().max(stamp.clone());
                entry.stamp = stamp;
            }
            None => {
                let (last, cuts) = (stamp.clone(), BTreeMap::new());
                self.jobs.insert(key, Entry { job, stamp, payload: None, cuts, last, told: None });
            }
        }
    }

    fn drop_payload(&mut self, key: &JobKey) {
        let payload = self.jobs.get_mut(key).and_then(|entry| entry.payload.take());
        if let Some((_, stamp)) = payload {
            let name = RecordName::Payload(key.clone());
            self.forget_change(stamp.number, &name);
            self.unsaved.remove(&name);
        }
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
        }
    }

    fn next_stamp(&mut self) -> Stamp {
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

/// Payloads and tasks belong to a job's own record, which may have changed after them.
pub(super) fn headers_first(records: Vec<Stamped>) -> impl Iterator<Item = Stamped> {
    let (headers, others): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|stamped| matches!(stamped.record, Record::Job(_)));
    headers.into_iter().chain(others)
}

fn name_of(record: &Record) -> RecordName {
    match record {
        Record::Job(job) => RecordName::Job(job.key.clone()),
        Record::Payload(key, _) => RecordName::Payload(key.clone()),
        Record::Task(key, _) => RecordName::Task(key.clone()),
    }
}

fn job_of(record: &Record) -> &JobKey {
    match record {
        Record::Job(job) => &job.key,
        Record::Payload(key, _) => key,
        Record::Task(key, _) => &key.job,
    }
}
