//! Elections (section 6): the lowest JAC wins, among equals the smaller node id.
//!
//! Owns floods on their way through this worker ([`flood`]), its own campaign when it began one ([`campaign`]) and
//! what announcements do ([`announce`], [`settle`]). Writes nothing to disk.

mod announce;
mod campaign;
mod flood;
mod memory;
mod settle;

use std::collections::BTreeMap;

pub(crate) use campaign::Campaign;
pub(crate) use flood::Flood;
pub(crate) use memory::Memory;

use super::ids::{ElectionId, Identity, Leadership, Term};
use super::limits;

/// All that a worker knows of elections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elections {
    /// The highest term met, attempted ones included. A term that was only attempted fences nothing.
    pub(crate) highest: Term,
    pub(crate) memory: Memory,
    /// Floods that wait for branches, by election. Bound: [`limits::FLOODS`].
    pub(crate) floods: BTreeMap<ElectionId, Flood>,
    pub(crate) campaign: Option<Campaign>,
    /// The newest announcement passed on whose leader is followed already, in a lower term.
    pub(crate) passed_on: Option<Leadership>,
    serial: u64,
}

impl Elections {
    pub(crate) fn new(highest: Term) -> Elections {
        Elections { highest, ..Elections::default() }
    }

    pub(crate) fn fresh_id(&mut self, me: Identity) -> ElectionId {
        self.serial = self.serial.saturating_add(1);
        ElectionId { initiator: me.node, incarnation: me.incarnation, serial: self.serial }
    }

    /// Whether a term lies too far above the highest known to be one (section 6, 6).
    pub(crate) fn is_impossible(&self, term: Term) -> bool {
        term.0 > self.highest.0.saturating_add(limits::TERM_LEAP)
    }

    /// A term was met.
    pub(crate) fn meet_term(&mut self, term: Term) {
        if term > self.highest {
            self.highest = term;
            self.memory.forget();
        }
    }
}
