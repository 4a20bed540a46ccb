//! G7: parts that were split and both worked become one cluster with all jobs of both.
//!
//! Judged in the final sight: every worker shows the same jobs in the same form, and all that were acknowledged by
//! whichever part are among them.

use std::collections::BTreeSet;

use crate::protocol::ids::JobKey;
use crate::protocol::view::JobView;

use super::Verdict;
use super::history::{Outcome, Seen, Sight};
use super::retained::Retained;

/// What was acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct G7 {
    acknowledged: BTreeSet<JobKey>,
}

impl G7 {
    pub(super) fn see(&mut self, seen: &Seen, retained: &Retained, verdict: &mut Verdict) {
        match seen {
            Seen::Outcome { job, outcome: Outcome::Acknowledged } => {
                self.acknowledged.insert(job.clone());
            }
            Seen::Gone(job) => {
                self.acknowledged.remove(job);
            }
            Seen::Final(sights) => self.judge(sights, retained, verdict),
            Seen::Outcome { .. }
            | Seen::Started { .. }
            | Seen::Ended { .. }
            | Seen::Hurt(_)
            | Seen::Submitted { .. }
            | Seen::CancelAsked(_)
            | Seen::JobEnded { .. }
            | Seen::Shown { .. }
            | Seen::Relayed { .. }
            | Seen::Told { .. }
            | Seen::Left { .. }
            | Seen::Admitted { .. }
            | Seen::JacTold { .. }
            | Seen::Follows { .. }
            | Seen::Led { .. }
            | Seen::Abused { .. }
            | Seen::Quiet => {}
        }
    }

    fn judge(&self, sights: &[Sight], retained: &Retained, verdict: &mut Verdict) {
        let Some((first, others)) = sights.split_first() else { return };
        let shown: BTreeSet<&JobKey> = first.jobs.iter().map(|view| &view.key).collect();
        let expected = self.acknowledged.iter().filter(|job| !retained.may_be_gone(job));
        for job in expected.filter(|job| !shown.contains(job)) {
            verdict.breach("G7", format!("{} was acknowledged and {} does not show it", job.id, first.node()));
        }
        for other in others {
            if let Some(difference) = difference(first, other) {
                verdict.breach("G7", format!("{} and {} differ: {difference}", first.node(), other.node()));
            }
        }
    }
}

fn difference(one: &Sight, other: &Sight) -> Option<String> {
    let keys = |sight: &Sight| sight.jobs.iter().map(|view| view.key.id.to_string()).collect::<Vec<_>>();
    if one.jobs.len() != other.jobs.len() {
        return Some(format!("jobs {:?} and {:?}", keys(one), keys(other)));
    }
    let mut pairs = one.jobs.iter().zip(&other.jobs);
    let (a, b): (&JobView, &JobView) = pairs.find(|(a, b)| a != b).map(|(a, b)| (&**a, &**b))?;
    Some(format!("{a:?} and {b:?}"))
}

#[cfg(test)]
mod tests {
    use super::super::stories::*;

    #[test]
    fn a_job_of_one_part_that_a_worker_does_not_show_is_broken() {
        let story =
            |of_b| vec![submitted("j", 7), acknowledged("j"), last(vec![("a", vec![done("j", 7)]), ("b", of_b)])];
        assert_eq!(broken(&story(vec![done("j", 7)])), Vec::<&str>::new());
        assert_eq!(broken(&story(vec![])), ["G7"]);
    }

    #[test]
    fn a_job_that_two_workers_show_differently_is_broken() {
        let mut other = done("j", 7);
        other.stamp.as_mut().expect("stamped").number.0 += 1;
        let story = [submitted("j", 7), last(vec![("a", vec![done("j", 7)]), ("b", vec![other])])];
        assert_eq!(broken(&story), ["G7"]);
    }
}
