//! Which ports the nodes of `up` get.
//!
//! Owns the choice: those that the command line asks by default where they are free, others where they are not. A
//! chosen port stays taken until its node is started. Between that and the node's taking it another `up` could choose
//! it, so they choose in turns.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Where the command line and a browser look first; a compose file publishes the same.
const GRPC: u16 = 7400;
const HTTP: u16 = 8080;
/// So many of each are looked at by default.
const LOOKED_AT: u16 = 16;

/// How long to wait for another `up` that chooses: longer than one takes that is well.
const TURN: Duration = Duration::from_secs(15);
/// Between two looks whether it has done so.
const LOOK: Duration = Duration::from_millis(20);

/// The right to choose, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn(#[expect(dead_code, reason = "held for its lock")] Option<File>);

impl Turn {
    /// Waits for it. Where there is no place for a lock, or the one who holds it stands still, it is taken without:
    /// what can go wrong is that a node finds its port taken, and says so.
    pub(super) async fn take() -> Turn {
        // Another person's file can be locked as well as one's own, but not be opened for writing.
        let path = std::env::temp_dir().join("floodline-up.lock");
        let Ok(file) = File::open(&path).or_else(|_| File::create(&path)) else { return Turn(None) };
        let until = Instant::now() + TURN;
        while file.try_lock().is_err() {
            if Instant::now() > until {
                return Turn(None);
            }
            sleep(LOOK).await;
        }
        Turn(Some(file))
    }
}

/// What the person gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) workers: u16,
    pub(super) grpc: Option<u16>,
    pub(super) http: Option<u16>,
}

/// A node's two addresses.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) grpc: SocketAddr,
    pub(super) http: SocketAddr,
    held: [TcpListener; 2],
}

impl Place {
    /// Lets go of the ports, for the node to take them.
    pub(super) fn free(self) {
        drop(self.held);
    }
}

/// No port could be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoPort {
    #[error("port {port} is not free: {cause}; give another one with {flag}, or leave it out")]
    Given { port: u16, flag: &'static str, cause: io::Error },
    #[error("{flag} {first} leaves too few ports for {workers} workers; give a smaller one")]
    TooHigh { flag: &'static str, first: u16, workers: u16 },
    #[error("this machine has no port left: {0}")]
    Any(#[source] io::Error),
}

/// The directory's place, then one for each worker.
pub(super) fn choose(given: &Given) -> Result<Vec<Place>, NoPort> {
    let grpc = for_workers(given.workers, given.grpc, "--port", GRPC)?;
    let http = for_workers(given.workers, given.http, "--http-port", HTTP)?;
    let directory = (any(GRPC - 1)?, any(HTTP - 1)?);
    let pairs = std::iter::once(directory).chain(grpc.into_iter().zip(http));
    pairs.map(|(grpc, http)| place(grpc, http).map_err(NoPort::Any)).collect()
}

fn place(grpc: TcpListener, http: TcpListener) -> io::Result<Place> {
    Ok(Place { grpc: grpc.local_addr()?, http: http.local_addr()?, held: [grpc, http] })
}

fn for_workers(workers: u16, given: Option<u16>, flag: &'static str, usual: u16) -> Result<Vec<TcpListener>, NoPort> {
    if let Some(first) = given {
        let last = first.checked_add(workers - 1).ok_or(NoPort::TooHigh { flag, first, workers })?;
        let at = |port| bind(port).map_err(|cause| NoPort::Given { port, flag, cause });
        return (first..=last).map(at).collect();
    }
    let mut free: Vec<TcpListener> = (usual..usual + LOOKED_AT).filter_map(|port| bind(port).ok()).collect();
    free.truncate(usize::from(workers));
    while free.len() < usize::from(workers) {
        free.push(bind(0).map_err(NoPort::Any)?);
    }
    Ok(free)
}

fn any(usual: u16) -> Result<TcpListener, NoPort> {
    bind(usual).or_else(|_| bind(0)).map_err(NoPort::Any)
}

/// On loopback: `up` is for one machine, and nothing on it is guarded.
fn bind(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_places_are_different_and_taken_until_they_are_freed() {
        let places = choose(&Given { workers: 20, grpc: None, http: None }).expect("there are ports");
        let mut ports: Vec<u16> = places.iter().flat_map(|place| [place.grpc.port(), place.http.port()]).collect();
        assert_eq!(ports.len(), 42);
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 42);
        let (port, mut places) = (places[3].grpc.port(), places);
        assert!(bind(port).is_err());
        places.remove(3).free();
        assert!(bind(port).is_ok());
    }

    #[test]
    fn a_given_port_that_is_taken_is_named() {
        let taken = bind(0).expect("a port");
        let port = taken.local_addr().expect("it has an address").port();
        let error = choose(&Given { workers: 1, grpc: Some(port), http: None }).expect_err("it is taken").to_string();
        assert!(error.starts_with(&format!("port {port} is not free: ")) && error.contains("--port"), "{error}");
    }

    #[test]
    fn given_ports_that_would_pass_the_last_one_are_refused() {
        let error = choose(&Given { workers: 5, grpc: None, http: Some(65_533) }).expect_err("too high").to_string();
        assert_eq!(error, "--http-port 65533 leaves too few ports for 5 workers; give a smaller one");
    }
}
