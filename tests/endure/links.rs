//! The links between nodes, which can be cut and counted.
//!
//! Each node advertises the address of a small proxy, which passes on what others send there. It finds out which node
//! dials by the owner of the dialling socket. While two nodes are cut apart nothing passes between them, neither a
//! byte nor the end of a connection, as over a link that is switched off: connections stand still, and new ones are
//! taken and stand still too. When the cut heals those that stood still are closed, and new ones pass. Only nodes may
//! dial here: a test asks a node at the address where it listens itself.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::nodes::Node;
use crate::sockets::owner;

/// All links of a fleet.
#[derive(Default)]
pub(crate) struct Links {
    places: tokio::sync::Mutex<BTreeMap<String, SocketAddr>>,
    shared: Arc<Shared>,
    /// The proxies; they end with the fleet.
    proxies: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct Shared {
    /// Where each node listens itself, and its process.
    ends: Mutex<BTreeMap<String, (SocketAddr, u32)>>,
    /// The nodes of one half while the fleet is cut in two; nobody while it is whole.
    half: watch::Sender<BTreeSet<String>>,
    /// Bytes that came back to the first node of a pair over connections that it dialled to the second.
    back: Mutex<BTreeMap<(String, String), u64>>,
}

impl Links {
    /// Where a node is dialled.
    pub(crate) async fn to(&self, node: &str) -> SocketAddr {
        let mut places = self.places.lock().await;
        if let Some(place) = places.get(node) {
            return *place;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let place = listener.local_addr().expect("bound");
        let serve = serve(listener, node.to_owned(), Arc::clone(&self.shared));
        self.proxies.lock().expect("nobody panicked").spawn(serve);
        places.insert(node.to_owned(), place);
        place
    }

    /// Lets what is dialled there reach a node that has started.
    pub(crate) fn lead(&self, name: &str, node: &Node) {
        let end = (node.address.as_str().parse().expect("an address"), node.pid());
        self.shared.ends.lock().expect("nobody panicked").insert(name.to_owned(), end);
    }

    /// Cuts these nodes from all others.
    pub(crate) fn cut(&self, half: &[&str]) {
        self.shared.half.send_replace(half.iter().map(ToString::to_string).collect());
    }

    pub(crate) fn heal(&self) {
        self.shared.half.send_replace(BTreeSet::new());
    }

    /// Bytes that have come back to a node over connections that it dialled to another.
    pub(crate) fn back(&self, dialler: &str, dialled: &str) -> u64 {
        let back = self.shared.back.lock().expect("nobody panicked");
        back.get(&(dialler.to_owned(), dialled.to_owned())).copied().unwrap_or_default()
    }
}

impl Shared {
    fn dialler(&self, local: SocketAddr, remote: SocketAddr) -> Option<String> {
        let ends = self.ends.lock().expect("nobody panicked").clone();
        let processes = Vec::from_iter(ends.values().map(|(_, process)| *process));
        let process = owner(local, remote, &processes)?;
        ends.into_iter().find(|(_, end)| end.1 == process).map(|(name, _)| name)
    }

    /// Waits until two nodes are cut apart, or are not; says whether there was anything to wait for.
    async fn until(&self, apart: bool, (one, other): (&str, &str)) -> bool {
        let mut half = self.half.subscribe();
        let is = |half: &BTreeSet<String>| (half.contains(one) != half.contains(other)) == apart;
        let waits = !is(&half.borrow());
        half.wait_for(is).await.expect("its sender is here");
        waits
    }
}

async fn serve(listener: TcpListener, to: String, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(carry(stream, to.clone(), Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

/// One connection, from the dial to its end.
async fn carry(near: TcpStream, to: String, shared: Arc<Shared>) {
    let (Ok(local), Ok(remote)) = (near.peer_addr(), near.local_addr()) else { return };
    let Some(from) = shared.dialler(local, remote) else { return };
    let pair = (from.as_str(), to.as_str());
    if shared.until(false, pair).await {
        return;
    }
    let at = shared.ends.lock().expect("nobody panicked").get(&to).map(|(at, _)| *at);
    let Some(at) = at else { return };
    let Ok(far) = TcpStream::connect(at).await else { return };
    if near.set_nodelay(true).and(far.set_nodelay(true)).is_err() {
        return;
    }
    let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
    let there = pass(&mut near_in, &mut far_out, |_| ());
    let key = (from.clone(), to.clone());
    let back = pass(&mut far_in, &mut near_out, |bytes| {
        *shared.back.lock().expect("nobody panicked").entry(key.clone()).or_default() += bytes;
    });
    tokio::select! {
        biased;
        _ = shared.until(true, pair) => {}
        // An error of either way ends both.
        _ = async { tokio::try_join!(there, back) } => return,
    }
    // All four halves are still held, so that neither end learns of anything.
    shared.until(false, pair).await;
}

/// Passes bytes on in one direction until its end.
async fn pass(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, mut count: impl FnMut(u64)) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
        count(read as u64);
    }
}
