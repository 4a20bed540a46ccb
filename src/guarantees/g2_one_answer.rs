//! G2: an answer, once shown, is the only one ever shown; a terminal state changes only upwards, and only if the
//! other side of a split or a holder thought lost had ended the job so.
//!
//! What was shown counts, not what replicas hold. Two nodes may show a job in different states at one time (one lags
//! behind, or is cut off); one process never goes back.

use std::collections::BTreeMap;

use crate::jobs::Value;
use crate::protocol::ids::{Identity, JobKey, NodeId};
use crate::protocol::view::{Admission, JobState, JobView};

use super::Verdict;
use super::history::{End, Seen, Sight};
use super::retained::Retained;

/// What was shown of each job.
#[derive(Clone, Debug, Default)]
pub(super) struct G2 {
    answers: BTreeMap<JobKey, Value>,
    highest: BTreeMap<JobKey, JobState>,
    by_process: BTreeMap<Identity, BTreeMap<JobKey, JobState>>,
    admissions: BTreeMap<JobKey, Vec<Admission>>,
    hurt: bool,
}

impl G2 {
    pub(super) fn see(&mut self, seen: &Seen, retained: &Retained, verdict: &mut Verdict) {
        if let Some((_, view)) = seen.view() {
            self.meet(view, retained);
        }
        match seen {
            Seen::Shown { by, view } => {
                self.judge_order(by, view, verdict);
                self.judge_view(&by.node, view, verdict);
            }
            // A leader's words may be ahead, and streams have no order among each other; what each one brings is G6.
            Seen::Relayed { by, view } | Seen::Told { by, view, .. } => self.judge_view(&by.node, view, verdict),
            Seen::Hurt(_) | Seen::Ended { how: End::Killed | End::Superseded | End::Broke, .. } => self.hurt = true,
            Seen::Ended { .. } => {}
            Seen::Gone(job) => self.forget(job),
            Seen::Final(sights) => self.judge_end(sights, verdict),
            Seen::Started { .. }
            | Seen::Submitted { .. }
            | Seen::Outcome { .. }
            | Seen::CancelAsked(_)
            | Seen::JobEnded { .. }
            | Seen::Left { .. }
            | Seen::Admitted { .. }
            | Seen::JacTold { .. }
            | Seen::Follows { .. }
            | Seen::Led { .. }
            | Seen::Abused { .. }
            | Seen::Quiet => {}
        }
    }

    /// A job that was dropped and handed in again is another one, with admissions of its own.
    fn meet(&mut self, view: &JobView, retained: &Retained) {
        let known = self.admissions.entry(view.key.clone()).or_default();
        let is_known = |admission: &Admission| known.contains(admission);
        if retained.may_be_gone(&view.key) && !view.admissions.is_empty() && !view.admissions.iter().any(is_known) {
            known.clear();
            self.forget(&view.key);
        }
        let known = self.admissions.entry(view.key.clone()).or_default();
        let fresh: Vec<_> = view.admissions.iter().filter(|admission| !known.contains(admission)).cloned().collect();
        known.extend(fresh);
    }

    fn forget(&mut self, job: &JobKey) {
        self.highest.remove(job);
        self.by_process.values_mut().for_each(|jobs| {
            jobs.remove(job);
        });
    }

    fn judge_order(&mut self, by: &Identity, view: &JobView, verdict: &mut Verdict) {
        let shown = self.by_process.entry(by.clone()).or_default();
        let before = shown.insert(view.key.clone(), view.state);
        if let Some(before) = before.filter(|before| view.state < *before) {
            verdict.breach("G2", format!("{} shows {} as {:?} after {before:?}", by.node, view.key.id, view.state));
        }
    }

    fn judge_view(&mut self, by: &NodeId, view: &JobView, verdict: &mut Verdict) {
        let id = &view.key.id;
        if let Some(answer) = view.answer {
            let first = *self.answers.entry(view.key.clone()).or_insert(answer);
            if first != answer {
                verdict.breach("G2", format!("{by} shows the answer {answer} for {id}, shown before was {first}"));
            }
        }
        if !view.state.is_terminal() {
            return;
        }
        let highest = self.highest.entry(view.key.clone()).or_insert(view.state);
        if *highest != view.state && !self.hurt {
            verdict.breach("G2", format!("{id} is {:?} after {highest:?}, without any split or loss", view.state));
        }
        *highest = view.state.max(*highest);
    }

    fn judge_end(&mut self, sights: &[Sight], verdict: &mut Verdict) {
        for sight in sights {
            sight.jobs.iter().for_each(|view| {
                self.judge_order(&sight.process, view, verdict);
                self.judge_view(sight.node(), view, verdict);
            });
        }
        for view in sights.iter().flat_map(|sight| &sight.jobs) {
            if let Some(highest) = self.highest.get(&view.key).filter(|highest| view.state < **highest) {
                let id = &view.key.id;
                verdict.breach("G2", format!("{id} is {:?} in the end, {highest:?} was shown before", view.state));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::history::Hurt;
    use super::super::stories::*;
    use super::*;

    #[test]
    fn a_second_answer_is_broken_whoever_shows_it() {
        let story = [submitted("j", 7), shown("a", done("j", 7)), shown("b", done("j", 8))];
        assert_eq!(broken(&story), ["G1", "G2"]);
    }

    #[test]
    fn a_process_that_shows_a_job_running_after_its_end_is_broken() {
        let story = [submitted("j", 7), shown("a", done("j", 7)), shown("a", running("j", 1, 2, 3))];
        assert_eq!(broken(&story), ["G2"]);
    }

    #[test]
    fn another_process_may_lag_behind() {
        let story = [submitted("j", 7), shown("a", done("j", 7)), shown("b", running("j", 1, 2, 3))];
        assert_eq!(broken(&story), Vec::<&str>::new());
    }

    #[test]
    fn a_cancelled_job_may_succeed_after_a_split_and_not_without_one() {
        let cancelled = || ended("j", JobState::Cancelled);
        let asked = || vec![submitted("j", 7), Seen::CancelAsked(key("j")), shown("a", cancelled())];
        let mut story = asked();
        story.push(shown("b", done("j", 7)));
        assert_eq!(broken(&story), ["G2"]);
        let mut story = asked();
        story.extend([Seen::Hurt(Hurt::Split), shown("b", done("j", 7))]);
        assert_eq!(broken(&story), Vec::<&str>::new());
    }

    #[test]
    fn what_was_shown_as_final_stays_so_to_the_end() {
        let story = [submitted("j", 7), shown("a", done("j", 7)), last(vec![("b", vec![running("j", 1, 2, 3)])])];
        assert_eq!(broken(&story), ["G2"]);
    }
}
