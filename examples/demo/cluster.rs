//! The cluster of the demo: `floodline up` as a child process, and what a person would ask and do from a second
//! terminal.
//!
//! Owns the processes. Invariant: when it is gone, none of them is left.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// Longer than any step here takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at something that will be so in a moment.
const LOOK: Duration = Duration::from_millis(50);

/// A line of `floodline up --output json`, as far as the demo needs it.
#[derive(Debug, Deserialize)]
struct Started {
    nodes: Vec<Node>,
}

/// A node of the cluster.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Node {
    /// Its id.
    pub(crate) node: String,
    /// `bootstrap` or `worker`.
    pub(crate) role: String,
    /// Its process.
    pub(crate) pid: i32,
    /// Its gRPC port.
    pub(crate) address: String,
}

/// `floodline cluster --output json`, as far as the demo needs it.
#[derive(Debug, Deserialize)]
pub(crate) struct View {
    /// The present term.
    pub(crate) term: Option<u64>,
    /// Who leads it.
    pub(crate) leader: Option<String>,
    /// The workers.
    pub(crate) nodes: Vec<NodeView>,
}

/// A worker in it.
#[derive(Debug, Deserialize)]
pub(crate) struct NodeView {
    /// Its id.
    pub(crate) node: String,
    /// Its job allocation counter.
    pub(crate) jac: u64,
    /// Its links in the overlay.
    pub(crate) links: Vec<String>,
    /// Whether it lives.
    pub(crate) alive: bool,
}

/// A running cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    binary: PathBuf,
    up: Child,
    /// Kept open: who writes to a closed pipe ends.
    _told: Lines<BufReader<ChildStdout>>,
    /// The nodes that were started, killed ones included.
    pub(crate) nodes: Vec<Node>,
    /// For the files of the demo.
    pub(crate) folder: TempDir,
}

impl Cluster {
    /// Starts a directory and `workers` workers.
    pub(crate) async fn start(workers: u32) -> Result<Cluster> {
        let binary = binary()?;
        let folder = TempDir::new().context("no temporary folder")?;
        let log = File::create(folder.path().join("up.log"))?;
        let mut up = Command::new(&binary)
            .args(["up", "--output", "json", "--workers", &workers.to_string()])
            // A name of its own, so that it has nothing to do with another cluster on this machine.
            .args(["--cluster", &format!("demo-{}", std::process::id())])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut told = BufReader::new(up.stdout.take().context("no pipe")?).lines();
        let first = timeout(PATIENCE, told.next_line()).await.context("`floodline up` printed nothing")??;
        let Some(first) = first else {
            bail!("`floodline up` ended at once: {}", std::fs::read_to_string(folder.path().join("up.log"))?);
        };
        let started: Started = serde_json::from_str(&first).with_context(|| format!("not as agreed: {first}"))?;
        Ok(Cluster { binary, up, _told: told, nodes: started.nodes, folder })
    }

    /// A command as one types it in a second terminal, with the answer as JSON.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let workers: Vec<&str> =
            self.nodes.iter().filter(|node| node.role == "worker").map(|node| node.address.as_str()).collect();
        let mut command = Command::new(&self.binary);
        command.args(arguments).args(["--output", "json", "--node", &workers.join(",")]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn ask<A: DeserializeOwned>(&self, arguments: &[&str]) -> Result<A> {
        let output = timeout(PATIENCE, self.command(arguments).output()).await.context("no answer")??;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "`floodline {}`: {told}", arguments.join(" "));
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The cluster, once it is as it should be.
    pub(crate) async fn once(&self, wanted: &str, is: impl Fn(&View) -> bool) -> Result<View> {
        let started = Instant::now();
        loop {
            // While no worker knows a leader a question may fail; what counts is that it comes right in time.
            match self.ask::<View>(&["cluster"]).await {
                Ok(view) if is(&view) => return Ok(view),
                Err(error) if started.elapsed() > PATIENCE => return Err(error.context(format!("waited for {wanted}"))),
                Ok(view) if started.elapsed() > PATIENCE => bail!("waited for {wanted}, but: {view:?}"),
                Ok(_) | Err(_) => sleep(LOOK).await,
            }
        }
    }

    /// SIGKILL: the process is gone at once and says goodbye to nobody.
    pub(crate) fn kill(&self, name: &str) -> Result<&Node> {
        let node = self.nodes.iter().find(|node| node.node == name).with_context(|| format!("no node {name}"))?;
        kill_process(pid(node.pid)?, Signal::KILL).with_context(|| format!("cannot kill {name}"))?;
        Ok(node)
    }

    /// Ends the cluster as Ctrl-C does.
    ///
    /// # Errors
    /// Says which process is left.
    pub(crate) async fn end(&mut self) -> Result<()> {
        if let Some(up) = self.up.id() {
            kill_process(pid(i32::try_from(up)?)?, Signal::TERM)?;
            timeout(PATIENCE, self.up.wait()).await.context("`floodline up` does not end")??;
        }
        let started = Instant::now();
        while let Some(left) = self.nodes.iter().find(|node| is_there(node.pid)) {
            ensure!(started.elapsed() < PATIENCE, "{} is left, process {}", left.node, left.pid);
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// The end of the log, for a failure.
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("up.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // After an orderly end there is nothing to do; otherwise nothing may stay behind.
        for node in self.nodes.iter().filter(|node| is_there(node.pid)) {
            if let Ok(pid) = pid(node.pid) {
                kill_process(pid, Signal::KILL).ok();
            }
        }
    }
}

/// The binary that was built together with this example.
fn binary() -> Result<PathBuf> {
    let example = std::env::current_exe()?;
    let folder = example.parent().and_then(std::path::Path::parent).context("an example lies in a folder")?;
    let binary = folder.join(format!("floodline{}", std::env::consts::EXE_SUFFIX));
    ensure!(binary.exists(), "{} is missing; `make demo` builds it", binary.display());
    Ok(binary)
}

fn pid(number: i32) -> Result<Pid> {
    Pid::from_raw(number).context("0 is no process")
}

/// Whether the process runs. One that ended and whose parent has not asked yet only has a name left.
fn is_there(number: i32) -> bool {
    let exists = Pid::from_raw(number).is_some_and(|pid| test_kill_process(pid).is_ok());
    let status = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    let ended = status.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    exists && !ended
}
