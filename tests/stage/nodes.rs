//! Nodes as processes of their own, on real sockets, so that they can be killed.
//!
//! Shared by the tests that need such nodes; each takes what it needs of it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use floodline::client::Client;
use floodline::protocol::ids::{Address, Leadership};
use floodline::protocol::view::ClusterView;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything here takes on a slow and busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// How long a state may change without a line in any log.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Lines of a log that are kept.
const KEPT: usize = 20_000;

/// The binary as it was when the first node started. A test starts nodes again for minutes, and a build may replace
/// the file meanwhile.
fn program() -> PathBuf {
    static OPEN: OnceLock<File> = OnceLock::new();
    let file = OPEN.get_or_init(|| File::open(env!("CARGO_BIN_EXE_floodline")).expect("cargo has built it"));
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

/// Waits for something, with a bound.
pub(crate) async fn within<T>(what: &str, event: impl Future<Output = T>) -> T {
    timeout(PATIENCE, event).await.unwrap_or_else(|_| panic!("{what} takes longer than {PATIENCE:?}"))
}

/// A node; it is killed with its test.
pub(crate) struct Node {
    pub(crate) name: String,
    /// Where it listens itself; what it advertises may lead through something in between.
    pub(crate) address: Address,
    pub(crate) http: SocketAddr,
    process: Child,
    stdin: Option<ChildStdin>,
    log: Log,
}

/// What a node has logged.
struct Log {
    lines: Arc<Mutex<Lines>>,
    /// Counts them.
    count: watch::Receiver<usize>,
    reader: JoinHandle<()>,
}

/// The latest lines of a log, and of all that went before those that no healthy node writes.
#[derive(Default)]
struct Lines {
    /// How many are not kept any more.
    gone: usize,
    kept: VecDeque<String>,
    complaints: Vec<String>,
}

impl Lines {
    fn push(&mut self, line: String) {
        if line.contains("\"ERROR\"") || line.contains("panicked") {
            self.complaints.push(line.clone());
        }
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
            self.gone += 1;
        }
        self.kept.push_back(line);
    }

    fn len(&self) -> usize {
        self.gone + self.kept.len()
    }

    fn after(&self, seen: usize) -> impl Iterator<Item = &String> {
        self.kept.iter().skip(seen.saturating_sub(self.gone))
    }
}

impl Node {
    /// Starts one; when this returns its ports are open. An argument without dashes is a variable of its environment.
    pub(crate) async fn start(name: &str, arguments: &[String]) -> Node {
        let mut command = Command::new(program());
        for (variable, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FLOODLINE_")) {
            command.env_remove(variable);
        }
        command.args(["node", "--until-stdin-closes", "--log-format", "json"]);
        let own = [
            "--listen=127.0.0.1:0",
            "--http-listen=127.0.0.1:0",
            "--advertise=127.0.0.1:0",
            "--concurrency=1",
            "--log-level=debug",
        ];
        let is_given = |own: &&str| arguments.iter().any(|given| given.split('=').next() == own.split('=').next());
        command.args(own.iter().filter(|own| !is_given(own)));
        let (flags, variables): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|it| it.starts_with("--"));
        command.envs(variables.into_iter().filter_map(|it| it.split_once('=')));
        command.args(["--node-id", name]).args(flags).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the binary starts");
        let stdin = process.stdin.take();
        let mut log = Log::read(process.stderr.take().expect("piped"));
        let first = within("starting", log.line(|line| line["message"] == "starting")).await;
        let address = Address::new(&format!("127.0.0.1:{}", first["grpc_port"])).expect("a good address");
        let http = first["http"].as_str().and_then(|http| http.parse().ok()).expect("an address");
        Node { name: name.to_owned(), address, http, process, stdin, log }
    }

    /// Its process, while nobody has waited for its end.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id().expect("it runs")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), signal).expect("it is there");
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        // Waiting would close it, and with that end the node.
        let stdin = self.stdin.take();
        let status = within("ending", self.process.wait()).await.expect("it can be waited for");
        drop(stdin);
        status
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(vec![self.address.clone()]).await.expect("it answers")
    }

    pub(crate) async fn view(&self) -> ClusterView {
        self.client().await.cluster().await.expect("it answers").view
    }

    /// Waits for a line of its log.
    pub(crate) async fn says(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        within(what, self.log.line(is_it)).await
    }

    /// The lines of its log so far that are such.
    pub(crate) fn said(&self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        let lines = self.log.lines.lock().expect("no reader panicked");
        lines.after(0).filter_map(|line| serde_json::from_str(line).ok()).filter(is_it).collect()
    }

    /// The lines of its log that no healthy node writes.
    fn complaints(&self) -> Vec<String> {
        self.log.lines.lock().expect("no reader panicked").complaints.clone()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.log.reader.abort();
        if !std::thread::panicking() {
            assert_eq!(self.complaints(), Vec::<String>::new(), "{}", self.name);
        } else if let Ok(lines) = self.log.lines.lock() {
            let log = Vec::from_iter(lines.after(0).map(String::as_str)).join("\n");
            let log = format!("log of {}:\n{log}\n", self.name);
            std::io::stderr().lock().write_all(log.as_bytes()).ok();
        }
    }
}

impl Log {
    fn read(log: tokio::process::ChildStderr) -> Log {
        let lines = Arc::new(Mutex::new(Lines::default()));
        let (counter, count) = watch::channel(0);
        let kept = Arc::clone(&lines);
        let reader = tokio::spawn(async move {
            let mut log = BufReader::new(log).lines();
            while let Ok(Some(line)) = log.next_line().await {
                kept.lock().expect("nobody panicked").push(line);
                counter.send_modify(|count| *count += 1);
            }
        });
        Log { lines, count, reader }
    }

    async fn line(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut seen = 0;
        loop {
            self.count.borrow_and_update();
            {
                let lines = self.lines.lock().expect("no reader panicked");
                for line in lines.after(seen) {
                    match serde_json::from_str(line) {
                        Ok(line) if is_it(&line) => return line,
                        _ => {}
                    }
                }
                seen = lines.len();
            }
            let more = self.count.changed().await;
            assert!(more.is_ok(), "the log ended: {:?}", self.lines.lock().expect("no reader panicked").kept);
        }
    }
}

/// A directory and workers.
pub(crate) struct Cluster {
    pub(crate) directory: Node,
    pub(crate) workers: Vec<Node>,
    arguments: Vec<String>,
}

impl Cluster {
    pub(crate) async fn start(workers: usize, settings: &[&str]) -> Cluster {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let as_directory = [settings.clone(), vec!["--role=bootstrap".to_owned()]].concat();
        let directory = Node::start("directory", &as_directory).await;
        let arguments = [settings, vec![format!("--bootstrap={}", directory.address)]].concat();
        let mut cluster = Cluster { directory, workers: Vec::new(), arguments };
        for _ in 0..workers {
            cluster.join().await;
        }
        cluster
    }

    /// One worker more.
    pub(crate) async fn join(&mut self) {
        let name = format!("worker-{}", self.workers.len() + 1);
        self.workers.push(Node::start(&name, &self.arguments).await);
    }

    /// Starts another process under a worker's name.
    pub(crate) async fn start_again(&self, worker: usize) -> Node {
        Node::start(&self.workers[worker].name, &self.arguments).await
    }

    pub(crate) fn addresses(&self) -> Vec<Address> {
        self.workers.iter().map(|worker| worker.address.clone()).collect()
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addresses()).await.expect("one answers")
    }

    pub(crate) fn place_of(&self, name: &str) -> usize {
        self.workers.iter().position(|worker| worker.name == name).expect("it is of this cluster")
    }

    /// Waits until all workers follow one leadership that `fits`.
    pub(crate) async fn settles(
        &self,
        fits: impl Fn(&Leadership, &[ClusterView]) -> bool,
    ) -> (Leadership, Vec<ClusterView>) {
        settled(&Vec::from_iter(&self.workers), fits).await
    }
}

/// Waits until these workers follow one leadership that `fits`.
pub(crate) async fn settled(
    workers: &[&Node],
    fits: impl Fn(&Leadership, &[ClusterView]) -> bool,
) -> (Leadership, Vec<ClusterView>) {
    within("settling", async {
        loop {
            let mut views = Vec::new();
            for worker in workers {
                views.push(worker.view().await);
            }
            let first = views.first().and_then(|view| view.leadership.clone());
            if let Some(first) = first
                && views.iter().all(|view| view.leadership.as_ref() == Some(&first))
                && fits(&first, &views)
            {
                return (first, views);
            }
            any_says_more(workers).await;
        }
    })
    .await
}

async fn any_says_more(workers: &[&Node]) {
    let mut first: tokio::task::JoinSet<()> = tokio::task::JoinSet::new();
    for worker in workers {
        let mut count = worker.log.count.clone();
        first.spawn(async move { count.changed().await.unwrap_or_default() });
    }
    timeout(LOOK_AGAIN, first.join_next()).await.ok();
}
