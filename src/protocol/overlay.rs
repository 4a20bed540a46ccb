//! This worker's links (section 5): floods travel over these only.
//!
//! Owns which links are up, when each is pinged, and when one has failed too often. Never chooses a leader.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::dice::Dice;
use super::ids::{Identity, Member, NodeId};
use super::limits;
use super::time::Time;

/// A link, as this end sees it.
#[derive(Clone, Debug)]
struct Link {
    member: Member,
    failures: u32,
    ping_due: Time,
}

/// All links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlay {
    links: BTreeMap<NodeId, Link>,
    /// Linking under way.
    asked: BTreeSet<NodeId>,
}

impl Overlay {
    pub(crate) fn has(&self, node: &NodeId) -> bool {
        self.links.contains_key(node)
    }

    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        self.links.keys().cloned().collect()
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        self.links.values().map(|link| link.member.clone()).collect()
    }

    /// Takes up a link. False if there is no room; a link that is up takes the newer incarnation.
    pub(crate) fn link(&mut self, now: Time, member: &Member) -> bool {
        self.asked.remove(&member.node);
        if let Some(link) = self.links.get_mut(&member.node) {
            if member.incarnation >= link.member.incarnation {
                *link = Link { member: member.clone(), failures: 0, ping_due: link.ping_due };
            }
            return true;
        }
        if self.links.len() >= limits::LINKS {
            return false;
        }
        self.links.insert(member.node.clone(), Link { member: member.clone(), failures: 0, ping_due: now });
        true
    }

    /// Takes down a link to exactly this process. Says whether it was up.
    pub(crate) fn unlink(&mut self, who: &Identity) -> bool {
        let up = self.links.get(&who.node).is_some_and(|link| link.member.incarnation <= who.incarnation);
        up && self.links.remove(&who.node).is_some()
    }

    /// A call to a neighbour succeeded.
    pub(crate) fn succeeded(&mut self, node: &NodeId) {
        if let Some(link) = self.links.get_mut(node) {
            link.failures = 0;
        }
    }

    /// A call to a neighbour failed; at `most` failures in a row the link is dropped, and this says so.
    pub(crate) fn failed(&mut self, node: &NodeId, most: u32) -> bool {
        self.asked.remove(node);
        let Some(link) = self.links.get_mut(node) else { return false };
        link.failures = link.failures.saturating_add(1);
        link.failures >= most && self.links.remove(node).is_some()
    }

    /// Neighbours whose ping is due; each is put off for one interval.
    pub(crate) fn pings_due(&mut self, now: Time, interval: Duration) -> Vec<Member> {
        let due = self.links.values_mut().filter(|link| link.ping_due <= now);
        due.map(|link| {
            link.ping_due = now + interval;
            link.member.clone()
        })
        .collect()
    }

    /// Whom to link to, so that `least` links are up where there are so many: one at a time, at random.
    pub(crate) fn wanted(&mut self, candidates: &[Member], least: usize, dice: &mut Dice) -> Option<Member> {
        if self.links.len() + self.asked.len() >= least {
            return None;
        }
        let fit: Vec<&Member> = candidates.iter().filter(|member| self.may_ask(&member.node)).collect();
        let chosen = (*dice.pick(&fit)?).clone();
        self.ask(&chosen.node);
        Some(chosen)
    }

    /// Whether a link to `node` is neither up nor asked for.
    pub(crate) fn may_ask(&self, node: &NodeId) -> bool {
        !self.links.contains_key(node) && !self.asked.contains(node) && self.links.len() < limits::LINKS
    }

    /// What was asked of `node` has come to something.
    pub(crate) fn asked_no_more(&mut self, node: &NodeId) {
        self.asked.remove(node);
    }

    /// A link to `node` is asked for. False if it was already.
    pub(crate) fn ask(&mut self, node: &NodeId) -> bool {
        self.asked.insert(node.clone())
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.links.values().map(|link| link.ping_due).min()
    }
}
