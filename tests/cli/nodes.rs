//! A cluster of `floodline up`, for one test.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Ended, PATIENCE, Program, json};

/// One cluster at a time: a machine with few cores would hold more, but no timeout of theirs.
static TURN: Mutex<()> = Mutex::new(());

/// Counts the clusters.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// The cluster; it ends with the test.
pub(crate) struct Cluster {
    up: Program,
    /// Its name.
    pub(crate) name: String,
    nodes: Vec<Value>,
    /// Last, so that the next cluster starts when this one has ended.
    _turn: MutexGuard<'static, ()>,
}

impl Cluster {
    /// Starts it. Its first line is there once every node runs; whoever submits waits for the election itself.
    pub(crate) fn start(workers: u32) -> Cluster {
        // Another test's failure is no reason to fail.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // A name of its own: a port that another cluster's node had may be this one's now, and that cluster tries it.
        let name = format!("cli-{}-{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        Cluster::started(workers, &["--cluster", &name], turn)
    }

    /// Starts the one whose data is in this folder, or a new one there.
    pub(crate) fn start_on(workers: u32, data: &Path) -> Cluster {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Cluster::started(workers, &["--data", data.to_str().expect("text")], turn)
    }

    /// Starts one whose nodes have the settings of a file.
    pub(crate) fn start_by(workers: u32, config: &Path) -> Cluster {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Cluster::started(workers, &["--config", config.to_str().expect("text")], turn)
    }

    fn started(workers: u32, more: &[&str], turn: MutexGuard<'static, ()>) -> Cluster {
        let up = ["up", "--output", "json", "--workers", &workers.to_string()];
        let up = Program::start(&[&up[..], more].concat(), "");
        let first = up.json();
        let nodes = first["nodes"].as_array().expect("nodes").clone();
        assert_eq!(nodes.len(), workers as usize + 1, "a directory and the workers: {nodes:?}");
        let mut cluster = Cluster { up, name: String::new(), nodes, _turn: turn };
        cluster.name = cluster.json(&["cluster"])[0]["cluster"].as_str().expect("a name").to_owned();
        cluster
    }

    /// Kills every process at once, `up` too, and waits until they are gone.
    pub(crate) fn killed(self) {
        self.up.signal(Signal::STOP);
        let pids = self.nodes.iter().map(|node| node["pid"].as_i64().and_then(|pid| pid.try_into().ok()));
        pids.for_each(|pid| signal(pid.expect("a process"), Signal::KILL));
        self.up.signal(Signal::KILL);
        assert_eq!(self.up.end().code, None);
    }

    /// Where the directory is.
    pub(crate) fn directory(&self) -> &str {
        let directory = self.nodes.iter().find(|node| node["role"] == "bootstrap").expect("a directory");
        directory["address"].as_str().expect("text")
    }

    /// Waits until all workers live under one leader. Before that a job may be held by a single one.
    pub(crate) fn formed(self) -> Cluster {
        let workers = self.workers().count();
        self.shown_once(|shown| {
            let nodes = shown["nodes"].as_array().map_or(&[][..], Vec::as_slice);
            !shown["leader"].is_null() && nodes.iter().filter(|node| node["alive"] == true).count() == workers
        });
        self
    }

    fn workers(&self) -> impl Iterator<Item = &Value> {
        self.nodes.iter().filter(|node| node["role"] == "worker")
    }

    /// The addresses of all workers, as `--node` takes them.
    pub(crate) fn addresses(&self) -> String {
        self.workers().filter_map(|node| node["address"].as_str()).collect::<Vec<&str>>().join(",")
    }

    /// Name, address and process of the first worker.
    pub(crate) fn first(&self) -> (&str, &str, i32) {
        let node = self.workers().next().expect("a worker");
        let [name, address] = ["node", "address"].map(|key| node[key].as_str().expect("text"));
        (name, address, node["pid"].as_i64().and_then(|pid| pid.try_into().ok()).expect("a process"))
    }

    /// Starts a command that speaks to it.
    pub(crate) fn begin(&self, arguments: &[&str], input: &str) -> Program {
        let addresses = self.addresses();
        Program::start(&[arguments, &["--node", &addresses]].concat(), input)
    }

    /// Runs a command that speaks to it, to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.begin(arguments, "").end()
    }

    /// Runs a command that answers with JSON, a line each.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let ended = self.run(&[arguments, &["--output", "json"]].concat());
        assert_eq!(ended.err, "", "{arguments:?}");
        ended.out.lines().map(json).collect()
    }

    /// The cluster as it is shown once it is so; the asked node's copy may be some milliseconds behind.
    pub(crate) fn shown_once(&self, is: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.json(&["cluster"]).remove(0);
            if is(&shown) {
                return shown;
            }
            assert!(Instant::now() < until, "still not so: {shown}");
        }
    }

    /// Ends it as Ctrl-C does.
    pub(crate) fn end(self) {
        self.up.signal(Signal::INT);
        let ended = self.up.end();
        assert_eq!(ended.out, "", "standard output is for the table alone");
    }
}

/// The sum of all JACs.
pub(crate) fn jacs(shown: &Value) -> u64 {
    shown["nodes"].as_array().expect("nodes").iter().filter_map(|node| node["jac"].as_u64()).sum()
}

/// Sends a node a signal.
pub(crate) fn signal(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).expect("a process"), signal).expect("it is there");
}
