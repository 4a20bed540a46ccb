//! Connections to peers: kept while they are used, bounded in number, bounded in what is under way on each.
//!
//! Owns which calls share a connection. Small calls and large ones do not, so that no payload stands in front of an
//! election; Replicate has a connection of its own for each stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::transport::Channel;

use crate::protocol::limits;
use crate::protocol::message::Peer;

use super::dial::{CALLS, Dialer};

/// Peers connected at once: all members, some twice, since an address of FLOODLINE_PEERS has no name at first.
const PEERS: usize = limits::MEMBERS * 2;
/// A connection that nobody used for so long is given up. Longer than the pause between two tries of a lost member
/// would keep one for each.
const IDLE: Duration = Duration::from_secs(30);
/// How often idle ones are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// Which of a peer's connections a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Elections, announcements, links, pings: small and urgent.
    Urgent,
    /// What carries payloads or ledgers.
    Bulk,
}

/// A place on a connection, held as long as a call is under way.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) channel: Channel,
    _place: OwnedSemaphorePermit,
}

/// The peers that are connected, or were lately.
#[derive(Debug, Default)]
pub(super) struct Peers {
    links: BTreeMap<Peer, Link>,
    swept: Option<Instant>,
}

#[derive(Debug)]
struct Link {
    dialer: Dialer,
    urgent: Connection,
    bulk: Connection,
    used: Instant,
}

/// A connection with a bounded number of places, made when it is first used.
#[derive(Debug)]
pub(super) struct Connection {
    channel: Option<Channel>,
    places: Arc<Semaphore>,
    most: usize,
}

impl Connection {
    pub(super) fn new(most: usize) -> Connection {
        Connection { channel: None, places: Arc::new(Semaphore::new(most)), most }
    }

    pub(super) fn line(&mut self, dialer: &Dialer) -> Result<Line, String> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| format!("{} calls are under way there, which is the most", self.most))?;
        Ok(Line { channel: self.channel(dialer)?, _place: place })
    }

    pub(super) fn channel(&mut self, dialer: &Dialer) -> Result<Channel, String> {
        if let Some(channel) = &self.channel {
            return Ok(channel.clone());
        }
        let channel = dialer.channel()?;
        self.channel = Some(channel.clone());
        Ok(channel)
    }

    fn is_unused(&self) -> bool {
        self.places.available_permits() == self.most
    }
}

impl Link {
    fn new(peer: &Peer, now: Instant) -> Link {
        Link {
            dialer: Dialer::new(peer.address.clone()),
            urgent: Connection::new(CALLS),
            bulk: Connection::new(CALLS),
            used: now,
        }
    }

    fn is_idle(&self, now: Instant) -> bool {
        now.duration_since(self.used) >= IDLE && self.urgent.is_unused() && self.bulk.is_unused()
    }
}

impl Peers {
    /// A place on a connection to a peer.
    pub(super) fn line(&mut self, peer: &Peer, lane: Lane, now: Instant) -> Result<Line, String> {
        let link = self.link(peer, now)?;
        match lane {
            Lane::Urgent => link.urgent.line(&link.dialer),
            Lane::Bulk => link.bulk.line(&link.dialer),
        }
    }

    /// What dials a peer, for a connection that is not shared.
    pub(super) fn dialer(&mut self, peer: &Peer, now: Instant) -> Dialer {
        self.link(peer, now).map_or_else(|_| Dialer::new(peer.address.clone()), |link| link.dialer.clone())
    }

    fn link(&mut self, peer: &Peer, now: Instant) -> Result<&mut Link, String> {
        if self.swept.is_none_or(|swept| now.duration_since(swept) >= SWEEP) {
            self.links.retain(|_, link| !link.is_idle(now));
            self.swept = Some(now);
        }
        if self.links.len() >= PEERS && !self.links.contains_key(peer) {
            return Err(format!("this node is connected to {PEERS} peers, which is the most"));
        }
        let link = self.links.entry(peer.clone()).or_insert_with(|| Link::new(peer, now));
        link.used = now;
        Ok(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::Address;

    fn peer(number: usize) -> Peer {
        Peer { node: None, address: Address::new(&format!("127.0.0.1:{}", 1 + number)).expect("a good address") }
    }

    #[tokio::test]
    async fn the_calls_of_a_connection_are_bounded_and_small_ones_do_not_wait_for_large_ones() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        let mut under_way: Vec<Line> =
            (0..CALLS).map(|_| peers.line(&peer(1), Lane::Bulk, now).expect("a free place")).collect();
        let full = peers.line(&peer(1), Lane::Bulk, now).expect_err("no place left");
        assert_eq!(full, "1024 calls are under way there, which is the most");
        peers.line(&peer(1), Lane::Urgent, now).expect("a connection of its own");
        under_way.pop();
        peers.line(&peer(1), Lane::Bulk, now).expect("a free place");
    }

    #[tokio::test]
    async fn peers_are_bounded_and_idle_ones_are_given_up() {
        let (mut peers, now) = (Peers::default(), Instant::now());
        let held = peers.line(&peer(0), Lane::Urgent, now).expect("room");
        for number in 1..PEERS {
            peers.line(&peer(number), Lane::Urgent, now).expect("room");
        }
        let full = peers.line(&peer(PEERS), Lane::Urgent, now).expect_err("no room left");
        assert_eq!(full, "this node is connected to 8192 peers, which is the most");
        peers.line(&peer(PEERS), Lane::Urgent, now + IDLE).expect("room");
        assert_eq!(peers.links.keys().collect::<Vec<_>>(), [&peer(0), &peer(PEERS)]);
        drop(held);
    }
}
