//! SIGTERM (section 2): what a worker hands over, hands back and says before it ends.

use crate::protocol::ids::{Candidate, Jac, StreamId, Term};
use crate::protocol::input::Input;
use crate::protocol::leases::Leases;
use crate::protocol::members::Members;
use crate::protocol::message::{DirectoryAnswer, DirectoryId, ElectAnswer, ExecuteTask, Purpose, Request, Response};
use crate::protocol::testkit::lone::{ack, taken};
use crate::protocol::testkit::{
    Lone, announce, elect, leader, leadership, member, ms, node, status, submission, sum_to_100, task,
};

fn run(slice: u32) -> Request {
    let (leadership, task) = (leadership(3, "n3", 0), task("j", 4, slice));
    Request::ExecuteTask(ExecuteTask { leadership, task, attempt: 1, slice: sum_to_100() })
}

#[test]
fn a_follower_hands_back_what_runs_and_waits_takes_leave_and_ends() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    n1.worker.leases = Leases::new(1);
    n1.give(Input::DirectoryAnswered { directory: DirectoryId(0), result: Ok(DirectoryAnswer::Leased(ms(8_000))) })
        .skip();
    n1.called(run(0)).skip();
    n1.called(run(1)).skip();
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.give(Input::Stop).is("
            reply 2: no value: the worker stops (again, not charged)
            reply 3: no value: the worker stops (again, not charged)
            reply 4: Unavailable, later
            call n2 REMOVE n1 within 500ms
            directory 0 DEREGISTER n1
            stop computing 1
            note stopping
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.answer("n2 REMOVE", Response::Done).only("ended").is("");
    n1.give(Input::DirectoryAnswered { directory: DirectoryId(0), result: Ok(DirectoryAnswer::Left) })
        .only("ended")
        .is("ended Stopped");
}

#[test]
fn a_worker_alone_ends_at_once() {
    let mut n1 = Lone::linked(&[]);
    n1.worker.members = Members::new(node("n1"));
    n1.give(Input::Stop).skip();
    n1.pass(ms(1)).only("ended").is("ended Stopped");
}

#[test]
fn directories_and_neighbours_that_do_not_answer_hold_an_end_up_for_two_seconds_at_most() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    n1.worker.leases = Leases::new(1);
    n1.give(Input::DirectoryAnswered { directory: DirectoryId(0), result: Ok(DirectoryAnswer::Leased(ms(8_000))) })
        .skip();
    n1.give(Input::Stop).skip();
    // It has handed over, and its leader's silence meanwhile is for others to notice.
    let waits = n1.pass(ms(1_999)).0;
    assert!(!waits.iter().any(|line| line.starts_with("ended") || line.contains("election-started")), "{waits:?}");
    n1.pass(ms(1)).only("ended").is("ended Stopped");
}

#[test]
fn a_leader_waits_until_its_followers_have_all_then_elects_another_and_goes_when_it_knows_whom() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.give(Input::Stop).is("
            down 101 HEARTBEAT 3-n1 held 0, room 0, admitted 1
            note stopping
            = leading 3-n1, admitted 1, held 0, jac 1, at 3-n1#4
        ");
    n1.sent(StreamId(101), ack(9)).skip();
    n1.pass(ms(150)).is("
            abandon a call
            call n2 ELECT n1-1-1 term 4 budget 200ms replaces 3-n1 within 197500us
            down 101 HEARTBEAT 3-n1 held 4, room 0, admitted 1
            note leadership-ended term 3
            note election-started term 4
            = electing, jac 1, at 3-n1#4
        ");
    let found = ElectAnswer {
        best: Some(Candidate { jac: Jac(4), member: member("n2") }),
        nodes: 1,
        highest_term: Term(4),
        ..ElectAnswer::default()
    };
    n1.answer("n2 ELECT", Response::Elect(found)).only("call").is("
            call n2 WON 4-n2/jac 4 workers 2 replaces 3-n1 within 200ms
        ");
    n1.answer("n2 WON", taken(true, Some(leader(4, "n2", 4)), 1)).is("
            open 1 to n2
            up 1 JOIN n1 follows 4-n2/jac 4 at 3-n1#4, jobs 1
            down 101 NOT LEADER but 4-n2/jac 4
            close down 101
            note election-ended term 4
            note following term 4
            = following 4-n2/jac 4, not joined, jac 1, at 3-n1#4
        ");
    n1.pass(ms(1)).only("call").is("");
}

#[test]
fn a_leader_that_finds_nobody_to_hand_over_to_waits_for_nothing() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.give(Input::Stop).only("note election").is("note election-started term 4");
    let nobody = ElectAnswer { nodes: 1, highest_term: Term(4), ..ElectAnswer::default() };
    n1.answer("n2 ELECT", Response::Elect(nobody)).only("call").is("call n2 REMOVE n1 within 500ms");
}

#[test]
fn a_leader_whose_followers_stay_behind_goes_all_the_same() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.give(Input::Stop).skip();
    let mut ended = Vec::new();
    for _ in 0..70 {
        n1.sent(StreamId(101), ack(1)).skip();
        ended.extend(n1.pass(ms(100)).only("ended").0);
    }
    assert_eq!(ended, ["ended Stopped"], "within the bound of 8 s");
}

#[test]
fn a_worker_that_stops_takes_nothing_new() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.give(Input::Stop).skip();
    n1.called(Request::SubmitJob(submission("j"))).only("reply").is("reply 1: Unavailable, later");
    n1.called(run(0)).only("reply").is("reply 2: Unavailable");
    n1.called(Request::AddNeighbor(status("n4", None))).only("reply").is("reply 3: not linked, n1 follows nobody");
    n1.called(Request::Elect(elect("n2", 1, 3))).only("reply").is("reply 4: best nobody, nodes 1, term 3");
    n1.called(Request::Announce(announce(Purpose::Flood, "n2", leader(3, "n2", 0), 1))).only("call").is("");
}

#[test]
fn a_second_request_to_stop_changes_nothing() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 0);
    n1.give(Input::Stop).skip();
    n1.give(Input::Stop).is("= following 3-n3, jac 0, at 3-n3#0");
}

#[test]
fn what_comes_after_the_end_changes_nothing() {
    let mut n1 = Lone::linked(&[]);
    n1.worker.members = Members::new(node("n1"));
    n1.give(Input::Stop).skip();
    n1.pass(ms(1)).skip();
    n1.called(Request::SubmitJob(submission("j"))).only("reply").is("");
    n1.give(Input::Stop).only("note").is("");
}
