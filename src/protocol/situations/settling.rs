//! Leaderships that meet, at one of their workers (section 6, 3 and 5).

use crate::protocol::ids::{Incarnation, Number, Position, StreamId, Term};
use crate::protocol::limits;
use crate::protocol::message::{CallFailure, Down, Leader, Purpose, Request};
use crate::protocol::testkit::lone::{ack, join_at, taken};
use crate::protocol::testkit::{Lone, announce, leader, leadership, ms, status, submission};

fn settle(of: Leader, reaches: u32) -> Request {
    let from = of.member.node.as_str().to_owned();
    Request::Announce(announce(Purpose::Settle, &from, of, reaches))
}

fn met(of: Leader) -> Request {
    Request::Announce(announce(Purpose::Met, "n2", of, 0))
}

#[test]
fn in_different_terms_the_one_that_reaches_more_stays_and_moves_above_both() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2", "n3"]);
    n1.called(settle(leader(7, "n5", 0), 2)).is("
            reply 2: not taken, follows 8-n1, reaches 3
            call n2 COORDINATOR 8-n1 workers 3 replaces 3-n1 within 200ms
            down 101 REJOIN 8-n1
            down 102 REJOIN 8-n1
            note leadership-moved-up term 8
            = leading 8-n1, admitted 0, held 0, jac 0, at 8-n1#0
        ");
}

#[test]
fn an_older_term_that_reaches_fewer_is_not_even_worth_moving_up() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2", "n3"]);
    n1.called(settle(leader(2, "n5", 0), 2)).is("
            reply 2: not taken, follows 3-n1, reaches 3
            = leading 3-n1, admitted 0, held 0, jac 0, at 3-n1#0
        ");
}

#[test]
fn in_different_terms_the_one_that_reaches_fewer_steps_down_and_follows_the_newer() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(settle(leader(7, "n5", 0), 3)).is("
            reply 2: taken, follows 7-n5, reaches 0
            open 1 to n5
            up 1 JOIN n1 follows 7-n5 at 3-n1#0, jobs 0
            down 101 NOT LEADER but 7-n5
            close down 101
            note leadership-ended term 3
            note following term 7
            = following 7-n5, not joined, jac 0, at 3-n1#0
        ");
}

#[test]
fn one_that_steps_down_for_an_older_term_waits_for_it_to_move_up() {
    let mut n1 = Lone::leading(&["n2"], 7, &["n2"]);
    n1.called(settle(leader(3, "n5", 0), 3)).is("
            reply 2: taken, follows nobody, reaches 0
            note leadership-ended term 7
            = seeking, jac 0, at 7-n1#0
        ");
    n1.called(Request::Announce(announce(Purpose::Flood, "n5", leader(8, "n5", 0), 4))).is("
            reply 3: taken, follows 8-n5, reaches 0
            call n2 COORDINATOR 8-n5 workers 4 within 200ms
            open 1 to n5
            up 1 JOIN n1 follows 8-n5 at 7-n1#0, jobs 0
            down 101 NOT LEADER but 8-n5
            close down 101
            note following term 8
            = following 8-n5, not joined, jac 0, at 7-n1#0
        ");
}

#[test]
fn in_one_term_the_better_candidate_stays_whatever_it_reaches() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(settle(leader(3, "n5", 2), 9)).only("= ").is("= leading 4-n1, admitted 0, held 0, jac 0, at 4-n1#0");
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(settle(leader(3, "n0", 0), 1)).only("= ").is("= following 3-n0, not joined, jac 0, at 3-n1#0");
}

#[test]
fn with_equal_reach_the_higher_term_stays() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(settle(leader(4, "n5", 0), 2)).only("= ").is("= following 4-n5, not joined, jac 0, at 3-n1#0");
}

#[test]
fn a_callee_that_leads_not_says_so_and_takes_the_leader_for_its_own() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.called(settle(leader(3, "n5", 0), 2)).is("
            reply 1: not taken, follows 3-n5, reaches 0
            open 1 to n5
            up 1 JOIN n1 follows 3-n5 at #0, jobs 0
            note following term 3
            = following 3-n5, not joined, jac 0, at #0
        ");
}

#[test]
fn a_caller_that_the_other_steps_down_for_moves_up_and_welcomes_it() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(met(leader(7, "n5", 0))).skip();
    n1.answer("n5 SETTLE", taken(true, None, 0)).is("
            call n2 COORDINATOR 8-n1 workers 2 replaces 3-n1 within 200ms
            call n5 COORDINATOR 8-n1 workers 2 within 200ms
            down 101 REJOIN 8-n1
            note leadership-moved-up term 8
            = leading 8-n1, admitted 0, held 0, jac 0, at 8-n1#0
        ");
}

#[test]
fn a_caller_steps_down_for_the_one_that_stays() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(met(leader(7, "n5", 0))).skip();
    n1.answer("n5 SETTLE", taken(false, Some(leader(7, "n5", 0)), 4)).is("
            open 1 to n5
            up 1 JOIN n1 follows 7-n5 at 3-n1#0, jobs 0
            down 101 NOT LEADER but 7-n5
            close down 101
            note leadership-ended term 3
            note following term 7
            = following 7-n5, not joined, jac 0, at 3-n1#0
        ");
}

#[test]
fn a_caller_without_an_answer_moves_above_the_other_for_one_who_followed_that_and_has_no_leader() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(Request::Announce(announce(Purpose::Met, "n6", leader(7, "n5", 0), 0))).skip();
    n1.fail("n5 SETTLE", CallFailure::TimedOut).is("
            call n2 COORDINATOR 8-n1 workers 2 replaces 3-n1 within 200ms
            down 101 REJOIN 8-n1
            note leadership-moved-up term 8
            = leading 8-n1, admitted 0, held 0, jac 0, at 8-n1#0
        ");
}

#[test]
fn a_restarted_leader_moves_above_its_own_former_leadership_without_a_call() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    let former = announce(Purpose::Met, "n6", leader(7, "n1", 0), 0);
    n1.called(Request::Announce(former.clone())).only("= ").is("
            = leading 3-n1, admitted 0, held 0, jac 0, at 3-n1#0
        ");
    n1.worker.me.incarnation = Incarnation(2);
    n1.called(Request::Announce(former)).is("
            reply 3: not taken, follows 8-n1, reaches 2
            call n2 COORDINATOR 8-n1 workers 2 replaces 3-n1 within 200ms
            down 101 REJOIN 8-n1
            note leadership-moved-up term 8
            = leading 8-n1, admitted 0, held 0, jac 0, at 8-n1#0
        ");
}

#[test]
fn a_caller_without_an_answer_leaves_the_other_in_peace() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(met(leader(7, "n5", 0))).skip();
    n1.fail("n5 SETTLE", CallFailure::TimedOut).is("= leading 3-n1, admitted 0, held 0, jac 0, at 3-n1#0");
}

#[test]
fn a_caller_without_an_answer_leaves_an_older_one_alone() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(met(leader(2, "n5", 0))).skip();
    n1.fail("n5 SETTLE", CallFailure::TimedOut).is("= leading 3-n1, admitted 0, held 0, jac 0, at 3-n1#0");
}

#[test]
fn a_callee_that_follows_a_third_leader_sends_the_caller_on_to_it() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(met(leader(7, "n5", 0))).skip();
    n1.answer("n5 SETTLE", taken(false, Some(leader(9, "n6", 0)), 0)).is("
            call n2 COORDINATOR 8-n1 workers 2 replaces 3-n1 within 200ms
            call n6 SETTLE 8-n1 workers 2 within 200ms
            down 101 REJOIN 8-n1
            note leadership-moved-up term 8
            = leading 8-n1, admitted 0, held 0, jac 0, at 8-n1#0
        ");
}

#[test]
fn a_callee_that_follows_the_caller_already_is_welcomed_to_the_higher_term() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(met(leader(7, "n5", 0))).skip();
    n1.answer("n5 SETTLE", taken(false, Some(leader(3, "n1", 0)), 0)).only("call").is("
            call n2 COORDINATOR 8-n1 workers 2 replaces 3-n1 within 200ms
            call n5 COORDINATOR 8-n1 workers 2 within 200ms
        ");
}

#[test]
fn an_answer_in_a_malformed_term_counts_as_none() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(met(leader(7, "n5", 0))).skip();
    n1.answer("n5 SETTLE", taken(false, Some(leader(u64::MAX, "n5", 0)), 4)).only("= ").is("
            = leading 3-n1, admitted 0, held 0, jac 0, at 3-n1#0
        ");
}

#[test]
fn every_follower_s_word_of_one_leadership_starts_one_call_only() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(met(leader(7, "n5", 0))).only("call").is("call n5 SETTLE 3-n1 workers 2 within 200ms");
    n1.called(met(leader(7, "n5", 0))).only("call").is("");
    n1.fail("n5 SETTLE", CallFailure::TimedOut).skip();
    n1.called(met(leader(7, "n5", 0))).only("call").is("");
    n1.wait(ms(150));
    n1.called(met(leader(7, "n5", 0))).only("call").is("call n5 SETTLE 3-n1 workers 2 within 200ms");
}

#[test]
fn a_follower_that_meets_another_leadership_tells_its_own_leader() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.called(Request::Ping(Some(status("n6", Some(leader(7, "n5", 0)))))).is("
            reply 2: n1 follows 3-n3
            call n3 MET 7-n5 workers 0 within 200ms
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn one_that_seeks_and_hears_of_an_older_leadership_tells_that_leader_of_the_newer() {
    let mut n1 = Lone::following(&["n2"], 7, "n3", 5);
    n1.pass(ms(1_000)).skip();
    n1.called(Request::Ping(Some(status("n6", Some(leader(5, "n5", 0)))))).is("
            reply 2: n1 follows nobody
            call n5 MET 7-n3 workers 0 within 200ms
            = electing, jac 0, at 7-n3#0
        ");
}

#[test]
fn a_lost_leadership_comes_back_by_its_leader_s_word_only() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.pass(ms(1_000)).skip();
    n1.called(Request::Ping(Some(status("n2", Some(leader(3, "n3", 0)))))).only("= ").is("
            = electing, jac 0, at 3-n3#0
        ");
    n1.called(Request::Ping(Some(status("n3", Some(leader(3, "n3", 0)))))).only("= ").is("
            = following 3-n3, not joined, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_leader_that_moves_up_keeps_its_count_and_its_followers_rejoin_on_their_streams() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2", "n3"]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.saved().skip();
    n1.called(settle(leader(7, "n5", 0), 2)).only("down").is("
            down 101 REJOIN 8-n1
            down 102 REJOIN 8-n1
        ");
    let stream = StreamId(101);
    let stood = Position { leadership: Some(leadership(3, "n1", 0)), number: Number(0) };
    n1.sent(stream, join_at("n2", 8, "n1", stood)).is("
            down 101 BATCH joins 8-n1#5 [job j, payload j, task j/0 of 12 attempt 1 at n2, task j/1 of 12 attempt 1 at n3, task j/2 of 12 attempt 1 at n1] held 0
            note follower-joined
            = leading 8-n1, admitted 1, held 0, jac 1, at 8-n1#5
        ");
    n1.sent(stream, ack(8)).only("= ").is("= leading 8-n1, admitted 1, held 5, jac 1, at 8-n1#5");
}

#[test]
fn a_leader_that_moves_up_still_reaches_those_who_are_about_to_rejoin() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2", "n3"]);
    n1.called(settle(leader(7, "n5", 0), 2)).skip();
    n1.called(settle(leader(9, "n6", 0), 2)).only("= ").is("= leading 10-n1, admitted 0, held 0, jac 0, at 10-n1#0");
}

#[test]
fn a_follower_that_joins_from_a_newer_term_makes_its_leader_move_above_it() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    let stream = n1.opened();
    let beyond = Position { leadership: Some(leadership(6, "n7", 0)), number: Number(9) };
    n1.sent(stream, join_at("n4", 3, "n1", beyond)).is("
            call n2 COORDINATOR 7-n1 workers 3 replaces 3-n1 within 200ms
            down 101 REJOIN 7-n1
            down 102 REJOIN 7-n1
            note leadership-moved-up term 7
            = leading 7-n1, admitted 0, held 0, jac 0, at 7-n1#0
        ");
}

#[test]
fn a_follower_that_joins_from_a_malformed_term_is_turned_away() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    let stream = n1.opened();
    let beyond = Position { leadership: Some(leadership(u64::MAX, "n7", 0)), number: Number(9) };
    n1.sent(stream, join_at("n4", 3, "n1", beyond)).is("
            close down 102
            = leading 3-n1, admitted 0, held 0, jac 0, at 3-n1#0
        ");
    assert_eq!(n1.worker.elections.highest, Term(3));
}

#[test]
fn a_hundred_thousand_leaderships_met_are_remembered_up_to_a_bound() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    for term in 4..2_000 {
        n1.called(Request::Ping(Some(status("n6", Some(leader(term, "n5", 0)))))).skip();
    }
    assert_eq!(n1.worker.met.len(), 64);
    n1.wait(ms(150));
    n1.called(Request::Ping(Some(status("n6", Some(leader(4, "n5", 0)))))).only("call").is("
            call n3 MET 4-n5 workers 0 within 200ms
        ");
    assert_eq!(n1.worker.met.len(), 1);
}

#[test]
fn hearsay_in_a_malformed_term_is_no_leadership() {
    let mut n1 = Lone::linked(&["n2"]);
    let far = leader(limits::TERM_LEAP + 1, "n5", 0);
    n1.called(Request::Ping(Some(status("n5", Some(far.clone()))))).only("= ").is("= seeking, jac 0, at #0");
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(Down::Rejoin(leader(limits::TERM_LEAP + 4, "n3", 0))).only("= ").is("
            = following 3-n3, jac 0, at 3-n3#0
        ");
}
