//! Names and numbers of the protocol, each a type of its own so that none passes for another.
//!
//! Owns what a name may look like and how leaderships and attempts compare (sections 1 and 8 of the contract).

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::time::Wall;

/// A name, address or id that is not of the allowed form; the text says what is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    /// What was given.
    pub given: String,
    /// What is allowed, as half a sentence.
    pub allowed: &'static str,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.given.chars().take(80).collect();
        write!(f, "{shown:?} is not allowed: {}", self.allowed)
    }
}

impl std::error::Error for BadName {}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $max:literal, $extra:literal, $allowed:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes a name.
            ///
            /// # Errors
            /// [`BadName`] with what is allowed.
            pub fn new(text: &str) -> Result<$name, BadName> {
                let fits = |c: char| c.is_ascii_alphanumeric() || $extra.contains(c);
                if text.is_empty() || text.len() > $max || !text.chars().all(fits) {
                    return Err(BadName { given: text.to_owned(), allowed: $allowed });
                }
                Ok($name(Arc::from(text)))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name!(
    /// Stable identity of a node; unique in its cluster.
    NodeId, 253, "-_.", "1 to 253 letters, digits, '-', '_' or '.'"
);
name!(
    /// What its client calls a job; with the payload's [`Digest`] it is a [`JobKey`].
    JobId, 64, "-_", "1 to 64 letters, digits, '-' or '_'"
);
name!(
    /// Where others dial a node: host and port. Resolved anew at each dial.
    Address, 280, "-_.:[]%", "a host name or IP address, ':' and a port"
);

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl $name {
            /// The next one; stays at the largest rather than wrap.
            #[must_use]
            pub const fn next(self) -> $name {
                $name(self.0.saturating_add(1))
            }
        }
    };
}

number!(
    /// Rises at every start of a node id; a higher one replaces a lower one at once.
    Incarnation
);
impl Incarnation {
    /// The incarnation of a start: above the one in the node's journal, and at least the clock, for a node whose
    /// journal is new.
    #[must_use]
    pub fn at_start(stored: Incarnation, clock: Wall) -> Incarnation {
        stored.next().max(Incarnation(clock.0))
    }
}

number!(
    /// Job allocation counter: +1 for each job that its owner admits as coordinator (section 6).
    Jac
);
number!(
    /// Monotonic number of a leadership.
    Term
);
number!(
    /// Progress number: each mutation of the ledger takes the next one.
    Number
);
number!(
    /// Names a unary call that somebody made to this node and that waits for its answer.
    ReplyToken
);
number!(
    /// Names a unary call that this node made.
    CallId
);
number!(
    /// Names one end of a Replicate stream; fresh for each stream of a process.
    StreamId
);
number!(
    /// Names a computation in this node's pool.
    ComputeId
);
number!(
    /// Names a write to the journal; they complete in order.
    SaveId
);

/// One running process: node id and incarnation (section 1). Never its address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The stable part.
    pub node: NodeId,
    /// Which start of it.
    pub incarnation: Incarnation,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.node, self.incarnation)
    }
}

/// What a worker tells of itself to others; who dials it needs no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Node id.
    pub node: NodeId,
    /// Which start of it.
    pub incarnation: Incarnation,
    /// Where its gRPC port is dialled.
    pub address: Address,
    /// Where its HTTP port is dialled.
    pub http: Address,
    /// Version of its program.
    pub version: Arc<str>,
    /// Tasks that it computes at once, at least 1.
    pub concurrency: u32,
}

impl Member {
    /// Its identity.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { node: self.node.clone(), incarnation: self.incarnation }
    }
}

/// A worker's offer to lead, stated by itself alone (section 6: nobody but its owner states a JAC).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its JAC at this moment.
    pub jac: Jac,
    /// Who it is and where the initiator reaches it.
    pub member: Member,
}

impl Candidate {
    /// Whether this one wins against `other`: the lower JAC, then the smaller id, then the higher incarnation.
    #[must_use]
    pub fn beats(&self, other: &Candidate) -> bool {
        let key = |c: &Candidate| (c.jac, c.member.node.clone(), std::cmp::Reverse(c.member.incarnation));
        key(self) < key(other)
    }
}

/// A leadership, named by term and leader: the fence of everything that is done under it (section 1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leadership {
    /// Its term.
    pub term: Term,
    /// Who leads.
    pub leader: NodeId,
    /// Which start of the leader; a leadership ends with its process.
    pub incarnation: Incarnation,
    /// The leader's JAC when it was elected.
    pub jac: Jac,
}

impl Leadership {
    /// The process that leads.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { node: self.leader.clone(), incarnation: self.incarnation }
    }
}

impl Ord for Leadership {
    /// Greater is newer: the higher term; within a term the lower JAC, then the smaller id, then the higher
    /// incarnation (section 1).
    fn cmp(&self, other: &Self) -> Ordering {
        self.term
            .cmp(&other.term)
            .then_with(|| other.jac.cmp(&self.jac))
            .then_with(|| other.leader.cmp(&self.leader))
            .then_with(|| self.incarnation.cmp(&other.incarnation))
    }
}

impl PartialOrd for Leadership {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {})", self.term, self.leader)
    }
}

/// Names the content of a replica exactly: followers change nothing on their own (sections 1 and 8).
///
/// Numbers run on from one leadership to the next, so that on one replica every number names one mutation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The leadership last joined; none on an empty replica.
    pub leadership: Option<Leadership>,
    /// The last mutation that this replica holds.
    pub number: Number,
}

/// Names one election: who began it and its how-manieth that was. Fresh without randomness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElectionId {
    /// Who began it.
    pub initiator: NodeId,
    /// Which start of the initiator.
    pub incarnation: Incarnation,
    /// Counts the initiator's elections since its start.
    pub serial: u64,
}

impl fmt::Display for ElectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.initiator, self.incarnation, self.serial)
    }
}

/// SHA-256 of a job's canonical payload. Made in `wire`; opaque here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A job: its id and the digest of its payload, so that one id with two payloads is two jobs (section 7).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// The client's name for it.
    pub id: JobId,
    /// Digest of the payload.
    pub digest: Digest,
}

/// A task: a slice of one cut of a job. Two cuts of one job never share a task (section 1).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey {
    /// The job.
    pub job: JobKey,
    /// Into how many slices the job was cut.
    pub slices: u32,
    /// Which of them, from 0.
    pub slice: u32,
}

/// One hand-out of a task: its number, from 1, and the leadership that made it. Higher is later (section 8).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptName {
    /// Counts the task's hand-outs.
    pub number: u32,
    /// Term of the leadership that handed it out.
    pub term: Term,
    /// Leader that handed it out.
    pub leader: NodeId,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(term: u64, jac: u64, leader: &str, incarnation: u64) -> Leadership {
        let leader = NodeId::new(leader).expect("a good name");
        Leadership { term: Term(term), leader, incarnation: Incarnation(incarnation), jac: Jac(jac) }
    }

    #[test]
    fn of_two_leaderships_the_newer_has_the_higher_term_then_the_lower_jac_then_the_smaller_id() {
        let oldest_first =
            [lead(1, 0, "a", 9), lead(2, 5, "a", 1), lead(2, 3, "b", 1), lead(2, 3, "a", 1), lead(2, 3, "a", 2)];
        for pair in oldest_first.windows(2) {
            assert!(pair[0] < pair[1], "{} {} should be older than {} {}", pair[0], pair[0].jac, pair[1], pair[1].jac);
        }
    }

    #[test]
    fn a_bad_name_says_what_is_allowed() {
        let error = JobId::new("no spaces").expect_err("spaces are not allowed");
        assert_eq!(error.to_string(), "\"no spaces\" is not allowed: 1 to 64 letters, digits, '-' or '_'");
        assert!(JobId::new(&"x".repeat(65)).is_err());
        assert!(JobId::new("").is_err());
    }
}
