//! Attempts, as a leader's notices tell of them against what its ledger says: a task counts as running only while
//! somebody has it, and a completion only for an attempt that is out (sections 7 and 8).

use std::collections::{BTreeMap, BTreeSet};

use floodline::protocol::Shown;
use floodline::protocol::effects::Save;
use floodline::protocol::ids::{NodeId, TaskKey, Term};
use floodline::protocol::ledger::{Record, Task};
use floodline::protocol::message::JobQuery;
use floodline::protocol::notice::Notice;
use floodline::protocol::view::{JobState, TaskState};

use crate::process::Process;
use crate::world::World;

type Attempt = (TaskKey, u32);

/// What one process has handed out.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    handed: BTreeMap<Attempt, NodeId>,
    /// Those whose end was not told. Ends without a notice, since the job or the cut was given up, stay here.
    out: BTreeMap<Attempt, NodeId>,
    terms: BTreeSet<Term>,
    active: bool,
}

impl Attempts {
    /// Whether its leadership has become active.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }
}

impl World {
    pub(crate) fn note_attempt(&mut self, at: usize, notice: &Notice) {
        let Some(process) = &mut self.hosts[at].process else { return };
        let attempts = &mut process.attempts;
        match notice {
            Notice::LeadershipBegan { leadership, .. } | Notice::LeadershipMovedUp(_, leadership) => {
                attempts.terms.insert(leadership.term);
            }
            Notice::LeadershipActive(..) => attempts.active = true,
            Notice::LeadershipEnded(..) => {
                attempts.active = false;
                attempts.out.clear();
            }
            Notice::TaskHandedOut { task, attempt, worker, .. } => {
                attempts.handed.insert((task.clone(), *attempt), worker.clone());
                attempts.out.insert((task.clone(), *attempt), worker.clone());
            }
            Notice::TaskEnded { task, attempt, worker, failure } => {
                let out = attempts.out.remove(&(task.clone(), *attempt));
                if failure.is_none() {
                    attempts.out.retain(|(other, _), _| other != task);
                }
                if out.as_ref() != Some(worker) {
                    let text = format!("attempt {attempt} of {task:?} ends at {worker}, out was {out:?}");
                    self.break_("attempt out (section 7)", text);
                }
            }
            _ => {}
        }
    }

    /// After a step in which followers were lost: none of their attempts is out.
    pub(crate) fn check_lost(&mut self, at: usize, notices: &[Notice], saves: &[Save]) {
        for notice in notices {
            let Notice::FollowerLost(node, _) = notice else { continue };
            let Some(process) = self.hosts[at].process.as_ref().filter(|process| process.leads.is_some()) else {
                return;
            };
            let at_lost = process.attempts.out.iter().filter(|(_, worker)| *worker == node);
            let forgotten = at_lost.map(|(attempt, _)| attempt).find(|attempt| runs(process, attempt, saves)).cloned();
            if let Some(forgotten) = forgotten {
                self.break_("worker lost (section 7)", format!("{node} is lost and still has {forgotten:?}"));
            }
        }
    }

    /// What a leader writes of tasks agrees with what it handed out.
    pub(crate) fn check_tasks(&mut self, at: usize, save: &Save) {
        let Some(process) = self.hosts[at].process.as_ref().filter(|process| process.leads.is_some()) else { return };
        let wrong = save.records.iter().find_map(|stamped| match &stamped.record {
            Record::Task(key, task) => process.wrong(key, task, save),
            Record::Job(_) | Record::Payload(..) | Record::Floors(_) => None,
        });
        if let Some(wrong) = wrong {
            let text = format!("{} writes {wrong}", process.member.node);
            self.break_("attempt (section 8)", text);
        }
    }
}

impl Process {
    fn wrong(&self, key: &TaskKey, task: &Task, save: &Save) -> Option<String> {
        let attempts = &self.attempts;
        if let Some(done) = &task.completion {
            // Who forgot that it led in a term may lead in it again, and give a name twice.
            let own = self.first_life
                && done.attempt.leader == self.member.node
                && attempts.terms.contains(&done.attempt.term);
            let handed = attempts.handed.get(&(key.clone(), done.attempt.number));
            return (own && handed != Some(&done.worker))
                .then(|| format!("{key:?} completed by {done:?}, handed out to {handed:?}"));
        }
        let running = task.attempt.as_ref().filter(|attempt| attempts.active && !attempt.ended)?;
        let attempt = (key.clone(), running.name.number);
        // A join may have brought a higher name than that of the attempt which is out.
        let is_out = attempts.out.range((key.clone(), 0)..).next().is_some_and(|((out, _), _)| out == key);
        let gone = !is_out && runs(self, &attempt, std::slice::from_ref(save));
        gone.then(|| format!("{key:?} running as {running:?}, which nobody has"))
    }
}

/// Whether a process shows an attempt as running, of a job that has not ended in its ledger: the end may be untold.
fn runs(process: &Process, (task, number): &Attempt, saves: &[Save]) -> bool {
    let records = process.saving.iter().chain(saves).flat_map(|save| &save.records);
    let ends = |record: &Record| matches!(record, Record::Job(job) if job.key == task.job && job.ended.is_some());
    if process.disk.state(&task.job).is_some_and(JobState::is_terminal) || records.map(|of| &of.record).any(ends) {
        return false;
    }
    let query = JobQuery { id: task.job.id.clone(), digest: Some(task.job.digest), forwarded: false };
    let Shown::Next(view) = process.worker.show(&query, None) else { return false };
    let slice = view.tasks.iter().find(|view| view.slice == task.slice);
    view.state == JobState::Running
        && view.total == task.slices
        && slice.is_some_and(|slice| slice.state == TaskState::Running && slice.attempt == *number)
}
