//! A follower on its leader's stream (sections 6 and 8): what it takes over, acknowledges and ignores, and how it
//! notices that its leader is gone.

use std::collections::BTreeSet;

use crate::protocol::ids::{Incarnation, Jac, Member, Number};
use crate::protocol::input::Input;
use crate::protocol::leadership::Role;
use crate::protocol::ledger::{Past, Stamped};
use crate::protocol::limits;
use crate::protocol::message::{Batch, CallFailure, Down, Leader, Purpose, Request, Response};
use crate::protocol::testkit::lone::{heartbeat, taken};
use crate::protocol::testkit::{Lone, announce, elect, job, leader, leadership, ms, status, submission};

/// Two records of a job that `3-n3` admits, at #1 and #2.
fn admitted() -> Vec<Stamped> {
    super::admitted_by(3, "n3", "j").0
}

fn batch(term: u64, records: Vec<Stamped>, number: u64, held: u64) -> Down {
    super::batch(term, "n3", records, number, held)
}

#[test]
fn a_batch_is_saved_with_its_position_and_acknowledged_when_it_is_on_the_disk() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(batch(3, admitted(), 2, 0)).is("
            save 2 [job j, payload j] at 3-n3#2, term 3, jac 0
            up 1 ACK 0
            moved j
            = following 3-n3, jac 0, at 3-n3#2
        ");
    n1.saved().is("
            up 1 ACK 2
            = following 3-n3, jac 0, at 3-n3#2
        ");
}

#[test]
fn every_frame_is_acknowledged_at_once_with_what_is_journalled_so_far() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(batch(3, admitted(), 2, 0)).skip();
    n1.frame(Down::Heartbeat(heartbeat(3, "n3", 0, 5))).is("
            up 1 ACK 0
            = following 3-n3, jac 0, at 3-n3#2
        ");
    n1.give(Input::LeaderStirred { stream: n1.up }).is("
            up 1 ACK 0
            = following 3-n3, jac 0, at 3-n3#2
        ");
    n1.frame(Down::Roster(vec![status("n4", None)])).is("
            up 1 ACK 0
            = following 3-n3, jac 0, at 3-n3#2
        ");
}

#[test]
fn an_older_leadership_s_frames_are_ignored_but_acknowledged() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(batch(2, admitted(), 2, 0)).is("
            up 1 ACK 0
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.frame(Down::Heartbeat(heartbeat(2, "n3", 0, 9))).skip();
    let room = match &n1.worker.role {
        Role::Following(following) => following.room,
        Role::Starting | Role::Seeking(_) | Role::Leading(_) => panic!("it follows"),
    };
    assert_eq!(room, 5);
}

#[test]
fn a_late_word_on_a_former_leader_says_nothing_of_the_present_one() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.called(Request::Announce(announce(Purpose::Flood, "n4", leader(4, "n4", 0), 3))).skip();
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.unreachable("n3 PING").only("= ").is("= following 4-n4, not joined, jac 0, at 3-n3#0");
    n1.unreachable("n4 PING").only("= ").is("= seeking, jac 0, at 3-n3#0");
}

#[test]
fn changes_to_what_it_has_not_joined_are_ignored() {
    let mut n1 = Lone::linked(&["n2"]);
    let flood = Purpose::Flood;
    let announced = announce(flood, "n3", leader(3, "n3", 0), 3);
    n1.called(Request::Announce(announced)).skip();
    n1.frame(batch(3, admitted(), 2, 0)).is("
            up 1 ACK -
            = following 3-n3, not joined, jac 0, at #0
        ");
}

#[test]
fn it_uploads_what_it_is_asked_for() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(batch(3, admitted(), 2, 0)).skip();
    n1.frame(Down::WantRecords(Number(1))).only("up").is("
            up 1 UPLOAD [payload j]
            up 1 ACK 0
        ");
    n1.frame(Down::WantHashes).only("up").is("
            up 1 HASHES j
            up 1 ACK 0
        ");
    n1.frame(Down::WantJobs(vec![job("j"), job("unknown")])).only("up").is("
            up 1 UPLOAD [job j, payload j]
            up 1 ACK 0
        ");
}

#[test]
fn a_joining_is_saved_and_starts_a_new_axis_of_numbers() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(batch(3, admitted(), 2, 0)).skip();
    n1.saved().skip();
    n1.frame(Down::Rejoin(leader(6, "n3", 0))).skip();
    let past = Past::from_parts([(leadership(3, "n3", 0), Number(1))]);
    let joins = Batch {
        leadership: leadership(6, "n3", 0),
        records: Vec::new(),
        number: Number(1),
        past: Some(past),
        held: Number(0),
        remembers: Jac(0),
    };
    n1.frame(Down::Batch(joins)).is("
            save 3 [] at 6-n3#1, term 6, jac 0, past [3-n3#1]
            up 1 ACK -
            = following 6-n3, jac 0, at 6-n3#1
        ");
    n1.saved().is("
            up 1 ACK 1
            = following 6-n3, jac 0, at 6-n3#1
        ");
}

#[test]
fn an_outcome_is_shown_once_the_leader_says_that_it_is_held() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    let mut records = admitted();
    super::end(&mut records, Number(3));
    n1.frame(batch(3, records, 3, 2)).only("note").is("");
    n1.frame(Down::Heartbeat(heartbeat(3, "n3", 3, 5))).is("
            up 1 ACK 0
            note job-ended j
            moved j
            = following 3-n3, jac 0, at 3-n3#3
        ");
}

#[test]
fn a_silent_leader_is_gone_after_the_randomised_timeout() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.pass(ms(499)).is("
            abandon a call
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.pass(ms(501)).is("
            call n2 ELECT n1-1-1 term 4 budget 200ms replaces 3-n3 within 197500us
            close up 1
            note election-started term 4
            = electing, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_broken_stream_and_a_ping_without_an_answer_end_a_leadership_within_70_ms() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.give(Input::LeaderEnded { stream: n1.up }).is("
            call n3 PING n1 follows 3-n3 within 50ms
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.pass(limits::LEADER_PING).is("
            abandon a call
            = seeking, jac 0, at 3-n3#0
        ");
    n1.pass(limits::START_SPREAD).only("call").is("
            call n2 ELECT n1-1-1 term 4 budget 200ms replaces 3-n3 within 197500us
        ");
}

#[test]
fn the_pause_before_an_election_is_spread_over_20_ms_and_differs_between_workers() {
    let mut pauses = BTreeSet::new();
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    for term in 4..60 {
        n1.give(Input::LeaderEnded { stream: n1.up }).skip();
        n1.unreachable("n3 PING").skip();
        let pause = n1.worker.role_deadline().expect("it seeks").since(n1.now());
        assert!(pause <= limits::START_SPREAD);
        pauses.insert(pause.as_millis());
        n1.follow(term, "n3", 5);
    }
    assert!(pauses.len() > 10, "{pauses:?}");
}

#[test]
fn an_election_that_reaches_it_meanwhile_suppresses_its_own() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.unreachable("n3 PING").skip();
    let reached = elect("n2", 1, 4);
    n1.called(Request::Elect(reached)).only("reply").is("
            reply 2: best n1/jac 0, nodes 1, term 4
        ");
    n1.pass(ms(499)).only("call").is("");
}

#[test]
fn a_leader_that_answers_the_ping_gets_a_new_stream_a_few_times() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    let lives = || Response::Ping(status("n3", Some(leader(3, "n3", 0))));
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.answer("n3 PING", lives()).is("
            open 2 to n3
            up 2 JOIN n1 follows 3-n3 at 3-n3#0, jobs 0
            = following 3-n3, not joined, jac 0, at 3-n3#0
        ");
    for _ in 0..2 {
        n1.give(Input::LeaderEnded { stream: n1.up }).skip();
        n1.answer("n3 PING", lives()).only("open").skip();
    }
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.answer("n3 PING", lives()).only("= ").is("= electing, jac 0, at 3-n3#0");
}

#[test]
fn a_leader_that_answers_with_another_leader_is_left_for_that_one() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.answer("n3 PING", Response::Ping(status("n3", Some(leader(4, "n5", 0))))).is("
            open 2 to n5
            up 2 JOIN n1 follows 4-n5 at 3-n3#0, jobs 0
            note following term 4
            = following 4-n5, not joined, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_leader_that_has_restarted_is_no_leader() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.answer("n3 PING", Response::Ping(status("n3", None))).is("= seeking, jac 0, at 3-n3#0");
}

#[test]
fn a_leader_elected_again_under_another_name_is_joined_anew() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.answer("n3 PING", Response::Ping(status("n3", Some(leader(4, "n3", 5))))).is("
            open 2 to n3
            up 2 JOIN n1 follows 3-n3 at 3-n3#0, jobs 0
            = following 3-n3, not joined, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_followed_node_that_leads_no_more_names_the_next() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(Down::NotLeader(Some(leader(4, "n5", 0)))).is("
            close up 1
            open 2 to n5
            up 2 JOIN n1 follows 4-n5 at 3-n3#0, jobs 0
            note following term 4
            = following 4-n5, not joined, jac 0, at 3-n3#0
        ");
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(Down::NotLeader(None)).is("
            close up 1
            = seeking, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_word_to_rejoin_in_the_same_term_comes_from_a_leader_that_dropped_what_this_replica_lacks() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(Down::Rejoin(leader(3, "n3", 0))).is("
            up 1 JOIN n1 follows 3-n3 at 3-n3#0, jobs 0
            up 1 ACK -
            = following 3-n3, not joined, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_word_to_rejoin_from_another_process_or_downwards_is_ignored() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(Down::Rejoin(leader(2, "n3", 0))).is("
            up 1 ACK 0
            = following 3-n3, jac 0, at 3-n3#0
        ");
    n1.frame(Down::Rejoin(leader(9, "n4", 0))).is("
            up 1 ACK 0
            = following 3-n3, jac 0, at 3-n3#0
        ");
    let restarted = Member { incarnation: Incarnation(2), ..leader(9, "n3", 0).member };
    n1.frame(Down::Rejoin(Leader { member: restarted, ..leader(9, "n3", 0) })).only("= ").is("
            = following 3-n3, jac 0, at 3-n3#0
        ");
}

#[test]
fn a_call_that_times_out_at_its_leader_does_not_end_the_leadership() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.fail("n3 SUBMIT", CallFailure::TimedOut).only("= ").is("= following 3-n3, jac 0, at 3-n3#0, 1 queued");
}

#[test]
fn a_follower_that_is_told_of_a_higher_incarnation_ends_and_of_a_lower_one_does_not() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.frame(Down::Superseded(Incarnation(1))).only("ended").is("");
    n1.frame(Down::Superseded(Incarnation(2))).only("ended").is("ended Superseded(Incarnation(2))");
}

#[test]
fn a_pong_for_a_leadership_that_is_followed_no_more_changes_nothing() {
    let mut n1 = Lone::following(&["n2"], 3, "n3", 5);
    n1.give(Input::LeaderEnded { stream: n1.up }).skip();
    n1.called(Request::Announce(announce(Purpose::Flood, "n4", leader(4, "n4", 0), 3))).skip();
    let lives = Response::Ping(status("n3", Some(leader(3, "n3", 0))));
    n1.answer("n3 PING", lives).only("=").is("= following 4-n4, not joined, jac 0, at 3-n3#0");
}

#[test]
fn a_leader_of_before_states_where_it_stands_once_its_admissions_are_on_its_disk() {
    let mut n1 = Lone::leading(&["n2"], 5, &[]);
    n1.called(Request::SubmitJob(submission("j"))).skip();
    n1.called(Request::Announce(announce(Purpose::Flood, "n2", leader(6, "n3", 0), 3))).skip();
    n1.answer("n3 SETTLE", taken(false, Some(leader(6, "n3", 0)), 4)).is("
            open 1 to n3
            note leadership-ended term 5
            note following term 6
            = following 6-n3, not joined, jac 1, at 5-n1#3, 1 queued
        ");
    n1.frame(Down::Heartbeat(heartbeat(6, "n3", 0, 5))).only("up").is("up 1 ACK -");
    n1.saved().only("up").is("
            up 1 JOIN n1 follows 6-n3 at 5-n1#3, jobs 1
            up 1 ACK -
        ");
}
