//! Words for histories made by hand, for the judges' own tests.

use std::sync::Arc;
use std::time::Duration;

use crate::jobs::{Kind, Value};
use crate::protocol::ids::{Digest, Identity, Incarnation, Jac, JobId, JobKey, Leadership, NodeId, Number, Term};
use crate::protocol::time::{Time, Wall};
use crate::protocol::view::{Admission, JobState, JobView, Stamp, TaskState, TaskView, WorkerShare};

use super::history::{Event, Outcome, Right, Seen, Sight};
use super::judge;

/// The guarantees that a story breaks, each once, in order.
pub(super) fn broken(story: &[Seen]) -> Vec<&'static str> {
    let at = |(at, seen): (usize, &Seen)| Event { at: Time::from_millis(at as u64), seen: seen.clone() };
    let history: Vec<Event> = story.iter().enumerate().map(at).collect();
    let mut broken: Vec<&str> = judge(5, &history).iter().map(|violation| violation.guarantee).collect();
    broken.sort_unstable();
    broken.dedup();
    broken
}

pub(super) fn node(id: &str) -> NodeId {
    NodeId::new(id).expect("a good name")
}

pub(super) fn process(id: &str) -> Identity {
    Identity { node: node(id), incarnation: Incarnation(1) }
}

pub(super) fn key(id: &str) -> JobKey {
    JobKey { id: JobId::new(id).expect("a good name"), digest: Digest::default() }
}

pub(super) fn lead(term: u64, leader: &str) -> Leadership {
    Leadership { term: Term(term), leader: node(leader), incarnation: Incarnation(1), jac: Jac(0) }
}

fn view(id: &str, state: JobState, completed: u32, total: u32, number: u64) -> JobView {
    let worker = (completed > 0).then(|| WorkerShare { node: node("a"), completed, running: 0, busy: Duration::ZERO });
    let task = |slice| TaskView {
        slice,
        state: if slice < completed { TaskState::Completed } else { TaskState::Pending },
        attempt: 1,
        worker: Some(node("a")),
        took: None,
        partial: None,
    };
    JobView {
        key: key(id),
        kind: Kind::PrimeSum,
        state,
        answer: None,
        error: None,
        stamp: Some(Stamp { term: Term(1), number: Number(number), leader: node("a") }),
        completed,
        total,
        submitted_at: Wall(0),
        finished_at: None,
        admissions: Vec::new(),
        workers: worker.into_iter().collect(),
        tasks: (0..total).map(task).collect(),
        trace: None,
    }
}

pub(super) fn running(id: &str, completed: u32, total: u32, number: u64) -> JobView {
    view(id, JobState::Running, completed, total, number)
}

pub(super) fn ended(id: &str, state: JobState) -> JobView {
    view(id, state, 1, 2, 8)
}

/// Done with two parts, the second of which is 1.
pub(super) fn done(id: &str, answer: i128) -> JobView {
    let mut view = view(id, JobState::Succeeded, 2, 2, 9);
    view.answer = Some(Value(answer));
    view.tasks[0].partial = Some(Value(answer - 1));
    view.tasks[1].partial = Some(Value(1));
    view
}

pub(super) fn submitted(id: &str, right: i128) -> Seen {
    Seen::Submitted { job: key(id), right: Right::Answer(Value(right)) }
}

pub(super) fn acknowledged(id: &str) -> Seen {
    Seen::Outcome { job: key(id), outcome: Outcome::Acknowledged }
}

pub(super) fn shown(by: &str, view: JobView) -> Seen {
    Seen::Shown { by: process(by), view: Arc::new(view) }
}

pub(super) fn told(subscriber: u64, by: &str, view: JobView) -> Seen {
    Seen::Told { subscriber, by: process(by), view: Arc::new(view) }
}

pub(super) fn started(id: &str, incarnation: u64, memory: bool) -> Seen {
    Seen::Started { process: Identity { node: node(id), incarnation: Incarnation(incarnation) }, memory }
}

pub(super) fn jac(id: &str, jac: u64) -> Seen {
    Seen::JacTold { owner: process(id), jac: Jac(jac) }
}

pub(super) fn admitted(id: &str, term: u64, leader: &str, place: u32, jac: u64) -> Seen {
    let admission = Admission { term: Term(term), leader: node(leader), place, jac: Jac(jac), slices: 4 };
    Seen::Admitted { job: key(id), admission }
}

pub(super) fn follows(id: &str, leadership: Leadership) -> Seen {
    Seen::Follows { process: process(id), leadership }
}

pub(super) fn leads(id: &str, leadership: Leadership) -> Seen {
    Seen::Led { process: process(id), leadership }
}

pub(super) fn sight(id: &str, following: Option<Leadership>, jobs: Vec<JobView>) -> Sight {
    Sight { process: process(id), following, jobs: jobs.into_iter().map(Arc::new).collect() }
}

/// A final sight of workers that all follow the first.
pub(super) fn last(sights: Vec<(&str, Vec<JobView>)>) -> Seen {
    let leader = sights.first().map(|(id, _)| lead(1, id));
    Seen::Final(sights.into_iter().map(|(id, jobs)| sight(id, leader.clone(), jobs)).collect())
}
