//! Leaderships that meet (section 6, 3 and 5): after a split two leaders live, and one of them stays.
//!
//! Only leaders decide. A follower that meets another leadership tells its own leader; that one calls the other;
//! the callee decides by both counts, so that both sides act on one verdict. The one that stays moves to a term
//! above both, so nobody ever follows an older leadership than it has followed.

use crate::protocol::Worker;
use crate::protocol::calls::Errand;
use crate::protocol::effects::Effects;
use crate::protocol::ids::{Leadership, Member};
use crate::protocol::leadership::Role;
use crate::protocol::limits;
use crate::protocol::message::{Announce, AnnounceAnswer, CallFailure, Leader, Peer, Purpose, Request};

/// Leaders whose meeting is remembered for a while, so that every follower's word does not start it anew.
const REMEMBERED: usize = 64;

/// Whether the first of two living leaders stays: within a term the better candidate, else the one that reaches
/// more workers, then the one with the higher term.
fn stays(first: (&Leadership, u32), second: (&Leadership, u32)) -> bool {
    if first.0.term == second.0.term { first.0 > second.0 } else { (first.1, first.0.term) > (second.1, second.0.term) }
}

impl Worker {
    /// This worker heard of a leadership; `direct` if from its leader itself.
    pub(crate) fn meet_leader(&mut self, theirs: &Leader, direct: bool, out: &mut Effects) {
        if self.is_malformed(theirs) {
            return;
        }
        if theirs.member.node == self.me.node {
            // Of this process's predecessor, at most: whoever followed that one comes only to a higher term.
            self.move_up_above(&theirs.leadership, out);
            return;
        }
        match &self.role {
            Role::Leading(_) => self.settle_with(theirs, false, out),
            Role::Following(following) if following.leader.member.identity() == theirs.member.identity() => {}
            Role::Following(following) => {
                let own = following.leader.member.clone();
                self.tell_of(&own, theirs, out);
            }
            Role::Starting | Role::Seeking(_) => {
                // The leadership that was just lost comes back by its leader's own word only: neighbours that have
                // not noticed its end yet would call the election off.
                let lost = self.lost.as_ref() == Some(&theirs.leadership) && !direct;
                match self.followed.clone() {
                    Some(followed) if theirs.leadership < followed.leadership => {
                        let stranger = theirs.member.clone();
                        self.tell_of(&stranger, &followed, out);
                    }
                    _ if lost => {}
                    _ => self.follow(theirs.clone(), out),
                }
            }
        }
    }

    /// Tells a leader of another leadership, at most once in a heartbeat interval.
    fn tell_of(&mut self, leader: &Member, other: &Leader, out: &mut Effects) {
        if !self.may_meet(&other.leadership) {
            return;
        }
        let announce = Announce {
            purpose: Purpose::Met,
            from: self.me.clone(),
            leader: other.clone(),
            election: None,
            replaces: None,
            workers: 0,
        };
        self.call(Peer::from(leader), Request::Announce(announce), limits::ANNOUNCE, Errand::Tell, out);
    }

    /// Somebody tells of a leadership: a follower of one that it met, or one without a leader of the one that it
    /// followed last, since it may follow no older one.
    pub(super) fn on_met(&mut self, announce: &Announce, out: &mut Effects) {
        let met = &announce.leader;
        match &self.role {
            Role::Leading(_) if met.member.node == self.me.node => {
                // It led in an earlier life, which has ended with its process: there is nobody to call.
                if met.member.incarnation < self.me.incarnation {
                    self.move_up_above(&met.leadership, out);
                }
            }
            Role::Leading(leading) => {
                let stranded = !leading.followers.has_node(&announce.from.node);
                self.settle_with(met, stranded, out);
            }
            Role::Starting | Role::Seeking(_) | Role::Following(_) => {
                self.meet_leader(met, false, out);
            }
        }
    }

    /// This leader calls another one; `stranded` if somebody can't follow this one for having followed that one.
    fn settle_with(&mut self, other: &Leader, stranded: bool, out: &mut Effects) {
        let under_way = |open: &crate::protocol::calls::Open| matches!(&open.errand, Errand::Settle(met, _) if met.member.node == other.member.node);
        if self.calls.any(under_way) || !self.may_meet(&other.leadership) {
            return;
        }
        let Some(mine) = self.leader_now().cloned() else { return };
        let announce = Announce {
            purpose: Purpose::Settle,
            from: self.me.clone(),
            leader: mine,
            election: None,
            replaces: None,
            workers: self.reaches(),
        };
        let errand = Errand::Settle(other.clone(), stranded);
        self.call(Peer::from(&other.member), Request::Announce(announce), limits::ANNOUNCE, errand, out);
    }

    /// Another living leader calls: says whether this one steps down (true) or was none.
    pub(super) fn on_settle(&mut self, announce: &Announce, out: &mut Effects) -> bool {
        let theirs = announce.leader.clone();
        let Role::Leading(leading) = &self.role else {
            self.meet_leader(&theirs, true, out);
            return false;
        };
        let mine = leading.leadership.clone();
        if stays((&mine, self.reaches()), (&theirs.leadership, announce.workers)) {
            self.move_up_above(&theirs.leadership, out);
            return false;
        }
        self.step_down("another leader stays", out);
        if theirs.leadership > mine {
            self.follow(theirs, out);
        } else {
            // It moves above this one's term now, and announces that here.
            self.put_off_own_election();
        }
        true
    }

    /// The other leader answered, or could not be reached.
    pub(crate) fn on_settled(
        &mut self,
        other: &Leader,
        stranded: bool,
        result: Result<AnnounceAnswer, CallFailure>,
        out: &mut Effects,
    ) {
        let Role::Leading(leading) = &self.role else { return };
        let mine = leading.leadership.clone();
        let sound =
            |answer: &AnnounceAnswer| !answer.following.as_ref().is_some_and(|leader| self.is_malformed(leader));
        let Some(answer) = result.ok().filter(sound) else {
            // Two that live and can't reach each other would rise above one another for ever, all their followers
            // with them. Only somebody who is left without a leader otherwise makes it worth a term.
            if stranded {
                self.move_up_above(&other.leadership, out);
            }
            return;
        };
        match answer.following {
            Some(stayed) if !answer.accepted && stayed.member.node == other.member.node && stayed.leadership > mine => {
                self.step_down("another leader stays", out);
                self.follow(stayed, out);
            }
            Some(third) if third.member.node != self.me.node && third.member.node != other.member.node => {
                self.move_up_above(&other.leadership, out);
                self.settle_with(&third, false, out);
            }
            _ => {
                self.move_up_above(&other.leadership, out);
                self.welcome(&other.member, out);
            }
        }
    }

    /// Announces this leadership to one that has just stepped down for it, overlay or not.
    fn welcome(&mut self, to: &Member, out: &mut Effects) {
        let Some(leader) = self.leader_now().cloned() else { return };
        let workers = self.reaches();
        let purpose = Purpose::Flood;
        let announce = Announce { purpose, from: self.me.clone(), leader, election: None, replaces: None, workers };
        self.call(Peer::from(to), Request::Announce(announce), limits::ANNOUNCE, Errand::Tell, out);
    }

    /// Whether it is time to act on a leadership that was met; every neighbour's ping speaks of it.
    fn may_meet(&mut self, other: &Leadership) -> bool {
        let now = self.now.time;
        let interval = self.settings.heartbeat_interval;
        self.met.retain(|_, at| now.since(*at) < interval);
        if self.met.len() >= REMEMBERED || self.met.contains_key(other) {
            return false;
        }
        self.met.insert(other.clone(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{Incarnation, Jac, NodeId, Term};

    fn leadership(term: u64, leader: &str, jac: u64) -> Leadership {
        let leader = NodeId::new(leader).expect("a good name");
        Leadership { term: Term(term), leader, incarnation: Incarnation(1), jac: Jac(jac) }
    }

    #[test]
    fn of_two_living_leaders_in_one_term_the_better_candidate_stays_whatever_it_reaches() {
        let (a, b) = (leadership(4, "a", 2), leadership(4, "b", 1));
        assert!(stays((&b, 1), (&a, 9)) && !stays((&a, 9), (&b, 1)));
    }

    #[test]
    fn of_two_living_leaders_in_different_terms_the_one_that_reaches_more_stays_then_the_higher_term() {
        let (low, high) = (leadership(4, "a", 0), leadership(9, "b", 7));
        assert!(stays((&low, 3), (&high, 2)) && !stays((&high, 2), (&low, 3)), "an inflated term deposes nobody");
        assert!(stays((&high, 2), (&low, 2)) && !stays((&low, 2), (&high, 2)));
    }
}
