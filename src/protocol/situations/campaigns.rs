//! The initiator of an election (section 6, 1 to 4): when it begins, what it makes of what came back.

use crate::protocol::ids::{Candidate, Incarnation, Jac, Member, Term};
use crate::protocol::leadership::Role;
use crate::protocol::limits;
use crate::protocol::members::Members;
use crate::protocol::message::{CallFailure, Edge, ElectAnswer, Leader, Purpose, Request, Response, Status};
use crate::protocol::testkit::lone::{Outcome, stored, taken};
use crate::protocol::testkit::{Lone, announce, elect, leader, member, ms, node, quiet, status, submission};

fn branch(best: &str, jac: u64, nodes: u32, term: u64) -> Response {
    Response::Elect(found(best, jac, nodes, term))
}

fn found(best: &str, jac: u64, nodes: u32, term: u64) -> ElectAnswer {
    let best = Some(Candidate { jac: Jac(jac), member: member(best) });
    ElectAnswer { best, nodes, highest_term: Term(term), ..ElectAnswer::default() }
}

fn refused_for(named: Leader, term: u64) -> Response {
    Response::Elect(ElectAnswer { refusals: vec![named], highest_term: Term(term), ..ElectAnswer::default() })
}

fn broken(from: &str, to: &str, term: u64) -> Response {
    let failed = vec![Edge { from: node(from), to: node(to) }];
    Response::Elect(ElectAnswer { failed, ..found("n2", 9, 1, term) })
}

/// One with these links and this JAC whose time to begin an election has come.
fn begun(links: &[&str], jac: u64) -> (Lone, Outcome) {
    let mut n1 = Lone::with(quiet(), stored(jac, 4), links);
    let began = n1.pass(ms(1_000));
    (n1, began)
}

#[test]
fn a_worker_without_a_leader_begins_an_election_in_a_term_above_all_that_it_knows() {
    let mut n1 = Lone::with(quiet(), stored(0, 4), &["n2", "n3"]);
    let start_at = n1.worker.role_deadline().expect("it seeks");
    n1.pass(start_at.since(n1.now())).is("
            call n2 ELECT n1-1-1 term 5 budget 200ms within 197500us
            call n3 ELECT n1-1-1 term 5 budget 200ms within 197500us
            note election-started term 5
            = electing, jac 0, at #0
        ");
}

#[test]
fn an_initiator_that_is_told_its_jac_in_mid_flood_does_not_win_by_the_one_that_it_offered() {
    let (mut n1, _) = begun(&["n2"], 0);
    n1.worker.recall_jac(Jac(4));
    n1.answer("n2 ELECT", branch("n2", 9, 1, 5)).skip();
    assert!(!n1.worker.is_leading(), "it offered JAC 0 and has 4");
    assert_eq!(n1.worker.jac, Jac(4));
}

#[test]
fn alone_it_leads_at_once() {
    let mut n1 = Lone::with(quiet(), stored(3, 4), &[]);
    n1.worker.members = Members::new(node("n1"));
    let start_at = n1.worker.role_deadline().expect("it seeks");
    n1.pass(start_at.since(n1.now())).is("
            note election-started term 5
            note branch-ended
            note election-ended term 5
            note leadership-began term 5
            note leadership-active term 5
            = leading 5-n1/jac 3, admitted 0, held 0, jac 3, at 5-n1/jac 3#0
        ");
}

#[test]
fn without_links_the_flood_goes_to_all_members_that_live() {
    let (_, began) = begun(&[], 0);
    assert_eq!(began.only("call n").0.iter().filter(|line| line.contains("ELECT n1-1-1")).count(), 8);
}

#[test]
fn the_lowest_jac_is_told_first_and_announced_once_it_has_accepted() {
    let (mut n1, _) = begun(&["n2", "n3"], 7);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n3 ELECT", branch("n4", 6, 2, 5)).is("
            call n2 WON 5-n2/jac 5 workers 4 within 200ms
            note branch-ended
            note winner-chosen term 5
            = electing, jac 7, at #0
        ");
    let won = leader(5, "n2", 5);
    n1.answer("n2 WON", taken(true, Some(won), 1)).is("
            call n3 COORDINATOR 5-n2/jac 5 workers 4 within 200ms
            open 1 to n2
            up 1 JOIN n1 follows 5-n2/jac 5 at #0, jobs 0
            note election-ended term 5
            note following term 5
            = following 5-n2/jac 5, not joined, jac 7, at #0
        ");
}

#[test]
fn among_equals_the_smaller_id_wins() {
    let (mut n1, _) = begun(&["n2", "n3"], 5);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n3 ELECT", branch("n3", 5, 1, 5)).only("= ").is("
            = leading 5-n1/jac 5, not active, admitted 0, held 0, jac 5, at 5-n1/jac 5#0
        ");
    let (mut n1, _) = begun(&["n2", "n3"], 6);
    n1.answer("n2 ELECT", branch("n3", 5, 1, 5)).skip();
    n1.answer("n3 ELECT", branch("n2", 5, 1, 5)).only("call").is("
            call n2 WON 5-n2/jac 5 workers 3 within 200ms
        ");
}

#[test]
fn an_initiator_that_wins_leads_and_floods_the_announcement() {
    let (mut n1, _) = begun(&["n2", "n3"], 0);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n3 ELECT", branch("n3", 6, 1, 5)).is("
            call n2 COORDINATOR 5-n1 workers 3 within 200ms
            call n3 COORDINATOR 5-n1 workers 3 within 200ms
            note branch-ended
            note election-ended term 5
            note leadership-began term 5
            = leading 5-n1, not active, admitted 0, held 0, jac 0, at 5-n1#0
        ");
}

#[test]
fn a_failed_branch_is_flooded_around_once_in_a_higher_term() {
    let (mut n1, _) = begun(&["n2", "n3"], 0);
    n1.unreachable("n3 ELECT").skip();
    n1.answer("n2 ELECT", broken("n2", "n5", 5)).is("
            call n2 ELECT n1-1-2 term 6 budget 200ms around n1>n3, n2>n5 within 197500us
            note branch-ended
            note election-ended term 5
            note election-started term 6
            = electing, jac 0, at #0
        ");
    n1.answer("n2 ELECT", broken("n2", "n6", 6)).only("= ").is("
            = leading 6-n1, not active, admitted 0, held 0, jac 0, at 6-n1#0
        ");
}

#[test]
fn an_initiator_follows_the_leader_that_a_refusal_names() {
    let (mut n1, _) = begun(&["n2", "n3"], 0);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    let named = leader(3, "n6", 0);
    n1.answer("n3 ELECT", refused_for(named.clone(), 5)).is("
            call n6 PING n1 follows nobody within 50ms
            note branch-ended
            = electing, jac 0, at #0
        ");
    n1.answer("n6 PING", Response::Ping(status("n6", Some(named)))).is("
            open 1 to n6
            up 1 JOIN n1 follows 3-n6 at #0, jobs 0
            note election-ended term 5
            note following term 3
            = following 3-n6, not joined, jac 0, at #0
        ");
}

#[test]
fn an_initiator_tells_a_living_leader_of_an_older_term_to_move_up_and_waits_for_it() {
    let mut n1 = Lone::following(&["n2"], 7, "n3", 5);
    let start_at = n1.worker.role_deadline().expect("it may be silent");
    n1.pass(start_at.since(n1.now())).skip();
    n1.answer("n2 ELECT", refused_for(leader(4, "n6", 0), 8)).skip();
    n1.answer("n6 PING", Response::Ping(status("n6", Some(leader(4, "n6", 0))))).is("
            call n6 MET 7-n3 workers 0 within 200ms
            note election-ended term 8
            = seeking, jac 0, at 7-n3#0
        ");
    n1.pass(ms(499)).only("call").is("");
}

#[test]
fn an_initiator_goes_on_with_those_that_did_not_refuse_when_the_named_leader_can_not_be_reached() {
    let (mut n1, _) = begun(&["n2", "n3"], 7);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n3 ELECT", refused_for(leader(3, "n6", 0), 5)).skip();
    n1.pass(ms(50)).is("
            abandon a call
            call n2 WON 5-n2/jac 5 workers 2 within 200ms
            note winner-chosen term 5
            = electing, jac 7, at #0
        ");
}

#[test]
fn a_named_leader_that_answers_but_leads_no_more_counts_as_not_reached() {
    let (mut n1, _) = begun(&["n2"], 7);
    n1.answer("n2 ELECT", refused_for(leader(3, "n6", 0), 5)).skip();
    n1.answer("n6 PING", Response::Ping(status("n6", None))).only("= ").is("
            = leading 5-n1/jac 7, admitted 0, held 0, jac 7, at 5-n1/jac 7#0
        ");
}

#[test]
fn a_stale_term_ends_the_election_and_the_next_one_lies_above_it() {
    let (mut n1, _) = begun(&["n2", "n3"], 0);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n3 ELECT", Response::Elect(ElectAnswer { highest_term: Term(40), ..ElectAnswer::default() })).is("
            note branch-ended
            note election-ended term 5
            = seeking, jac 0, at #0
        ");
    n1.pass(limits::START_SPREAD).only("call").is("
            call n2 ELECT n1-1-2 term 41 budget 200ms within 197500us
            call n3 ELECT n1-1-2 term 41 budget 200ms within 197500us
        ");
}

#[test]
fn a_winner_that_can_not_be_reached_is_left_out_of_the_next_election_which_begins_at_once() {
    let (mut n1, _) = begun(&["n2", "n3"], 7);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n3 ELECT", branch("n4", 0, 2, 5)).skip();
    n1.unreachable("n4 WON").is("
            call n2 ELECT n1-1-2 term 6 budget 200ms without n4 within 197500us
            call n3 ELECT n1-1-2 term 6 budget 200ms without n4 within 197500us
            note election-ended term 5
            note election-started term 6
            = electing, jac 7, at #0
        ");
    n1.answer("n2 ELECT", branch("n2", 5, 1, 6)).skip();
    n1.answer("n3 ELECT", branch("n3", 9, 1, 6)).only("call").is("
            call n2 WON 6-n2/jac 5 workers 3 within 200ms
        ");
    n1.pass(limits::ANNOUNCE).only("call").is("
            call n2 ELECT n1-1-3 term 7 budget 200ms without n4, n2 within 197500us
            call n3 ELECT n1-1-3 term 7 budget 200ms without n4, n2 within 197500us
        ");
}

#[test]
fn a_winner_that_declines_ends_the_election_and_its_leader_is_followed() {
    let (mut n1, _) = begun(&["n2"], 7);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n2 WON", taken(false, Some(leader(6, "n3", 0)), 0)).is("
            open 1 to n3
            up 1 JOIN n1 follows 6-n3 at #0, jobs 0
            note election-ended term 5
            note following term 6
            = following 6-n3, not joined, jac 7, at #0
        ");
}

#[test]
fn a_winner_that_accepts_without_saying_whom_it_follows_ends_the_election() {
    let (mut n1, _) = begun(&["n2"], 7);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n2 WON", taken(true, None, 0)).skip();
    n1.pass(limits::START_SPREAD).only("call").is("
            call n2 ELECT n1-1-2 term 6 budget 200ms within 197500us
        ");
}

#[test]
fn a_winner_that_accepts_in_a_malformed_term_ends_the_election() {
    let (mut n1, _) = begun(&["n2"], 7);
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n2 WON", taken(true, Some(leader(u64::MAX, "n2", 0)), 0)).only("= ").is("= seeking, jac 7, at #0");
    assert_eq!(n1.worker.elections.highest, Term(5));
}

#[test]
fn a_branch_that_states_a_malformed_term_does_not_spoil_the_next_election() {
    let (mut n1, _) = begun(&["n2"], 7);
    n1.answer("n2 ELECT", branch("n2", 5, 1, u64::MAX)).skip();
    assert!(n1.worker.elections.highest < Term(10), "{}", n1.worker.elections.highest);
}

#[test]
fn an_election_that_reaches_a_worker_puts_its_own_off() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.wait(ms(499));
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    n1.pass(ms(499)).is("
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_follower_of_a_silent_leader_whom_an_election_has_reached_does_not_begin_another() {
    let mut n1 = Lone::following(&["n2"], 2, "n3", 5);
    n1.wait(ms(499));
    n1.called(Request::Elect(elect("n2", 1, 3))).only("reply").is("
            reply 2: best n1/jac 0, nodes 1, term 3
        ");
    n1.pass(ms(499)).only("call").is("");
}

#[test]
fn an_election_that_reaches_a_starting_worker_puts_its_own_off() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.worker.role = Role::Starting;
    n1.worker.asking_until = Some(n1.now() + ms(10));
    n1.worker.overlay.link(n1.now(), &member("n2"));
    n1.called(Request::Elect(elect("n2", 1, 3))).only("reply").is("
            reply 1: best nobody, nodes 1, term 3
        ");
    n1.pass(ms(400)).only("call n2 ELECT").is("");
}

#[test]
fn a_winner_told_twice_leads_on_and_counts_on() {
    let (mut n1, _) = begun(&["n2", "n3"], 0);
    // Another initiator in the same term is faster and tells this worker that it has won.
    let announce = announce(Purpose::Won, "n2", leader(5, "n1", 0), 1);
    n1.called(Request::Announce(announce)).skip();
    n1.called(Request::SubmitJob(submission("j"))).only("= ").is("
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#3
        ");
    n1.answer("n2 ELECT", branch("n2", 5, 1, 5)).skip();
    n1.answer("n3 ELECT", branch("n3", 6, 1, 5)).is("
            note branch-ended
            = leading 5-n1, admitted 1, held 0, jac 1, at 5-n1#3
        ");
}

#[test]
fn a_leader_that_is_another_process_than_its_leadership_says_is_malformed() {
    let (mut n1, _) = begun(&["n2"], 7);
    let other = Member { incarnation: Incarnation(9), ..member("n6") };
    n1.answer("n2 ELECT", refused_for(leader(3, "n6", 0), 5)).skip();
    let liar = Leader { member: other, ..leader(3, "n6", 0) };
    let told = Response::Ping(Status { member: liar.member.clone(), ..status("n6", Some(liar)) });
    n1.answer("n6 PING", told).only("= ").is("
            = seeking, jac 7, at #0
        ");
}

#[test]
fn a_hundred_winners_that_can_not_be_reached_are_left_out_up_to_the_bound() {
    let (mut n1, _) = begun(&["n2"], 1_000);
    let mut excluded = 0;
    for at in 0..100 {
        let told = n1.answer("n2 ELECT", branch(&format!("x{at}"), 0, 2, 5 + at));
        if told.0.iter().all(|line| !line.contains("WON")) {
            break;
        }
        n1.fail(&format!("x{at} WON"), CallFailure::TimedOut).skip();
        excluded += 1;
        if n1.worker.elections.campaign.is_none() {
            break;
        }
    }
    assert_eq!(excluded, limits::EXCLUDED + 1, "one more than fit ends the election");
}
