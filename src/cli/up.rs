//! `floodline up`: a whole cluster on this machine, each node a process of its own.
//!
//! Owns the processes from start to end. Never starts one again: that one can be killed is what it is for. Standard
//! output carries the table, or its JSON line; the nodes' logs go to standard error.

mod child;
mod data;
mod logs;
mod ports;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::exit::{Exit, Failure, Outcome};
use super::face::{Face, Output, complain};
use super::node::{Signals, Told};
use super::setting_flags::SettingFlags;
use super::table::{Side, aligned};
use crate::config::{Effective, Origin, Shown};
use child::{Child, Ended, Plan};
use data::Data;
use logs::Logs;
use ports::{Given, Place, Turn};

/// Settings that each node gets from `up`, and that would contradict it.
const ITS_OWN: [&str; 7] = ["role", "node_id", "listen", "http_listen", "advertise", "bootstrap", "data_dir"];
/// How long a node may take until its ports are open.
const START: Duration = Duration::from_secs(10);
/// Between two tries to reach it.
const RETRY: Duration = Duration::from_millis(10);
/// What a node may take beyond its `stop_grace`.
const STOP_MARGIN: Duration = Duration::from_secs(2);

/// Arguments of `floodline up`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// How many workers
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    workers: u16,

    /// First gRPC port of the workers, the next ones follow it [default: 7400, and others where those are taken]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// First HTTP port of the workers, the next ones follow it [default: 8080, and others where those are taken]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    http_port: Option<u16>,

    /// Folder for the workers' journals: with the same one again the cluster goes on where it was [default:
    /// $FLOODLINE_DATA_DIR, else none, and nothing survives]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    #[command(flatten)]
    flags: SettingFlags,
}

/// Starts it, and stays until it is told to stop or no node is left.
pub(crate) async fn run(args: Args, face: &Face) -> Outcome {
    let given = Given { workers: args.workers, grpc: args.port, http: args.http_port };
    let settings = args.flags.load()?;
    refuse_its_own(&settings)?;
    let mut signals =
        Signals::listen().map_err(|error| Exit::Refused.because(format!("cannot listen to signals: {error}")))?;
    let data = data(args.data.as_deref(), &settings, args.workers)?;
    let turn = Turn::take().await;
    let places = ports::choose(&given).map_err(|error| Exit::Refused.because(error))?;
    let cluster = Cluster::start(places, &settings, args.workers, data).await?;
    drop(turn);
    face.say(&match face.output {
        Output::Text => cluster.table(),
        Output::Json => cluster.json()?,
    })?;
    cluster.live(&mut signals, settings.settings.stop_grace + STOP_MARGIN).await
}

fn refuse_its_own(settings: &Effective) -> Result<(), Failure> {
    let is_its_own = |shown: &&Shown| matches!(shown.origin, Origin::Flag(_)) && ITS_OWN.contains(&shown.row.name);
    match settings.shown.iter().find(is_its_own) {
        Some(shown) => {
            let flag = shown.row.flag();
            Err(Exit::Refused.because(format!(
                "`up` chooses --{flag} for each node: leave it out, or start nodes with `floodline node`"
            )))
        }
        None => Ok(()),
    }
}

/// The folder of the workers' journals, if there is to be one.
fn data(given: Option<&Path>, settings: &Effective, workers: u16) -> Result<Option<Data>, Failure> {
    let Some(folder) = given.or(settings.settings.data_dir.as_deref()) else { return Ok(None) };
    let cluster = settings.settings.is_given("cluster").then_some(settings.settings.cluster.as_str());
    let data = Data::take(folder, cluster).map_err(|error| Exit::Refused.because(error))?;
    let left_out = data.left_out(workers);
    if !left_out.is_empty() {
        let left_out = left_out.join(", ");
        complain(&format!("{} holds data of {left_out}, too, which --workers leaves out", folder.display()));
    }
    Ok(Some(data))
}

/// Waits until a node's ports are open.
async fn opened(node: &mut Child, logs: &Logs) -> Result<(), Failure> {
    let opened = async {
        for port in [node.grpc, node.http] {
            while TcpStream::connect(port).await.is_err() {
                if node.has_ended() {
                    return false;
                }
                sleep(RETRY).await;
            }
        }
        true
    };
    if timeout(START, opened).await == Ok(true) {
        return Ok(());
    }
    node.tell_log().await;
    logs.flush().await;
    Err(Exit::Refused.because(format!("{} did not start; its log above says why", node.node)))
}

/// The nodes that run.
struct Cluster {
    directory: Child,
    workers: Vec<Child>,
    logs: Logs,
    /// Held until all have ended.
    data: Option<Data>,
}

impl Cluster {
    async fn start(
        places: Vec<Place>,
        settings: &Effective,
        workers: u16,
        data: Option<Data>,
    ) -> Result<Cluster, Failure> {
        let logs = Logs::start().map_err(|error| Exit::Refused.because(format!("cannot start threads: {error}")))?;
        let plan = Plan::new(settings, workers, data.as_ref()).map_err(|error| Exit::Refused.because(error))?;
        let mut places = places.into_iter();
        let Some(place) = places.next() else {
            return Err(Exit::Refused.because("no ports were chosen, which is a bug"));
        };
        let at = place.grpc;
        // First, since workers that find no directory would wait, and then start elections of their own.
        let mut directory = plan.directory(place, &logs)?;
        opened(&mut directory, &logs).await?;
        let start = |(number, place)| plan.worker(number, place, at, data.as_ref(), &logs);
        let mut workers = (1..).zip(places).map(start).collect::<Result<Vec<Child>, Failure>>()?;
        for worker in &mut workers {
            opened(worker, &logs).await?;
        }
        Ok(Cluster { directory, workers, logs, data })
    }

    /// Tells of nodes that die, until the end.
    async fn live(self, signals: &mut Signals, grace: Duration) -> Outcome {
        let (mut workers, mut directory) = (Group::default(), Group::default());
        self.workers.into_iter().for_each(|child| workers.add(child));
        directory.add(self.directory);
        let told = loop {
            tokio::select! {
                told = signals.next() => break Some(told),
                Some(died) = workers.next_death() => complain(&format!("{died}; it is not started again")),
                Some(died) = directory.next_death() => complain(&format!("{died}; it is not started again")),
            }
            if workers.watched.is_empty() {
                break None;
            }
        };
        let orderly = async {
            workers.end().await;
            // Last, so that the workers can leave it.
            directory.end().await;
        };
        tokio::select! {
            in_time = timeout(grace, orderly) => if in_time.is_err() {
                complain("nodes that did not end in time are killed");
            },
            _ = signals.next() => complain("told to stop a second time: nodes are killed"),
        }
        workers.watched.shutdown().await;
        directory.watched.shutdown().await;
        self.logs.flush().await;
        drop(self.data);
        match told {
            Some(Told::Interrupt) => Ok(Exit::Interrupted),
            Some(Told::End) => Ok(Exit::Done),
            None => Err(Exit::Broken.because("no worker is left; the lines above say how each ended")),
        }
    }

    fn nodes(&self) -> impl Iterator<Item = &Child> {
        std::iter::once(&self.directory).chain(&self.workers)
    }

    fn table(&self) -> String {
        let header = ["NODE", "ROLE", "PID", "GRPC", "HTTP"].map(str::to_owned).to_vec();
        let pid = |child: &Child| child.pid.map_or_else(|| "none".to_owned(), |pid| pid.to_string());
        let row = |child: &Child| {
            vec![child.node.clone(), child.role.to_owned(), pid(child), child.grpc.to_string(), child.http.to_string()]
        };
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(self.nodes().map(row)).collect();
        aligned(&[Side::Left, Side::Left, Side::Right, Side::Left, Side::Left], &rows)
    }

    fn json(&self) -> Result<String, Failure> {
        let nodes = self.nodes().map(|child| Node {
            node: &child.node,
            role: child.role,
            pid: child.pid,
            address: child.grpc.to_string(),
            http: child.http.to_string(),
        });
        let line = Line { nodes: nodes.collect(), dashboard: None };
        serde_json::to_string(&line).map_err(|error| Exit::Broken.because(error))
    }
}

/// Keys and types are a contract with scripts.
#[derive(Serialize)]
struct Line<'a> {
    nodes: Vec<Node<'a>>,
    dashboard: Option<&'a str>,
}

#[derive(Serialize)]
struct Node<'a> {
    node: &'a str,
    role: &'a str,
    pid: Option<u32>,
    address: String,
    http: String,
}

/// Nodes that end together.
#[derive(Default)]
struct Group {
    watched: JoinSet<Ended>,
    ends: Vec<oneshot::Sender<()>>,
}

impl Group {
    fn add(&mut self, child: Child) {
        self.ends.push(child.watch(&mut self.watched));
    }

    async fn next_death(&mut self) -> Option<String> {
        // A watcher that broke down has killed its node by that.
        self.watched.join_next().await.map(|ended| ended.map_or_else(|error| error.to_string(), |Ended(how)| how))
    }

    /// Tells all to end, and waits until they have.
    async fn end(&mut self) {
        self.ends.clear();
        while self.watched.join_next().await.is_some() {}
    }
}
