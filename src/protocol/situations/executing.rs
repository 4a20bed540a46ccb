//! The worker's side of a hand-out (section 7): each task is computed once, whoever asks and how often.

use crate::jobs::Payload;
use crate::protocol::ids::ComputeId;
use crate::protocol::input::Input;
use crate::protocol::limits;
use crate::protocol::message::{CancelTask, ExecuteTask, Request};
use crate::protocol::testkit::{Lone, leadership, ms, sum_to_100, task};

fn run(term: u64, leader: &str, slice: u32) -> Request {
    let (leadership, task) = (leadership(term, leader, 0), task("j", 100_000, slice));
    Request::ExecuteTask(ExecuteTask { leadership, task, attempt: 1, slice: sum_to_100() })
}

fn stop(term: u64, leader: &str, slice: u32) -> Request {
    let (leadership, task) = (leadership(term, leader, 0), task("j", 100_000, slice));
    Request::CancelTask(CancelTask { leadership, task, attempt: 1 })
}

#[test]
fn a_task_is_computed_and_its_value_is_the_answer() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(run(3, "n3", 0)).is("
            compute 1: PrimeSum { start: 1, end: 100 }
            note task-taken term 3 j/0 attempt 1
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.computed(1, 1_060).is("
            reply 2: value 1060
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn only_so_many_are_computed_at_once_and_the_others_wait() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(run(3, "n3", 0)).skip();
    n1.called(run(3, "n3", 1)).is("
            note task-taken term 3 j/1 attempt 1
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.computed(1, 1_060).is("
            reply 2: value 1060
            compute 2: PrimeSum { start: 1, end: 100 }
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn it_says_how_many_it_computes_and_those_that_wait_are_not_among_them() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    assert_eq!(n1.worker.status().running, 0);
    n1.called(run(3, "n3", 0)).skip();
    n1.called(run(3, "n3", 1)).skip();
    assert_eq!(n1.worker.status().running, 1);
    n1.computed(1, 1_060).skip();
    n1.computed(2, 1_060).skip();
    assert_eq!(n1.worker.status().running, 0);
}

#[test]
fn an_older_leadership_is_refused_a_newer_one_that_is_not_followed_yet_is_not() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(run(2, "n4", 0)).is("
            reply 2: FailedPrecondition
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.called(run(4, "n4", 0)).only("compute").is("compute 1: PrimeSum { start: 1, end: 100 }");
    n1.called(stop(2, "n4", 0)).is("
            reply 4: FailedPrecondition
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_new_leader_that_asks_again_joins_the_computation() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(run(3, "n3", 0)).skip();
    n1.give(Input::CallerGone { token: n1.token() }).is("= following 3-n3, jac 0, at 3-n3#0");
    n1.called(run(4, "n4", 0)).is("
            note task-taken term 4 j/0 attempt 1
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.computed(1, 1_060).is("
            reply 3: value 1060
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_new_leader_that_asks_for_what_was_just_computed_gets_it_at_once() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(run(3, "n3", 0)).skip();
    n1.computed(1, 1_060).skip();
    n1.called(run(4, "n4", 0)).is("
            reply 3: value 1060
            note task-taken term 4 j/0 attempt 1
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_task_that_waits_goes_with_its_last_caller() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(run(3, "n3", 0)).skip();
    n1.called(run(3, "n3", 1)).skip();
    n1.give(Input::CallerGone { token: n1.token() }).skip();
    n1.computed(1, 1_060).only("compute").is("");
}

#[test]
fn a_cancelled_computation_is_stopped_and_told_as_not_charged() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(run(3, "n3", 0)).skip();
    n1.called(stop(3, "n3", 0)).is("
            reply 2: no value: cancelled (again, not charged)
            reply 3: done
            stop computing 1
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.called(run(3, "n3", 0)).is("
            reply 4: no value: its cancelled computation has not ended yet (again, not charged)
            note task-taken term 3 j/0 attempt 1
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.give(Input::Computed { compute: ComputeId(1), value: None, took: ms(1) }).is("
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.called(run(3, "n3", 0)).only("compute").is("compute 2: PrimeSum { start: 1, end: 100 }");
}

#[test]
fn a_computation_that_breaks_off_by_itself_is_charged() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(run(3, "n3", 0)).skip();
    n1.give(Input::Computed { compute: ComputeId(1), value: None, took: ms(1) }).only("reply").is("
            reply 2: no value: the computation broke off (again, charged)
        ");
}

#[test]
fn a_slice_that_can_not_be_computed_is_refused() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    let (leadership, task, slice) = (leadership(3, "n3", 0), task("j", 4, 0), Payload::Max([].into()));
    n1.called(Request::ExecuteTask(ExecuteTask { leadership, task, attempt: 1, slice })).only("reply").is("
            reply 2: InvalidArgument
        ");
}

#[test]
fn the_queue_of_tasks_has_a_bound_and_a_full_one_is_not_charged() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    for slice in 0..=1_024 {
        n1.called(run(3, "n3", slice)).skip();
    }
    n1.called(run(3, "n3", 2_000)).only("reply").is("reply 1027: no value: the queue is full (again, not charged)");
}

#[test]
fn a_cancelled_task_that_waits_goes_and_the_others_wait_on() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    for slice in 0..3 {
        n1.called(run(3, "n3", slice)).skip();
    }
    n1.called(stop(3, "n3", 1)).only("reply").is("
            reply 3: no value: cancelled (again, not charged)
            reply 5: done
        ");
    n1.computed(1, 7).only("compute").is("compute 2: PrimeSum { start: 1, end: 100 }");
    n1.computed(2, 7).only("reply").is("reply 4: value 7");
}

#[test]
fn results_are_kept_up_to_a_bound_the_oldest_go_first() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    let kept = u32::try_from(limits::RESULTS).expect("small");
    for slice in 0..=kept {
        n1.called(run(3, "n3", slice)).skip();
        n1.computed(u64::from(slice) + 1, 7).skip();
    }
    n1.called(run(3, "n3", 1)).only("reply").is("reply 1027: value 7");
    n1.called(run(3, "n3", 0)).only("compute").is("compute 1026: PrimeSum { start: 1, end: 100 }");
}

#[test]
fn those_who_wait_for_one_task_have_a_bound() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    for _ in 0..16 {
        n1.called(run(3, "n3", 0)).skip();
    }
    n1.called(run(3, "n3", 0)).only("reply").is("
            reply 18: no value: too many wait for this task here (again, not charged)
        ");
    assert_eq!(n1.computed(1, 7).only("reply").0.len(), 16);
}

#[test]
fn a_job_that_has_ended_elsewhere_is_computed_no_more() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    let (mut records, number) = super::admitted_by(3, "n3", "j");
    n1.called(run(3, "n3", 0)).skip();
    super::end(&mut records, number.next());
    n1.frame(super::batch(3, "n3", records, number.next().0, 0)).is("
            save 2 [job j Cancelled] at 3-n3#3, term 3, jac 0
            reply 2: no value: cancelled (again, not charged)
            up 1 ACK 0
            stop computing 1
            moved j
            = following 3-n3, jac 0, at 3-n3#3
        ");
}
