//! G1: an acknowledged job reaches a terminal state with the right answer, while one worker that held it comes back.
//!
//! The right answer is judged at every view that shows one, and its parts with it: each task counts once, so the
//! parts fold to the answer. That the job ends is judged in the final sight only.

use std::collections::BTreeMap;

use crate::jobs::{Kind, Value};
use crate::protocol::ids::JobKey;
use crate::protocol::view::{JobState, JobView, TaskState};

use super::Verdict;
use super::history::{Outcome, Right, Seen, Sight};
use super::retained::Retained;

#[derive(Clone, Debug, Default)]
struct Owed {
    right: Option<Right>,
    acknowledged: bool,
    cancel_asked: bool,
    gone: bool,
}

/// What is owed for each job.
#[derive(Clone, Debug, Default)]
pub(super) struct G1 {
    jobs: BTreeMap<JobKey, Owed>,
}

impl G1 {
    pub(super) fn see(&mut self, seen: &Seen, retained: &Retained, verdict: &mut Verdict) {
        if let Some((by, view)) = seen.view() {
            self.judge_view(view, verdict, &by.node);
        }
        match seen {
            Seen::Submitted { job, right } => self.owed(job).right = Some(*right),
            Seen::CancelAsked(job) => self.owed(job).cancel_asked = true,
            Seen::Gone(job) => self.owed(job).gone = true,
            Seen::Outcome { job, outcome: Outcome::Acknowledged } => {
                let owed = self.owed(job);
                owed.acknowledged = true;
                if owed.right.is_none() {
                    verdict.breach("G1", format!("{} was acknowledged, but nobody submitted it", job.id));
                }
            }
            Seen::Final(sights) => self.judge_end(sights, retained, verdict),
            Seen::Outcome { .. }
            | Seen::Started { .. }
            | Seen::Ended { .. }
            | Seen::Hurt(_)
            | Seen::Shown { .. }
            | Seen::Relayed { .. }
            | Seen::Told { .. }
            | Seen::Left { .. }
            | Seen::JobEnded { .. }
            | Seen::Admitted { .. }
            | Seen::JacTold { .. }
            | Seen::Follows { .. }
            | Seen::Led { .. }
            | Seen::Abused { .. }
            | Seen::Quiet => {}
        }
    }

    fn owed(&mut self, job: &JobKey) -> &mut Owed {
        self.jobs.entry(job.clone()).or_default()
    }

    fn judge_view(&self, view: &JobView, verdict: &mut Verdict, by: &dyn std::fmt::Display) {
        let Some(owed) = self.jobs.get(&view.key) else {
            verdict.breach("G1", format!("{by} shows {}, which nobody submitted", view.key.id));
            return;
        };
        let id = &view.key.id;
        let wrong = match (view.state, view.answer, owed.right) {
            (JobState::Queued | JobState::Running, None, _) => None,
            (JobState::Succeeded, Some(answer), Some(Right::Answer(right))) if answer == right => None,
            (JobState::Succeeded, answer, right) => Some(format!("succeeded with {answer:?}, right is {right:?}")),
            (JobState::Failed, None, Some(Right::Fails)) => None,
            (JobState::Failed, ..) => Some(format!("failed ({:?}), right is {:?}", view.error, owed.right)),
            (JobState::Cancelled, None, _) if owed.cancel_asked => None,
            (JobState::Cancelled, ..) => Some("is cancelled, but nobody asked for it".to_owned()),
            (JobState::Queued | JobState::Running, answer, _) => Some(format!("runs and has the answer {answer:?}")),
        };
        if let Some(wrong) = wrong {
            verdict.breach("G1", format!("{id} at {by} {wrong}"));
        }
        if let Some(wrong) = miscounted(view) {
            verdict.breach("G1", format!("{id} at {by} {wrong}"));
        }
    }

    fn judge_end(&self, sights: &[Sight], retained: &Retained, verdict: &mut Verdict) {
        for sight in sights {
            sight.jobs.iter().for_each(|view| self.judge_view(view, verdict, sight.node()));
        }
        let ended = |job: &JobKey| {
            sights.iter().flat_map(|sight| &sight.jobs).any(|view| view.key == *job && view.state.is_terminal())
        };
        let is_shown = |job: &JobKey| sights.iter().flat_map(|sight| &sight.jobs).any(|view| view.key == *job);
        for (job, owed) in &self.jobs {
            let open = owed.acknowledged && !owed.gone && !ended(job);
            if open && (is_shown(job) || !retained.may_be_gone(job)) {
                verdict.breach("G1", format!("{} was acknowledged and has ended nowhere", job.id));
            }
        }
    }
}

/// Why a view does not count each task once; none if it does.
fn miscounted(view: &JobView) -> Option<String> {
    if view.completed > view.total {
        return Some(format!("shows {} of {} tasks completed", view.completed, view.total));
    }
    // A subscriber of a job that ended without an answer may have seen more of another cut, and keeps that share.
    if view.tasks.is_empty() || matches!(view.state, JobState::Failed | JobState::Cancelled) {
        return None;
    }
    let done = view.tasks.iter().filter(|task| task.state == TaskState::Completed).count();
    if view.tasks.len() != view.total as usize || done != view.completed as usize {
        let (tasks, completed, total) = (view.tasks.len(), view.completed, view.total);
        return Some(format!("lists {done} of {tasks} tasks completed, and counts {completed} of {total}"));
    }
    let shares: u32 = view.workers.iter().map(|share| share.completed).sum();
    if !view.workers.is_empty() && shares != view.completed {
        return Some(format!("counts {} tasks completed, its workers {shares}", view.completed));
    }
    let parts: Vec<Value> = view.tasks.iter().filter_map(|task| task.partial).collect();
    if view.state != JobState::Succeeded || parts.len() != view.tasks.len() {
        return None;
    }
    let folded = fold(view.kind, &parts);
    (folded != view.answer).then(|| format!("has parts that fold to {folded:?}, answered {:?}", view.answer))
}

/// By hand and not by the job kinds' own fold, since that is what is judged.
fn fold(kind: Kind, parts: &[Value]) -> Option<Value> {
    match kind {
        Kind::Max => parts.iter().copied().max(),
        Kind::PrimeCount | Kind::PrimeSum => Some(Value(parts.iter().map(|part| part.0).sum())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::stories::*;
    use super::*;

    #[test]
    fn a_right_answer_for_an_acknowledged_job_is_fine() {
        let story =
            vec![submitted("j", 7), acknowledged("j"), shown("a", done("j", 7)), last(vec![("a", vec![done("j", 7)])])];
        assert_eq!(broken(&story), Vec::<&str>::new());
    }

    #[test]
    fn an_acknowledged_job_that_nobody_knows_at_the_end_is_lost() {
        assert_eq!(broken(&[submitted("j", 7), acknowledged("j"), last(vec![("a", vec![])])]), ["G1", "G7"]);
    }

    #[test]
    fn an_acknowledged_job_that_still_runs_at_the_end_is_lost() {
        let story = [submitted("j", 7), acknowledged("j"), last(vec![("a", vec![running("j", 1, 2, 5)])])];
        assert_eq!(broken(&story), ["G1"]);
    }

    #[test]
    fn a_job_whose_every_copy_was_destroyed_is_not_owed() {
        let story = [submitted("j", 7), acknowledged("j"), Seen::Gone(key("j")), last(vec![("a", vec![])])];
        assert_eq!(broken(&story), Vec::<&str>::new());
    }

    #[test]
    fn a_wrong_answer_a_failure_and_a_cancel_that_nobody_asked_for_are_each_broken() {
        for state in [JobState::Failed, JobState::Cancelled] {
            assert_eq!(broken(&[submitted("j", 7), shown("a", ended("j", state))]), ["G1"], "{state:?}");
        }
        assert_eq!(broken(&[submitted("j", 7), shown("a", done("j", 8))]), ["G1"]);
    }

    #[test]
    fn a_task_that_is_counted_twice_is_broken() {
        let mut view = done("j", 7);
        view.completed = 3;
        view.total = 3;
        assert_eq!(broken(&[submitted("j", 7), shown("a", view)]), ["G1"]);
    }

    #[test]
    fn parts_that_do_not_fold_to_the_answer_are_broken() {
        let mut view = done("j", 7);
        view.tasks[0].partial = Some(Value(100));
        assert_eq!(broken(&[submitted("j", 7), shown("a", view)]), ["G1"]);
    }
}
