//! G3: after an election settles, one leader per part whose workers all reach each other; a node accepts nothing of
//! an older leadership than it has followed.
//!
//! "Settled" is judged in the final sight, after a quiet time. The order is judged at every observation.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::ids::{Identity, Leadership, NodeId};

use super::Verdict;
use super::history::{Seen, Sight};

/// Whom each process has followed, and what was led.
#[derive(Clone, Debug, Default)]
pub(super) struct G3 {
    newest: BTreeMap<NodeId, Leadership>,
    led: BTreeSet<Leadership>,
}

impl G3 {
    pub(super) fn see(&mut self, seen: &Seen, verdict: &mut Verdict) {
        match seen {
            // An election writes nothing to disk: what a process followed is forgotten with it, but for what it wrote.
            Seen::Started { process, .. } => drop(self.newest.remove(&process.node)),
            Seen::Follows { process, leadership } => self.judge_following(process, leadership, verdict),
            Seen::Led { process, leadership } => self.judge_leading(process, leadership, verdict),
            Seen::Final(sights) => judge_end(sights, verdict),
            Seen::Ended { .. }
            | Seen::Hurt(_)
            | Seen::Submitted { .. }
            | Seen::Outcome { .. }
            | Seen::CancelAsked(_)
            | Seen::JobEnded { .. }
            | Seen::Shown { .. }
            | Seen::Relayed { .. }
            | Seen::Told { .. }
            | Seen::Left { .. }
            | Seen::Admitted { .. }
            | Seen::JacTold { .. }
            | Seen::Abused { .. }
            | Seen::Gone(_)
            | Seen::Quiet => {}
        }
    }

    fn judge_following(&mut self, process: &Identity, leadership: &Leadership, verdict: &mut Verdict) {
        let node = &process.node;
        match self.newest.get(node) {
            Some(newest) if leadership < newest => {
                verdict.breach("G3", format!("{node} follows {leadership} after {newest}, which is newer"));
            }
            Some(_) | None => {
                self.newest.insert(node.clone(), leadership.clone());
            }
        }
    }

    fn judge_leading(&mut self, process: &Identity, leadership: &Leadership, verdict: &mut Verdict) {
        if leadership.identity() != *process {
            verdict.breach("G3", format!("{process} leads as {leadership}, which is {}", leadership.identity()));
        }
        if !self.led.insert(leadership.clone()) {
            verdict.breach("G3", format!("{leadership} of {process} begins a second time"));
        }
        self.judge_following(process, leadership, verdict);
    }
}

fn leads(sight: &Sight, leadership: &Leadership) -> bool {
    sight.process == leadership.identity()
}

fn judge_end(sights: &[Sight], verdict: &mut Verdict) {
    let followed: BTreeSet<Option<&Leadership>> = sights.iter().map(|sight| sight.following.as_ref()).collect();
    let name = |followed: Option<&Leadership>| followed.map_or_else(|| "none".to_owned(), Leadership::to_string);
    match followed.first() {
        None => {}
        Some(Some(leadership)) if followed.len() == 1 && sights.iter().any(|sight| leads(sight, leadership)) => {}
        Some(Some(leadership)) if followed.len() == 1 => {
            verdict.breach("G3", format!("all follow {leadership}, which is not among them"));
        }
        Some(_) => {
            let each = sights.iter().map(|sight| format!("{}: {}", sight.process, name(sight.following.as_ref())));
            verdict.breach("G3", format!("no single leader in the end: {}", each.collect::<Vec<_>>().join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stories::*;

    #[test]
    fn to_follow_an_older_leadership_is_broken_for_the_same_process() {
        assert_eq!(broken(&[follows("a", lead(3, "b")), follows("a", lead(2, "c"))]), ["G3"]);
        assert_eq!(broken(&[follows("a", lead(3, "c")), follows("a", lead(3, "b"))]), Vec::<&str>::new());
        let story = [follows("a", lead(3, "b")), started("a", 2, true), follows("a", lead(2, "c"))];
        assert_eq!(broken(&story), Vec::<&str>::new());
    }

    #[test]
    fn a_leadership_that_begins_twice_or_belongs_to_another_process_is_broken() {
        assert_eq!(broken(&[leads("a", lead(3, "a")), leads("a", lead(3, "a"))]), ["G3"]);
        assert_eq!(broken(&[leads("a", lead(3, "b"))]), ["G3"]);
    }

    #[test]
    fn in_the_end_all_follow_one_leader_that_is_among_them() {
        let sight = |node, leader: Option<(u64, &str)>| sight(node, leader.map(|(term, of)| lead(term, of)), vec![]);
        let end = |sights| broken(&[super::Seen::Final(sights)]);
        assert_eq!(end(vec![sight("a", Some((3, "b"))), sight("b", Some((3, "b")))]), Vec::<&str>::new());
        assert_eq!(end(vec![sight("a", Some((3, "a"))), sight("b", Some((3, "b")))]), ["G3"]);
        assert_eq!(end(vec![sight("a", None), sight("b", Some((3, "b")))]), ["G3"]);
        assert_eq!(end(vec![sight("a", Some((3, "c"))), sight("b", Some((3, "c")))]), ["G3"]);
    }
}
