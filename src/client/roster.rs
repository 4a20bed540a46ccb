//! Where nodes can be asked: the addresses that a person gave, and those that nodes named.
//!
//! Owns the order in which they are tried. Bounded, whatever the nodes name.

use std::collections::BTreeSet;

use crate::protocol::ids::Address;

/// How many named addresses are kept; more than enough to find one that lives.
const NAMED: usize = 64;

/// The addresses that are tried.
#[derive(Clone, Debug)]
pub(super) struct Roster {
    given: Vec<Address>,
    named: BTreeSet<Address>,
    failed: Option<Address>,
}

impl Roster {
    /// The given ones, never empty.
    pub(super) fn new(given: Vec<Address>) -> Roster {
        Roster { given, named: BTreeSet::new(), failed: None }
    }

    /// Takes the addresses of living workers for the older ones, if there are any.
    pub(super) fn learn(&mut self, living: impl IntoIterator<Item = Address>) {
        let living: BTreeSet<Address> = living.into_iter().take(NAMED).collect();
        if !living.is_empty() {
            self.named = living;
        }
    }

    /// Adds one that a node named.
    pub(super) fn add(&mut self, address: Address) {
        if self.named.len() < NAMED {
            self.named.insert(address);
        }
    }

    /// The node there was of no use just now: it comes last next time.
    pub(super) fn failed(&mut self, address: &Address) {
        self.failed = Some(address.clone());
    }

    /// All that can be tried, and apart from them the one that failed last.
    pub(super) fn candidates(&self) -> (Vec<Address>, Option<Address>) {
        let given: BTreeSet<&Address> = self.given.iter().collect();
        let named = self.named.iter().filter(|address| !given.contains(address));
        let all = self.given.iter().chain(named);
        let good = all.filter(|address| Some(*address) != self.failed.as_ref()).cloned().collect();
        (good, self.failed.clone())
    }

    /// The given ones as people read them; a row of ports of one host as a range.
    pub(super) fn shown(&self) -> String {
        let ports: Vec<(&str, u16)> = self.given.iter().filter_map(host_and_port).collect();
        let is_next = |pair: &[(&str, u16)]| matches!(pair, [a, b] if a.0 == b.0 && a.1.checked_add(1) == Some(b.1));
        match ports.as_slice() {
            [(host, from), .., (_, to)] if ports.len() == self.given.len() && ports.windows(2).all(is_next) => {
                format!("{host}, ports {from} to {to}")
            }
            _ => self.given.iter().map(Address::as_str).collect::<Vec<&str>>().join(", "),
        }
    }
}

fn host_and_port(address: &Address) -> Option<(&str, u16)> {
    let (host, port) = address.as_str().rsplit_once(':')?;
    Some((host, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::new(text).expect("an address")
    }

    #[test]
    fn named_nodes_are_tried_beside_the_given_ones_and_the_failed_one_last() {
        let mut roster = Roster::new(vec![address("a:1"), address("b:1")]);
        roster.learn([address("b:1"), address("c:1")]);
        roster.failed(&address("a:1"));
        assert_eq!(roster.candidates(), (vec![address("b:1"), address("c:1")], Some(address("a:1"))));
        roster.failed(&address("c:1"));
        assert_eq!(roster.candidates(), (vec![address("a:1"), address("b:1")], Some(address("c:1"))));
    }

    #[test]
    fn an_empty_answer_forgets_nobody_and_a_long_one_is_cut() {
        let mut roster = Roster::new(vec![address("a:1")]);
        roster.learn([address("b:1")]);
        roster.learn([]);
        assert_eq!(roster.candidates().0, [address("a:1"), address("b:1")]);
        roster.learn((0..1_000).map(|port| address(&format!("c:{port}"))));
        roster.add(address("d:1"));
        assert_eq!(roster.candidates().0.len(), 1 + NAMED);
    }

    #[test]
    fn a_row_of_ports_is_shown_as_a_range() {
        let local = (7400..=7415).map(|port| address(&format!("127.0.0.1:{port}"))).collect();
        assert_eq!(Roster::new(local).shown(), "127.0.0.1, ports 7400 to 7415");
        for apart in [["a:1", "b:2"], ["a:1", "a:3"], ["a:2", "a:1"]] {
            assert_eq!(Roster::new(apart.map(address).to_vec()).shown(), apart.join(", "));
        }
        assert_eq!(Roster::new(vec![address("a:1")]).shown(), "a:1");
    }
}
