//! One node: built from its settings, started, and ended in order.
//!
//! Owns which parts a role has and how they are put together. Never holds what a part does, and writes nothing to
//! standard output. Section 2 of the contract; how a node ends is in [`shutdown`].

mod member;
mod shutdown;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Flush, LogFormat, Role, Settings};
use crate::journal::{self, Journal};
use crate::node::{self, Broken, Handle, Running, RunningDirectory};
use crate::protocol::effects::Ending;
use crate::protocol::ids::{Incarnation, Member, NodeId};
use crate::protocol::ledger::Keep;
use crate::protocol::{Input, Setup, Stored, limits};
use crate::telemetry::export::{Counts, Export};
use crate::telemetry::logs;
use crate::telemetry::metrics::Metrics;
use crate::transport::{self, Transport};
use crate::{grpc, http};

pub use shutdown::Ended;

/// How long an address may seem taken after it was let go of.
const LET_GO: Duration = Duration::from_secs(1);
/// Between two tries to take it.
const LOOK: Duration = Duration::from_millis(20);

/// A node that could not start.
#[derive(Debug, thiserror::Error)]
pub enum CannotStart {
    /// An address is taken, or is none of this machine's.
    #[error("cannot listen on {address} for {what}: {cause}; give another address in {variable}, or end what uses it")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// What is served there.
        what: &'static str,
        /// The setting.
        variable: &'static str,
        /// Why not.
        cause: io::Error,
    },
    /// Its journal can't be opened.
    #[error(transparent)]
    Journal(#[from] journal::CannotOpen),
    /// The address that others dial can't be made of the settings.
    #[error("{0}; give FLOODLINE_ADVERTISE")]
    Advertise(#[from] crate::protocol::ids::BadName),
    /// The system gives no thread more.
    #[error("cannot start threads: {0}; raise the limit of processes")]
    Threads(#[source] io::Error),
}

/// A node that runs.
#[derive(Debug)]
pub struct Node {
    member: Member,
    part: Part,
    servers: TaskTracker,
    /// The node was told to stop.
    stopping: CancellationToken,
    /// The servers take nothing more, and end what they have.
    closing: CancellationToken,
    stop_grace: Duration,
    export: Option<Export>,
}

/// What a node does besides serving.
#[derive(Debug)]
enum Part {
    Worker(Running),
    Directory(RunningDirectory),
}

/// Starts the log of a process that is one node, and its traces, if the environment names a collector for them.
#[must_use]
pub fn start_telemetry(settings: &Settings) -> Option<Export> {
    let form = match settings.log_format {
        LogFormat::Text => logs::Form::Text,
        LogFormat::Json => logs::Form::Json,
    };
    let export = Export::start(settings.node_id.as_str());
    logs::start(form, settings.log_level, export.as_ref().ok().and_then(Option::as_ref));
    export.unwrap_or_else(|error| {
        tracing::warn!("{error}");
        None
    })
}

impl Node {
    /// Builds and starts a node. When this returns both its ports are open. What `export` has left to send at the end
    /// of the node is sent then.
    ///
    /// # Errors
    /// [`CannotStart`], with what to do about it.
    pub async fn start(settings: &Settings, export: Option<Export>) -> Result<Node, CannotStart> {
        let (queue, inbox) = mpsc::channel(node::QUEUE);
        // Before the ports open: whoever dials a node that still reads its journal would wait for it in vain.
        let who = who(settings, queue.clone()).await?;
        let (grpc, grpc_address) = listen(settings.listen, "gRPC", "FLOODLINE_LISTEN").await?;
        let (http, http_address) = listen(settings.http_listen, "HTTP", "FLOODLINE_HTTP_LISTEN").await?;
        let ports = (grpc_address.port(), http_address.port());
        let member = member::from_settings(settings, who.node, who.incarnation, ports)?;
        let incarnation = member.incarnation;
        tracing::info!(
            node = %member.node, incarnation = incarnation.0, cluster = settings.cluster, address = %member.address,
            http = %member.http, grpc_port = grpc_address.port(), version = %member.version, "starting"
        );
        let (servers, stopping, closing) = (TaskTracker::new(), CancellationToken::new(), CancellationToken::new());
        let counts = export.as_ref().map(Export::counts);
        let (part, ready, scrape) = match who.journal {
            Some((journal, stored)) => {
                let worker = start_worker(settings, member.clone(), (journal, stored), (queue, inbox))
                    .map_err(CannotStart::Threads)?;
                let handle = worker.handle();
                let ready = handle.ready();
                let listen = listen_with(transport::Listener::new(&settings.cluster));
                servers.spawn(grpc::serve_worker(grpc, handle.clone(), listen, stopping.clone(), closing.clone()));
                (Part::Worker(worker), ready, scrape_worker(handle, counts))
            }
            None => {
                let directory = node::start_directory(&settings.cluster, incarnation, settings.lease_ttl, seed());
                servers.spawn(grpc::serve_directory(grpc, directory.handle(), stopping.clone(), closing.clone()));
                let ready = watch::Sender::new(true).subscribe();
                (Part::Directory(directory), ready, scrape_directory(counts))
            }
        };
        let routes = http::routes(member.node.as_str(), ready, stopping.clone(), scrape);
        servers.spawn(http::serve(http, routes, closing.clone()));
        servers.close();
        Ok(Node { member, part, servers, stopping, closing, stop_grace: settings.stop_grace, export })
    }

    /// Who it is and where it is reached, with the ports that it really has.
    #[must_use]
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// The way to its worker; none on a directory.
    #[must_use]
    pub fn worker(&self) -> Option<Handle> {
        match &self.part {
            Part::Worker(running) => Some(running.handle()),
            Part::Directory(_) => None,
        }
    }
}

/// Who a node is, and on a worker what it writes to and what that held.
struct Who {
    node: NodeId,
    incarnation: Incarnation,
    journal: Option<(Journal, Stored)>,
}

/// Finds out who this node is: its settings say so, or its data directory.
async fn who(settings: &Settings, queue: mpsc::Sender<Input>) -> Result<Who, CannotStart> {
    // Later starts of one node id come at later milliseconds, unless its clock steps back.
    let (node, incarnation) = (settings.node_id.clone(), Incarnation(node::wall().0));
    match (settings.role, &settings.data_dir) {
        (Role::Bootstrap, _) => Ok(Who { node, incarnation, journal: None }),
        (Role::Worker, None) => {
            let journal = Journal::in_memory(queue).map_err(CannotStart::Threads)?;
            Ok(Who { node, incarnation, journal: Some((journal, Stored::default())) })
        }
        (Role::Worker, Some(folder)) => {
            let opened = open_journal(settings, folder, queue).await?;
            let journal = Some((opened.journal, opened.stored));
            Ok(Who { node: opened.node, incarnation: opened.incarnation, journal })
        }
    }
}

/// Opens the journal of a folder. A process that was told to stop has its slot until it has ended.
async fn open_journal(
    settings: &Settings,
    folder: &Path,
    queue: mpsc::Sender<Input>,
) -> Result<journal::Opened, CannotStart> {
    let wanted = journal::Wanted {
        folder: folder.to_owned(),
        flush: match settings.flush {
            Flush::Always => journal::Flush::Always,
            Flush::Os => journal::Flush::Os,
        },
        node: Some(settings.node_id.clone()).filter(|_| settings.is_given("node_id")),
        host: settings.node_id.clone(),
    };
    let until = Instant::now() + settings.stop_grace;
    loop {
        let (wanted, queue) = (wanted.clone(), queue.clone());
        let opening = tokio::task::spawn_blocking(move || Journal::open(&wanted, node::wall(), queue));
        match opening.await.map_err(|error| CannotStart::Threads(io::Error::other(error)))? {
            Err(cannot) if cannot.is_passing() && Instant::now() < until => {
                tracing::debug!(%cannot, "waits for the data directory");
                sleep(LOOK).await;
            }
            opened => return Ok(opened?),
        }
    }
}

fn start_worker(
    settings: &Settings,
    member: Member,
    (journal, stored): (Journal, Stored),
    (queue, inbox): (mpsc::Sender<Input>, mpsc::Receiver<Input>),
) -> io::Result<Running> {
    let transport = Transport::new(settings, queue.clone());
    let setup = Setup {
        member,
        directories: u32::try_from(settings.bootstrap.len()).unwrap_or(u32::MAX),
        peers: settings.peers.clone(),
        settings: protocol_settings(settings),
        stored,
        seed: seed(),
    };
    node::start(settings.cluster.clone(), setup, (queue, inbox), journal, transport)
}

/// What `/metrics` of a worker shows.
fn scrape_worker(handle: Handle, spans: Option<Arc<Counts>>) -> http::Scrape {
    Arc::new(move || {
        let (handle, spans) = (handle.clone(), spans.clone());
        Box::pin(async move { handle.scrape(spans.as_deref()).await })
    })
}

/// What `/metrics` of a directory shows.
fn scrape_directory(spans: Option<Arc<Counts>>) -> http::Scrape {
    Arc::new(move || Box::pin(std::future::ready(Metrics::scrape_process(spans.as_deref()))))
}

/// How the gRPC door, which dials nobody, hears other members.
fn listen_with(listener: transport::Listener) -> grpc::Listen {
    Arc::new(move |member, out| {
        let listener = listener.clone();
        Box::pin(async move { listener.listen(&member, out).await })
    })
}

async fn listen(
    address: SocketAddr,
    what: &'static str,
    variable: &'static str,
) -> Result<(TcpListener, SocketAddr), CannotStart> {
    let refused = |cause| CannotStart::Listen { address, what, variable, cause };
    let listener = bind(address).await.map_err(refused)?;
    let real = listener.local_addr().map_err(refused)?;
    Ok((listener, real))
}

/// Takes an address. One that was let go of this moment, by a node before or by `up`, may seem taken a little longer.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let until = Instant::now() + LET_GO;
    loop {
        match TcpListener::bind(address).await {
            Err(taken) if taken.kind() == io::ErrorKind::AddrInUse && Instant::now() < until => sleep(LOOK).await,
            listener => return listener,
        }
    }
}

/// Chance enters a node here, and only here: the system's, as the standard library has it for its own maps.
fn seed() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(std::process::id())
}

fn protocol_settings(settings: &Settings) -> limits::Settings {
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    limits::Settings {
        heartbeat_interval: settings.heartbeat_interval,
        election_timeout_min: settings.election_timeout_min,
        election_timeout_max: settings.election_timeout_max,
        flood_budget: settings.flood_budget,
        hop_reserve: settings.hop_reserve,
        lease_renew: settings.lease_renew,
        link_ping: settings.link_ping,
        min_links: count(settings.min_links),
        neighbour_failures: settings.neighbour_failures,
        max_jobs_per_term: settings.max_jobs_per_term,
        rotation: settings.rotation,
        drain_limit: settings.drain_limit,
        min_members: settings.min_members,
        keep: Keep { breakdowns: count(settings.keep_jobs), lines: count(settings.keep_lines) },
        tasks_per_worker: settings.tasks_per_worker,
        max_tasks: settings.max_tasks,
        max_attempts: settings.max_attempts,
        max_numbers: count(settings.max_numbers),
        queue: count(settings.queue),
        stop_grace: settings.stop_grace,
    }
}

impl Part {
    /// Waits until it ends by itself; a directory never does.
    async fn ended(&mut self) -> Result<Ending, Broken> {
        match self {
            Part::Worker(running) => running.ended().await,
            Part::Directory(_) => std::future::pending().await,
        }
    }
}
