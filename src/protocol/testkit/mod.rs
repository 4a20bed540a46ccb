//! What the situation tests are built from: names made short, one worker fed one input at a time ([`lone`]), and a
//! few workers on a network that delivers in order and jumps from deadline to deadline ([`network`]).
//!
//! Owns no rule of the protocol. Nothing here sleeps or reads a clock. Outcomes are rendered one line per effect
//! ([`render`]), so that a test can state all of them at once.

pub(crate) mod lone;
pub(crate) mod network;
pub(crate) mod render;
mod transcript;

use std::sync::Arc;
use std::time::Duration;

use crate::jobs::Payload;

use super::ids::{
    Address, Digest, ElectionId, Incarnation, Jac, JobId, JobKey, Leadership, Member, NodeId, TaskKey, Term,
};
use super::limits::Settings;
use super::message::{Announce, Elect, JobQuery, Leader, Purpose, Status, SubmitJob};

pub(crate) use lone::Lone;
pub(crate) use network::Network;

/// Longer than any situation.
pub(crate) const NEVER: Duration = Duration::from_secs(1_000_000);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

/// A member in its first incarnation, with one place for tasks.
pub(crate) fn member(name: &str) -> Member {
    Member {
        node: node(name),
        incarnation: Incarnation(1),
        address: Address::new(&format!("{name}:7400")).expect("a good address"),
        http: Address::new(&format!("{name}:8080")).expect("a good address"),
        version: Arc::from("1"),
        concurrency: 1,
    }
}

pub(crate) fn leadership(term: u64, leader: &str, jac: u64) -> Leadership {
    Leadership { term: Term(term), leader: node(leader), incarnation: Incarnation(1), jac: Jac(jac) }
}

pub(crate) fn leader(term: u64, name: &str, jac: u64) -> Leader {
    Leader { leadership: leadership(term, name, jac), member: member(name) }
}

/// What `name` says of itself when it follows `following`.
pub(crate) fn status(name: &str, following: Option<Leader>) -> Status {
    Status { member: member(name), following, jac: Jac(0), links: Vec::new(), running: 0, remembers: Jac(0) }
}

pub(crate) fn election(initiator: &str, serial: u64) -> ElectionId {
    ElectionId { initiator: node(initiator), incarnation: Incarnation(1), serial }
}

/// A hop of an election that its initiator sends itself, with the whole time.
pub(crate) fn elect(initiator: &str, serial: u64, term: u64) -> Elect {
    Elect {
        election: election(initiator, serial),
        term: Term(term),
        from: member(initiator),
        replaces: None,
        around: Vec::new(),
        excluded: Vec::new(),
        budget: ms(200),
    }
}

pub(crate) fn announce(purpose: Purpose, from: &str, leader: Leader, workers: u32) -> Announce {
    Announce { purpose, from: member(from), leader, election: None, replaces: None, workers }
}

pub(crate) fn job_id(id: &str) -> JobId {
    JobId::new(id).expect("a good name")
}

/// The key of the job `id`, whose digest is all ones.
pub(crate) fn job(id: &str) -> JobKey {
    JobKey { id: job_id(id), digest: Digest([1; 32]) }
}

pub(crate) fn task(id: &str, slices: u32, slice: u32) -> TaskKey {
    TaskKey { job: job(id), slices, slice }
}

/// A job that each worker gets four slices of; its answer is 1060.
pub(crate) fn sum_to_100() -> Payload {
    Payload::PrimeSum { start: 1, end: 100 }
}

pub(crate) fn submission(id: &str) -> SubmitJob {
    SubmitJob { key: job(id), payload: sum_to_100(), deadline: None, forwarded: false, trace: None }
}

pub(crate) fn query(id: &str) -> JobQuery {
    JobQuery { id: job_id(id), digest: None, forwarded: false }
}

/// The defaults, but without the regular traffic that has nothing to do with most situations: pings of links,
/// missing links and strangers.
pub(crate) fn quiet() -> Settings {
    Settings { link_ping: NEVER, min_links: 0, ..Settings::default() }
}
