//! One node of `up`: a process of its own.
//!
//! Owns the process. A node ends in order when its standard input closes, which happens when it is told to, and when
//! `up` itself ends in whatever way, SIGKILL included; nothing has to be sent for it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use tokio::process::{self, ChildStdin, Command};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use super::super::exit::{Exit, Failure};
use super::ITS_OWN;
use super::data::Data;
use super::logs::Logs;
use super::ports::Place;
use crate::config::{Effective, Origin, Shown};

/// What all nodes are started with.
pub(super) struct Plan {
    program: PathBuf,
    passed_on: Vec<String>,
    concurrency: u32,
}

impl Plan {
    pub(super) fn new(settings: &Effective, workers: u16, data: Option<&Data>) -> std::io::Result<Plan> {
        // What comes from the environment, they have by themselves.
        let given = |shown: &&Shown| match shown.origin {
            Origin::Flag(_) => true,
            Origin::File(_) => !ITS_OWN.contains(&shown.row.name),
            Origin::Environment(_) => false,
            // Whoever reads the log of `up` reads theirs.
            Origin::Default => shown.row.name == "log_format",
        };
        let given = settings.shown.iter().filter(given);
        let mut passed_on: Vec<String> = given.map(|shown| format!("--{}={}", shown.row.flag(), shown.text)).collect();
        let settings = &settings.settings;
        if !settings.is_given("cluster") {
            // A name of its own: the port of a node that died may go to a node of another `up`, and the two clusters,
            // whose nodes have the same ids, would take each other for one.
            let name = data.map_or_else(|| format!("local-{}", std::process::id()), |data| data.cluster.clone());
            passed_on.push(format!("--cluster={name}"));
        }
        // By default that is the number of cores, which the workers share here.
        let cores = settings.concurrency;
        let is_given = settings.is_given("concurrency");
        let concurrency = if is_given { cores } else { (cores / u32::from(workers)).max(1) };
        Ok(Plan { program: std::env::current_exe()?, passed_on, concurrency })
    }

    /// Starts the directory.
    pub(super) fn directory(&self, place: Place, logs: &Logs) -> Result<Child, Failure> {
        self.start("directory".to_owned(), "bootstrap", &[], place, logs)
    }

    /// Starts the next worker.
    pub(super) fn worker(
        &self,
        number: usize,
        place: Place,
        directory: SocketAddr,
        data: Option<&Data>,
        logs: &Logs,
    ) -> Result<Child, Failure> {
        let node = format!("worker-{number}");
        let mut more = vec![
            OsString::from(format!("--bootstrap={directory}")),
            OsString::from(format!("--concurrency={}", self.concurrency)),
        ];
        if let Some(data) = data {
            more.extend([OsString::from("--data-dir"), data.of(&node).into_os_string()]);
        }
        self.start(node, "worker", &more, place, logs)
    }

    fn start(
        &self,
        node: String,
        role: &'static str,
        more: &[OsString],
        place: Place,
        logs: &Logs,
    ) -> Result<Child, Failure> {
        let (grpc, http) = (place.grpc, place.http);
        let mut command = Command::new(&self.program);
        command.arg("node").args(&self.passed_on).args(more).arg("--until-stdin-closes");
        command.args([format!("--role={role}"), format!("--node-id={node}"), format!("--advertise={grpc}")]);
        command.args([format!("--listen={grpc}"), format!("--http-listen={http}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        // In a group of its own: a Ctrl-C on the terminal reaches `up` alone, which then ends the nodes in order.
        command.process_group(0);
        place.free();
        let failed =
            |error| Exit::Refused.because(format!("cannot start {node}: {error}; raise the limit of processes"));
        let mut process = command.spawn().map_err(failed)?;
        let log = process.stderr.take().map(|log| tokio::spawn(logs.clone().pass_on(node.clone(), log)));
        let stdin = process.stdin.take();
        Ok(Child { pid: process.id(), node, role, grpc, http, process, stdin, log })
    }
}

/// A node that runs.
pub(super) struct Child {
    pub(super) node: String,
    pub(super) role: &'static str,
    /// None once it has ended.
    pub(super) pid: Option<u32>,
    pub(super) grpc: SocketAddr,
    pub(super) http: SocketAddr,
    process: process::Child,
    stdin: Option<ChildStdin>,
    log: Option<JoinHandle<()>>,
}

/// A node that has ended, in words for a person: what and how.
pub(super) struct Ended(pub(super) String);

impl Child {
    /// Whether it has ended already.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Kills it, and waits until its log is told to the end.
    pub(super) async fn tell_log(&mut self) {
        self.process.start_kill().ok();
        if let Some(log) = self.log.take() {
            log.await.ok();
        }
    }

    /// Waits for its end in `set`. What is returned tells it to end, by being dropped.
    pub(super) fn watch(self, set: &mut JoinSet<Ended>) -> oneshot::Sender<()> {
        let (end, told) = oneshot::channel();
        set.spawn(self.ended(told));
        end
    }

    async fn ended(mut self, told: oneshot::Receiver<()>) -> Ended {
        let ended = tokio::select! {
            status = self.process.wait() => Some(status),
            _ = told => None,
        };
        let status = match ended {
            Some(status) => status,
            None => {
                drop(self.stdin.take());
                self.process.wait().await
            }
        };
        // Its last lines come before the word that it ended.
        if let Some(log) = self.log.take() {
            log.await.ok();
        }
        let pid = self.pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
        Ended(format!("{}{pid} {}", self.node, status.as_ref().map_or_else(ToString::to_string, how)))
    }
}

fn how(status: &ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended".to_owned(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
