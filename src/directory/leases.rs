//! Who holds a lease, and until when.
//!
//! Owns the two views of one set: by node id, and by expiry. Never decides who may have a lease. Invariant: both
//! views hold the same leases.

use std::collections::{BTreeMap, BTreeSet};

use crate::protocol::ids::{Identity, Incarnation, Member, NodeId};
use crate::protocol::time::Time;

/// Whose the lease of a node id is, as one process of that id sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Nobody's.
    Nobody,
    /// An earlier process's.
    Lower,
    /// Its own.
    Same,
    /// A later process's.
    Higher(Incarnation),
}

#[derive(Debug)]
struct Lease {
    member: Member,
    until: Time,
}

/// All leases.
#[derive(Debug, Default)]
pub(super) struct Leases {
    by_node: BTreeMap<NodeId, Lease>,
    by_expiry: BTreeSet<(Time, NodeId)>,
}

impl Leases {
    pub(super) fn owner(&self, who: &Identity) -> Owner {
        let Some(lease) = self.by_node.get(&who.node) else { return Owner::Nobody };
        let owner = lease.member.incarnation;
        match owner.cmp(&who.incarnation) {
            std::cmp::Ordering::Less => Owner::Lower,
            std::cmp::Ordering::Equal => Owner::Same,
            std::cmp::Ordering::Greater => Owner::Higher(owner),
        }
    }

    /// Gives the lease to `member`, whoever had it. Says whether the members differ after it.
    pub(super) fn grant(&mut self, member: Member, until: Time) -> bool {
        let node = member.node.clone();
        let before = self.remove(&node);
        let changed = before.as_ref() != Some(&member);
        self.by_expiry.insert((until, node.clone()));
        self.by_node.insert(node, Lease { member, until });
        changed
    }

    pub(super) fn renew(&mut self, node: &NodeId, until: Time) {
        if let Some(lease) = self.by_node.get_mut(node) {
            self.by_expiry.remove(&(lease.until, node.clone()));
            self.by_expiry.insert((until, node.clone()));
            lease.until = until;
        }
    }

    pub(super) fn remove(&mut self, node: &NodeId) -> Option<Member> {
        let lease = self.by_node.remove(node)?;
        self.by_expiry.remove(&(lease.until, node.clone()));
        Some(lease.member)
    }

    /// Removes one lease that has run out by `now`, if there is one.
    pub(super) fn take_expired(&mut self, now: Time) -> Option<Member> {
        let (until, node) = self.by_expiry.first()?;
        if *until > now {
            return None;
        }
        let node = node.clone();
        self.remove(&node)
    }

    pub(super) fn next_expiry(&self) -> Option<Time> {
        self.by_expiry.first().map(|(until, _)| *until)
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.by_node.values().map(|lease| &lease.member)
    }

    pub(super) fn len(&self) -> usize {
        self.by_node.len()
    }
}
