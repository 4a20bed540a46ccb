//! What many of something do to one worker: each map and queue fills its bound and no more (sections 6, 8 and 10).
//! Bounds that belong to one part are tested with it.

use crate::protocol::ids::{Leadership, Number, ReplyToken};
use crate::protocol::message::Request;
use crate::protocol::testkit::{Lone, leadership, ms, query, quiet, submission};
use crate::protocol::{Effects, Input, Stored, limits};

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
            note election-started term 5
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
