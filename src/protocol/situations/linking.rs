//! Links and members (sections 4 and 5): how workers find each other, and notice that somebody is gone.

use crate::protocol::ids::{Address, Identity, Incarnation, Member, NodeId};
use crate::protocol::input::Input;
use crate::protocol::leases::Leases;
use crate::protocol::members::Members;
use crate::protocol::message::{
    CallFailure, DirectoryAnswer, DirectoryId, MembershipEvent, Purpose, Request, Response, Revision, Status,
};
use crate::protocol::neighbours::StaticPeer;
use crate::protocol::overlay::Overlay;
use crate::protocol::testkit::{Lone, NEVER, announce, elect, leader, member, ms, node, quiet, status};
use crate::protocol::time::Time;
use crate::protocol::{Settings, Stored, limits};

const DIRECTORY: DirectoryId = DirectoryId(0);

fn again(name: &str) -> Member {
    Member { incarnation: Incarnation(2), ..member(name) }
}

fn linked_with(name: &str, links: &[&str]) -> Status {
    Status { links: links.iter().map(|link| node(link)).collect(), ..status(name, None) }
}

/// One that knows n2, n3 and n4, pings its links every 500 ms and wants two of them. It never begins an election.
fn lively(links: &[&str]) -> Lone {
    let mut n1 = Lone::linked(&[]);
    n1.worker.members = Members::new(node("n1"));
    for name in ["n2", "n3", "n4"] {
        n1.worker.members.list(DIRECTORY, &member(name));
    }
    n1.worker.settings = Settings { election_timeout_min: NEVER, election_timeout_max: NEVER, ..Settings::default() };
    n1.worker.put_off_own_election();
    for name in links {
        n1.worker.overlay.link(n1.now(), &member(name));
    }
    n1.worker.overlay.pings_due(n1.now(), ms(500));
    n1
}

/// Half a second, in which n3 answers its ping.
fn half_a_second(n1: &mut Lone) {
    n1.pass(ms(500)).skip();
    n1.answer("n3 PING", Response::Ping(linked_with("n3", &["n1"]))).skip();
}

fn links(n1: &Lone) -> String {
    n1.worker.overlay.nodes().iter().map(NodeId::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_link_goes_both_ways() {
    let mut n1 = Lone::linked(&[]);
    n1.called(Request::AddNeighbor(status("n2", None))).is("
            reply 1: linked, n1 follows nobody
            call n2 PING n1 follows nobody within 500ms
            note link-up
            = seeking, jac 0, at #0
        ");
    n1.called(Request::RemoveNeighbor(member("n2").identity())).is("
            reply 2: done
            note link-down
            = seeking, jac 0, at #0
        ");
}

#[test]
fn a_worker_tops_up_to_the_links_that_it_wants_one_at_a_time() {
    let mut n1 = lively(&[]);
    n1.pass(ms(100)).only("call").is("call n2 ADD n1 follows nobody within 500ms");
    n1.pass(ms(100)).only("call").is("call n3 ADD n1 follows nobody within 500ms");
    n1.pass(ms(200)).only("call").is("");
    for _ in 0..2 {
        let asked = n1.asked("ADD");
        let linked = Response::AddNeighbor { accepted: true, status: linked_with(&asked, &["n1"]) };
        n1.answer(&format!("{asked} ADD"), linked).only("note").is("note link-up");
    }
    n1.pass(ms(200)).only("call n2 ADD").is("");
    assert_eq!(n1.worker.overlay.nodes().len(), 2);
}

#[test]
fn whoever_is_a_neighbour_or_is_asked_already_is_not_asked_for_a_link() {
    let mut n1 = lively(&["n2"]);
    n1.worker.settings.min_links = 9;
    n1.pass(ms(450)).only("call").is("
            call n4 ADD n1 follows nobody within 500ms
            call n3 ADD n1 follows nobody within 500ms
        ");
}

#[test]
fn links_are_pinged_at_their_own_times() {
    let mut n1 = lively(&["n2", "n3"]);
    n1.worker.overlay = Overlay::default();
    n1.wait(ms(30));
    for name in ["n2", "n3"] {
        n1.worker.overlay.link(n1.now() + ms(500), &member(name));
    }
    n1.pass(ms(499)).only("call n").is("");
    n1.pass(ms(1)).only("call n").is("
            call n2 PING n1 follows nobody within 500ms
            call n3 PING n1 follows nobody within 500ms
        ");
}

#[test]
fn a_link_that_is_refused_or_fails_in_any_way_may_be_asked_for_again() {
    for way in 0..4 {
        let mut n1 = lively(&["n4"]);
        n1.pass(ms(100)).skip();
        let asked = n1.asked("ADD");
        let call = format!("{asked} ADD");
        match way {
            0 => n1.answer(&call, Response::AddNeighbor { accepted: false, status: linked_with(&asked, &[]) }).skip(),
            1 => n1.fail(&call, CallFailure::Refused(super::unavailable())).skip(),
            2 => n1.answer(&call, Response::Done).skip(),
            _ => n1.answer(&call, Response::AddNeighbor { accepted: true, status: linked_with("n4", &[]) }).skip(),
        }
        n1.worker.members.unlist(DIRECTORY, &member(if asked == "n2" { "n3" } else { "n2" }).identity());
        let again = format!("call {asked} ADD");
        if way < 3 {
            n1.pass(ms(900)).only(&again).is("");
        }
        assert!(!n1.pass(ms(1_200)).only(&again).0.is_empty(), "way {way}");
    }
}

#[test]
fn a_member_that_has_taken_its_link_down_is_left_alone_for_a_second() {
    let mut n1 = lively(&["n2", "n3"]);
    n1.worker.members.unlist(DIRECTORY, &member("n4").identity());
    n1.called(Request::RemoveNeighbor(member("n2").identity())).only("note").is("note link-down");
    n1.pass(ms(900)).only("call n2").is("");
    n1.pass(ms(200)).only("call n2").is("call n2 ADD n1 follows nobody within 500ms");
}

#[test]
fn three_failed_calls_in_a_row_drop_a_link_and_it_is_replaced() {
    let mut n1 = lively(&["n2", "n3"]);
    for _ in 0..2 {
        half_a_second(&mut n1);
        n1.unreachable("n2 PING").only("note").is("");
    }
    half_a_second(&mut n1);
    n1.unreachable("n2 PING").only("note").is("note link-down");
    n1.pass(ms(100)).only("call n4").is("call n4 ADD n1 follows nobody within 500ms");
}

#[test]
fn a_call_that_succeeds_between_two_failures_saves_the_link() {
    let mut n1 = lively(&["n2", "n3"]);
    for turn in 0..6 {
        half_a_second(&mut n1);
        if turn % 2 == 0 {
            n1.unreachable("n2 PING").only("note").is("");
        } else {
            n1.answer("n2 PING", Response::Ping(linked_with("n2", &["n1"]))).skip();
        }
    }
    assert_eq!(links(&n1), "n2 n3");
}

#[test]
fn a_neighbour_that_restarted_is_linked_anew() {
    let mut n1 = lively(&["n2", "n3"]);
    n1.pass(ms(500)).skip();
    let restarted = Status { member: again("n2"), ..linked_with("n2", &[]) };
    n1.answer("n2 PING", Response::Ping(restarted.clone())).is("
            call n2 ADD n1 follows nobody within 500ms
            note member-joined
            = seeking, jac 0, at #0
        ");
    n1.answer("n2 ADD", Response::AddNeighbor { accepted: true, status: restarted }).only("note").is("");
    assert_eq!(links(&n1), "n2 n3");
}

#[test]
fn one_end_of_a_link_stays_up_while_the_other_is_asked_for_and_comes_down_when_that_is_refused() {
    let mut n1 = lively(&["n2", "n3"]);
    n1.pass(ms(500)).skip();
    let without = linked_with("n2", &[]);
    n1.answer("n2 PING", Response::Ping(without.clone())).is("
            call n2 ADD n1 follows nobody within 500ms
            = seeking, jac 0, at #0
        ");
    assert_eq!(links(&n1), "n2 n3", "two ends that took theirs down first would find each other's down for ever");
    n1.called(Request::Ping(Some(without.clone()))).only("reply").is("reply 1: n1 follows nobody");
    n1.answer("n2 ADD", Response::AddNeighbor { accepted: false, status: without }).only("note").is("note link-down");
    assert_eq!(links(&n1), "n3");
}

#[test]
fn what_comes_late_from_an_earlier_incarnation_takes_no_link_down() {
    let mut n1 = lively(&["n3"]);
    n1.called(Request::AddNeighbor(Status { member: again("n2"), ..status("n2", None) })).skip();
    n1.called(Request::RemoveNeighbor(member("n2").identity())).only("note").is("");
    assert_eq!(links(&n1), "n2 n3");
}

#[test]
fn a_member_that_left_loses_its_link_unless_another_directory_lists_it() {
    let mut n1 = lively(&["n2", "n3"]);
    n1.worker.members.list(DirectoryId(1), &member("n2"));
    let left = |directory, who: Identity| Input::Membership {
        directory,
        event: MembershipEvent::Left(Revision::default(), who),
    };
    n1.give(left(DIRECTORY, member("n2").identity())).only("note").is("");
    n1.give(left(DirectoryId(1), again("n2").identity())).only("note").is("");
    n1.give(left(DirectoryId(1), member("n2").identity())).only("note").is("
            note member-left
            note link-down
        ");
}

#[test]
fn lost_members_are_tried_again_ever_more_seldom_down_to_once_a_minute_and_found() {
    let mut n1 = lively(&["n3", "n4"]);
    n1.worker.members.unlist(DIRECTORY, &member("n2").identity());
    n1.worker.overlay.pings_due(n1.now() + ms(500), NEVER);
    n1.worker.stranger_due = n1.now() + NEVER;
    n1.pass(ms(100)).only("call n2").is("call n2 PING n1 follows nobody within 500ms");
    n1.pass(ms(500)).only("call n2").is("");
    let tries = n1.pass(ms(180_000)).only("call n2").0.len();
    assert_eq!(tries, 6, "2, 4, 8, 16, 32 and 60 seconds after each other");
    n1.called(Request::Ping(Some(status("n2", None)))).only("note").is("");
    assert!(n1.worker.members.alive(n1.now()).iter().any(|other| other.node == node("n2")));
}

#[test]
fn strangers_are_asked_now_and_then_so_that_two_overlays_find_each_other() {
    let mut n1 = lively(&["n2", "n3"]);
    n1.worker.stranger_due = Time::ZERO;
    n1.pass(ms(100)).only("call n4").is("call n4 PING n1 follows nobody within 500ms");
    n1.answer("n4 PING", Response::Ping(status("n4", None))).skip();
    n1.pass(ms(900)).only("call n4").is("");
    n1.pass(ms(100)).only("call n4").is("call n4 PING n1 follows nobody within 500ms");
    n1.answer("n4 PING", Response::Ping(status("n4", Some(leader(3, "n4", 0))))).is("
            call n4 ADD n1 follows 3-n4 within 500ms
            open 1 to n4
            up 1 JOIN n1 follows 3-n4 at #0, jobs 0
            note following term 3
            = following 3-n4, not joined, jac 0, at #0
        ");
}

#[test]
fn lost_members_are_kept_up_to_a_bound() {
    let mut members = Members::new(node("n1"));
    for at in 0..limits::LOST + 100 {
        members.learn(&member(&format!("x{at}")));
    }
    members.lost_due(Time::ZERO, 16);
    assert_eq!(members.views(Time::ZERO).len(), limits::LOST);
}

#[test]
fn members_fill_their_bound_and_no_more() {
    let mut members = Members::new(node("n1"));
    for at in 0..limits::MEMBERS + 100 {
        members.learn(&member(&format!("x{at}")));
    }
    assert_eq!(members.views(Time::ZERO).len(), limits::MEMBERS);
}

#[test]
fn links_fill_their_bound_and_no_more() {
    let mut n1 = Lone::linked(&[]);
    for at in 0..limits::LINKS {
        n1.called(Request::AddNeighbor(status(&format!("x{at}"), None))).skip();
    }
    n1.called(Request::AddNeighbor(status("y", None))).only("reply").is("reply 33: not linked, n1 follows nobody");
    n1.called(Request::Ping(Some(status("y", Some(leader(3, "n3", 0)))))).only("call y ADD").is("");
    assert_eq!(n1.worker.overlay.nodes().len(), limits::LINKS);
}

fn at(address: &str) -> Address {
    Address::new(address).expect("a good address")
}

/// One that knows nobody but these addresses.
fn with_peers(peers: &[&str]) -> Lone {
    let mut n1 = Lone::unborn(quiet(), Stored::default());
    n1.worker.members = Members::new(node("n1"));
    n1.worker.peers = peers.iter().map(|peer| StaticPeer::new(at(peer))).collect();
    n1
}

#[test]
fn a_starting_worker_asks_its_peers_first_and_follows_the_leader_that_one_of_them_names() {
    let mut n1 = with_peers(&["b:1", "c:1"]);
    n1.give(Input::Started).is("
            call b:1 PING n1 follows nobody within 500ms
            call c:1 PING n1 follows nobody within 500ms
            = starting, jac 0, at #0
        ");
    n1.answer("b:1 PING", Response::Ping(status("n2", Some(leader(3, "n3", 0))))).is("
            call n2 ADD n1 follows 3-n3 within 500ms
            open 1 to n3
            up 1 JOIN n1 follows 3-n3 at #0, jobs 0
            note member-joined
            note following term 3
            = following 3-n3, not joined, jac 0, at #0
        ");
}

#[test]
fn a_starting_worker_elects_only_after_all_that_it_asked_have_answered_or_not() {
    let mut n1 = with_peers(&["b:1", "c:1"]);
    n1.give(Input::Started).skip();
    n1.answer("b:1 PING", Response::Ping(status("n2", None))).only("= ").is("= starting, jac 0, at #0");
    n1.unreachable("c:1 PING").only("= ").is("= seeking, jac 0, at #0");
    n1.pass(limits::START_SPREAD).only("call").is("call n2 ELECT n1-1-1 term 1 budget 200ms within 197500us");
}

#[test]
fn a_peer_that_is_this_worker_itself_is_left_out() {
    let mut n1 = with_peers(&["n1:7400"]);
    n1.give(Input::Started).skip();
    n1.answer("n1:7400 PING", Response::Ping(status("n1", None))).only("note").is("note peer-ignored");
    n1.pass(ms(3_000)).only("call n1").is("");
}

#[test]
fn a_peer_that_is_known_to_live_is_asked_no_more() {
    let mut n1 = with_peers(&["b:1"]);
    n1.give(Input::Started).skip();
    n1.answer("b:1 PING", Response::Ping(status("n2", None))).skip();
    n1.pass(ms(3_000)).only("call b:1").is("");
}

#[test]
fn a_peer_that_does_not_answer_is_asked_every_second() {
    let mut n1 = with_peers(&["b:1"]);
    n1.give(Input::Started).skip();
    n1.unreachable("b:1 PING").skip();
    assert_eq!(n1.pass(ms(3_050)).only("call b:1").0.len(), 3);
}

/// One with a directory and nothing else.
fn with_directory() -> Lone {
    let mut n1 = with_peers(&[]);
    n1.worker.leases = Leases::new(1);
    n1
}

fn directory(result: Result<DirectoryAnswer, CallFailure>) -> Input {
    Input::DirectoryAnswered { directory: DIRECTORY, result }
}

fn snapshot(members: &[&str]) -> Input {
    let members = members.iter().map(|name| member(name)).collect();
    Input::Membership { directory: DIRECTORY, event: MembershipEvent::Snapshot(Revision::default(), members) }
}

#[test]
fn a_cold_start_registers_watches_asks_the_members_and_then_elects() {
    let mut n1 = with_directory();
    n1.give(Input::Started).is("
            directory 0 REGISTER n1
            = starting, jac 0, at #0
        ");
    n1.give(directory(Ok(DirectoryAnswer::Leased(ms(8_000))))).is("
            watch directory 0 after 0
            = starting, jac 0, at #0
        ");
    n1.give(snapshot(&["n1", "n2"])).is("
            call n2 PING n1 follows nobody within 500ms
            note member-joined
            = starting, jac 0, at #0
        ");
    n1.answer("n2 PING", Response::Ping(status("n2", None))).only("= ").is("= seeking, jac 0, at #0");
}

#[test]
fn with_the_directory_down_a_start_goes_on_without_it_and_tries_again() {
    let mut n1 = with_directory();
    n1.give(Input::Started).skip();
    n1.give(directory(Err(CallFailure::TimedOut))).is("= seeking, jac 0, at #0");
    n1.pass(ms(250)).only("directory").is("directory 0 REGISTER n1");
}

#[test]
fn a_directory_that_says_nothing_holds_a_start_up_for_one_timeout_at_most() {
    let mut n1 = with_directory();
    n1.give(Input::Started).skip();
    n1.pass(ms(999)).only("= ").is("= starting, jac 0, at #0");
    n1.pass(ms(1)).only("= ").is("= seeking, jac 0, at #0");
}

#[test]
fn a_directory_that_restarted_empty_is_registered_with_again_at_once() {
    let mut n1 = with_directory();
    n1.give(Input::Started).skip();
    n1.give(directory(Ok(DirectoryAnswer::Leased(ms(8_000))))).skip();
    n1.pass(ms(2_000)).only("directory").is("directory 0 RENEW n1");
    n1.give(directory(Ok(DirectoryAnswer::UnknownLease))).only("directory").is("directory 0 REGISTER n1");
    n1.give(Input::WatchEnded { directory: DIRECTORY }).only("watch").is("");
    n1.give(directory(Ok(DirectoryAnswer::Leased(ms(8_000))))).skip();
    n1.pass(ms(250)).only("watch").is("watch directory 0 after 0");
}

#[test]
fn a_higher_incarnation_ends_this_one_and_a_lower_does_not() {
    let mut n1 = with_directory();
    n1.give(Input::Started).skip();
    n1.give(directory(Ok(DirectoryAnswer::Superseded(Incarnation(1))))).is("= starting, jac 0, at #0");
    n1.pass(ms(250)).only("directory").is("directory 0 REGISTER n1");
    n1.give(directory(Ok(DirectoryAnswer::Superseded(Incarnation(2))))).only("ended").is("
            ended Superseded(Incarnation(2))
        ");
}

#[test]
fn a_lease_is_renewed_when_half_of_it_is_over_if_that_is_sooner_than_the_setting() {
    let mut n1 = with_directory();
    n1.give(Input::Started).skip();
    n1.give(directory(Ok(DirectoryAnswer::Leased(ms(1_000))))).skip();
    n1.pass(ms(499)).only("directory").is("");
    n1.pass(ms(1)).only("directory").is("directory 0 RENEW n1");
}

#[test]
fn whoever_brings_an_election_or_an_announcement_is_a_member() {
    let mut n1 = Lone::linked(&[]);
    n1.called(Request::Elect(elect("x1", 1, 3))).only("note member").is("note member-joined");
    let announced = announce(Purpose::Flood, "x2", leader(3, "x1", 0), 3);
    n1.called(Request::Announce(announced)).only("note member").is("note member-joined");
}
