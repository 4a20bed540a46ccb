//! Election, announcement and overlay: the calls of sections 5 and 6 of the contract.

use std::time::Duration;

use super::fields::{links, list, maybe, micros, need, number, texts};
use super::{Malformed, v1};
use crate::protocol::ids::{Candidate, Jac, Term};
use crate::protocol::limits;
use crate::protocol::message::{Announce, AnnounceAnswer, Elect, ElectAnswer, Purpose, Status};

/// The longest budget of a branch, in microseconds.
const LONGEST_BUDGET_US: u64 = 10_000_000;

impl From<&Status> for v1::Status {
    fn from(it: &Status) -> Self {
        v1::Status {
            member: Some((&it.member).into()),
            following: it.following.as_ref().map(Into::into),
            jac: it.jac.0,
            links: texts(&it.links),
            running: it.running,
            remembers_jac: it.remembers.0,
        }
    }
}

impl TryFrom<v1::Status> for Status {
    type Error = Malformed;

    fn try_from(it: v1::Status) -> Result<Self, Malformed> {
        Ok(Status {
            member: need(it.member, "member")?,
            following: maybe(it.following, "following")?,
            jac: Jac(it.jac),
            links: links(&it.links)?,
            running: it.running,
            remembers: Jac(it.remembers_jac),
        })
    }
}

impl From<&Candidate> for v1::Candidate {
    fn from(it: &Candidate) -> Self {
        v1::Candidate { jac: it.jac.0, member: Some((&it.member).into()) }
    }
}

impl TryFrom<v1::Candidate> for Candidate {
    type Error = Malformed;

    fn try_from(it: v1::Candidate) -> Result<Self, Malformed> {
        Ok(Candidate { jac: Jac(it.jac), member: need(it.member, "member")? })
    }
}

impl From<&Elect> for v1::ElectRequest {
    fn from(it: &Elect) -> Self {
        v1::ElectRequest {
            election: Some((&it.election).into()),
            term: it.term.0,
            from: Some((&it.from).into()),
            replaces: it.replaces.as_ref().map(Into::into),
            around: it.around.iter().map(Into::into).collect(),
            excluded: it.excluded.iter().map(Into::into).collect(),
            budget_us: micros(it.budget).min(LONGEST_BUDGET_US),
        }
    }
}

impl TryFrom<v1::ElectRequest> for Elect {
    type Error = Malformed;

    fn try_from(it: v1::ElectRequest) -> Result<Self, Malformed> {
        Ok(Elect {
            election: need(it.election, "election")?,
            term: Term(it.term),
            from: need(it.from, "from")?,
            replaces: maybe(it.replaces, "replaces")?,
            around: list(it.around, "around", limits::EDGES)?,
            excluded: list(it.excluded, "excluded", limits::EXCLUDED)?,
            budget: Duration::from_micros(number(it.budget_us, "budget_us", 0, LONGEST_BUDGET_US)?),
        })
    }
}

impl From<&ElectAnswer> for v1::ElectResponse {
    fn from(it: &ElectAnswer) -> Self {
        v1::ElectResponse {
            duplicate: it.duplicate,
            best: it.best.as_ref().map(Into::into),
            nodes: it.nodes,
            failed: it.failed.iter().map(Into::into).collect(),
            refusals: it.refusals.iter().map(Into::into).collect(),
            highest_term: it.highest_term.0,
        }
    }
}

impl TryFrom<v1::ElectResponse> for ElectAnswer {
    type Error = Malformed;

    fn try_from(it: v1::ElectResponse) -> Result<Self, Malformed> {
        Ok(ElectAnswer {
            duplicate: it.duplicate,
            best: maybe(it.best, "best")?,
            nodes: it.nodes,
            failed: list(it.failed, "failed", limits::EDGES)?,
            refusals: list(it.refusals, "refusals", limits::REFUSALS)?,
            highest_term: Term(it.highest_term),
        })
    }
}

impl From<Purpose> for v1::Purpose {
    fn from(it: Purpose) -> Self {
        match it {
            Purpose::Won => v1::Purpose::Won,
            Purpose::Flood => v1::Purpose::Flood,
            Purpose::Met => v1::Purpose::Met,
            Purpose::Settle => v1::Purpose::Settle,
        }
    }
}

fn purpose(given: i32) -> Result<Purpose, Malformed> {
    match v1::Purpose::try_from(given) {
        Ok(v1::Purpose::Won) => Ok(Purpose::Won),
        Ok(v1::Purpose::Flood) => Ok(Purpose::Flood),
        Ok(v1::Purpose::Met) => Ok(Purpose::Met),
        Ok(v1::Purpose::Settle) => Ok(Purpose::Settle),
        Ok(v1::Purpose::Unspecified) | Err(_) => Err(Malformed::new("purpose", given, "1 to 4")),
    }
}

impl From<&Announce> for v1::AnnounceRequest {
    fn from(it: &Announce) -> Self {
        v1::AnnounceRequest {
            purpose: v1::Purpose::from(it.purpose).into(),
            from: Some((&it.from).into()),
            leader: Some((&it.leader).into()),
            election: it.election.as_ref().map(Into::into),
            replaces: it.replaces.as_ref().map(Into::into),
            workers: it.workers,
        }
    }
}

impl TryFrom<v1::AnnounceRequest> for Announce {
    type Error = Malformed;

    fn try_from(it: v1::AnnounceRequest) -> Result<Self, Malformed> {
        Ok(Announce {
            purpose: purpose(it.purpose)?,
            from: need(it.from, "from")?,
            leader: need(it.leader, "leader")?,
            election: maybe(it.election, "election")?,
            replaces: maybe(it.replaces, "replaces")?,
            workers: it.workers,
        })
    }
}

impl From<&AnnounceAnswer> for v1::AnnounceResponse {
    fn from(it: &AnnounceAnswer) -> Self {
        v1::AnnounceResponse {
            accepted: it.accepted,
            following: it.following.as_ref().map(Into::into),
            reaches: it.reaches,
        }
    }
}

impl TryFrom<v1::AnnounceResponse> for AnnounceAnswer {
    type Error = Malformed;

    fn try_from(it: v1::AnnounceResponse) -> Result<Self, Malformed> {
        Ok(AnnounceAnswer { accepted: it.accepted, following: maybe(it.following, "following")?, reaches: it.reaches })
    }
}
