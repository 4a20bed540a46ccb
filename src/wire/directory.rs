//! What workers and directories say to each other (section 4 of the contract).

use std::time::Duration;

use super::fields::{list, missing, need, node, number};
use super::{Malformed, v1};
use crate::protocol::ids::{Identity, Incarnation, Member, NodeId};
use crate::protocol::limits;
use crate::protocol::message::{DirectoryAnswer, MembershipEvent, Revision};

use v1::lease_answer::Outcome;
use v1::watch_membership_response::Event;

/// The longest lease, in milliseconds: a day.
const LONGEST_LEASE_MS: u64 = 86_400_000;

impl From<Revision> for v1::Revision {
    fn from(it: Revision) -> Self {
        v1::Revision { incarnation: it.incarnation.0, number: it.number }
    }
}

impl From<v1::Revision> for Revision {
    fn from(it: v1::Revision) -> Self {
        Revision { incarnation: Incarnation(it.incarnation), number: it.number }
    }
}

fn revision(given: Option<v1::Revision>, name: &str) -> Result<Revision, Malformed> {
    given.map(Into::into).ok_or_else(|| missing(name))
}

impl TryFrom<v1::RegisterWorkerRequest> for Member {
    type Error = Malformed;

    fn try_from(it: v1::RegisterWorkerRequest) -> Result<Self, Malformed> {
        need(it.member, "member")
    }
}

impl TryFrom<v1::HeartbeatRequest> for Identity {
    type Error = Malformed;

    fn try_from(it: v1::HeartbeatRequest) -> Result<Self, Malformed> {
        need(it.identity, "identity")
    }
}

impl TryFrom<v1::DeregisterRequest> for Identity {
    type Error = Malformed;

    fn try_from(it: v1::DeregisterRequest) -> Result<Self, Malformed> {
        need(it.identity, "identity")
    }
}

/// The node that is not wanted, if one is named.
impl TryFrom<v1::GetRandomWorkerRequest> for Option<NodeId> {
    type Error = Malformed;

    fn try_from(it: v1::GetRandomWorkerRequest) -> Result<Self, Malformed> {
        let named = !it.except_node_id.is_empty();
        named.then(|| node(&it.except_node_id, "except_node_id")).transpose()
    }
}

/// `UnknownLease` and `Left` have forms of their own: the status NOT_FOUND and the answer of Deregister.
impl From<&DirectoryAnswer> for v1::LeaseAnswer {
    fn from(it: &DirectoryAnswer) -> Self {
        let outcome = match it {
            DirectoryAnswer::Leased(ttl) => {
                let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
                Some(Outcome::LeaseTtlMs(ttl.min(LONGEST_LEASE_MS)))
            }
            DirectoryAnswer::Superseded(by) => Some(Outcome::SupersededBy(by.0)),
            DirectoryAnswer::UnknownLease | DirectoryAnswer::Left => None,
        };
        v1::LeaseAnswer { outcome }
    }
}

impl TryFrom<v1::LeaseAnswer> for DirectoryAnswer {
    type Error = Malformed;

    fn try_from(it: v1::LeaseAnswer) -> Result<Self, Malformed> {
        match it.outcome {
            Some(Outcome::LeaseTtlMs(ttl)) => {
                let ttl = number(ttl, "lease_ttl_ms", 0, LONGEST_LEASE_MS)?;
                Ok(DirectoryAnswer::Leased(Duration::from_millis(ttl)))
            }
            Some(Outcome::SupersededBy(incarnation)) => Ok(DirectoryAnswer::Superseded(Incarnation(incarnation))),
            None => Err(missing("outcome")),
        }
    }
}

impl From<&MembershipEvent> for v1::WatchMembershipResponse {
    fn from(it: &MembershipEvent) -> Self {
        let event = match it {
            MembershipEvent::Snapshot(at, members) => Event::Snapshot(v1::Snapshot {
                revision: Some((*at).into()),
                members: members.iter().map(Into::into).collect(),
            }),
            MembershipEvent::Joined(at, member) => {
                Event::Joined(v1::Joined { revision: Some((*at).into()), member: Some(member.into()) })
            }
            MembershipEvent::Left(at, who) => {
                Event::Left(v1::Left { revision: Some((*at).into()), identity: Some(who.into()) })
            }
            MembershipEvent::Resync => Event::Resync(v1::Resync {}),
        };
        v1::WatchMembershipResponse { event: Some(event) }
    }
}

impl TryFrom<v1::WatchMembershipResponse> for MembershipEvent {
    type Error = Malformed;

    fn try_from(it: v1::WatchMembershipResponse) -> Result<Self, Malformed> {
        match it.event {
            Some(Event::Snapshot(it)) => Ok(MembershipEvent::Snapshot(
                revision(it.revision, "snapshot.revision")?,
                list(it.members, "snapshot.members", limits::MEMBERS)?,
            )),
            Some(Event::Joined(it)) => Ok(MembershipEvent::Joined(
                revision(it.revision, "joined.revision")?,
                need(it.member, "joined.member")?,
            )),
            Some(Event::Left(it)) => {
                Ok(MembershipEvent::Left(revision(it.revision, "left.revision")?, need(it.identity, "left.identity")?))
            }
            Some(Event::Resync(v1::Resync {})) => Ok(MembershipEvent::Resync),
            None => Err(missing("event")),
        }
    }
}
