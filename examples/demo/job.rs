//! One job of the demo: `floodline submit` as a child process, its messages one by one.

use std::collections::BTreeMap;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use super::cluster::Cluster;
use super::page::Bar;

/// A line of `floodline submit --output json`, as far as the demo needs it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Message {
    /// QUEUED, RUNNING, SUCCEEDED, FAILED or CANCELLED.
    pub(crate) state: String,
    /// The answer, at the end.
    pub(crate) answer: Option<String>,
    /// Why it failed.
    pub(crate) error: Option<String>,
    /// Term of the last change.
    pub(crate) term: Option<u64>,
    /// Leader of the last change.
    pub(crate) leader: Option<String>,
    /// Number of the last change.
    pub(crate) number: Option<u64>,
    /// Tasks completed.
    pub(crate) completed: u64,
    /// Tasks in all.
    pub(crate) total: u64,
    /// Who counted it.
    pub(crate) admissions: Vec<Admission>,
    /// Who did how much.
    pub(crate) workers: Vec<Share>,
    /// The tasks.
    pub(crate) tasks: Vec<Task>,
}

/// An admission.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Admission {
    /// In which term.
    pub(crate) term: u64,
    /// By whom.
    pub(crate) leader: String,
    /// The how-manieth of the term.
    pub(crate) place: u64,
    /// The leader's JAC with it.
    pub(crate) jac: u64,
}

/// A worker's share.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Share {
    /// The worker.
    pub(crate) node: String,
    /// Tasks that it completed.
    pub(crate) completed: u64,
    /// Tasks that it has now.
    pub(crate) running: u64,
}

/// A task.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Task {
    /// Which slice of the job.
    pub(crate) task: u64,
    /// PENDING, RUNNING or COMPLETED.
    pub(crate) state: String,
    /// The attempt that completed it, else the last one.
    pub(crate) attempt: u64,
}

impl Message {
    /// Tasks by worker: `worker-1 7, worker-2 9`.
    pub(crate) fn shares(&self) -> String {
        let shares = self.workers.iter().map(|share| format!("{} {}", share.node, share.completed));
        shares.collect::<Vec<String>>().join(", ")
    }

    /// The tasks that are completed, each with its attempt.
    pub(crate) fn completions(&self) -> BTreeMap<u64, u64> {
        let completed = self.tasks.iter().filter(|task| task.state == "COMPLETED");
        completed.map(|task| (task.task, task.attempt)).collect()
    }
}

/// Submits a job and follows it to its end. `seen` gets each message, to look at it or to do something at that moment.
///
/// # Errors
/// The job failed, or its progress went back.
pub(crate) async fn run(
    cluster: &Cluster,
    mut bar: Bar,
    arguments: &[&str],
    mut seen: impl FnMut(&Message, &Bar) -> Result<()>,
) -> Result<Message> {
    let mut child = cluster.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
    let mut last: Option<Message> = None;
    while let Some(line) = lines.next_line().await? {
        let message: Message = serde_json::from_str(&line).with_context(|| format!("not as agreed: {line}"))?;
        if let Some(before) = &last {
            let (now, then) = (&message, before);
            ensure!(now.completed * then.total >= then.completed * now.total, "the bar fell: {then:?}, then {now:?}");
            ensure!((now.term, now.number) >= (then.term, then.number), "the number fell: {then:?}, then {now:?}");
        }
        bar.show(message.completed, message.total, &led(&message));
        seen(&message, &bar)?;
        last = Some(message);
    }
    let mut told = String::new();
    child.stderr.take().context("no pipe")?.read_to_string(&mut told).await?;
    let status = child.wait().await?;
    let last = last.with_context(|| format!("`floodline {}` printed nothing: {told}", arguments.join(" ")))?;
    let error = last.error.as_deref().unwrap_or_default();
    let asked = arguments.join(" ");
    ensure!(status.success() && last.state == "SUCCEEDED", "`{asked}` ended {}: {error} {told}", last.state);
    Ok(last)
}

fn led(message: &Message) -> String {
    match (&message.term, &message.leader) {
        (Some(term), Some(leader)) => format!("term {term}, led by {leader}"),
        _ => "waits for a coordinator".to_owned(),
    }
}

/// All jobs that were run, for the sums at the end.
#[derive(Debug, Default)]
pub(crate) struct Books {
    admissions: Vec<Admission>,
}

impl Books {
    /// Takes down a finished job.
    pub(crate) fn enter(&mut self, job: &Message) {
        self.admissions.extend(job.admissions.iter().cloned());
    }

    /// How many were counted.
    pub(crate) fn jobs(&self) -> usize {
        self.admissions.len()
    }

    /// How many jobs each worker admitted: what its JAC must say.
    pub(crate) fn by_leader(&self) -> BTreeMap<&str, u64> {
        let mut counted = BTreeMap::new();
        self.admissions.iter().for_each(|admission| *counted.entry(admission.leader.as_str()).or_default() += 1);
        counted
    }

    /// # Errors
    /// A term that admitted more than `cap`, or one place twice.
    pub(crate) fn check(&self, cap: u64) -> Result<()> {
        let mut places: BTreeMap<(u64, &str), Vec<u64>> = BTreeMap::new();
        for admission in &self.admissions {
            places.entry((admission.term, &admission.leader)).or_default().push(admission.place);
        }
        for ((term, leader), mut taken) in places {
            taken.sort_unstable();
            let full = (1..=taken.len() as u64).collect::<Vec<u64>>();
            ensure!(taken == full && taken.len() as u64 <= cap, "term {term} of {leader} admitted {taken:?}");
        }
        Ok(())
    }
}
