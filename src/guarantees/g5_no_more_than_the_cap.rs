//! G5: no (term, leader id) admits more than its cap.
//!
//! Each admission has a place from 1 to the cap, and no place is given twice. A node that came back without its disk
//! may lead in a term that it led before: its admissions from then on are counted apart.

use std::collections::BTreeMap;

use crate::protocol::ids::{JobKey, NodeId, Term};
use crate::protocol::view::Admission;

use super::Verdict;
use super::history::Seen;

type Places = BTreeMap<(Term, u32), JobKey>;

/// Who was admitted at which place of which leadership.
#[derive(Clone, Debug)]
pub(super) struct G5 {
    cap: u32,
    /// By leader, since its last start without a disk.
    places: BTreeMap<NodeId, Places>,
    /// By leader, in former lives of its disk.
    former: BTreeMap<NodeId, Vec<Places>>,
}

impl G5 {
    pub(super) fn new(cap: u32) -> G5 {
        G5 { cap, places: BTreeMap::new(), former: BTreeMap::new() }
    }

    pub(super) fn see(&mut self, seen: &Seen, verdict: &mut Verdict) {
        match seen {
            Seen::Started { process, memory: false } => {
                if let Some(places) = self.places.remove(&process.node) {
                    self.former.entry(process.node.clone()).or_default().push(places);
                }
            }
            Seen::Admitted { job, admission } => self.judge(job, admission, verdict),
            Seen::Shown { view, .. } | Seen::Relayed { view, .. } | Seen::Told { view, .. } => {
                view.admissions.iter().for_each(|admission| self.judge(&view.key, admission, verdict));
            }
            Seen::Started { .. }
            | Seen::Ended { .. }
            | Seen::Hurt(_)
            | Seen::Submitted { .. }
            | Seen::Outcome { .. }
            | Seen::CancelAsked(_)
            | Seen::JobEnded { .. }
            | Seen::Left { .. }
            | Seen::JacTold { .. }
            | Seen::Follows { .. }
            | Seen::Led { .. }
            | Seen::Abused { .. }
            | Seen::Gone(_)
            | Seen::Quiet
            | Seen::Final(_) => {}
        }
    }

    fn judge(&mut self, job: &JobKey, admission: &Admission, verdict: &mut Verdict) {
        let (term, leader, place) = (admission.term, &admission.leader, admission.place);
        let at = (term, place);
        let same = |places: &Places| places.get(&at) == Some(job);
        if self.former.get(leader).is_some_and(|former| former.iter().any(same)) {
            return;
        }
        if place == 0 || place > self.cap {
            verdict.breach("G5", format!("({term}, {leader}) admitted {} at place {place} of {}", job.id, self.cap));
        }
        let first = self.places.entry(leader.clone()).or_default().entry(at).or_insert_with(|| job.clone());
        if first != job {
            let (first, second) = (&first.id, &job.id);
            verdict.breach("G5", format!("({term}, {leader}) admitted both {first} and {second} at place {place}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stories::*;

    #[test]
    fn a_sixth_admission_is_broken() {
        assert_eq!(broken(&[admitted("j", 1, "a", 5, 5)]), Vec::<&str>::new());
        assert_eq!(broken(&[admitted("j", 1, "a", 6, 6)]), ["G5"]);
    }

    #[test]
    fn two_jobs_at_one_place_are_broken_unless_the_disk_was_lost_between() {
        assert_eq!(broken(&[admitted("j", 1, "a", 5, 5), admitted("k", 1, "a", 5, 6)]), ["G5"]);
        let story = [admitted("j", 1, "a", 5, 5), started("a", 2, false), admitted("k", 1, "a", 5, 5)];
        assert_eq!(broken(&story), Vec::<&str>::new());
    }
}
