//! The cursor rule (section 9): what a subscriber is shown, wherever it resumes.

use std::sync::Arc;

use crate::jobs::{Kind, Value};
use crate::protocol::ids::{AttemptName, Jac, Number, Position, Term};
use crate::protocol::ledger::{Ledger, Past};
use crate::protocol::progress::{Cursor, next_message};
use crate::protocol::testkit::{Lone, job, leadership, ms, node, query, submission, sum_to_100, task};
use crate::protocol::time::Wall;
use crate::protocol::view::JobState::{self, Cancelled, Failed, Queued, Running, Succeeded};
use crate::protocol::view::{Admission, JobView, Stamp, TaskState, WorkerShare};
use crate::protocol::{Shown, message::Request};

fn view(term: u64, number: u64, state: JobState, completed: u32, total: u32) -> Arc<JobView> {
    Arc::new(JobView {
        key: job("j"),
        kind: Kind::PrimeSum,
        state,
        answer: None,
        error: None,
        stamp: Some(Stamp { term: Term(term), number: Number(number), leader: node("n1") }),
        completed,
        total,
        submitted_at: Wall(1),
        finished_at: None,
        admissions: Vec::new(),
        workers: Vec::new(),
        tasks: Vec::new(),
        trace: None,
    })
}

fn seen(term: u64, number: u64, state: JobState, completed: u32, total: u32) -> Cursor {
    Cursor::of(&view(term, number, state, completed, total))
}

/// What follows `after`, as (term, number, state, completed, total).
fn shown(own: Arc<JobView>, after: &Cursor) -> Option<(u64, u64, JobState, u32, u32)> {
    let next = Cursor::of(&*next_message(own, Some(after))?);
    Some((next.term.0, next.number.0, next.state, next.completed, next.total))
}

#[test]
fn the_first_message_is_the_present_state() {
    let own = view(3, 7, Running, 1, 4);
    assert_eq!(next_message(own.clone(), None), Some(own));
}

#[test]
fn nothing_is_shown_twice_but_an_end() {
    assert_eq!(shown(view(3, 7, Running, 1, 4), &seen(3, 7, Running, 1, 4)), None);
    assert_eq!(shown(view(3, 7, Succeeded, 4, 4), &seen(3, 7, Succeeded, 4, 4)), Some((3, 7, Succeeded, 4, 4)));
}

#[test]
fn a_move_without_a_completion_is_shown_by_its_number() {
    assert_eq!(shown(view(3, 8, Running, 1, 4), &seen(3, 7, Running, 1, 4)), Some((3, 8, Running, 1, 4)));
}

#[test]
fn a_replica_that_is_behind_holds_back_though_its_number_is_higher() {
    assert_eq!(shown(view(4, 99, Running, 14, 20), &seen(3, 7, Running, 15, 20)), None);
}

#[test]
fn a_replica_with_a_larger_share_and_a_smaller_number_goes_on_with_the_number_seen() {
    assert_eq!(shown(view(2, 3, Running, 16, 20), &seen(3, 7, Running, 15, 20)), Some((3, 7, Running, 16, 20)));
}

#[test]
fn shares_of_two_cuts_are_compared_as_fractions() {
    assert_eq!(shown(view(3, 9, Running, 5, 12), &seen(3, 7, Running, 4, 8)), None, "5/12 is less than 4/8");
    assert_eq!(shown(view(3, 9, Running, 6, 12), &seen(3, 7, Running, 4, 8)), Some((3, 9, Running, 6, 12)));
}

#[test]
fn an_end_is_shown_whatever_was_seen_with_no_smaller_share() {
    assert_eq!(shown(view(2, 3, Cancelled, 1, 20), &seen(3, 7, Running, 15, 20)), Some((3, 7, Cancelled, 15, 20)));
    assert_eq!(shown(view(3, 9, Cancelled, 1, 20), &seen(3, 7, Running, 15, 20)), Some((3, 9, Cancelled, 15, 20)));
    assert_eq!(shown(view(2, 3, Succeeded, 20, 20), &seen(3, 7, Failed, 15, 20)), Some((3, 7, Succeeded, 20, 20)));
}

#[test]
fn no_state_goes_back() {
    assert_eq!(shown(view(9, 9, Running, 15, 20), &seen(3, 7, Cancelled, 15, 20)), None);
    assert_eq!(shown(view(9, 9, Failed, 15, 20), &seen(3, 7, Succeeded, 20, 20)), None);
    assert_eq!(shown(view(0, 0, Queued, 0, 0), &seen(3, 7, Running, 0, 20)), None);
}

#[test]
fn a_queued_job_that_is_admitted_moves() {
    assert_eq!(shown(view(3, 2, Running, 0, 4), &seen(0, 0, Queued, 0, 0)), Some((3, 2, Running, 0, 4)));
}

#[test]
fn the_largest_numbers_overflow_nothing() {
    let (most, full) = (u64::MAX, u32::MAX);
    assert_eq!(shown(view(most, most, Running, full, full), &seen(most, most, Running, full, full)), None);
}

#[test]
fn a_worker_shows_its_replica_its_queue_or_nothing() {
    let mut n1 = Lone::linked(&[]);
    assert_eq!(n1.worker.show(&query("j"), None), Shown::Unknown);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    let Shown::Next(queued) = n1.worker.show(&query("j"), None) else { panic!("it waits here") };
    assert_eq!(queued.state, Queued);
    assert_eq!(n1.worker.show(&query("j"), Some(&Cursor::of(&queued))), Shown::Wait);
    n1.follow(3, "n3", 0);
    let (records, number) = super::admitted_by(3, "n3", "j");
    n1.frame(super::batch(3, "n3", records, number.0, 0)).skip();
    let Shown::Next(running) = n1.worker.show(&query("j"), Some(&Cursor::of(&queued))) else { panic!("it moved") };
    assert_eq!((running.state, running.completed, running.total), (Running, 0, 4));
}

#[test]
fn a_view_names_for_each_task_where_it_is_and_for_each_worker_what_it_did_and_does() {
    let mut ledger = Ledger::restore(node("n1"), Vec::new(), Position::default(), Past::default());
    ledger.enter(leadership(5, "n1", 0));
    let admission = Admission { term: Term(5), leader: node("n1"), place: 1, jac: Jac(1), slices: 6 };
    ledger.admit(&job("j"), sum_to_100(), admission, None, None, Wall(1));
    let name = AttemptName { number: 1, term: Term(5), leader: node("n1") };
    for (slice, worker) in [(0, "n2"), (1, "n2"), (2, "n2"), (3, "n2"), (4, "n3")] {
        ledger.hand_out(&task("j", 6, slice), name.clone(), node(worker));
    }
    for slice in [0, 1] {
        ledger.complete(&task("j", 6, slice), name.clone(), node("n2"), Value(7), ms(5));
    }
    ledger.give_back(&task("j", 6, 4), true);
    let view = ledger.view(&job("j")).expect("it is there");
    let (done, out, free) = (TaskState::Completed, TaskState::Running, TaskState::Pending);
    let states: Vec<(TaskState, u32)> = view.tasks.iter().map(|task| (task.state, task.attempt)).collect();
    assert_eq!(states, [(done, 1), (done, 1), (out, 1), (out, 1), (free, 1), (free, 0)]);
    let share = WorkerShare { node: node("n2"), completed: 2, running: 2, busy: ms(10) };
    assert_eq!(view.workers, [share], "n3 has given its task back");
}
