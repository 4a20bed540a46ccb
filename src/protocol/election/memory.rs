//! Which elections of the highest term this worker has met, and in which it took part.
//!
//! Bounded by term and count, not by time or luck: an election below the highest term is stale anyway, so only
//! the highest term's are remembered, and when those are too many, one more counts as met.

use std::collections::BTreeMap;

use crate::protocol::ids::ElectionId;
use crate::protocol::limits;

/// The elections met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    met: BTreeMap<ElectionId, bool>,
}

impl Memory {
    /// Whether this election was met before, or is one too many.
    pub(crate) fn has_met(&self, election: &ElectionId) -> bool {
        self.met.contains_key(election) || self.met.len() >= limits::FLOODS
    }

    /// Whether this worker took part in it.
    pub(crate) fn took_part(&self, election: &ElectionId) -> bool {
        self.met.get(election).copied().unwrap_or(false)
    }

    pub(crate) fn meet(&mut self, election: ElectionId, took_part: bool) {
        self.met.insert(election, took_part);
    }

    /// A higher term was met.
    pub(crate) fn forget(&mut self) {
        self.met.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{Incarnation, NodeId};

    #[test]
    fn a_flood_of_elections_in_one_term_fills_the_memory_no_further() {
        let mut memory = Memory::default();
        let id = |serial| ElectionId {
            initiator: NodeId::new("n1").expect("a good name"),
            incarnation: Incarnation(1),
            serial,
        };
        for serial in 0..10_000 {
            if !memory.has_met(&id(serial)) {
                memory.meet(id(serial), true);
            }
        }
        assert_eq!(memory.met.len(), limits::FLOODS);
        assert!(memory.has_met(&id(9_999)), "one too many counts as met");
        assert!(!memory.took_part(&id(9_999)));
    }
}
