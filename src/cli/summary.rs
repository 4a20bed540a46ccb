//! A job that has ended, as people read it: the answer first, then how it came about.
//!
//! Owns that text, and no more. Section 11 of the contract.

use std::time::Duration;

use super::table::{Side, aligned};
use crate::protocol::view::{JobState, JobView, WorkerShare};
use crate::wire::json;

/// The whole text, several lines. `title` says what was asked for.
pub(super) fn summary(title: &str, view: &JobView) -> String {
    let mut rows = vec![row("job", view.key.id.to_string())];
    rows.extend(view.admissions.iter().map(|by| {
        row("admitted", format!("in term {} by {}: job {} of the term, JAC {}", by.term, by.leader, by.place, by.jac))
    }));
    if view.total > 0 {
        rows.push(row("tasks", tasks(view)));
    }
    if let Some(finished) = view.finished_at {
        let millis = finished.0.saturating_sub(view.submitted_at.0);
        rows.push(row("time", seconds(Duration::from_millis(millis))));
    }
    let words = aligned(&[Side::Left, Side::Left], &rows);
    let lines = std::iter::once(headline(title, view)).chain(words.lines().map(|line| format!("  {line}")));
    lines.chain(shares(&view.workers)).collect::<Vec<String>>().join("\n")
}

/// What became of it, in one line.
fn headline(title: &str, view: &JobView) -> String {
    match (view.state, view.answer, view.error.as_deref()) {
        (JobState::Succeeded, Some(answer), _) => format!("{title} = {answer}"),
        (JobState::Failed, _, Some(error)) => format!("{title} failed: {error}"),
        (JobState::Cancelled, ..) => format!("{title} was cancelled"),
        (state, ..) => format!("{title} {}", json::job_state(state)),
    }
}

fn row(name: &str, text: String) -> Vec<String> {
    vec![name.to_owned(), text]
}

fn tasks(view: &JobView) -> String {
    let again = view.tasks.iter().filter(|task| task.attempt > 1).count();
    let done = format!("{} of {}", view.completed, view.total);
    match again {
        0 => done,
        1 => format!("{done}, 1 of them at another attempt than the first"),
        more => format!("{done}, {more} of them at another attempt than the first"),
    }
}

/// One line per worker: tasks that it completed and its time in them.
fn shares(workers: &[WorkerShare]) -> Vec<String> {
    let label = |index: usize| if index == 0 { "workers" } else { "" };
    let rows: Vec<Vec<String>> = workers
        .iter()
        .filter(|share| share.completed > 0)
        .enumerate()
        .map(|(index, share)| {
            vec![
                format!("  {:<8}", label(index)),
                share.node.to_string(),
                format!("{}", share.completed),
                if share.completed == 1 { "task" } else { "tasks" }.to_owned(),
                seconds(share.busy),
            ]
        })
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let sides = [Side::Left, Side::Left, Side::Right, Side::Left, Side::Right];
    aligned(&sides, &rows).lines().map(str::to_owned).collect()
}

/// Short times in milliseconds, long ones in seconds.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        0 => format!("{} µs", time.as_micros()),
        millis @ 1..=999 => format!("{millis} ms"),
        _ => format!("{:.2} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::{Kind, Value};
    use crate::protocol::ids::{Digest, Jac, JobId, JobKey, NodeId, Term};
    use crate::protocol::time::Wall;
    use crate::protocol::view::{Admission, TaskState, TaskView};

    fn node(name: &str) -> NodeId {
        NodeId::new(name).expect("a good name")
    }

    fn finished() -> JobView {
        let task = |slice, attempt| TaskView {
            slice,
            state: TaskState::Completed,
            attempt,
            worker: None,
            took: None,
            partial: None,
        };
        let share = |name, completed, ms| WorkerShare {
            node: node(name),
            completed,
            running: 0,
            busy: Duration::from_millis(ms),
        };
        JobView {
            key: JobKey { id: JobId::new("demo-1").expect("a good name"), digest: Digest::default() },
            kind: Kind::PrimeSum,
            state: JobState::Succeeded,
            answer: Some(Value(24_739_512_092_254_535)),
            error: None,
            stamp: None,
            completed: 12,
            total: 12,
            submitted_at: Wall(1_000),
            finished_at: Some(Wall(3_410)),
            admissions: vec![Admission { term: Term(3), leader: node("worker-2"), place: 2, jac: Jac(7), slices: 12 }],
            workers: vec![share("worker-1", 1, 320), share("worker-10", 11, 4_100), share("worker-2", 0, 0)],
            tasks: vec![task(0, 1), task(1, 2), task(2, 1)],
            trace: None,
        }
    }

    #[test]
    fn the_answer_comes_first_and_then_how_it_came_about() {
        let expected = "\
PRIMESUM 1..=1000000000 = 24739512092254535
  job       demo-1
  admitted  in term 3 by worker-2: job 2 of the term, JAC 7
  tasks     12 of 12, 1 of them at another attempt than the first
  time      2.41 s
  workers   worker-1    1  task   320 ms
            worker-10  11  tasks  4.10 s";
        assert_eq!(summary("PRIMESUM 1..=1000000000", &finished()), expected);
    }

    #[test]
    fn a_job_without_an_answer_says_why() {
        let failed =
            JobView { state: JobState::Failed, answer: None, error: Some("task 3 failed".into()), ..finished() };
        assert_eq!(summary("MAX", &failed).lines().next(), Some("MAX failed: task 3 failed"));
        let cancelled = JobView { state: JobState::Cancelled, answer: None, ..finished() };
        assert_eq!(summary("MAX", &cancelled).lines().next(), Some("MAX was cancelled"));
    }
}
