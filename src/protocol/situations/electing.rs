//! Elections of a few workers (section 6): who leads in the end, however the flood was hurt on its way.

use crate::protocol::Effects;
use crate::protocol::ids::{Jac, Term};
use crate::protocol::leadership::Role;
use crate::protocol::testkit::network::Fate;
use crate::protocol::testkit::{Network, leadership, ms};

const FIVE: [&str; 5] = ["n1", "n2", "n3", "n4", "n5"];
/// A ring with one chord.
const RING: [&str; 6] = ["n1-n2", "n2-n3", "n3-n4", "n4-n5", "n5-n1", "n2-n4"];

/// Five on the ring that follow n1 in term 1.
fn settled() -> Network {
    let mut net = Network::new(&FIVE, &RING);
    net.elect("n3");
    net.pass(ms(10));
    assert_eq!(leader(&net), "1-n1");
    net
}

/// The leadership that all who live follow.
#[track_caller]
fn leader(net: &Network) -> String {
    let one = net.one_leader();
    let one = one.unwrap_or_else(|| panic!("they do not agree: {}", net.leaders()));
    format!("{}-{}", one.term, one.leader)
}

fn drop_all(what: &'static str) -> impl Fn(&str) -> Fate {
    move |text| if text.contains(what) { Fate::Drop } else { Fate::Deliver }
}

#[test]
fn everybody_is_visited_once_and_follows_the_smallest_id_among_equals() {
    let mut net = Network::new(&FIVE, &RING);
    net.elect("n3");
    assert_eq!(leader(&net), "1-n1");
    let requests = net.log.iter().filter(|line| line.contains(" > ") && line.contains(" ELECT ")).count();
    assert!(requests <= 2 * RING.len(), "{requests} requests over {} edges", RING.len());
    assert_eq!(net.logged("duplicate").len(), requests - 4, "each of the others is visited first once");
}

#[test]
fn the_lowest_jac_wins_wherever_it_is() {
    let mut net = Network::new(&FIVE, &["n1-n2", "n2-n3", "n3-n4", "n4-n5"]);
    for (name, jac) in [("n1", 4), ("n2", 3), ("n3", 5), ("n4", 9), ("n5", 2)] {
        net.worker_mut(name).jac = Jac(jac);
    }
    net.elect("n1");
    assert_eq!(leader(&net), "1-n5");
}

#[test]
fn five_that_elect_in_the_same_instant_agree_on_one() {
    let mut net = Network::new(&FIVE, &RING);
    net.rule(|text| if text.contains(" ELECT ") { Fate::Hold } else { Fate::Deliver });
    for name in FIVE {
        net.elect(name);
    }
    net.release();
    net.pass(ms(300));
    leader(&net);
}

#[test]
fn five_that_start_in_the_same_instant_become_one_cluster_within_two_seconds() {
    let mut net = Network::new(&FIVE, &RING);
    for name in FIVE {
        let until = net.now;
        net.worker_mut(name).role = Role::Starting;
        net.worker_mut(name).asking_until = Some(until);
    }
    net.pass(ms(2_000));
    leader(&net);
}

#[test]
fn a_relay_dies_before_forwarding_and_the_flood_still_ends() {
    let mut net = Network::new(&FIVE, &RING);
    net.rule(|text| if text.contains(" > n2 ELECT") { Fate::Hold } else { Fate::Deliver });
    net.elect("n1");
    net.kill("n2");
    net.pass(ms(500));
    assert_eq!(leader(&net), "2-n1", "the second flood goes around the failed edges");
}

#[test]
fn a_relay_dies_after_forwarding_and_those_behind_it_are_found_around_it() {
    // n1 - n2 - n3 - n4, and n1 - n5 - n4: n2's subtree answers n2 only.
    let mut net = Network::new(&FIVE, &["n1-n2", "n2-n3", "n3-n4", "n4-n5", "n5-n1"]);
    net.worker_mut("n1").jac = Jac(7);
    net.worker_mut("n5").jac = Jac(7);
    net.worker_mut("n4").jac = Jac(7);
    net.rule(|text| if text.contains("n3 > n2 answer") { Fate::Hold } else { Fate::Deliver });
    net.elect("n1");
    net.kill("n2");
    net.pass(ms(500));
    assert_eq!(leader(&net), "2-n3", "the lowest JAC lay behind the relay");
}

#[test]
fn a_branch_that_is_silent_costs_its_own_subtree_and_the_flood_its_time_only() {
    let mut net = Network::new(&FIVE, &["n1-n2", "n2-n3", "n1-n4", "n4-n5"]);
    net.freeze("n3");
    let begun = net.now;
    net.elect("n1");
    assert!(net.until(ms(1_000), |net| net.logged("note leadership-began").len() == 1));
    assert!(net.now.since(begun) <= ms(400), "two floods of 200 ms: {:?}", net.now.since(begun));
    assert_eq!(net.logged("note leadership-began"), ["n1: note leadership-began term 2"]);
    for name in ["n2", "n4", "n5"] {
        assert!(net.worker(name).leader_now().is_some(), "{}", net.leaders());
    }
}

#[test]
fn a_winner_that_dies_before_it_is_told_is_left_out() {
    let mut net = Network::new(&FIVE, &RING);
    net.rule(|text| if text.contains("WON") { Fate::Hold } else { Fate::Deliver });
    net.elect("n3");
    net.kill("n1");
    net.release();
    net.pass(ms(500));
    assert_eq!(leader(&net), "3-n2", "its neighbours' edges to it fail once more, so there is a second flood");
}

#[test]
fn a_winner_that_dies_between_winning_and_announcing_is_replaced() {
    let mut net = Network::new(&FIVE, &RING);
    let part_of_the_flood =
        |text: &str| text.contains(" ELECT ") || text.contains("answer: best") || text.contains("duplicate");
    net.rule(
        move |text| if text.starts_with("n1 > ") && !part_of_the_flood(text) { Fate::Hold } else { Fate::Deliver },
    );
    net.elect("n3");
    assert!(net.worker("n1").is_leading());
    net.kill("n1");
    net.rule(|_| Fate::Deliver);
    net.pass(ms(1_500));
    let one = net.one_leader().expect("they agree");
    assert_eq!(one.leader.as_str(), "n2", "{}", net.leaders());
}

#[test]
fn an_initiator_that_dies_after_telling_the_winner_is_not_needed_any_more() {
    let mut net = Network::new(&FIVE, &RING);
    net.rule(|text| if text.contains("n1 > n3 answer: taken") { Fate::Hold } else { Fate::Deliver });
    net.elect("n3");
    net.kill("n3");
    net.pass(ms(50));
    assert_eq!(leader(&net), "1-n1");
}

#[test]
fn an_initiator_that_dies_mid_flood_costs_the_others_one_timeout() {
    let mut net = Network::new(&FIVE, &RING);
    net.rule(|text| if text.contains("answer: best") { Fate::Hold } else { Fate::Deliver });
    net.elect("n3");
    net.kill("n3");
    net.release();
    net.pass(ms(1_400));
    assert_eq!(leader(&net), "3-n1", "the edges to the dead one fail first");
}

#[test]
fn a_killed_leader_is_replaced_within_a_few_milliseconds_and_by_one_election_mostly() {
    let mut net = settled();
    let begun = net.now;
    net.kill("n1");
    assert!(net.until(ms(1_000), |net| net.one_leader().is_some()));
    assert!(net.now.since(begun) <= ms(25), "{:?}", net.now.since(begun));
    let elections = net.logged("note election-started").len();
    assert!(elections <= 3, "the first and at most one more: {elections}");
}

#[test]
fn a_frozen_leader_is_replaced_within_its_timeout_and_300_ms_and_joins_when_it_thaws() {
    let mut net = settled();
    net.freeze("n1");
    let begun = net.now;
    let others = |net: &Network| ["n2", "n3", "n4", "n5"].map(|name| net.worker(name).leader_now().cloned());
    let agree = move |net: &Network| {
        let all = others(net);
        all[0].as_ref().is_some_and(|leader| leader.member.node.as_str() != "n1")
            && all.iter().all(|other| *other == all[0])
    };
    assert!(net.until(ms(3_000), agree), "{}", net.leaders());
    assert!(net.now.since(begun) <= ms(1_300), "{:?}", net.now.since(begun));
    net.thaw("n1");
    net.pass(ms(1_000));
    leader(&net);
}

#[test]
fn a_worker_that_lost_only_its_own_stream_follows_the_leader_again_and_deposes_nobody() {
    let mut net = settled();
    net.rule(drop_all("n4 > n1 PING"));
    net.end_streams(|from, _| from == "n4");
    net.settle();
    net.pass(ms(60));
    net.release();
    net.pass(ms(200));
    assert_eq!(leader(&net), "3-n1", "the others refused in its name, so n4 led alone in term 2 until they met");
}

#[test]
fn a_worker_that_can_not_reach_the_leader_of_all_others_leads_alone_and_disturbs_nobody_until_they_meet() {
    let mut net = settled();
    net.cut("n4", "n1");
    net.pass(ms(500));
    assert_eq!(net.leaders(), "n1: 1-n1, n2: 1-n1, n3: 1-n1, n4: 2-n4, n5: 1-n1");
    // Their neighbours speak of both leaders with every ping.
    for _ in 0..20 {
        net.meet("n4", "n3");
        net.meet("n2", "n4");
        net.pass(ms(150));
    }
    assert_eq!(net.leaders(), "n1: 1-n1, n2: 1-n1, n3: 1-n1, n4: 2-n4, n5: 1-n1");
    net.heal();
    net.meet("n4", "n3");
    net.pass(ms(500));
    assert_eq!(leader(&net), "3-n1");
}

#[test]
fn a_worker_that_followed_a_newer_leader_which_is_gone_makes_the_older_one_move_above_it() {
    let mut net = Network::new(&["n1", "n2", "n3", "n4"], &["n1-n2", "n3-n4"]);
    net.elect("n1");
    net.worker_mut("n4").elections.highest = Term(8);
    net.elect("n4");
    assert_eq!(net.leaders(), "n1: 1-n1, n2: 1-n1, n3: 9-n3, n4: 9-n3");
    net.cut("n3", "n1");
    net.cut("n3", "n2");
    net.kill("n3");
    net.rule(|text| if text.contains(" ELECT ") { Fate::Hold } else { Fate::Deliver });
    net.pass(ms(10));
    net.worker_mut("n4").put_off_own_election();
    net.worker_mut("n4").elections.campaign = None;
    net.meet("n1", "n4");
    net.pass(ms(20));
    net.meet("n1", "n4");
    assert_eq!(leader(&net), "10-n1");
}

#[test]
fn a_stale_announcement_storm_does_not_follow_when_a_leader_moves_up_while_its_streams_are_slow() {
    let mut net =
        Network::new(&FIVE, &["n1-n2", "n1-n3", "n1-n4", "n1-n5", "n2-n3", "n3-n4", "n4-n5", "n2-n5", "n2-n4"]);
    net.elect("n3");
    net.pass(ms(10));
    net.rule(|text| if text.contains(" down ") { Fate::Hold } else { Fate::Deliver });
    let other = leadership(9, "n7", 0);
    let mut out = Effects::default();
    net.worker_mut("n1").move_up_above(&other, &mut out);
    let calls = out.calls.len();
    net.perform("n1", out);
    net.settle();
    assert!(net.logged("COORDINATOR 10-n1").len() <= 2 * 9, "{calls}");
    net.release();
    net.pass(ms(500));
    assert_eq!(leader(&net), "10-n1");
}
