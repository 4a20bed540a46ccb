//! Who belongs to the cluster: the union of what the directories list and whom this worker has met.
//!
//! Owns each member's address and when it was last heard. Never decides on links or leaders. A member that no
//! directory lists and nobody hears is lost: it is kept and tried again (section 5), since it may live on the
//! other side of a split. Bound: [`limits::MEMBERS`], of which [`limits::LOST`] lost ones.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ids::{Identity, Incarnation, Jac, Member, NodeId};
use super::limits;
use super::message::{DirectoryId, Status};
use super::time::Time;
use super::view::NodeView;

/// How long a member counts as heard after its last sign of life, without a directory's word.
pub(crate) const HEARD_FOR: Duration = Duration::from_secs(5);

/// What is known of one member.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) member: Member,
    listed: BTreeSet<DirectoryId>,
    heard: Option<Time>,
    /// Not to be asked or linked to before this.
    pub(crate) not_before: Time,
    /// Tries since it was lost; each waits twice as long as the one before.
    tries: u32,
    jac: Jac,
    links: Vec<NodeId>,
    running: u32,
}

/// All members but this worker itself.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    me: NodeId,
    known: BTreeMap<NodeId, Known>,
}

impl Members {
    pub(crate) fn new(me: NodeId) -> Members {
        Members { me, known: BTreeMap::new() }
    }

    /// Takes in a member's word on where it is. An older incarnation changes nothing. Says whether it is new.
    pub(crate) fn learn(&mut self, member: &Member) -> bool {
        if member.node == self.me {
            return false;
        }
        if let Some(known) = self.known.get_mut(&member.node) {
            let newer = member.incarnation > known.member.incarnation;
            if member.incarnation >= known.member.incarnation {
                known.member = member.clone();
            }
            if newer {
                known.not_before = Time::ZERO;
            }
            return newer;
        }
        if self.known.len() >= limits::MEMBERS {
            return false;
        }
        let known = Known {
            member: member.clone(),
            listed: BTreeSet::new(),
            heard: None,
            not_before: Time::ZERO,
            tries: 0,
            jac: Jac(0),
            links: Vec::new(),
            running: 0,
        };
        self.known.insert(member.node.clone(), known);
        true
    }

    /// Takes in what a member says of itself: it lives.
    pub(crate) fn hear(&mut self, now: Time, status: &Status) -> bool {
        let new = self.learn(&status.member);
        if let Some(known) = self.current(&status.member.identity()) {
            known.heard = Some(now);
            known.not_before = Time::ZERO;
            known.tries = 0;
            known.jac = status.jac;
            known.links.clone_from(&status.links);
            known.running = status.running;
        }
        new
    }

    /// Takes in what the leader says of a member, for display: no sign of life to this worker.
    pub(crate) fn hear_of(&mut self, status: &Status) {
        self.learn(&status.member);
        if let Some(known) = self.current(&status.member.identity()) {
            known.jac = status.jac;
            known.links.clone_from(&status.links);
            known.running = status.running;
        }
    }

    /// A call to a member failed: leave it alone for a while.
    pub(crate) fn avoid(&mut self, node: &NodeId, until: Time) {
        if let Some(known) = self.known.get_mut(node) {
            // A lost one waits longer than that.
            known.not_before = known.not_before.max(until);
            known.heard = None;
        }
    }

    /// A directory lists a member.
    pub(crate) fn list(&mut self, directory: DirectoryId, member: &Member) -> bool {
        let new = self.learn(member);
        if let Some(known) = self.current(&member.identity()) {
            known.listed.insert(directory);
        }
        new
    }

    /// A directory sent all its members: it lists no others.
    pub(crate) fn list_all(&mut self, directory: DirectoryId, members: &[Member]) -> Vec<Identity> {
        self.known.values_mut().for_each(|known| {
            known.listed.remove(&directory);
        });
        let new = members.iter().filter(|member| self.list(directory, member));
        new.map(Member::identity).collect()
    }

    /// A directory says that a member left. Says whether no directory lists it any more.
    pub(crate) fn unlist(&mut self, directory: DirectoryId, who: &Identity) -> bool {
        let Some(known) = self.current(who) else { return false };
        known.listed.remove(&directory) && known.listed.is_empty()
    }

    /// Whether a member counts as alive: listed, or heard of late.
    fn is_alive(known: &Known, now: Time) -> bool {
        !known.listed.is_empty() || known.heard.is_some_and(|heard| now.since(heard) < HEARD_FOR)
    }

    /// Members that count as alive and may be asked now.
    pub(crate) fn reachable(&self, now: Time) -> Vec<Member> {
        let fit = |known: &&Known| Members::is_alive(known, now) && known.not_before <= now;
        self.known.values().filter(fit).map(|known| known.member.clone()).collect()
    }

    /// The incarnation of a member that counts as alive.
    pub(crate) fn living(&self, now: Time, node: &NodeId) -> Option<Incarnation> {
        let known = self.known.get(node).filter(|known| Members::is_alive(known, now));
        known.map(|known| known.member.incarnation)
    }

    /// Everyone that counts as alive.
    pub(crate) fn alive(&self, now: Time) -> Vec<Member> {
        self.known.values().filter(|known| Members::is_alive(known, now)).map(|known| known.member.clone()).collect()
    }

    /// Lost members that are due for a try; each is put off, the longer it is lost, up to [`limits::LOST_RETRY`].
    /// Forgets those over the bound.
    pub(crate) fn lost_due(&mut self, now: Time, most: usize) -> Vec<Member> {
        let lost = |known: &Known| !Members::is_alive(known, now);
        let count = self.known.values().filter(|known| lost(known)).count();
        for _ in limits::LOST..count {
            let oldest = self.known.values().filter(|known| lost(known)).min_by_key(|known| known.not_before);
            let Some(node) = oldest.map(|known| known.member.node.clone()) else { break };
            self.known.remove(&node);
        }
        let due = self.known.values_mut().filter(|known| lost(known) && known.not_before <= now).take(most);
        due.map(|known| {
            known.tries = known.tries.saturating_add(1);
            let longer = Duration::from_secs(1 << known.tries.min(6));
            known.not_before = now + longer.min(limits::LOST_RETRY);
            known.member.clone()
        })
        .collect()
    }

    /// All members as people see them.
    pub(crate) fn views(&self, now: Time) -> Vec<NodeView> {
        let view = |known: &Known| NodeView {
            member: known.member.clone(),
            alive: Members::is_alive(known, now),
            jac: known.jac,
            links: known.links.clone(),
            running: known.running,
        };
        self.known.values().map(view).collect()
    }

    fn current(&mut self, who: &Identity) -> Option<&mut Known> {
        self.known.get_mut(&who.node).filter(|known| known.member.incarnation == who.incarnation)
    }
}
