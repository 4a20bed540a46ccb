//! Whose a socket is: how a link finds out which node dials.
//!
//! Reads Linux' tables: the line of a connection in `/proc/net/tcp` names its inode, and one of the files that its
//! process has open is that inode.

use std::fs;
use std::net::SocketAddr;

/// Which of these processes has the connection whose own end is `local`; none if it is of another or closed already.
pub(crate) fn owner(local: SocketAddr, remote: SocketAddr, processes: &[u32]) -> Option<u32> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let inode = table.lines().skip(1).find_map(|line| inode_of(line, local.port(), remote.port()))?;
    let socket = format!("socket:[{inode}]");
    processes.iter().copied().find(|process| has_open(*process, &socket))
}

/// The inode of a line that is of this connection. All of them are on one host, so that the ports name it.
fn inode_of(line: &str, local: u16, remote: u16) -> Option<u64> {
    let mut words = line.split_whitespace().skip(1);
    let mut port = || words.next()?.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
    if (port()?, port()?) != (local, remote) {
        return None;
    }
    // State, queues, timer, retransmissions, user and timeout stand between.
    words.nth(6)?.parse().ok().filter(|inode| *inode != 0)
}

fn has_open(process: u32, socket: &str) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == socket))
}

#[test]
fn a_connection_is_found_under_the_process_that_dialled() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let at = listener.local_addr().expect("bound");
    let dialled = std::net::TcpStream::connect(at).expect("it listens");
    let local = dialled.local_addr().expect("connected");
    let own = std::process::id();
    assert_eq!(owner(local, at, &[1, own]), Some(own));
    assert_eq!(owner(local, at, &[]), None);
    drop(dialled);
    assert_eq!(owner(local, at, &[own]), None);
}
