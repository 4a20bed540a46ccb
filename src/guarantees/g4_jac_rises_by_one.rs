//! G4: while its disk lives a JAC never falls, and it rises by one with each admission of its owner.
//!
//! Admissions are learnt in any order, from views as well: so it is judged that no JAC of an owner stands for two
//! jobs, and that within a leadership place and JAC go up together. A node that lost its disk begins anew.

use std::collections::BTreeMap;

use crate::protocol::ids::{Identity, Jac, JobKey, NodeId, Term};
use crate::protocol::view::Admission;

use super::Verdict;
use super::history::Seen;

/// One life of a node's disk.
#[derive(Clone, Debug, Default)]
struct Life {
    told: Jac,
    jobs: BTreeMap<Jac, JobKey>,
    /// For each leadership the JAC at each place.
    places: BTreeMap<Term, BTreeMap<u32, Jac>>,
}

/// The life of each disk; admissions of former lives, which replicas still show.
#[derive(Clone, Debug, Default)]
pub(super) struct G4 {
    lives: BTreeMap<NodeId, Life>,
    former: BTreeMap<NodeId, Vec<(JobKey, Admission)>>,
    known: BTreeMap<NodeId, Vec<(JobKey, Admission)>>,
}

impl G4 {
    pub(super) fn see(&mut self, seen: &Seen, verdict: &mut Verdict) {
        match seen {
            Seen::Started { process, memory: false } => {
                self.lives.remove(&process.node);
                let known = self.known.remove(&process.node).unwrap_or_default();
                self.former.entry(process.node.clone()).or_default().extend(known);
            }
            Seen::JacTold { owner, jac } => self.judge_told(owner, *jac, verdict),
            Seen::Admitted { job, admission } => self.judge_admission(job, admission, verdict),
            Seen::Shown { view, .. } | Seen::Relayed { view, .. } | Seen::Told { view, .. } => {
                view.admissions.iter().for_each(|admission| self.judge_admission(&view.key, admission, verdict));
            }
            Seen::Started { .. }
            | Seen::Ended { .. }
            | Seen::Hurt(_)
            | Seen::Submitted { .. }
            | Seen::Outcome { .. }
            | Seen::CancelAsked(_)
            | Seen::JobEnded { .. }
            | Seen::Left { .. }
            | Seen::Follows { .. }
            | Seen::Led { .. }
            | Seen::Abused { .. }
            | Seen::Gone(_)
            | Seen::Quiet
            | Seen::Final(_) => {}
        }
    }

    fn judge_told(&mut self, owner: &Identity, jac: Jac, verdict: &mut Verdict) {
        let life = self.lives.entry(owner.node.clone()).or_default();
        if jac < life.told {
            verdict.breach("G4", format!("{} tells JAC {jac}, told before was {}", owner.node, life.told));
        }
        life.told = jac.max(life.told);
    }

    fn judge_admission(&mut self, job: &JobKey, admission: &Admission, verdict: &mut Verdict) {
        let owner = &admission.leader;
        let same = |(known, of): &(JobKey, Admission)| known == job && of == admission;
        let is_known = |map: &BTreeMap<NodeId, Vec<_>>| map.get(owner).is_some_and(|all| all.iter().any(same));
        if is_known(&self.known) || is_known(&self.former) {
            return;
        }
        self.known.entry(owner.clone()).or_default().push((job.clone(), admission.clone()));
        let life = self.lives.entry(owner.clone()).or_default();
        let first = life.jobs.entry(admission.jac).or_insert_with(|| job.clone());
        if first != job {
            let (first, second, jac) = (&first.id, &job.id, admission.jac);
            verdict.breach("G4", format!("{owner} admitted both {first} and {second} with JAC {jac}"));
        }
        let places = life.places.entry(admission.term).or_default();
        places.insert(admission.place, admission.jac);
        let level = |(place, jac): (&u32, &Jac)| jac.0.saturating_sub(u64::from(*place));
        let below = places.range(..admission.place).next_back().map(level);
        let above = places.range(admission.place + 1..).next().map(level);
        let here = level((&admission.place, &admission.jac));
        if below.is_some_and(|below| below > here) || above.is_some_and(|above| here > above) {
            let (term, place, jac) = (admission.term, admission.place, admission.jac);
            verdict.breach(
                "G4",
                format!("({term}, {owner}): place {place} has JAC {jac}, out of step with its neighbours"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stories::*;

    #[test]
    fn a_jac_that_falls_is_broken_unless_the_disk_was_lost() {
        assert_eq!(broken(&[jac("a", 3), jac("a", 2)]), ["G4"]);
        assert_eq!(broken(&[jac("a", 3), started("a", 2, true), jac("a", 2)]), ["G4"]);
        assert_eq!(broken(&[jac("a", 3), started("a", 2, false), jac("a", 2)]), Vec::<&str>::new());
    }

    #[test]
    fn one_jac_for_two_admissions_is_broken_unless_the_disk_was_lost_between() {
        assert_eq!(broken(&[admitted("j", 1, "a", 1, 4), admitted("k", 2, "a", 1, 4)]), ["G4"]);
        let story = [
            admitted("j", 1, "a", 1, 4),
            started("a", 2, false),
            admitted("k", 2, "a", 1, 4),
            admitted("j", 1, "a", 1, 4),
        ];
        assert_eq!(broken(&story), Vec::<&str>::new());
    }

    #[test]
    fn places_of_a_leadership_and_jacs_rise_together() {
        assert_eq!(broken(&[admitted("j", 1, "a", 1, 4), admitted("k", 1, "a", 2, 5)]), Vec::<&str>::new());
        assert_eq!(broken(&[admitted("j", 1, "a", 1, 4), admitted("k", 1, "a", 3, 5)]), ["G4"]);
    }
}
