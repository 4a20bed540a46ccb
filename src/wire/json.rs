//! The JSON of section 11 of the contract, shared by the command line and REST.
//!
//! Owns its keys: every one is always there, null or an empty list where there is nothing to say. Answers and partial
//! results are decimal strings, all other numbers are JSON numbers, times are RFC 3339 in UTC.

use std::time::Duration;

use serde::Serialize;

use super::NamedCluster;
use crate::jobs::Value;
use crate::protocol::ids::NodeId;
use crate::protocol::time::Wall;
use crate::protocol::view::{self, JobState, JobView, TaskState};

/// A job.
#[derive(Debug, Serialize)]
pub struct Job<'a> {
    job_id: &'a str,
    kind: String,
    state: &'static str,
    answer: Option<String>,
    error: Option<&'a str>,
    term: Option<u64>,
    leader: Option<&'a str>,
    number: Option<u64>,
    completed: u32,
    total: u32,
    submitted_at: String,
    finished_at: Option<String>,
    trace_id: Option<String>,
    admissions: Vec<Admission<'a>>,
    workers: Vec<Worker<'a>>,
    tasks: Vec<Task<'a>>,
}

#[derive(Debug, Serialize)]
struct Admission<'a> {
    term: u64,
    leader: &'a str,
    place: u32,
    jac: u64,
}

#[derive(Debug, Serialize)]
struct Worker<'a> {
    node: &'a str,
    completed: u32,
    running: u32,
    busy_ms: u64,
}

#[derive(Debug, Serialize)]
struct Task<'a> {
    task: u32,
    state: &'static str,
    attempt: u32,
    worker: Option<&'a str>,
    ms: Option<u64>,
    partial: Option<String>,
}

impl<'a> From<&'a JobView> for Job<'a> {
    fn from(it: &'a JobView) -> Self {
        let stamp = it.stamp.as_ref();
        let admission = |it: &'a view::Admission| Admission {
            term: it.term.0,
            leader: it.leader.as_str(),
            place: it.place,
            jac: it.jac.0,
        };
        let worker = |it: &'a view::WorkerShare| Worker {
            node: it.node.as_str(),
            completed: it.completed,
            running: it.running,
            busy_ms: millis(it.busy),
        };
        let task = |it: &'a view::TaskView| Task {
            task: it.slice,
            state: task_state(it.state),
            attempt: it.attempt,
            worker: it.worker.as_ref().map(NodeId::as_str),
            ms: it.took.map(millis),
            partial: it.partial.map(decimal),
        };
        Job {
            job_id: it.key.id.as_str(),
            kind: it.kind.to_string(),
            state: job_state(it.state),
            answer: it.answer.map(decimal),
            error: it.error.as_deref(),
            term: stamp.map(|stamp| stamp.term.0),
            leader: stamp.map(|stamp| stamp.leader.as_str()),
            number: stamp.map(|stamp| stamp.number.0),
            completed: it.completed,
            total: it.total,
            submitted_at: time(it.submitted_at),
            finished_at: it.finished_at.map(time),
            trace_id: it.trace.map(|trace| trace.id.to_string()),
            admissions: it.admissions.iter().map(admission).collect(),
            workers: it.workers.iter().map(worker).collect(),
            tasks: it.tasks.iter().map(task).collect(),
        }
    }
}

/// The cluster.
#[derive(Debug, Serialize)]
pub struct Cluster<'a> {
    cluster: &'a str,
    term: Option<u64>,
    leader: Option<&'a str>,
    admitted: u32,
    cap: u32,
    queued: u32,
    nodes: Vec<Node<'a>>,
}

#[derive(Debug, Serialize)]
struct Node<'a> {
    node: &'a str,
    incarnation: u64,
    role: &'static str,
    address: &'a str,
    http: &'a str,
    alive: bool,
    jac: u64,
    links: Vec<&'a str>,
    running: u32,
    version: &'a str,
}

impl<'a> From<&'a NamedCluster> for Cluster<'a> {
    fn from(it: &'a NamedCluster) -> Self {
        let leadership = it.view.leadership.as_ref();
        let node = |it: &'a view::NodeView| Node {
            node: it.member.node.as_str(),
            incarnation: it.member.incarnation.0,
            // Directories are no members: a cluster's nodes are its workers.
            role: "worker",
            address: it.member.address.as_str(),
            http: it.member.http.as_str(),
            alive: it.alive,
            jac: it.jac.0,
            links: it.links.iter().map(NodeId::as_str).collect(),
            running: it.running,
            version: &it.member.version,
        };
        Cluster {
            cluster: &it.cluster,
            term: leadership.map(|leadership| leadership.term.0),
            leader: leadership.map(|leadership| leadership.leader.as_str()),
            admitted: it.view.admitted,
            cap: it.view.cap,
            queued: it.view.queued,
            nodes: it.view.nodes.iter().map(node).collect(),
        }
    }
}

/// An event.
#[derive(Debug, Serialize)]
pub struct Event<'a> {
    seq: u64,
    at: String,
    node: &'a str,
    kind: &'a str,
    term: Option<u64>,
    job_id: Option<&'a str>,
    task: Option<u32>,
    attempt: Option<u32>,
    trace_id: Option<String>,
    text: &'a str,
}

impl<'a> From<&'a view::Event> for Event<'a> {
    fn from(it: &'a view::Event) -> Self {
        Event {
            seq: it.seq,
            at: time(it.at),
            node: it.node.as_str(),
            kind: &it.kind,
            term: it.term.map(|term| term.0),
            job_id: it.job.as_ref().map(|job| job.as_str()),
            task: it.task,
            attempt: it.attempt,
            trace_id: it.trace.map(|trace| trace.to_string()),
            text: &it.text,
        }
    }
}

/// A job's state as people read it.
#[must_use]
pub fn job_state(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "QUEUED",
        JobState::Running => "RUNNING",
        JobState::Cancelled => "CANCELLED",
        JobState::Failed => "FAILED",
        JobState::Succeeded => "SUCCEEDED",
    }
}

/// A task's state as people read it.
#[must_use]
pub fn task_state(state: TaskState) -> &'static str {
    match state {
        TaskState::Pending => "PENDING",
        TaskState::Running => "RUNNING",
        TaskState::Completed => "COMPLETED",
    }
}

/// A time as RFC 3339 in UTC with milliseconds.
#[must_use]
pub fn time(at: Wall) -> String {
    let (days, ms) = (at.0 / 86_400_000, at.0 % 86_400_000);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// Year, month and day of a day counted from 1970-01-01 (Hinnant, "chrono-compatible low-level date algorithms",
/// 2021: eras of 400 years that begin on a first of March, so that the leap day is the last of its year).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn decimal(value: Value) -> String {
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::samples;

    #[test]
    fn the_json_of_section_11_is_as_the_golden_file_has_it() {
        let mut lines = Vec::new();
        for job in [samples::queued_job(), samples::finished_job(), samples::failed_job()] {
            lines.push(serde_json::to_string(&Job::from(&job)));
        }
        for cluster in [samples::cluster(), samples::lost_cluster()] {
            lines.push(serde_json::to_string(&Cluster::from(&cluster)));
        }
        for event in [samples::event(), samples::bare_event()] {
            lines.push(serde_json::to_string(&Event::from(&event)));
        }
        let lines: Vec<String> = lines.into_iter().map(|line| line.expect("plain data")).collect();
        assert_eq!(lines.join("\n") + "\n", include_str!("testdata/section_11.jsonl"));
    }

    #[test]
    fn times_are_rfc_3339_in_utc() {
        for (at, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_798_761_599_042, "2026-12-31T23:59:59.042Z"),
        ] {
            assert_eq!(time(Wall(at)), text);
        }
    }
}
