//! A leader's hand-outs (section 7): who gets what, what comes of failures and losses, taking over, second copies.

use crate::jobs::Value;
use crate::protocol::ids::{AttemptName, ComputeId, Member, Number, Position, StreamId, Term};
use crate::protocol::input::Input;
use crate::protocol::leadership::Role;
use crate::protocol::message::{
    CallFailure, Code, Purpose, Refusal, Request, Response, Status, TaskAnswer, TaskFailure, Up,
};
use crate::protocol::testkit::lone::{ack, join};
use crate::protocol::testkit::{Lone, announce, leader, member, ms, query, quiet, status, submission, task};
use crate::protocol::{Effects, Settings, Stored};

const FIRST: StreamId = StreamId(101);

fn submit(n1: &mut Lone, id: &str) {
    n1.called(Request::SubmitJob(submission(id))).skip();
    n1.saved().skip();
}

/// A leader whose jobs have so many slices, with these followers.
fn slicing(slices: u32, followers: &[&str]) -> Lone {
    let settings = Settings { max_tasks: slices, max_attempts: 2, ..quiet() };
    Lone::leading_with(settings, &["n2"], 5, followers)
}

fn failed(retryable: bool, charged: bool) -> Response {
    let failure = TaskFailure { retryable, charged, reason: "it broke".into() };
    Response::Task(TaskAnswer { result: Err(failure), took: ms(1) })
}

#[test]
fn work_goes_to_the_least_loaded_and_to_the_leader_last() {
    let mut n1 = slicing(4, &["n2", "n3"]);
    n1.called(Request::SubmitJob(submission("j"))).only("note task").is("
            note task-handed-out j/0 attempt 1
            note task-handed-out j/1 attempt 1
            note task-handed-out j/2 attempt 1
        ");
    n1.called(Request::SubmitJob(submission("k"))).only("note task").is("");
}

#[test]
fn a_worker_with_more_places_gets_more() {
    let mut n1 = slicing(9, &[]);
    for (name, concurrency) in [("n2", 2), ("n3", 4)] {
        let member = Member { concurrency, ..member(name) };
        let stream = n1.opened();
        let status = Status { member, ..status(name, Some(leader(5, "n1", 0))) };
        n1.sent(stream, Up::Join { status, position: Position::default(), jobs: 0 }).skip();
    }
    // Task 2 is the leader's own. Of 2 and 4 places with one task each, the 4 are the less loaded.
    n1.called(Request::SubmitJob(submission("j"))).only("call").is("
            call n2 RUN j/0 of 9 attempt 1 in 5-n1 within 604800000ms
            call n3 RUN j/1 of 9 attempt 1 in 5-n1 within 604800000ms
            call n3 RUN j/3 of 9 attempt 1 in 5-n1 within 604800000ms
            call n2 RUN j/4 of 9 attempt 1 in 5-n1 within 604800000ms
            call n3 RUN j/5 of 9 attempt 1 in 5-n1 within 604800000ms
            call n3 RUN j/6 of 9 attempt 1 in 5-n1 within 604800000ms
        ");
    n1.result("n3 RUN j/3", 60).only("call").is("call n3 RUN j/7 of 9 attempt 1 in 5-n1 within 604800000ms");
}

#[test]
fn the_answer_is_folded_when_all_are_in_and_told_when_it_is_held() {
    let mut n1 = slicing(2, &["n2"]);
    submit(&mut n1, "j");
    n1.sent(FIRST, ack(9)).skip();
    n1.computed(1, 1_000).is("
            save 2 [task j/1 of 2 done by n1] at 5-n1#5, term 5, jac 1
            down 101 BATCH 5-n1#5 [task j/1 of 2 done by n1] held 4
            note task-ended j/1 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 4, jac 1, at 5-n1#5
        ");
    n1.result("n2 RUN j/0", 60).is("
            save 3 [job j Succeeded, task j/0 of 2 done by n2] without [payload j] at 5-n1#7, term 5, jac 1
            down 101 BATCH 5-n1#7 [task j/0 of 2 done by n2, job j Succeeded] held 4
            note task-ended j/0 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 4, jac 1, at 5-n1#7
        ");
    n1.saved().skip();
    n1.sent(FIRST, ack(99)).is("
            down 101 HEARTBEAT 5-n1 held 7, room 4, admitted 1
            note job-ended j
            moved j
            = leading 5-n1, admitted 1, held 7, jac 1, at 5-n1#7
        ");
}

#[test]
fn a_charged_failure_is_retried_elsewhere_after_a_pause_and_the_last_fails_the_job() {
    let mut n1 = slicing(1, &["n2", "n3"]);
    submit(&mut n1, "j");
    n1.answer("n2 RUN j/0", failed(true, true)).is("
            save 2 [task j/0 of 1 pending after 1 charged 1] at 5-n1#4, term 5, jac 1
            down 101 BATCH 5-n1#4 [task j/0 of 1 pending after 1 charged 1] held 0
            down 102 BATCH 5-n1#4 [task j/0 of 1 pending after 1 charged 1] held 0
            note task-ended j/0 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#4
        ");
    n1.pass(ms(50)).only("call n").is("call n3 RUN j/0 of 1 attempt 2 in 5-n1 within 604800000ms");
    n1.answer("n3 RUN j/0", failed(true, true)).is("
            save 4 [job j Failed, task j/0 of 1 pending after 2 charged 2] without [payload j] at 5-n1#7, term 5, jac 1
            down 101 BATCH 5-n1#7 [task j/0 of 1 pending after 2 charged 2, job j Failed] held 0
            down 102 BATCH 5-n1#7 [task j/0 of 1 pending after 2 charged 2, job j Failed] held 0
            note task-ended j/0 attempt 2
            moved j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#7
        ");
}

#[test]
fn failures_that_are_not_charged_never_fail_a_job() {
    let mut n1 = slicing(1, &["n2", "n3"]);
    submit(&mut n1, "j");
    for _ in 0..5 {
        n1.answer("n2 RUN j/0", failed(true, false)).skip();
        n1.pass(ms(50)).skip();
        n1.fail("n3 RUN j/0", CallFailure::Refused(Refusal::new(Code::Unavailable, "it stops"))).skip();
        n1.pass(ms(50)).skip();
    }
    let record = n1.worker.ledger.task(&task("j", 1, 0)).expect("it is out");
    assert_eq!((record.charged, record.last_attempt()), (0, 11));
}

#[test]
fn a_failure_that_is_not_retryable_fails_the_job_at_once() {
    let mut n1 = slicing(2, &["n2"]);
    submit(&mut n1, "j");
    n1.answer("n2 RUN j/0", failed(false, true)).is("
            save 2 [job j Failed, task j/0 of 2 pending after 1 charged 1] without [payload j] at 5-n1#6, term 5, jac 1
            down 101 BATCH 5-n1#6 [task j/0 of 2 pending after 1 charged 1, job j Failed] held 0
            stop computing 1
            note task-ended j/0 attempt 1
            note task-called-off j/1 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#6
        ");
}

#[test]
fn a_slice_that_a_worker_calls_invalid_fails_the_job() {
    let mut n1 = slicing(1, &["n2"]);
    submit(&mut n1, "j");
    n1.fail("n2 RUN j/0", CallFailure::Refused(Refusal::new(Code::InvalidArgument, "too long"))).only("save").is("
            save 2 [job j Failed, task j/0 of 1 pending after 1 charged 1] without [payload j] at 5-n1#5, term 5, jac 1
        ");
}

#[test]
fn an_answer_of_another_kind_costs_the_attempt_and_no_more() {
    let mut n1 = slicing(1, &["n2"]);
    submit(&mut n1, "j");
    n1.answer("n2 RUN j/0", Response::Done).only("save").is("
            save 2 [task j/0 of 1 pending after 1] at 5-n1#4, term 5, jac 1
        ");
}

#[test]
fn a_worker_that_joins_gets_work_of_running_jobs() {
    let mut n1 = slicing(8, &["n2"]);
    submit(&mut n1, "j");
    let stream = n1.opened();
    n1.sent(stream, join("n4", 5, "n1")).skip();
    n1.sent(stream, ack(0)).is("
            save 2 [task j/2 of 8 attempt 1 at n4] at 5-n1#5, term 5, jac 1
            call n4 RUN j/2 of 8 attempt 1 in 5-n1 within 604800000ms
            down 101 BATCH 5-n1#5 [task j/2 of 8 attempt 1 at n4] held 0
            down 102 BATCH 5-n1#5 [task j/2 of 8 attempt 1 at n4] held 0
            note task-handed-out j/2 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#5
        ");
}

#[test]
fn with_nobody_else_a_lost_worker_s_tasks_go_to_the_leader() {
    let mut n1 = slicing(1, &["n2"]);
    submit(&mut n1, "j");
    n1.give(Input::FollowerEnded { stream: FIRST }).skip();
    n1.pass(ms(50)).only("compute").is("compute 1: PrimeSum { start: 1, end: 100 }");
}

#[test]
fn a_slow_last_task_goes_out_a_second_time_and_the_first_answer_wins() {
    let mut n1 = slicing(2, &["n2"]);
    submit(&mut n1, "j");
    n1.computed(1, 1_000).skip();
    for _ in 0..3 {
        n1.sent(FIRST, ack(9)).skip();
        n1.pass(ms(150)).only("note task").is("");
    }
    n1.sent(FIRST, ack(9)).skip();
    n1.pass(ms(200)).only("compute").is("compute 2: PrimeSum { start: 1, end: 50 }");
    n1.computed(2, 60).is("
            save 4 [job j Succeeded, task j/0 of 2 done by n1] without [payload j] at 5-n1#8, term 5, jac 1
            abandon a call
            call n2 STOP j/0 of 2 attempt 1 within 500ms
            down 101 BATCH 5-n1#8 [task j/0 of 2 done by n1, job j Succeeded] held 4
            note task-ended j/0 attempt 2
            note task-called-off j/0 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 4, jac 1, at 5-n1#8
        ");
}

#[test]
fn a_task_is_slow_when_it_takes_longer_than_twice_what_its_siblings_took() {
    let mut n1 = slicing(2, &["n2"]);
    submit(&mut n1, "j");
    n1.give(Input::Computed { compute: ComputeId(1), value: Some(Value(1_000)), took: ms(400) }).skip();
    let mut passes = |span| {
        n1.sent(FIRST, ack(9)).skip();
        n1.pass(ms(span)).only("note task")
    };
    for _ in 0..5 {
        passes(150).is("");
    }
    passes(150).is("note task-handed-out j/0 attempt 2");
}

#[test]
fn the_second_copy_that_loses_is_stopped_without_a_word_of_fences() {
    let mut n1 = slicing(2, &["n2"]);
    submit(&mut n1, "j");
    n1.computed(1, 1_000).skip();
    for _ in 0..5 {
        n1.sent(FIRST, ack(9)).skip();
        n1.pass(ms(130)).skip();
    }
    n1.result("n2 RUN j/0", 60).is("
            save 4 [job j Succeeded, task j/0 of 2 done by n2] without [payload j] at 5-n1#8, term 5, jac 1
            down 101 BATCH 5-n1#8 [task j/0 of 2 done by n2, job j Succeeded] held 4
            stop computing 2
            note task-ended j/0 attempt 1
            note task-called-off j/0 attempt 2
            moved j
            = leading 5-n1, admitted 1, held 4, jac 1, at 5-n1#8
        ");
    n1.give(Input::Computed { compute: ComputeId(2), value: None, took: ms(1) }).is("
            = leading 5-n1, admitted 1, held 4, jac 1, at 5-n1#8
        ");
}

#[test]
fn a_copy_that_fails_leaves_the_other_to_go_on() {
    let mut n1 = slicing(2, &["n2"]);
    submit(&mut n1, "j");
    n1.computed(1, 1_000).skip();
    for _ in 0..5 {
        n1.sent(FIRST, ack(9)).skip();
        n1.pass(ms(130)).skip();
    }
    n1.unreachable("n2 RUN j/0").is("
            note task-ended j/0 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 4, jac 1, at 5-n1#6
        ");
    n1.computed(2, 60).only("note").is("note task-ended j/0 attempt 2");
}

#[test]
fn a_completion_of_an_attempt_that_is_not_out_any_more_is_refused_and_counted() {
    let mut n1 = slicing(1, &["n2"]);
    submit(&mut n1, "j");
    let name = AttemptName { number: 7, term: Term(5), leader: member("n1").node };
    let mut out = Effects::default();
    let answer = TaskAnswer { result: Ok(Value(1)), took: ms(1) };
    n1.worker.end_attempt(&task("j", 1, 0), &name, answer, &mut out);
    assert_eq!(crate::protocol::testkit::render::effects(&out), ["note fenced j/0 attempt 7"]);
    assert!(n1.worker.ledger.task(&task("j", 1, 0)).is_some_and(|record| record.completion.is_none()));
}

#[test]
fn a_leader_that_stands_still_too_long_hands_nothing_out_any_more() {
    let mut n1 = slicing(1, &["n2"]);
    submit(&mut n1, "j");
    n1.wait(ms(501));
    n1.result("n2 RUN j/0", 1_060).is("
            abandon a call
            abandon a call
            note leadership-ended term 5
            = seeking, jac 1, at 5-n1#3, 1 queued
        ");
    let mut n1 = slicing(1, &["n2"]);
    n1.wait(ms(500));
    n1.give(Input::TimerFired).only("note").is("");
}

/// The next leader: in term 4 it led a job whose tasks 0 and 1 went to n2 and n3, and task 2 to itself.
fn taking_over() -> Lone {
    let settings = Settings { max_tasks: 3, ..quiet() };
    let mut before = Lone::leading_with(settings.clone(), &[], 4, &["n2", "n3"]);
    submit(&mut before, "j");
    let (records, position) = (before.worker.ledger.changed_since(Number(0)), before.worker.ledger.position().clone());
    let mut n1 = Lone::with(settings, Stored { records, position, term: Term(4), ..Stored::default() }, &[]);
    n1.called(Request::Announce(announce(Purpose::Won, "n9", leader(5, "n1", 1), 3))).skip();
    n1
}

/// What an empty worker that follows it says first.
fn follows_it(name: &str) -> Up {
    let status = status(name, Some(leader(5, "n1", 1)));
    Up::Join { status, position: Position::default(), jobs: 0 }
}

#[test]
fn a_new_leader_ends_old_attempts_and_gives_tasks_back_to_the_workers_that_had_them() {
    let mut n1 = taking_over();
    for name in ["n3", "n2"] {
        let stream = n1.opened();
        n1.sent(stream, follows_it(name)).only("note task").is("");
    }
    n1.saved().is("
            save 1 [task j/0 of 3 attempt 2 at n2, task j/1 of 3 attempt 2 at n3, task j/2 of 3 attempt 2 at n1] at 5-n1/jac 1#11, term 5, jac 1, past [4-n1#5]
            call n2 RUN j/0 of 3 attempt 2 in 5-n1/jac 1 within 604800000ms
            call n3 RUN j/1 of 3 attempt 2 in 5-n1/jac 1 within 604800000ms
            down 101 BATCH 5-n1/jac 1#11 [task j/0 of 3 attempt 2 at n2, task j/1 of 3 attempt 2 at n3, task j/2 of 3 attempt 2 at n1] held 0
            down 102 BATCH 5-n1/jac 1#11 [task j/0 of 3 attempt 2 at n2, task j/1 of 3 attempt 2 at n3, task j/2 of 3 attempt 2 at n1] held 0
            down 101 HEARTBEAT 5-n1/jac 1 held 0, room 5, admitted 0
            down 102 HEARTBEAT 5-n1/jac 1 held 0, room 5, admitted 0
            compute 1: PrimeSum { start: 68, end: 100 }
            note leadership-active term 5
            note job-taken-up j
            note task-handed-out j/0 attempt 2
            note task-handed-out j/1 attempt 2
            note task-handed-out j/2 attempt 2
            moved j
            = leading 5-n1/jac 1, admitted 0, held 0, jac 1, at 5-n1/jac 1#11
        ");
}

#[test]
fn a_new_leader_hands_tasks_of_workers_that_did_not_come_to_others() {
    let mut n1 = taking_over();
    n1.pass(ms(101)).only("note task").is("note task-handed-out j/2 attempt 2");
}

#[test]
fn a_leader_keeps_nothing_of_the_work_on_a_job_that_ended() {
    let mut n1 = slicing(3, &["n2"]);
    let keeps = |n1: &Lone, jobs| matches!(&n1.worker.role, Role::Leading(leading) if leading.schedule.kept() == jobs);
    submit(&mut n1, "j");
    submit(&mut n1, "k");
    assert!(keeps(&n1, (2, 2)));
    n1.called(Request::CancelJob(query("j"))).skip();
    assert!(keeps(&n1, (1, 1)));
}

#[test]
fn a_job_that_ended_is_worked_on_no_more_by_anyone() {
    let mut n1 = slicing(3, &["n2"]);
    submit(&mut n1, "j");
    n1.called(Request::CancelJob(query("j"))).is("
            save 2 [job j Cancelled] without [payload j] at 5-n1#5, term 5, jac 1
            abandon a call
            call n2 STOP j/0 of 3 attempt 1 within 500ms
            down 101 BATCH 5-n1#5 [job j Cancelled] held 0
            stop computing 1
            note task-called-off j/0 attempt 1
            note task-called-off j/1 attempt 1
            moved j
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#5
        ");
}
