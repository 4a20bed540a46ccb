//! Announcements at one worker (section 6, 4 and 5): the winner is told, the COORDINATOR flood is handled once.

use crate::protocol::ids::Term;
use crate::protocol::message::{Announce, Down, Elect, Leader, Purpose, Request};
use crate::protocol::testkit::lone::{heartbeat, stored};
use crate::protocol::testkit::{Lone, announce, elect, election, leader, leadership, member, ms, quiet};
use crate::protocol::{Input, limits};

fn flood(from: &str, of: Leader) -> Request {
    Request::Announce(announce(Purpose::Flood, from, of, 3))
}

fn won(by: Leader) -> Request {
    Request::Announce(announce(Purpose::Won, "n2", by, 3))
}

#[test]
fn a_winner_leads_at_once_announces_itself_and_heartbeats_but_does_not_admit_yet() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(won(leader(3, "n1", 0))).is("
            reply 1: taken, follows 3-n1, reaches 1
            call n2 COORDINATOR 3-n1 workers 3 within 200ms
            call n3 COORDINATOR 3-n1 workers 3 within 200ms
            note leadership-began term 3
            = leading 3-n1, not active, admitted 0, held 0, jac 0, at 3-n1#0
        ");
}

#[test]
fn a_winner_told_by_two_initiators_accepts_both_times() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(won(leader(3, "n1", 0))).skip();
    n1.called(won(leader(3, "n1", 0))).is("
            reply 2: taken, follows 3-n1, reaches 1
            = leading 3-n1, not active, admitted 0, held 0, jac 0, at 3-n1#0
        ");
}

#[test]
fn a_winner_whose_jac_has_changed_since_the_flood_declines() {
    let mut n1 = Lone::with(quiet(), stored(4, 2), &["n2"]);
    n1.called(won(leader(3, "n1", 3))).is("
            reply 1: not taken, follows nobody, reaches 0
            = seeking, jac 4, at #0
        ");
}

#[test]
fn a_winner_of_a_term_that_it_has_followed_beyond_declines() {
    let mut n1 = Lone::following(&["n2"], 5, "n3", 5);
    n1.wait(ms(400));
    n1.called(won(leader(4, "n1", 0))).is("
            reply 2: not taken, follows 5-n3, reaches 0
            abandon a call
            = following 5-n3, jac 0, at 5-n3#0
        ");
}

#[test]
fn a_winner_that_hears_a_leader_and_took_no_part_declines() {
    let mut n1 = Lone::following(&["n2"], 2, "n3", 5);
    n1.called(won(leader(4, "n1", 0))).is("
            reply 2: not taken, follows 2-n3, reaches 0
            = following 2-n3, jac 0, at 2-n3#0
        ");
}

#[test]
fn a_winner_that_stops_declines() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.give(Input::Stop).skip();
    n1.called(won(leader(3, "n1", 0))).only("reply").is("reply 1: not taken, follows nobody, reaches 0");
}

#[test]
fn an_announcement_is_followed_and_passed_on_to_all_but_its_sender_and_the_leader() {
    let mut n1 = Lone::linked(&["n2", "n3", "n4"]);
    n1.called(flood("n2", leader(3, "n3", 0))).is("
            reply 1: taken, follows 3-n3, reaches 0
            call n4 COORDINATOR 3-n3 workers 3 within 200ms
            open 1 to n3
            up 1 JOIN n1 follows 3-n3 at #0, jobs 0
            note following term 3
            = following 3-n3, not joined, jac 0, at #0
        ");
}

#[test]
fn an_announcement_that_comes_again_is_handled_once() {
    let mut n1 = Lone::linked(&["n2", "n3", "n4"]);
    n1.called(flood("n2", leader(3, "n3", 0))).skip();
    n1.called(flood("n4", leader(3, "n3", 0))).is("
            reply 2: not taken, follows 3-n3, reaches 0
            = following 3-n3, not joined, jac 0, at #0
        ");
}

#[test]
fn of_two_announcements_of_one_term_the_better_candidate_is_kept_when_it_comes_second() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(Request::Elect(Elect { from: member("n2"), ..elect("n2", 1, 3) })).skip();
    n1.called(flood("n2", leader(3, "n5", 4))).skip();
    let better =
        Announce { election: Some(election("n2", 1)), ..announce(Purpose::Flood, "n3", leader(3, "n6", 2), 3) };
    n1.called(Request::Announce(better)).is("
            reply 3: taken, follows 3-n6/jac 2, reaches 0
            call n2 COORDINATOR 3-n6/jac 2 workers 3 within 200ms
            close up 1
            open 2 to n6
            up 2 JOIN n1 follows 3-n6/jac 2 at #0, jobs 0
            note following term 3
            = following 3-n6/jac 2, not joined, jac 0, at #0
        ");
}

#[test]
fn of_two_announcements_of_one_term_the_better_candidate_is_kept_when_it_came_first_and_hears_of_the_other() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(flood("n2", leader(3, "n6", 2))).skip();
    n1.called(flood("n3", leader(3, "n5", 4))).is("
            reply 2: not taken, follows 3-n6/jac 2, reaches 0
            call n6 MET 3-n5/jac 4 workers 0 within 200ms
            = following 3-n6/jac 2, not joined, jac 0, at #0
        ");
}

#[test]
fn an_announcement_is_refused_while_another_leader_is_heard_and_that_leader_is_told() {
    let mut n1 = Lone::following(&["n2", "n4"], 2, "n3", 5);
    n1.called(flood("n2", leader(4, "n5", 0))).is("
            reply 2: not taken, follows 2-n3, reaches 0
            call n3 MET 4-n5 workers 0 within 200ms
            = following 2-n3, jac 0, at 2-n3#0
        ");
}

#[test]
fn an_announcement_is_taken_by_those_who_took_part_in_its_election_though_they_hear_another_leader() {
    let mut n1 = Lone::following(&["n2", "n4"], 2, "n3", 5);
    n1.wait(ms(301));
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    n1.answer("n4 ELECT", super::nothing_found()).skip();
    n1.frame(Down::Heartbeat(heartbeat(2, "n3", 0, 5))).skip();
    let announced =
        Announce { election: Some(election("n2", 1)), ..announce(Purpose::Flood, "n2", leader(3, "n2", 0), 3) };
    n1.called(Request::Announce(announced)).is("
            reply 3: taken, follows 3-n2, reaches 0
            call n4 COORDINATOR 3-n2 workers 3 within 200ms
            close up 1
            open 2 to n2
            up 2 JOIN n1 follows 3-n2 at 2-n3#0, jobs 0
            note following term 3
            = following 3-n2, not joined, jac 0, at 2-n3#0
        ");
}

#[test]
fn an_announcement_is_taken_by_those_who_follow_the_leadership_that_it_replaces() {
    let mut n1 = Lone::following(&["n2", "n4"], 2, "n3", 5);
    let replaces = Some(leadership(2, "n3", 0));
    let election = Some(election("n3", 1));
    let announced = Announce { replaces, election, ..announce(Purpose::Flood, "n2", leader(4, "n5", 0), 3) };
    n1.called(Request::Announce(announced)).only("= ").is("= following 4-n5, not joined, jac 0, at 2-n3#0");
}

#[test]
fn an_announcement_that_replaces_a_leader_who_did_not_give_way_is_refused_by_those_who_hear_it() {
    let mut n1 = Lone::following(&["n2", "n4"], 2, "n3", 5);
    let replaces = Some(leadership(2, "n3", 0));
    let election = Some(election("n5", 1));
    let announced = Announce { replaces, election, ..announce(Purpose::Flood, "n2", leader(4, "n5", 0), 3) };
    n1.called(Request::Announce(announced)).is("
            reply 2: not taken, follows 2-n3, reaches 0
            call n3 MET 4-n5 workers 0 within 200ms
            = following 2-n3, jac 0, at 2-n3#0
        ");
}

#[test]
fn an_announcement_of_an_older_leadership_is_not_taken_and_its_leader_hears_of_the_newer() {
    let mut n1 = Lone::following(&["n2"], 5, "n3", 5);
    n1.pass(ms(1_000)).only("= ").is("= electing, jac 0, at 5-n3#0");
    n1.called(flood("n2", leader(4, "n6", 0))).is("
            reply 2: not taken, follows nobody, reaches 0
            call n6 MET 5-n3 workers 0 within 200ms
            = electing, jac 0, at 5-n3#0
        ");
}

#[test]
fn an_announcement_in_a_term_2_to_the_32_above_the_highest_known_is_malformed() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.called(flood("n2", leader(limits::TERM_LEAP + 1, "n3", 0))).is("
            reply 1: InvalidArgument
            = seeking, jac 0, at #0
        ");
}

#[test]
fn an_announcement_whose_leader_is_another_process_than_its_member_is_malformed() {
    let mut n1 = Lone::linked(&["n2"]);
    let twisted = Leader { leadership: leadership(3, "n4", 0), ..leader(3, "n3", 0) };
    n1.called(flood("n2", twisted)).only("reply").is("reply 1: InvalidArgument");
}

#[test]
fn a_higher_term_of_the_leader_whose_stream_is_open_is_passed_on_once_and_joined_on_its_own_word() {
    let mut n1 = Lone::following(&["n2", "n4"], 2, "n3", 5);
    n1.called(flood("n3", leader(7, "n3", 0))).is("
            reply 2: taken, follows 2-n3, reaches 0
            call n2 COORDINATOR 7-n3 workers 3 within 200ms
            call n4 COORDINATOR 7-n3 workers 3 within 200ms
            = following 2-n3, jac 0, at 2-n3#0
        ");
    n1.called(flood("n2", leader(7, "n3", 0))).is("
            reply 3: not taken, follows 2-n3, reaches 0
            = following 2-n3, jac 0, at 2-n3#0
        ");
    n1.called(flood("n4", leader(7, "n3", 0))).only("call").is("");
    n1.frame(Down::Rejoin(leader(7, "n3", 0))).is("
            up 1 JOIN n1 follows 7-n3 at 2-n3#0, jobs 0
            up 1 ACK -
            = following 7-n3, not joined, jac 0, at 2-n3#0
        ");
    assert_eq!(n1.worker.elections.highest, Term(7));
}

#[test]
fn a_leader_that_hears_of_another_asks_it_which_of_them_stays() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2", "n3"]);
    n1.called(flood("n2", leader(4, "n5", 0))).is("
            reply 2: not taken, follows 3-n1, reaches 3
            call n5 SETTLE 3-n1 workers 3 within 200ms
            = leading 3-n1, admitted 0, held 0, jac 0, at 3-n1#0
        ");
}

#[test]
fn an_announcement_of_itself_changes_nothing() {
    let mut n1 = Lone::leading(&["n2"], 3, &["n2"]);
    n1.called(flood("n2", leader(9, "n1", 0))).is("
            reply 2: not taken, follows 3-n1, reaches 2
            = leading 3-n1, admitted 0, held 0, jac 0, at 3-n1#0
        ");
}

#[test]
fn a_leadership_that_has_ended_does_not_begin_again_when_its_winner_is_told_once_more() {
    let mut n1 = Lone::leading(&["n2"], 5, &["n2"]);
    n1.wait(ms(600));
    n1.give(Input::TimerFired).only("note leadership").is("note leadership-ended term 5");
    let late = announce(Purpose::Won, "n9", leader(5, "n1", 0), 2);
    n1.called(Request::Announce(late)).only("reply").is("reply 2: not taken, follows nobody, reaches 0");
}
