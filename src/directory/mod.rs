//! The directory as a pure state machine: leases, and a membership stream that can be resumed (section 4).
//!
//! Owns who is a member and until when. Never dials, never reads a clock, never votes. Invariants: a node id has one
//! lease at most, and its incarnation never falls while the lease lives; every change of the members takes the next
//! revision, so whoever applies the changes after its own revision has the members of the last one.

#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::wildcard_enum_match_arm)]

mod history;
mod leases;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::protocol::dice::Dice;
use crate::protocol::ids::{Identity, Incarnation, Member, NodeId};
use crate::protocol::limits;
use crate::protocol::message::{Code, DirectoryAnswer, DirectoryRequest, MembershipEvent, Refusal, Revision};
use crate::protocol::time::{Now, Time};

use history::{Change, History};
use leases::{Leases, Owner};

/// A directory. A restarted one is empty, and whole again within one renewal of its members.
#[derive(Debug)]
pub struct Directory {
    lease_ttl: Duration,
    leases: Leases,
    history: History,
    dice: Dice,
}

impl Directory {
    /// An empty directory. `incarnation` must be above that of its earlier starts, since it marks the revisions;
    /// `seed` decides whom [`Directory::random`] picks.
    #[must_use]
    pub fn new(incarnation: Incarnation, lease_ttl: Duration, seed: u64) -> Directory {
        Directory { lease_ttl, leases: Leases::default(), history: History::new(incarnation), dice: Dice::new(seed) }
    }

    /// Answers a call. Leases that have run out by now are gone before it is looked at.
    ///
    /// # Errors
    /// A [`Refusal`] when a lease more would go beyond [`limits::MEMBERS`].
    pub fn request(&mut self, now: Now, request: DirectoryRequest) -> Result<DirectoryAnswer, Refusal> {
        self.expire(now);
        match request {
            DirectoryRequest::Register(member) => self.register(now, member),
            DirectoryRequest::Heartbeat(who) => Ok(self.renew(now, &who)),
            DirectoryRequest::Deregister(who) => Ok(self.leave(&who)),
        }
    }

    /// What a watcher that stands at `after` has to be told: nothing, the changes since then, or a snapshot. One
    /// that has seen nothing yet stands at `Revision::default()`; one that stands where this directory can't take
    /// it up is told [`MembershipEvent::Resync`] first.
    #[must_use]
    pub fn watch(&self, after: Revision) -> Vec<MembershipEvent> {
        if let Some(changes) = self.history.after(after) {
            return changes.map(Change::event).collect();
        }
        let snapshot = MembershipEvent::Snapshot(self.revision(), self.members().cloned().collect());
        if after == Revision::default() { vec![snapshot] } else { vec![MembershipEvent::Resync, snapshot] }
    }

    /// Drops every lease that has run out.
    pub fn expire(&mut self, now: Now) {
        while let Some(member) = self.leases.take_expired(now.time) {
            self.history.push(Change::Left(member.identity()));
        }
    }

    /// When the next lease runs out, unless it is renewed.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.leases.next_expiry()
    }

    /// The last change.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.history.revision()
    }

    /// All members, by node id.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.leases.members()
    }

    /// A member at random, other than `besides`; none if there is none.
    pub fn random(&mut self, besides: Option<&NodeId>) -> Option<Member> {
        let others: Vec<&Member> = self.leases.members().filter(|member| Some(&member.node) != besides).collect();
        self.dice.pick(&others).map(|&member| member.clone())
    }

    fn register(&mut self, now: Now, member: Member) -> Result<DirectoryAnswer, Refusal> {
        let owner = self.leases.owner(&member.identity());
        match owner {
            Owner::Higher(incarnation) => return Ok(DirectoryAnswer::Superseded(incarnation)),
            Owner::Nobody if self.leases.len() >= limits::MEMBERS => return Err(full(&member.node, self.lease_ttl)),
            Owner::Nobody | Owner::Lower | Owner::Same => {}
        }
        let until = now.time + self.lease_ttl;
        if self.leases.grant(member.clone(), until) {
            self.history.push(Change::Joined(member));
        }
        Ok(DirectoryAnswer::Leased(self.lease_ttl))
    }

    fn renew(&mut self, now: Now, who: &Identity) -> DirectoryAnswer {
        match self.leases.owner(who) {
            Owner::Higher(incarnation) => DirectoryAnswer::Superseded(incarnation),
            // A higher incarnation that has not registered here yet: its Register replaces the lower one.
            Owner::Nobody | Owner::Lower => DirectoryAnswer::UnknownLease,
            Owner::Same => {
                self.leases.renew(&who.node, now.time + self.lease_ttl);
                DirectoryAnswer::Leased(self.lease_ttl)
            }
        }
    }

    fn leave(&mut self, who: &Identity) -> DirectoryAnswer {
        match self.leases.owner(who) {
            Owner::Same => {
                self.leases.remove(&who.node);
                self.history.push(Change::Left(who.clone()));
            }
            // Late, from a process that has been replaced, or early, from one that never registered here: nobody
            // gives back a lease that is not its own.
            Owner::Higher(_) | Owner::Lower | Owner::Nobody => {}
        }
        DirectoryAnswer::Left
    }
}

fn full(node: &NodeId, lease_ttl: Duration) -> Refusal {
    let most = limits::MEMBERS;
    let message = format!(
        "{node} gets no lease: this directory has {most} members, which is the most it holds; try again when one has left"
    );
    Refusal::new(Code::ResourceExhausted, message).retry_in(lease_ttl)
}
