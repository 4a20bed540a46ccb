//! A flood at one worker (section 6, 1 to 3): what it passes on, folds in, answers and refuses.

use crate::protocol::ids::{Candidate, Identity, Incarnation, Jac, Term};
use crate::protocol::input::Input;
use crate::protocol::limits;
use crate::protocol::message::{CallFailure, Edge, Elect, ElectAnswer, Request, Response};
use crate::protocol::testkit::lone::stored;
use crate::protocol::testkit::{Lone, elect, leader, leadership, member, ms, node, quiet};

/// What a branch found: this candidate and so many workers.
fn branch(best: &str, jac: u64, nodes: u32, term: u64) -> ElectAnswer {
    let best = Some(Candidate { jac: Jac(jac), member: member(best) });
    ElectAnswer { best, nodes, highest_term: Term(term), ..ElectAnswer::default() }
}

fn edge(from: &str, to: &str) -> Edge {
    Edge { from: node(from), to: node(to) }
}

#[test]
fn a_first_visit_is_passed_on_with_less_time_and_answered_with_the_best_of_the_branch() {
    let mut n1 = Lone::linked(&["n2", "n3", "n4"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).is("
            call n3 ELECT n2-1-1 term 3 budget 195ms within 192500us
            call n4 ELECT n2-1-1 term 3 budget 195ms within 192500us
            note election-reached term 3
            = seeking, jac 0, at #0
        ");
    n1.answer("n3 ELECT", Response::Elect(branch("n3", 2, 1, 3))).is("
            = seeking, jac 0, at #0
        ");
    n1.answer("n4 ELECT", Response::Elect(branch("n5", 0, 2, 3))).is("
            reply 1: best n1/jac 0, nodes 4, term 3
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_leaf_answers_at_once_with_itself() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).is("
            reply 1: best n1/jac 0, nodes 1, term 3
            note election-reached term 3
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_later_visit_is_a_duplicate_whoever_brings_it() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    n1.called(Request::Elect(Elect { from: member("n3"), ..elect("n2", 1, 3) })).is("
            reply 2: duplicate
            note election-declined term 3
            = seeking, jac 0, at #0
        ");
}

#[test]
fn two_elections_of_one_term_both_run() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    n1.called(Request::Elect(elect("n3", 1, 3))).is("
            call n2 ELECT n3-1-1 term 3 budget 195ms within 192500us
            note election-reached term 3
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_duplicate_branch_adds_neither_nodes_nor_candidate() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    let duplicate = ElectAnswer { duplicate: true, ..branch("n0", 0, 7, 3) };
    n1.answer("n3 ELECT", Response::Elect(duplicate)).is("
            reply 1: best n1/jac 0, nodes 1, term 3
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_branch_that_gives_no_answer_costs_its_own_subtree_and_is_named() {
    let mut n1 = Lone::linked(&["n2", "n3", "n4"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    n1.answer("n4 ELECT", Response::Elect(branch("n4", 5, 1, 3))).skip();
    n1.pass(ms(193)).is("
            reply 1: best n1/jac 0, nodes 2, failed n1>n3, term 3
            abandon a call
            note edge-failed
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_failed_edge_deep_in_a_branch_travels_to_the_initiator() {
    let mut n1 = Lone::linked(&["n2", "n3", "n4"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    let broken = ElectAnswer { failed: vec![edge("n3", "n7")], ..branch("n3", 0, 1, 3) };
    n1.answer("n3 ELECT", Response::Elect(broken)).skip();
    n1.unreachable("n4 ELECT").is("
            reply 1: best n1/jac 0, nodes 2, failed n3>n7, n1>n4, term 3
            note edge-failed
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn without_time_for_another_hop_what_lies_behind_counts_as_failed() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(Request::Elect(Elect { budget: ms(7), ..elect("n2", 1, 3) })).is("
            reply 1: best n1/jac 0, nodes 1, failed n1>n3, term 3
            note election-reached term 3
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn the_flood_goes_around_failed_edges_of_this_worker_alone() {
    let mut n1 = Lone::linked(&["n2", "n3", "n4"]);
    let around = vec![edge("n1", "n3"), edge("n5", "n4")];
    n1.called(Request::Elect(Elect { around, ..elect("n2", 1, 3) })).is("
            call n4 ELECT n2-1-1 term 3 budget 195ms around n1>n3, n5>n4 within 192500us
            note election-reached term 3
            = seeking, jac 0, at #0
        ");
}

#[test]
fn nobody_forwards_to_the_leader_that_is_replaced() {
    let mut n1 = Lone::linked(&["n2", "n3", "n4"]);
    let replaces = Some(leadership(2, "n3", 0));
    n1.called(Request::Elect(Elect { replaces, ..elect("n2", 1, 3) })).is("
            call n4 ELECT n2-1-1 term 3 budget 195ms replaces 2-n3 within 192500us
            note election-reached term 3
            = seeking, jac 0, at #0
        ");
}

#[test]
fn an_excluded_worker_passes_the_flood_on_and_offers_nothing() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    let excluded = vec![Identity { node: node("n1"), incarnation: Incarnation(1) }];
    n1.called(Request::Elect(Elect { excluded, ..elect("n2", 1, 3) })).skip();
    n1.answer("n3 ELECT", Response::Elect(branch("n3", 4, 1, 3))).is("
            reply 1: best n3/jac 4, nodes 2, term 3
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_follower_that_hears_its_leader_refuses_with_its_name_and_passes_nothing_on() {
    let mut n1 = Lone::following(&["n2", "n3"], 2, "n3", 5);
    n1.called(Request::Elect(elect("n2", 1, 3))).is("
            reply 2: best nobody, nodes 0, refused for 2-n3, term 3
            note election-declined term 3
            = following 2-n3, jac 0, at 2-n3#0
        ");
    n1.called(Request::Elect(Elect { from: member("n4"), ..elect("n2", 1, 3) })).is("
            reply 3: duplicate
            note election-declined term 3
            = following 2-n3, jac 0, at 2-n3#0
        ");
}

#[test]
fn a_follower_takes_part_once_its_leader_was_silent_for_two_heartbeats() {
    let mut n1 = Lone::following(&["n2"], 2, "n3", 5);
    n1.wait(ms(300));
    n1.called(Request::Elect(elect("n2", 1, 3)))
        .only("reply")
        .is("reply 2: best nobody, nodes 0, refused for 2-n3, term 3");
    n1.wait(ms(1));
    n1.called(Request::Elect(elect("n2", 2, 3))).only("reply").is("reply 3: best n1/jac 0, nodes 1, term 3");
}

#[test]
fn a_follower_takes_part_in_the_election_that_its_own_leader_begins() {
    let mut n1 = Lone::following(&["n2", "n3"], 2, "n3", 5);
    n1.called(Request::Elect(Elect { replaces: Some(leadership(2, "n3", 0)), ..elect("n3", 1, 3) })).is("
            call n2 ELECT n3-1-1 term 3 budget 195ms replaces 2-n3 within 192500us
            note election-reached term 3
            = following 2-n3, jac 0, at 2-n3#0
        ");
}

#[test]
fn a_leader_refuses_with_its_own_name() {
    let mut n1 = Lone::leading(&["n2"], 2, &["n2"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).is("
            reply 2: best nobody, nodes 0, refused for 2-n1, term 3
            note election-declined term 3
            = leading 2-n1, admitted 0, held 0, jac 0, at 2-n1#0
        ");
}

#[test]
fn a_refusal_of_a_branch_travels_on_and_the_newest_leaders_come_first() {
    let mut n1 = Lone::linked(&["n2", "n3", "n4"]);
    n1.called(Request::Elect(elect("n2", 1, 9))).skip();
    let named =
        |term| ElectAnswer { refusals: vec![leader(term, "n7", 0)], highest_term: Term(9), ..ElectAnswer::default() };
    n1.answer("n3 ELECT", Response::Elect(named(4))).skip();
    n1.answer("n4 ELECT", Response::Elect(named(5))).is("
            reply 1: best n1/jac 0, nodes 1, refused for 5-n7, 4-n7, term 9
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_stale_term_is_answered_with_the_current_one() {
    let mut n1 = Lone::with(quiet(), stored(0, 5), &["n2", "n3"]);
    n1.called(Request::Elect(elect("n2", 1, 4))).is("
            reply 1: best nobody, nodes 0, term 5
            note election-declined term 4
            = seeking, jac 0, at #0
        ");
}

#[test]
fn the_term_of_the_leadership_followed_is_stale_too() {
    let mut n1 = Lone::following(&["n2"], 5, "n3", 5);
    n1.wait(ms(400));
    n1.called(Request::Elect(elect("n2", 1, 5))).is("
            reply 2: best nobody, nodes 0, term 5
            abandon a call
            note election-declined term 5
            = following 5-n3, jac 0, at 5-n3#0
        ");
}

#[test]
fn a_term_2_to_the_32_above_the_highest_known_is_malformed_one_less_is_not() {
    let mut n1 = Lone::with(quiet(), stored(0, 5), &["n2"]);
    n1.called(Request::Elect(elect("n2", 1, 5 + limits::TERM_LEAP + 1))).is("
            reply 1: InvalidArgument
            = seeking, jac 0, at #0
        ");
    n1.called(Request::Elect(elect("n2", 2, 5 + limits::TERM_LEAP))).is("
            reply 2: best n1/jac 0, nodes 1, term 4294967301
            note election-reached term 4294967301
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_branch_that_states_a_malformed_term_counts_as_failed() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    n1.answer("n3 ELECT", Response::Elect(branch("n3", 0, 1, u64::MAX))).is("
            reply 1: best n1/jac 0, nodes 1, failed n1>n3, term 3
            note edge-failed
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn an_answer_of_another_kind_counts_as_none() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    n1.answer("n3 ELECT", Response::Done).is("
            reply 1: best n1/jac 0, nodes 1, failed n1>n3, term 3
            note edge-failed
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_refused_hop_is_a_failed_edge() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    let refusal = super::unavailable();
    n1.fail("n3 ELECT", CallFailure::Refused(refusal)).is("
            reply 1: best n1/jac 0, nodes 1, failed n1>n3, term 3
            note edge-failed
            note branch-ended
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_full_memory_of_one_term_closes_no_door_to_the_next() {
    let mut n1 = Lone::linked(&["n2"]);
    for serial in 1..=2_000 {
        n1.called(Request::Elect(elect("n2", serial, 3))).skip();
    }
    n1.called(Request::Elect(elect("n2", 9_998, 3))).only("reply").is("reply 2001: duplicate");
    for (serial, reply) in [(9_999, 2002), (10_000, 2003)] {
        let expected = format!("reply {reply}: best n1/jac 0, nodes 1, term 4");
        n1.called(Request::Elect(elect("n2", serial, 4))).only("reply").is(&expected);
    }
}

#[test]
fn floods_that_wait_for_branches_fill_their_bound_and_no_more() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    for serial in 1..=2_000 {
        n1.called(Request::Elect(elect("n2", serial, 2 + serial))).skip();
    }
    assert_eq!(n1.worker.elections.floods.len(), limits::FLOODS);
    n1.called(Request::Elect(elect("n2", 3_000, 3_000))).only("reply").is("reply 2001: ResourceExhausted");
    n1.pass(ms(200)).skip();
    assert_eq!(n1.worker.elections.floods.len(), 0, "each flood ends in time");
}

#[test]
fn a_worker_that_stops_passes_a_flood_on_and_offers_nothing() {
    let mut n1 = Lone::linked(&["n2", "n3"]);
    n1.give(Input::Stop).skip();
    n1.called(Request::Elect(elect("n2", 1, 3))).skip();
    n1.answer("n3 ELECT", Response::Elect(branch("n3", 5, 1, 3)))
        .only("reply")
        .is("reply 1: best n3/jac 5, nodes 2, term 3");
}

#[test]
fn a_flood_with_more_edges_or_excluded_than_fit_is_malformed_and_with_as_many_as_fit_is_not() {
    let edges = |count: usize| vec![Edge { from: node("n7"), to: node("n8") }; count];
    let excluded = |count: usize| vec![member("n9").identity(); count];
    for (around, out, fits) in
        [(limits::EDGES, limits::EXCLUDED, true), (limits::EDGES + 1, 0, false), (0, limits::EXCLUDED + 1, false)]
    {
        let mut n1 = Lone::linked(&["n2"]);
        let elect = Elect { around: edges(around), excluded: excluded(out), ..elect("n2", 1, 3) };
        let told = n1.called(Request::Elect(elect)).only("reply");
        assert_eq!(told.0.concat().contains("InvalidArgument"), !fits, "{told:?}");
    }
}
