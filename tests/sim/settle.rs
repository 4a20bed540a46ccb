//! Whether the cluster is whole again: one leader, every errand at its end, equal replicas; and the final sight that
//! the judges get.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use floodline::guarantees::history::{Seen, Sight};
use floodline::jobs::Payload;
use floodline::protocol::Shown;
use floodline::protocol::ids::JobKey;
use floodline::protocol::ledger::Record;
use floodline::protocol::message::JobQuery;
use floodline::protocol::view::{JobState, JobView};

use crate::clients::Stage;
use crate::marks::Mark;
use crate::process::Process;
use crate::world::{Happening, World};

/// Within which time those come back that do.
pub(crate) const RETURN: Duration = Duration::from_secs(1);

/// Looks in a row that must find the cluster whole, so that a moment of luck does not count.
const LOOKS: u32 = 8;

impl World {
    /// An observer looks at every worker now and then.
    pub(crate) fn look(&mut self) {
        let sights: Vec<_> =
            self.running().filter_map(|(at, process)| Some((at, process.worker.cluster().leadership?))).collect();
        for (at, leadership) in sights {
            self.follows(at, &leadership);
        }
        let Some(since) = self.quiet_since else {
            return self.after(Duration::from_millis(50), Happening::Look);
        };
        // Those that are down have come back by then.
        let reason =
            if self.now.since(since) < RETURN { Some("not all are back".to_owned()) } else { self.unsettled() };
        self.settled_looks = if reason.is_none() { self.settled_looks + 1 } else { 0 };
        let late = self.now.since(since) > self.patience();
        if self.settled_looks >= LOOKS || late {
            self.finish(reason);
        } else {
            self.after(Duration::from_millis(100), Happening::Look);
        }
    }

    /// Why the cluster is not whole; none if it is.
    fn unsettled(&self) -> Option<String> {
        let mut leaderships = BTreeSet::new();
        for (_, process) in self.running() {
            let view = process.worker.cluster();
            let Some(leadership) = view.leadership else {
                return Some(format!("{} follows nobody", process.member.node));
            };
            if !process.worker.is_ready() {
                return Some(format!("{} is not ready", process.member.node));
            }
            if !self.running().any(|(_, leader)| leader.identity() == leadership.identity()) {
                return Some(format!("{} follows {leadership}, which is gone", process.member.node));
            }
            leaderships.insert(leadership);
            if leaderships.len() > 1 {
                return Some(format!("two leaderships are followed: {leaderships:?}"));
            }
        }
        if self.running().count() < self.fewest() {
            return Some("fewer run than a leader needs".to_owned());
        }
        if let Some(job) = self.without_copy() {
            return Some(format!("nobody that runs has {}", job.id));
        }
        if let Some(open) = self.errands.iter().position(|errand| errand.stage != Stage::Over || errand.cancel_open) {
            let errand = &self.errands[open];
            return Some(format!(
                "client {open} of {} is not done: {:?}, {:?}",
                errand.key.id, errand.stage, errand.cursor
            ));
        }
        let mut processes = self.running().map(|(_, process)| process);
        let first = processes.next()?;
        if let Some(job) = first.disk.jobs().find(|job| job.ended.is_none()) {
            return Some(format!("{} has not ended", job.key.id));
        }
        let differs = processes.find(|other| {
            other.disk.content_hash() != first.disk.content_hash()
                || other.disk.jobs().count() != first.disk.jobs().count()
        });
        if let Some(other) = differs {
            return Some(format!("the replicas of {} and {} differ", first.member.node, other.member.node));
        }
        let one = sight(first);
        self.running().find_map(|(_, process)| {
            let other = sight(process);
            (other.jobs != one.jobs).then(|| format!("{} and {} show different jobs", first.member.node, other.node()))
        })
    }

    fn finish(&mut self, reason: Option<String>) {
        self.done = true;
        self.tell(|_| format!("the end, {}", reason.as_deref().unwrap_or("whole")));
        self.mark_content();
        if self.running().any(|(_, process)| process.disk.jobs().any(|job| self.truth.brought_back.contains(&job.key)))
        {
            self.marks.hit(Mark::BroughtBack);
        }
        let sights = self.running().map(|(_, process)| sight(process)).collect();
        self.see(Seen::Final(sights));
        if let Some(reason) = reason.filter(|_| self.judge.violations().is_empty()) {
            self.break_("settled", format!("not whole {:?} after all faults ended: {reason}", self.patience()));
        }
    }

    fn mark_content(&mut self) {
        let Some((_, process)) = self.running().next() else { return };
        let mut marks = Vec::new();
        let disk = &process.disk;
        let mut ids = BTreeSet::new();
        for job in disk.jobs() {
            if job.cuts().len() > 1 {
                marks.push(Mark::TwoCuts);
            }
            if !ids.insert(job.key.id.clone()) {
                marks.push(Mark::TwoPayloads);
            }
            if disk.state(&job.key) == Some(JobState::Succeeded) {
                let by = disk.records().filter_map(|stamped| match &stamped.record {
                    Record::Task(key, task) if key.job == job.key => task.completion.as_ref(),
                    Record::Task(..) | Record::Job(_) | Record::Payload(..) | Record::Floors(_) => None,
                });
                let leaderships: BTreeSet<_> =
                    by.map(|done| (done.attempt.term, done.attempt.leader.clone())).collect();
                if leaderships.len() > 1 {
                    marks.push(Mark::TakeoverKeptWork);
                }
                if self.hosts.len() == 1 {
                    marks.push(Mark::Alone);
                }
            }
        }
        marks.into_iter().for_each(|mark| self.marks.hit(mark));
    }
}

/// All that a worker shows.
fn sight(process: &Process) -> Sight {
    let show = |key: &JobKey| -> Option<Arc<JobView>> {
        let query = JobQuery { id: key.id.clone(), digest: Some(key.digest), forwarded: false };
        match process.worker.show(&query, None) {
            Shown::Next(view) => Some(view),
            Shown::Unknown | Shown::Wait => None,
        }
    };
    let jobs = process.disk.jobs().filter_map(|job| show(&job.key)).collect();
    Sight { process: process.identity(), following: process.worker.cluster().leadership, jobs }
}

/// Whether a payload is one that clients here may hand in.
#[cfg(test)]
fn is_small(payload: &Payload) -> bool {
    match payload {
        Payload::Max(numbers) => numbers.len() < 20,
        Payload::PrimeCount(numbers) => numbers.len() < 20,
        Payload::PrimeSum { start, end } => end - start < 1_000,
    }
}

#[test]
fn the_work_of_clients_is_small() {
    let mut dice = floodline::protocol::dice::Dice::new(3);
    assert!((0..1_000).all(|_| is_small(&crate::work::any(&mut dice))));
}
