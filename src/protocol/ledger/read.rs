//! Reading a replica: records to send, hashes to compare, views to show.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use crate::jobs::Payload;
use crate::protocol::ids::{Digest, Jac, JobKey, NodeId, Number, TaskKey};
use crate::protocol::message::JobQuery;
use crate::protocol::time::Wall;
use crate::protocol::view::{JobState, JobView, Stamp, TaskState, TaskView, WorkerShare};

use super::{Cut, Entry, Job, Ledger, Outcome, Record, RecordName, Stamped, Task};

impl Ledger {
    /// A job's record.
    #[must_use]
    pub fn job(&self, key: &JobKey) -> Option<&Job> {
        self.jobs.get(key).map(|entry| &entry.job)
    }

    /// Whether the job is here and has not ended.
    #[must_use]
    pub fn is_unfinished(&self, key: &JobKey) -> bool {
        self.unfinished.contains(key)
    }

    /// Whether the job's outcome may be told, or there is no such job.
    #[must_use]
    pub fn is_told(&self, key: &JobKey) -> bool {
        self.jobs.get(key).is_none_or(|entry| entry.told.is_some())
    }

    /// Whether the outcome that a job has now is the one that was told.
    pub(crate) fn has_told_outcome(&self, key: &JobKey) -> bool {
        let outcome = |ended: &Option<super::Ended>| ended.as_ref().map(|ended| ended.outcome.clone());
        self.jobs
            .get(key)
            .is_some_and(|entry| entry.told.is_some() && outcome(&entry.told) == outcome(&entry.job.ended))
    }

    /// Jobs that have not ended, by key.
    pub fn unfinished(&self) -> impl ExactSizeIterator<Item = &JobKey> {
        self.unfinished.iter()
    }

    /// Unfinished jobs whose deadline is not after `wall`.
    #[must_use]
    pub fn late(&self, wall: Wall) -> Vec<JobKey> {
        self.deadlines.iter().take_while(|(at, _)| *at <= wall).map(|(_, key)| key.clone()).collect()
    }

    /// The next deadline of an unfinished job.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Wall> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// What a job computes; none once it has ended.
    #[must_use]
    pub fn payload(&self, key: &JobKey) -> Option<&Payload> {
        self.jobs.get(key)?.payload.as_ref().map(|(payload, _)| payload)
    }

    /// A task's record; none before its first attempt.
    #[must_use]
    pub fn task(&self, key: &TaskKey) -> Option<&Task> {
        self.jobs.get(&key.job)?.cuts.get(&key.slices)?.tasks.get(&key.slice).map(|(task, _)| task)
    }

    /// The slice count that work and progress go by: the larger completed share, then fewer slices (section 7).
    #[must_use]
    pub fn leading_cut(&self, key: &JobKey) -> Option<u32> {
        self.jobs.get(key).map(|entry| entry.leading_cut().0)
    }

    /// Whether every task of a cut is completed.
    #[must_use]
    pub fn is_complete(&self, key: &JobKey, slices: u32) -> bool {
        self.jobs.get(key).and_then(|entry| entry.cuts.get(&slices)).is_some_and(|cut| cut.completed >= slices)
    }

    /// Completed tasks of a cut, by slice.
    pub fn completions(&self, key: &JobKey, slices: u32) -> impl Iterator<Item = (u32, &super::Completion)> {
        let cut = self.jobs.get(key).and_then(|entry| entry.cuts.get(&slices));
        let tasks = cut.into_iter().flat_map(|cut| cut.tasks.iter());
        tasks.filter_map(|(slice, (task, _))| task.completion.as_ref().map(|done| (*slice, done)))
    }

    /// All records of a cut that were ever handed out, by slice.
    pub fn tasks(&self, key: &JobKey, slices: u32) -> impl Iterator<Item = (u32, &Task)> {
        let cut = self.jobs.get(key).and_then(|entry| entry.cuts.get(&slices));
        cut.into_iter().flat_map(|cut| cut.tasks.iter().map(|(slice, (task, _))| (*slice, task)))
    }

    /// The job that people mean: by its digest, or the smallest digest under the id.
    #[must_use]
    pub fn find(&self, query: &JobQuery) -> Option<JobKey> {
        if let Some(digest) = query.digest {
            let key = JobKey { id: query.id.clone(), digest };
            return self.jobs.contains_key(&key).then_some(key);
        }
        let first = JobKey { id: query.id.clone(), digest: Digest([0; 32]) };
        let (key, _) = self.jobs.range(first..).next()?;
        (key.id == query.id).then(|| key.clone())
    }

    /// The number of a job's own record: what an acknowledgement of its admission or outcome rests on.
    #[must_use]
    pub fn number_of(&self, key: &JobKey) -> Option<Number> {
        let entry = self.jobs.get(key)?;
        let payload = entry.payload.as_ref().map_or(Number(0), |(_, stamp)| stamp.number);
        Some(entry.stamp.number.max(payload))
    }

    /// The highest JAC that any admission ever stated for `node` here (section 6).
    #[must_use]
    pub fn jac_of(&self, node: &NodeId) -> Jac {
        self.jacs.get(node).copied().unwrap_or_default()
    }

    /// One record with its stamp.
    #[must_use]
    pub fn record(&self, name: &RecordName) -> Option<Stamped> {
        match name {
            RecordName::Job(key) => {
                let entry = self.jobs.get(key)?;
                Some(Stamped { stamp: entry.stamp.clone(), record: Record::Job(entry.job.clone()) })
            }
            RecordName::Payload(key) => {
                let (payload, stamp) = self.jobs.get(key)?.payload.clone()?;
                Some(Stamped { stamp, record: Record::Payload(key.clone(), payload) })
            }
            RecordName::Task(key) => {
                let (task, stamp) = self.jobs.get(&key.job)?.cuts.get(&key.slices)?.tasks.get(&key.slice)?.clone();
                Some(Stamped { stamp, record: Record::Task(key.clone(), task) })
            }
            RecordName::Floors => {
                let (floors, stamp) = &self.floors;
                Some(Stamped { stamp: stamp.clone()?, record: Record::Floors(floors.clone()) })
            }
        }
    }

    /// All records that changed after `number`, in the order of their changes.
    #[must_use]
    pub fn changed_since(&self, number: Number) -> Vec<Stamped> {
        let later = (Bound::Excluded(number), Bound::Unbounded);
        self.changes.range(later).filter_map(|(_, name)| self.record(name)).collect()
    }

    /// All records of some jobs, each job's own record first.
    #[must_use]
    pub fn records_of(&self, keys: &[JobKey]) -> Vec<Stamped> {
        let mut names = Vec::new();
        for key in keys {
            let Some(entry) = self.jobs.get(key) else { continue };
            names.push(RecordName::Job(key.clone()));
            names.push(RecordName::Payload(key.clone()));
            for (slices, cut) in &entry.cuts {
                let named =
                    |slice: &u32| RecordName::Task(TaskKey { job: key.clone(), slices: *slices, slice: *slice });
                names.extend(cut.tasks.keys().map(named));
            }
        }
        names.iter().filter_map(|name| self.record(name)).collect()
    }

    /// A hash of each job, numbers included: equal hashes mean equal records (section 8).
    #[must_use]
    pub fn hashes(&self) -> Vec<(JobKey, u64)> {
        self.jobs.iter().map(|(key, entry)| (key.clone(), entry.hash())).collect()
    }

    /// One job as it may be told.
    #[must_use]
    pub fn view(&self, key: &JobKey) -> Option<Arc<JobView>> {
        self.jobs.get(key).map(|entry| Arc::new(entry.view()))
    }

    /// The jobs after a key, in order.
    pub fn after(&self, key: Option<&JobKey>) -> impl Iterator<Item = &JobKey> {
        let from = key.map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()));
        self.jobs.range((from, Bound::Unbounded)).map(|(key, _)| key)
    }
}

impl Entry {
    /// The slice count that leads, and its completed tasks.
    pub(super) fn leading_cut(&self) -> (u32, u32) {
        let completed = |slices: &u32| self.cuts.get(slices).map_or(0, |cut| cut.completed);
        let mut cuts = self.job.cuts().into_iter().map(|slices| (slices, completed(&slices)));
        let first = cuts.next().unwrap_or((1, 0));
        cuts.fold(first, |best, next| {
            let ahead = u64::from(next.1) * u64::from(best.0) > u64::from(best.1) * u64::from(next.0);
            if ahead { next } else { best }
        })
    }

    fn hash(&self) -> u64 {
        let mut hasher = Fnv::default();
        (&self.job, &self.stamp).hash(&mut hasher);
        // The digest in the key stands for the payload's content.
        self.payload.as_ref().map(|(_, stamp)| stamp).hash(&mut hasher);
        for (slices, cut) in &self.cuts {
            (slices, &cut.tasks).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The latest change of any of its records.
    fn last_change(&self) -> Stamp {
        let payload = self.payload.iter().map(|(_, stamp)| stamp);
        let tasks = self.cuts.values().flat_map(|cut| cut.tasks.values().map(|(_, stamp)| stamp));
        payload.chain(tasks).chain([&self.stamp]).max().unwrap_or(&self.stamp).clone()
    }

    fn view(&self) -> JobView {
        let (slices, completed) = self.leading_cut();
        let told = self.told.as_ref();
        // Of a job of which only a line is left no task can be shown.
        let line = self.job.ended.as_ref().filter(|_| self.cuts.is_empty());
        let (completed, total) = line.map_or((completed, slices), |ended| (ended.completed, ended.total));
        let tasks: Vec<TaskView> = match (line, self.cuts.get(&slices)) {
            (Some(_), _) => Vec::new(),
            (None, Some(cut)) => (0..slices).map(|slice| task_view(slice, cut)).collect(),
            (None, None) => (0..slices).map(|slice| task_view(slice, &Cut::default())).collect(),
        };
        JobView {
            key: self.job.key.clone(),
            kind: self.job.kind,
            state: told.map_or(JobState::Running, |ended| ended.outcome.state()),
            answer: told.and_then(|ended| match &ended.outcome {
                Outcome::Succeeded(value) => Some(*value),
                Outcome::Cancelled | Outcome::Failed(_) => None,
            }),
            error: told.and_then(|ended| match &ended.outcome {
                Outcome::Failed(reason) => Some(reason.clone()),
                Outcome::Cancelled | Outcome::Succeeded(_) => None,
            }),
            stamp: Some(self.last_change()),
            completed,
            total,
            submitted_at: self.job.submitted_at,
            finished_at: told.map(|ended| ended.at),
            admissions: self.job.admissions.iter().cloned().collect(),
            workers: shares(&tasks),
            tasks,
            trace: self.job.trace,
        }
    }
}

fn task_view(slice: u32, cut: &Cut) -> TaskView {
    let task = cut.tasks.get(&slice).map(|(task, _)| task);
    let done = task.and_then(|task| task.completion.as_ref());
    let running = task.and_then(|task| task.attempt.as_ref()).filter(|attempt| !attempt.ended);
    let (state, attempt, worker) = match (done, running) {
        (Some(done), _) => (TaskState::Completed, done.attempt.number, Some(done.worker.clone())),
        (None, Some(last)) => (TaskState::Running, last.name.number, Some(last.worker.clone())),
        (None, None) => (TaskState::Pending, task.map_or(0, Task::last_attempt), None),
    };
    let (took, partial) = (done.map(|done| done.took), done.map(|done| done.value));
    TaskView { slice, state, attempt, worker, took, partial }
}

fn shares(tasks: &[TaskView]) -> Vec<WorkerShare> {
    let mut shares: BTreeMap<&NodeId, (u32, u32, Duration)> = BTreeMap::new();
    for task in tasks {
        let Some(worker) = &task.worker else { continue };
        let share = shares.entry(worker).or_default();
        match task.state {
            TaskState::Completed => {
                share.0 += 1;
                share.2 = share.2.saturating_add(task.took.unwrap_or_default());
            }
            TaskState::Running => share.1 += 1,
            TaskState::Pending => {}
        }
    }
    let named =
        |(node, (completed, running, busy)): (&NodeId, _)| WorkerShare { node: node.clone(), completed, running, busy };
    shares.into_iter().map(named).collect()
}

/// FNV-1a with 64 bits: small, and the same on every machine. A collision costs one exchange that is not made,
/// at odds of 2^-64 a job; the next change of the job mends it.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one_on_every_machine() {
        // From the authors' own list of test vectors for FNV-1a with 64 bits.
        for (text, hash) in [("a", 0xaf63_dc4c_8601_ec8c_u64), ("foobar", 0x8594_4171_f739_67e8)] {
            let mut hasher = Fnv::default();
            hasher.write(text.as_bytes());
            assert_eq!(hasher.finish(), hash);
        }
    }
}
