//! What callers ask of any worker (sections 7 and 9): one job, all jobs, the cluster, an end to a job.

use crate::protocol::ids::{Digest, Jac, JobKey, Number, ReplyToken, StreamId};
use crate::protocol::input::Input;
use crate::protocol::limits;
use crate::protocol::message::{
    CallFailure, Code, Down, JobQuery, ListJobs, Purpose, Refusal, Request, Response, Status,
};
use crate::protocol::testkit::lone::ack;
use crate::protocol::testkit::{Lone, announce, job, leader, ms, node, query, status, submission};

const FIRST: StreamId = StreamId(101);

fn get(id: &str) -> Request {
    Request::GetJob(query(id))
}

fn cancel(id: &str) -> Request {
    Request::CancelJob(query(id))
}

fn passed_on(id: &str) -> JobQuery {
    JobQuery { forwarded: true, ..query(id) }
}

#[test]
fn a_follower_answers_from_its_replica_and_asks_the_leader_before_it_says_no() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    let (records, number) = super::admitted_by(3, "n3", "j");
    n1.frame(super::batch(3, "n3", records, number.0, 0)).skip();
    n1.called(get("j")).only("reply").is("reply 2: j Running 0/4");
    n1.called(get("k")).is("
            call n3 GET k passed on within 5000ms
            = following 3-n3, jac 0, at 3-n3#2
        ");
    let refusal = Refusal::new(Code::NotFound, "no such job");
    n1.fail("n3 GET k", CallFailure::Refused(refusal)).only("reply").is("reply 3: NotFound");
    n1.called(get("k")).skip();
    n1.fail("n3 GET k", CallFailure::TimedOut).only("reply").is("reply 4: Unavailable, later");
}

#[test]
fn the_leader_says_not_found_and_a_worker_without_a_leader_says_later() {
    let mut n1 = Lone::leading(&[], 3, &[]);
    n1.called(get("k")).only("reply").is("reply 2: NotFound");
    n1.called(cancel("k")).only("reply").is("reply 3: NotFound");
    let mut n1 = Lone::linked(&[]);
    n1.called(get("k")).only("reply").is("reply 1: Unavailable, later");
}

#[test]
fn a_query_is_passed_on_once_only() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(Request::GetJob(passed_on("k"))).is("
            reply 2: Unavailable
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_leader_that_is_not_active_yet_says_later() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.called(Request::Announce(announce(Purpose::Won, "n2", leader(3, "n1", 0), 2))).skip();
    n1.called(get("k")).only("reply").is("reply 2: Unavailable, later");
}

#[test]
fn a_cancel_is_told_when_it_is_held() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.sent(FIRST, ack(4)).skip();
    n1.called(cancel("j")).only("reply").is("");
    n1.called(get("j")).only("reply").is("reply 4: j Running 0/8");
    n1.called(cancel("j")).only("reply").is("");
    n1.saved().only("reply").is("");
    n1.sent(FIRST, ack(9)).is("
            reply 3: j Cancelled 0/8
            reply 5: j Cancelled 0/8
            down 101 HEARTBEAT 3-n1 held 5, room 4, admitted 1
            note job-ended j
            moved j
            = leading 3-n1, admitted 1, held 5, jac 1, at 3-n1#5
        ");
    n1.called(cancel("j")).only("reply").is("reply 6: j Cancelled 0/8");
}

#[test]
fn a_canceller_that_is_gone_is_not_answered() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.called(cancel("j")).skip();
    n1.give(Input::CallerGone { token: n1.token() }).skip();
    n1.saved().skip();
    n1.sent(FIRST, ack(9)).only("reply").is("reply 2: held, j Cancelled 0/8");
}

#[test]
fn a_leadership_that_ends_answers_its_cancellers() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.called(cancel("j")).skip();
    n1.wait(ms(600));
    n1.give(Input::TimerFired).only("reply").is("reply 3: Unavailable, later");
}

#[test]
fn cancellers_fill_their_bound_and_no_more() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.called(cancel("j")).skip();
    for token in 1_000..999 + limits::CALLERS as u64 {
        n1.worker.queue.wait_for(ReplyToken(token), job("j"), Number(99));
    }
    n1.called(cancel("j")).only("reply").is("reply 4: ResourceExhausted");
}

#[test]
fn a_follower_passes_a_cancel_on() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    let (records, number) = super::admitted_by(3, "n3", "j");
    n1.frame(super::batch(3, "n3", records, number.0, 0)).skip();
    n1.called(cancel("j")).only("call").is("call n3 CANCEL j passed on within 5000ms");
}

#[test]
fn jobs_are_listed_in_pages_by_key() {
    let mut n1 = Lone::leading(&[], 3, &[]);
    for id in ["c", "a", "b"] {
        n1.called(Request::SubmitJob(submission(id))).skip();
    }
    n1.saved().skip();
    n1.called(Request::ListJobs(ListJobs { after: None, limit: 2 })).only("reply").is("
            reply 5: jobs [a Running 0/4, b Running 0/4]
        ");
    n1.called(Request::ListJobs(ListJobs { after: Some(job("b")), limit: 0 })).only("reply").is("
            reply 6: jobs [c Running 0/4]
        ");
    let last = JobKey { digest: Digest([255; 32]), ..job("c") };
    n1.called(Request::ListJobs(ListJobs { after: Some(last), limit: u32::MAX })).only("reply").is("
            reply 7: jobs []
        ");
}

#[test]
fn the_cluster_is_shown_as_this_worker_sees_it() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.called(Request::GetCluster).only("reply").is("reply 3: cluster of 9, 3-n1 leads, admitted 1");
    assert!(n1.worker.is_ready());
    let n1 = Lone::linked(&[]);
    assert!(!n1.worker.is_ready(), "it knows no leader");
}

#[test]
fn the_cluster_is_shown_with_what_the_leader_tells_of_others_which_is_no_sign_of_life() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    let told = Status { jac: Jac(4), running: 2, links: vec![node("n3")], ..status("x1", None) };
    n1.frame(Down::Roster(vec![told])).skip();
    let cluster = n1.worker.cluster();
    let seen = cluster.nodes.iter().find(|seen| seen.member.node == node("x1")).expect("it was told of");
    assert_eq!((seen.alive, seen.jac, seen.running, &seen.links), (false, Jac(4), 2, &vec![node("n3")]));
}

#[test]
fn an_answer_of_another_kind_to_what_was_passed_on_is_no_answer() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    n1.called(get("k")).skip();
    n1.answer("n3 GET k", Response::Done).only("reply").is("reply 2: Unavailable, later");
}

#[test]
fn a_canceller_is_not_answered_for_a_number_that_is_held_while_the_outcome_is_not() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.sent(FIRST, ack(4)).skip();
    n1.called(cancel("j")).skip();
    n1.saved().skip();
    n1.sent(FIRST, ack(4)).only("reply").is("");
    n1.sent(FIRST, ack(5)).only("reply").is("reply 3: j Cancelled 0/8");
}

#[test]
fn a_canceller_whose_outcome_changes_in_a_join_waits_until_the_new_one_is_held() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.called(cancel("j")).skip();
    n1.saved().skip();
    // Another part had admitted it as well, which makes a change of its record.
    let (records, _) = super::admitted_by(2, "n8", "j");
    n1.worker.ledger.merge(records, Some(Number(0)));
    n1.sent(FIRST, ack(5)).only("reply 3").is("");
    n1.saved().skip();
    n1.sent(FIRST, ack(99)).only("reply 3").is("reply 3: j Cancelled 0/4");
}
