//! What many of something do to one worker: each map and queue fills its bound and no more (sections 6, 8 and 10).
//! Bounds that belong to one part are tested with it.

use crate::protocol::ids::{Leadership, Number, ReplyToken, StreamId};
use crate::protocol::message::Request;
use crate::protocol::testkit::{Lone, leader, leadership, ms, query, quiet, status, submission};
use crate::protocol::{Effects, Input, Settings, Stored, limits};

/// Queries that the leader never answers, as many as fit.
fn fill_calls(n1: &mut Lone) {
    for token in 1_000..1_000 + limits::CALLS as u64 {
        n1.worker.on_request(ReplyToken(token), Request::GetJob(query("k")), &mut Effects::default());
    }
}

#[test]
fn calls_that_wait_fill_their_bound_and_one_more_fails_at_once() {
    let mut n1 = Lone::following(&[], 3, "n3", 5);
    fill_calls(&mut n1);
    n1.called(Request::GetJob(query("k"))).only("reply").is("reply 2: Unavailable, later");
    assert_eq!(n1.pass(limits::FORWARD).only("reply").0.len(), limits::CALLS, "each is answered in time");
}

#[test]
fn an_election_that_no_call_can_be_opened_for_ends_all_the_same() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.pass(ms(250)).skip();
    fill_calls(&mut n1);
    n1.wait(ms(800));
    n1.give(Input::TimerFired).is("
            close up 1
            note election-started term 4
            note edge-failed
            note branch-ended
            note election-ended term 4
            note election-started term 5
            note branch-ended
            note election-ended term 5
            note leadership-began term 5
            note link-down
            note leadership-active term 5
            = leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0
        ");
}

#[test]
fn a_thousand_terms_leave_a_past_of_the_last_1_024_leaderships() {
    let mut n1 = Lone::with(quiet(), Stored::default(), &[]);
    for term in 1..2_000 {
        n1.worker.ledger.enter(leadership(term, "n2", 0));
    }
    assert_eq!(n1.worker.ledger.past().parts().count(), limits::PAST);
    let left: Vec<&(Leadership, Number)> = n1.worker.ledger.past().parts().collect();
    assert_eq!(left.last().map(|(last, _)| last.term.0), Some(1_998));
}

#[test]
fn the_queue_of_one_worker_holds_as_many_as_the_setting_says() {
    let mut n1 = Lone::with(quiet(), Stored::default(), &[]);
    for at in 0..300 {
        n1.called(Request::SubmitJob(submission(&format!("j{at}")))).skip();
    }
    assert_eq!(n1.worker.queue.waiting(), 256);
}

#[test]
fn a_cluster_has_so_many_unfinished_jobs_and_one_more_waits() {
    let settings = Settings { max_jobs_per_term: u32::MAX, queue: limits::CALLERS, ..quiet() };
    let mut n1 = Lone::leading_with(settings, &[], 5, &[]);
    for at in 0..=limits::UNFINISHED {
        n1.called(Request::SubmitJob(submission(&format!("j{at}")))).skip();
    }
    assert_eq!((n1.worker.ledger.unfinished().len(), n1.worker.queue.waiting()), (limits::UNFINISHED, 1));
    n1.called(Request::CancelJob(query("j0"))).skip();
    n1.give(Input::TimerFired).skip();
    assert_eq!((n1.worker.ledger.unfinished().len(), n1.worker.queue.waiting()), (limits::UNFINISHED, 0));
}

#[test]
fn one_follower_more_than_a_leader_can_have_is_turned_away() {
    let mut n1 = Lone::leading(&[], 5, &[]);
    for _ in 0..limits::FOLLOWERS {
        n1.opened();
    }
    n1.give(Input::FollowerOpened { stream: StreamId(9_999) }).is("
            down 9999 NOT LEADER but 5-n1
            close down 9999
            = leading 5-n1, admitted 0, held 0, jac 0, at 5-n1#0
        ");
}

#[test]
fn leaderships_that_are_met_are_remembered_up_to_a_bound_and_no_longer_than_a_heartbeat() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    for term in 10..200 {
        let status = status("n2", Some(leader(term, "n7", 0)));
        n1.called(Request::Ping(Some(status))).skip();
    }
    let remembered = n1.worker.met.len();
    assert!((2..=64).contains(&remembered), "{remembered}");
    n1.wait(ms(151));
    n1.called(Request::Ping(Some(status("n2", Some(leader(300, "n7", 0)))))).skip();
    assert_eq!(n1.worker.met.len(), 1);
}
