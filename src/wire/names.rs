//! Names and numbers: nodes, leaderships, positions, jobs, tasks, attempts, stamps.

use super::fields::{address, job_id, maybe, need, node, number, short};
use super::{Malformed, v1};
use crate::protocol::ids::{
    AttemptName, Digest, ElectionId, Identity, Incarnation, Jac, JobKey, Leadership, Member, Number, Position, TaskKey,
    Term,
};
use crate::protocol::limits;
use crate::protocol::message::{Edge, Leader};
use crate::protocol::view::{Admission, Stamp};

/// The longest version text that is taken.
const LONGEST_VERSION: usize = 64;
/// The most tasks at once that a worker may claim; beyond any machine.
const MOST_CONCURRENCY: u32 = 1 << 16;

impl From<&Identity> for v1::Identity {
    fn from(it: &Identity) -> Self {
        v1::Identity { node_id: it.node.to_string(), incarnation: it.incarnation.0 }
    }
}

impl TryFrom<v1::Identity> for Identity {
    type Error = Malformed;

    fn try_from(it: v1::Identity) -> Result<Self, Malformed> {
        Ok(Identity { node: node(&it.node_id, "node_id")?, incarnation: Incarnation(it.incarnation) })
    }
}

impl From<&Member> for v1::Member {
    fn from(it: &Member) -> Self {
        v1::Member {
            node_id: it.node.to_string(),
            incarnation: it.incarnation.0,
            address: it.address.to_string(),
            http_address: it.http.to_string(),
            version: it.version.to_string(),
            concurrency: it.concurrency,
        }
    }
}

impl TryFrom<v1::Member> for Member {
    type Error = Malformed;

    fn try_from(it: v1::Member) -> Result<Self, Malformed> {
        Ok(Member {
            node: node(&it.node_id, "node_id")?,
            incarnation: Incarnation(it.incarnation),
            address: address(&it.address, "address")?,
            http: address(&it.http_address, "http_address")?,
            version: short(it.version, "version", LONGEST_VERSION)?,
            concurrency: number(it.concurrency, "concurrency", 1, MOST_CONCURRENCY)?,
        })
    }
}

impl From<&Leadership> for v1::Leadership {
    fn from(it: &Leadership) -> Self {
        v1::Leadership {
            term: it.term.0,
            leader_id: it.leader.to_string(),
            incarnation: it.incarnation.0,
            jac: it.jac.0,
        }
    }
}

impl TryFrom<v1::Leadership> for Leadership {
    type Error = Malformed;

    fn try_from(it: v1::Leadership) -> Result<Self, Malformed> {
        Ok(Leadership {
            term: Term(it.term),
            leader: node(&it.leader_id, "leader_id")?,
            incarnation: Incarnation(it.incarnation),
            jac: Jac(it.jac),
        })
    }
}

impl From<&Leader> for v1::Leader {
    fn from(it: &Leader) -> Self {
        v1::Leader { leadership: Some((&it.leadership).into()), member: Some((&it.member).into()) }
    }
}

impl TryFrom<v1::Leader> for Leader {
    type Error = Malformed;

    fn try_from(it: v1::Leader) -> Result<Self, Malformed> {
        let leadership: Leadership = need(it.leadership, "leadership")?;
        let member: Member = need(it.member, "member")?;
        if member.identity() != leadership.identity() {
            let allowed = format!("the leader itself, {}", leadership.identity());
            return Err(Malformed::new("member", member.identity(), allowed));
        }
        Ok(Leader { leadership, member })
    }
}

impl From<&Position> for v1::Position {
    fn from(it: &Position) -> Self {
        v1::Position { leadership: it.leadership.as_ref().map(Into::into), number: it.number.0 }
    }
}

impl TryFrom<v1::Position> for Position {
    type Error = Malformed;

    fn try_from(it: v1::Position) -> Result<Self, Malformed> {
        Ok(Position { leadership: maybe(it.leadership, "leadership")?, number: Number(it.number) })
    }
}

impl From<&ElectionId> for v1::ElectionId {
    fn from(it: &ElectionId) -> Self {
        v1::ElectionId { initiator_id: it.initiator.to_string(), incarnation: it.incarnation.0, serial: it.serial }
    }
}

impl TryFrom<v1::ElectionId> for ElectionId {
    type Error = Malformed;

    fn try_from(it: v1::ElectionId) -> Result<Self, Malformed> {
        let initiator = node(&it.initiator_id, "initiator_id")?;
        Ok(ElectionId { initiator, incarnation: Incarnation(it.incarnation), serial: it.serial })
    }
}

impl From<&Edge> for v1::Edge {
    fn from(it: &Edge) -> Self {
        v1::Edge { from_id: it.from.to_string(), to_id: it.to.to_string() }
    }
}

impl TryFrom<v1::Edge> for Edge {
    type Error = Malformed;

    fn try_from(it: v1::Edge) -> Result<Self, Malformed> {
        Ok(Edge { from: node(&it.from_id, "from_id")?, to: node(&it.to_id, "to_id")? })
    }
}

impl From<&JobKey> for v1::JobKey {
    fn from(it: &JobKey) -> Self {
        v1::JobKey { job_id: it.id.to_string(), digest: it.digest.0.to_vec() }
    }
}

impl TryFrom<v1::JobKey> for JobKey {
    type Error = Malformed;

    fn try_from(it: v1::JobKey) -> Result<Self, Malformed> {
        let digest = <[u8; 32]>::try_from(it.digest.as_slice())
            .map_err(|_| Malformed::new("digest", format_args!("{} bytes", it.digest.len()), "32 bytes"))?;
        Ok(JobKey { id: job_id(&it.job_id, "job_id")?, digest: Digest(digest) })
    }
}

impl From<&TaskKey> for v1::TaskKey {
    fn from(it: &TaskKey) -> Self {
        v1::TaskKey { job: Some((&it.job).into()), slices: it.slices, slice: it.slice }
    }
}

impl TryFrom<v1::TaskKey> for TaskKey {
    type Error = Malformed;

    fn try_from(it: v1::TaskKey) -> Result<Self, Malformed> {
        let slices = number(it.slices, "slices", 1, limits::SLICES)?;
        Ok(TaskKey { job: need(it.job, "job")?, slices, slice: number(it.slice, "slice", 0, slices - 1)? })
    }
}

impl From<&AttemptName> for v1::AttemptName {
    fn from(it: &AttemptName) -> Self {
        v1::AttemptName { number: it.number, term: it.term.0, leader_id: it.leader.to_string() }
    }
}

impl TryFrom<v1::AttemptName> for AttemptName {
    type Error = Malformed;

    fn try_from(it: v1::AttemptName) -> Result<Self, Malformed> {
        Ok(AttemptName {
            number: number(it.number, "number", 1, u32::MAX)?,
            term: Term(it.term),
            leader: node(&it.leader_id, "leader_id")?,
        })
    }
}

impl From<&Stamp> for v1::Stamp {
    fn from(it: &Stamp) -> Self {
        v1::Stamp { term: it.term.0, number: it.number.0, leader_id: it.leader.to_string() }
    }
}

impl TryFrom<v1::Stamp> for Stamp {
    type Error = Malformed;

    fn try_from(it: v1::Stamp) -> Result<Self, Malformed> {
        Ok(Stamp { term: Term(it.term), number: Number(it.number), leader: node(&it.leader_id, "leader_id")? })
    }
}

impl From<&Admission> for v1::Admission {
    fn from(it: &Admission) -> Self {
        v1::Admission {
            term: it.term.0,
            leader_id: it.leader.to_string(),
            place: it.place,
            jac: it.jac.0,
            slices: it.slices,
        }
    }
}

impl TryFrom<v1::Admission> for Admission {
    type Error = Malformed;

    fn try_from(it: v1::Admission) -> Result<Self, Malformed> {
        Ok(Admission {
            term: Term(it.term),
            leader: node(&it.leader_id, "leader_id")?,
            place: number(it.place, "place", 1, u32::MAX)?,
            jac: Jac(it.jac),
            slices: number(it.slices, "slices", 1, limits::SLICES)?,
        })
    }
}
