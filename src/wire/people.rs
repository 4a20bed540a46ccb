//! What people see: jobs, the cluster, events.

use std::time::Duration;

use super::fields::{
    bounded, cropped, job_id, links, list, maybe, micros, need, node, number, sentence, short, texts, trace, trace_id,
    value,
};
use super::jobs::kind;
use super::{Malformed, NamedCluster, v1};
use crate::protocol::ids::{Jac, Term};
use crate::protocol::limits;
use crate::protocol::time::Wall;
use crate::protocol::view::{ClusterView, Event, JobState, JobView, NodeView, TaskState, TaskView, WorkerShare};

/// The longest kind of an event.
const LONGEST_EVENT_KIND: usize = 64;

impl From<JobState> for v1::JobState {
    fn from(it: JobState) -> Self {
        match it {
            JobState::Queued => v1::JobState::Queued,
            JobState::Running => v1::JobState::Running,
            JobState::Cancelled => v1::JobState::Cancelled,
            JobState::Failed => v1::JobState::Failed,
            JobState::Succeeded => v1::JobState::Succeeded,
        }
    }
}

pub(super) fn state(given: i32) -> Result<JobState, Malformed> {
    match v1::JobState::try_from(given) {
        Ok(v1::JobState::Queued) => Ok(JobState::Queued),
        Ok(v1::JobState::Running) => Ok(JobState::Running),
        Ok(v1::JobState::Cancelled) => Ok(JobState::Cancelled),
        Ok(v1::JobState::Failed) => Ok(JobState::Failed),
        Ok(v1::JobState::Succeeded) => Ok(JobState::Succeeded),
        Ok(v1::JobState::Unspecified) | Err(_) => Err(Malformed::new("state", given, "1 to 5")),
    }
}

impl From<TaskState> for v1::TaskState {
    fn from(it: TaskState) -> Self {
        match it {
            TaskState::Pending => v1::TaskState::Pending,
            TaskState::Running => v1::TaskState::Running,
            TaskState::Completed => v1::TaskState::Completed,
        }
    }
}

fn task_state(given: i32) -> Result<TaskState, Malformed> {
    match v1::TaskState::try_from(given) {
        Ok(v1::TaskState::Pending) => Ok(TaskState::Pending),
        Ok(v1::TaskState::Running) => Ok(TaskState::Running),
        Ok(v1::TaskState::Completed) => Ok(TaskState::Completed),
        Ok(v1::TaskState::Unspecified) | Err(_) => Err(Malformed::new("state", given, "1 to 3")),
    }
}

impl From<&JobView> for v1::Job {
    fn from(it: &JobView) -> Self {
        v1::Job {
            key: Some((&it.key).into()),
            kind: v1::Kind::from(it.kind).into(),
            state: v1::JobState::from(it.state).into(),
            answer: it.answer.map(|answer| answer.to_string()),
            error: it.error.as_deref().map(cropped),
            stamp: it.stamp.as_ref().map(Into::into),
            completed: it.completed,
            total: it.total,
            submitted_at_ms: it.submitted_at.0,
            finished_at_ms: it.finished_at.map(|at| at.0),
            admissions: it.admissions.iter().map(Into::into).collect(),
            workers: it.workers.iter().map(Into::into).collect(),
            tasks: it.tasks.iter().map(Into::into).collect(),
            trace_parent: it.trace.map(|trace| trace.to_string()),
        }
    }
}

impl TryFrom<v1::Job> for JobView {
    type Error = Malformed;

    fn try_from(it: v1::Job) -> Result<Self, Malformed> {
        let slices = usize::try_from(limits::SLICES).unwrap_or(usize::MAX);
        let total = number(it.total, "total", 0, limits::SLICES)?;
        Ok(JobView {
            key: need(it.key, "key")?,
            kind: kind(it.kind)?,
            state: state(it.state)?,
            answer: it.answer.map(|text| value(&text, "answer")).transpose()?,
            error: it.error.map(|text| sentence(text, "error")).transpose()?,
            stamp: maybe(it.stamp, "stamp")?,
            completed: number(it.completed, "completed", 0, total)?,
            total,
            submitted_at: Wall(it.submitted_at_ms),
            finished_at: it.finished_at_ms.map(Wall),
            admissions: list(it.admissions, "admissions", slices)?,
            workers: list(it.workers, "workers", slices)?,
            tasks: list(it.tasks, "tasks", slices)?,
            trace: it.trace_parent.map(|text| trace(&text, "trace_parent")).transpose()?,
        })
    }
}

impl From<&WorkerShare> for v1::WorkerShare {
    fn from(it: &WorkerShare) -> Self {
        v1::WorkerShare {
            node_id: it.node.to_string(),
            completed: it.completed,
            running: it.running,
            busy_us: micros(it.busy),
        }
    }
}

impl TryFrom<v1::WorkerShare> for WorkerShare {
    type Error = Malformed;

    fn try_from(it: v1::WorkerShare) -> Result<Self, Malformed> {
        Ok(WorkerShare {
            node: node(&it.node_id, "node_id")?,
            completed: it.completed,
            running: it.running,
            busy: Duration::from_micros(it.busy_us),
        })
    }
}

impl From<&TaskView> for v1::TaskView {
    fn from(it: &TaskView) -> Self {
        v1::TaskView {
            slice: it.slice,
            state: v1::TaskState::from(it.state).into(),
            attempt: it.attempt,
            worker_id: it.worker.as_ref().map(ToString::to_string),
            took_us: it.took.map(micros),
            partial: it.partial.map(|partial| partial.to_string()),
        }
    }
}

impl TryFrom<v1::TaskView> for TaskView {
    type Error = Malformed;

    fn try_from(it: v1::TaskView) -> Result<Self, Malformed> {
        Ok(TaskView {
            slice: number(it.slice, "slice", 0, limits::SLICES)?,
            state: task_state(it.state)?,
            attempt: it.attempt,
            worker: it.worker_id.map(|id| node(&id, "worker_id")).transpose()?,
            took: it.took_us.map(Duration::from_micros),
            partial: it.partial.map(|text| value(&text, "partial")).transpose()?,
        })
    }
}

impl From<&NamedCluster> for v1::Cluster {
    fn from(it: &NamedCluster) -> Self {
        v1::Cluster {
            cluster: it.cluster.clone(),
            leadership: it.view.leadership.as_ref().map(Into::into),
            admitted: it.view.admitted,
            cap: it.view.cap,
            queued: it.view.queued,
            nodes: it.view.nodes.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::Cluster> for NamedCluster {
    type Error = Malformed;

    fn try_from(it: v1::Cluster) -> Result<Self, Malformed> {
        bounded(it.cluster.len(), "cluster", super::fields::LONGEST_TEXT)?;
        let view = ClusterView {
            leadership: maybe(it.leadership, "leadership")?,
            admitted: it.admitted,
            cap: it.cap,
            queued: it.queued,
            nodes: list(it.nodes, "nodes", limits::MEMBERS)?,
        };
        Ok(NamedCluster { cluster: it.cluster, view })
    }
}

impl From<&NodeView> for v1::Node {
    fn from(it: &NodeView) -> Self {
        v1::Node {
            member: Some((&it.member).into()),
            alive: it.alive,
            jac: it.jac.0,
            links: texts(&it.links),
            running: it.running,
        }
    }
}

impl TryFrom<v1::Node> for NodeView {
    type Error = Malformed;

    fn try_from(it: v1::Node) -> Result<Self, Malformed> {
        Ok(NodeView {
            member: need(it.member, "member")?,
            alive: it.alive,
            jac: Jac(it.jac),
            links: links(&it.links)?,
            running: it.running,
        })
    }
}

impl From<&Event> for v1::Event {
    fn from(it: &Event) -> Self {
        v1::Event {
            seq: it.seq,
            at_ms: it.at.0,
            node_id: it.node.to_string(),
            kind: it.kind.to_string(),
            term: it.term.map(|term| term.0),
            job_id: it.job.as_ref().map(ToString::to_string),
            task: it.task,
            attempt: it.attempt,
            text: cropped(&it.text),
            trace_id: it.trace.map(|trace| trace.to_string()),
        }
    }
}

impl TryFrom<v1::Event> for Event {
    type Error = Malformed;

    fn try_from(it: v1::Event) -> Result<Self, Malformed> {
        Ok(Event {
            seq: it.seq,
            at: Wall(it.at_ms),
            node: node(&it.node_id, "node_id")?,
            kind: short(it.kind, "kind", LONGEST_EVENT_KIND)?,
            term: it.term.map(Term),
            job: it.job_id.map(|id| job_id(&id, "job_id")).transpose()?,
            task: it.task,
            attempt: it.attempt,
            text: sentence(it.text, "text")?,
            trace: it.trace_id.map(|text| trace_id(&text, "trace_id")).transpose()?,
        })
    }
}
