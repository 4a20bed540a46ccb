//! Deadlines of jobs, by the wall clock, and leaders that hand over (sections 2 and 7).

use std::time::Duration;

use crate::protocol::message::{Request, SubmitJob};
use crate::protocol::testkit::{Lone, ms, quiet, submission};
use crate::protocol::time::Wall;
use crate::protocol::{Rotation, Settings};

/// The lone worker's wall clock shows 1,000 ms at first.
fn due(id: &str, at: u64) -> Request {
    Request::SubmitJob(SubmitJob { deadline: Some(Wall(at)), ..submission(id) })
}

#[test]
fn a_job_that_has_not_ended_by_its_deadline_fails_and_says_so() {
    let mut n1 = Lone::leading(&[], 5, &[]);
    // Between two heartbeats: nothing else is due then.
    n1.called(due("j", 1_470)).skip();
    n1.saved().skip();
    n1.pass(ms(469)).only("save").is("");
    n1.pass(ms(1)).only("save").is("save 2 [job j Failed] without [payload j] at 5-n1#4, term 5, jac 1");
    n1.saved().skip();
    let view = n1.worker.told(&crate::protocol::testkit::query("j")).expect("it is there");
    assert_eq!(view.error.as_deref(), Some(crate::protocol::view::DEADLINE_PASSED));
}

#[test]
fn a_job_that_ends_in_time_keeps_its_answer_past_its_deadline() {
    let settings = Settings { max_tasks: 1, ..quiet() };
    let mut n1 = Lone::leading_with(settings, &[], 5, &[]);
    n1.called(due("j", 1_500)).skip();
    n1.saved().skip();
    n1.computed(1, 1_060).skip();
    n1.saved().skip();
    n1.pass(ms(2_000)).only("save").is("");
}

#[test]
fn a_submission_that_waits_past_its_deadline_is_told_so() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    n1.called(due("j", 1_200)).skip();
    n1.wait(ms(300));
    n1.called(Request::GetCluster).only("reply 2").is("reply 2: DeadlineExceeded");
    assert_eq!(n1.worker.queue.waiting(), 0);
}

#[test]
fn a_leader_refuses_to_admit_what_is_late_already() {
    let mut n1 = Lone::leading(&[], 5, &[]);
    n1.called(due("j", 900)).only("reply").is("reply 2: DeadlineExceeded");
}

#[test]
fn of_one_job_with_two_deadlines_the_earlier_counts() {
    let mut n1 = Lone::leading(&[], 5, &[]);
    n1.called(due("j", 1_500)).skip();
    let mut theirs = n1.worker.ledger.job(&crate::protocol::testkit::job("j")).expect("it is there").clone();
    theirs.deadline = Some(Wall(1_200));
    let mut ours = n1.worker.ledger.job(&theirs.key).expect("it is there").clone();
    ours.join(&theirs);
    assert_eq!(ours.deadline, Some(Wall(1_200)));
}

/// A leader with a follower and one admission in all.
fn rotating(rotation: Rotation) -> Lone {
    let settings =
        Settings { max_jobs_per_term: 1, max_tasks: 1, rotation, drain_limit: Duration::from_secs(2), ..quiet() };
    Lone::leading_with(settings, &[], 5, &[])
}

#[test]
fn a_leader_that_hands_over_steps_down_when_its_last_admission_is_held() {
    let mut n1 = rotating(Rotation::Handover);
    n1.called(Request::SubmitJob(submission("j"))).only("note leadership").is("");
    n1.saved().only("note leadership-ended").is("note leadership-ended term 5");
}

#[test]
fn a_leader_that_drains_finishes_its_jobs_for_as_long_as_the_limit_and_then_hands_over() {
    let mut n1 = rotating(Rotation::Drain);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().only("note leadership").is("");
    n1.pass(ms(1_900)).only("note leadership").is("");
    n1.pass(ms(200)).only("note leadership-ended").is("note leadership-ended term 5");
    // Alone, it takes up its own job in its next term; the computation goes on meanwhile.
    n1.pass(ms(500)).skip();
    n1.computed(1, 1_060).skip();
    assert!(n1.worker.ledger.unfinished().next().is_none());
}
