//! Situations of a directory, each with what is answered and what its watchers see.

use super::*;
use crate::protocol::ids::Address;
use crate::protocol::time::Wall;

const TTL: Duration = Duration::from_secs(8);

fn at(millis: u64) -> Now {
    Now { time: Time::from_millis(millis), wall: Wall(millis) }
}

fn member(node: &str, incarnation: u64) -> Member {
    let address = Address::new(&format!("{node}:7400")).expect("a good address");
    Member {
        node: NodeId::new(node).expect("a good name"),
        incarnation: Incarnation(incarnation),
        http: address.clone(),
        address,
        version: "0.1.0".into(),
        concurrency: 1,
    }
}

fn directory() -> Directory {
    Directory::new(Incarnation(7), TTL, 1)
}

fn revision(number: u64) -> Revision {
    Revision { incarnation: Incarnation(7), number }
}

fn register(directory: &mut Directory, millis: u64, node: &str, incarnation: u64) -> DirectoryAnswer {
    let request = DirectoryRequest::Register(member(node, incarnation));
    directory.request(at(millis), request).expect("there is room")
}

fn heartbeat(directory: &mut Directory, millis: u64, node: &str, incarnation: u64) -> DirectoryAnswer {
    let request = DirectoryRequest::Heartbeat(member(node, incarnation).identity());
    directory.request(at(millis), request).expect("a heartbeat is never refused")
}

fn deregister(directory: &mut Directory, millis: u64, node: &str, incarnation: u64) -> DirectoryAnswer {
    let request = DirectoryRequest::Deregister(member(node, incarnation).identity());
    directory.request(at(millis), request).expect("leaving is never refused")
}

fn members(directory: &Directory) -> Vec<String> {
    directory.members().map(|member| member.identity().to_string()).collect()
}

/// What the members are for somebody who applies the events to what it has.
fn apply(known: &mut Vec<Member>, events: Vec<MembershipEvent>) {
    for event in events {
        match event {
            MembershipEvent::Snapshot(_, all) => *known = all,
            MembershipEvent::Joined(_, member) => {
                known.retain(|one| one.node != member.node);
                known.push(member);
            }
            MembershipEvent::Left(_, who) => known.retain(|one| one.identity() != who),
            MembershipEvent::Resync => known.clear(),
        }
    }
    known.sort_by(|a, b| a.node.cmp(&b.node));
}

#[test]
fn a_lease_runs_out_after_its_time_of_silence_and_not_before() {
    let mut directory = directory();
    assert_eq!(register(&mut directory, 0, "a", 1), DirectoryAnswer::Leased(TTL));
    assert_eq!(heartbeat(&mut directory, 2_000, "a", 1), DirectoryAnswer::Leased(TTL));
    assert_eq!(directory.next_deadline(), Some(Time::from_millis(10_000)));
    directory.expire(at(9_999));
    assert_eq!(members(&directory), ["a@1"]);
    directory.expire(at(10_000));
    assert_eq!((members(&directory), directory.next_deadline()), (vec![], None));
    let left = MembershipEvent::Left(revision(2), member("a", 1).identity());
    assert_eq!(directory.watch(revision(1)), [left]);
}

#[test]
fn a_heartbeat_without_a_lease_is_told_so_and_a_registration_heals_it() {
    let mut directory = directory();
    assert_eq!(heartbeat(&mut directory, 0, "a", 1), DirectoryAnswer::UnknownLease);
    assert_eq!(members(&directory), Vec::<String>::new());
    assert_eq!(register(&mut directory, 1, "a", 1), DirectoryAnswer::Leased(TTL));
    assert_eq!(members(&directory), ["a@1"]);
}

#[test]
fn a_lease_that_ran_out_between_two_heartbeats_is_unknown_although_nobody_looked() {
    let mut directory = directory();
    register(&mut directory, 0, "a", 1);
    assert_eq!(heartbeat(&mut directory, 8_000, "a", 1), DirectoryAnswer::UnknownLease);
}

#[test]
fn of_two_owners_of_a_node_id_the_higher_incarnation_wins_and_the_other_is_told() {
    let mut directory = directory();
    register(&mut directory, 0, "a", 1);
    assert_eq!(register(&mut directory, 10, "a", 2), DirectoryAnswer::Leased(TTL));
    assert_eq!(heartbeat(&mut directory, 20, "a", 1), DirectoryAnswer::Superseded(Incarnation(2)));
    assert_eq!(register(&mut directory, 30, "a", 1), DirectoryAnswer::Superseded(Incarnation(2)));
    assert_eq!(members(&directory), ["a@2"]);
    assert_eq!(directory.next_deadline(), Some(Time::from_millis(8_010)), "the late one renews nothing");
    assert_eq!(directory.watch(revision(1)), [MembershipEvent::Joined(revision(2), member("a", 2))]);
}

#[test]
fn a_late_leave_of_an_older_incarnation_never_touches_the_successor() {
    let mut directory = directory();
    register(&mut directory, 0, "a", 1);
    register(&mut directory, 10, "a", 2);
    assert_eq!(deregister(&mut directory, 20, "a", 1), DirectoryAnswer::Left);
    assert_eq!((members(&directory), directory.revision()), (vec!["a@2".to_owned()], revision(2)));
    assert_eq!(deregister(&mut directory, 30, "a", 2), DirectoryAnswer::Left);
    assert_eq!(members(&directory), Vec::<String>::new());
    assert_eq!(deregister(&mut directory, 40, "a", 2), DirectoryAnswer::Left, "leaving twice is leaving");
    assert_eq!(directory.revision(), revision(3));
}

#[test]
fn a_heartbeat_of_a_process_that_has_not_registered_yet_leaves_the_older_lease_alone() {
    let mut directory = directory();
    register(&mut directory, 0, "a", 1);
    assert_eq!(heartbeat(&mut directory, 10, "a", 2), DirectoryAnswer::UnknownLease);
    assert_eq!(members(&directory), ["a@1"]);
    assert_eq!(directory.next_deadline(), Some(Time::from_millis(8_000)));
}

#[test]
fn the_same_registration_again_renews_and_changes_nothing_but_another_address_is_a_change() {
    let mut directory = directory();
    register(&mut directory, 0, "a", 1);
    register(&mut directory, 100, "a", 1);
    assert_eq!((directory.revision(), directory.next_deadline()), (revision(1), Some(Time::from_millis(8_100))));
    let moved = Member { address: Address::new("elsewhere:1").expect("a good address"), ..member("a", 1) };
    let answer = directory.request(at(200), DirectoryRequest::Register(moved.clone()));
    assert_eq!(answer, Ok(DirectoryAnswer::Leased(TTL)));
    assert_eq!(directory.watch(revision(1)), [MembershipEvent::Joined(revision(2), moved)]);
}

#[test]
fn a_new_watcher_gets_a_snapshot_and_one_that_is_up_to_date_gets_nothing() {
    let mut directory = directory();
    register(&mut directory, 0, "b", 1);
    register(&mut directory, 0, "a", 1);
    let snapshot = MembershipEvent::Snapshot(revision(2), vec![member("a", 1), member("b", 1)]);
    assert_eq!(directory.watch(Revision::default()), [snapshot]);
    assert_eq!(directory.watch(revision(2)), []);
}

#[test]
fn an_empty_directory_says_that_it_is_empty() {
    assert_eq!(directory().watch(Revision::default()), [MembershipEvent::Snapshot(revision(0), vec![])]);
}

#[test]
fn a_watcher_of_an_earlier_start_or_from_the_future_is_told_to_begin_anew() {
    let mut directory = directory();
    register(&mut directory, 0, "a", 1);
    let anew = [MembershipEvent::Resync, MembershipEvent::Snapshot(revision(1), vec![member("a", 1)])];
    assert_eq!(directory.watch(Revision { incarnation: Incarnation(6), number: 1 }), anew);
    assert_eq!(directory.watch(Revision { incarnation: Incarnation(8), number: 0 }), anew);
    assert_eq!(directory.watch(revision(2)), anew);
}

#[test]
fn the_history_is_bounded_and_who_is_further_behind_begins_anew() {
    let mut directory = directory();
    let changes = history::KEPT as u64 + 10;
    for incarnation in 1..=changes {
        register(&mut directory, 0, "a", incarnation);
    }
    assert_eq!(directory.watch(revision(10)).len(), history::KEPT);
    let first = MembershipEvent::Joined(revision(11), member("a", 11));
    assert_eq!(directory.watch(revision(10)).first(), Some(&first));
    assert_eq!(directory.watch(revision(9)).first(), Some(&MembershipEvent::Resync));
}

#[test]
fn a_full_directory_refuses_a_new_member_but_renews_and_replaces_those_it_has() {
    let mut directory = directory();
    for number in 0..limits::MEMBERS {
        register(&mut directory, 0, &format!("n{number}"), 1);
    }
    let refusal = directory.request(at(1), DirectoryRequest::Register(member("one-more", 1))).expect_err("it is full");
    assert_eq!((refusal.code, refusal.retry_after), (Code::ResourceExhausted, Some(TTL)));
    assert_eq!(heartbeat(&mut directory, 2, "n0", 1), DirectoryAnswer::Leased(TTL));
    assert_eq!(register(&mut directory, 3, "n1", 2), DirectoryAnswer::Leased(TTL));
    assert_eq!(directory.members().count(), limits::MEMBERS);
    deregister(&mut directory, 4, "n2", 1);
    assert_eq!(register(&mut directory, 5, "one-more", 1), DirectoryAnswer::Leased(TTL));
}

#[test]
fn a_random_member_is_never_the_one_that_asks_and_in_the_long_run_every_other_one() {
    let mut directory = directory();
    let asker = NodeId::new("a").expect("a good name");
    assert_eq!(directory.random(None), None);
    for node in ["a", "b", "c", "d"] {
        register(&mut directory, 0, node, 1);
    }
    let picked: Vec<Member> = (0..64).filter_map(|_| directory.random(Some(&asker))).collect();
    let count = |node: &str| picked.iter().filter(|member| member.node.as_str() == node).count();
    assert_eq!((picked.len(), count("a")), (64, 0));
    assert!(count("b") > 0 && count("c") > 0 && count("d") > 0);
}

#[test]
fn whoever_applies_the_stream_has_the_members_wherever_it_resumes() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let mut directory = directory();
        let (mut known, mut stands) = (Vec::new(), Revision::default());
        let mut millis = 0;
        for _ in 0..300 {
            millis += dice.below(1_500);
            let node = format!("n{}", dice.below(6));
            let incarnation = dice.below(4);
            match dice.below(4) {
                0 | 1 => drop(register(&mut directory, millis, &node, incarnation)),
                2 => drop(heartbeat(&mut directory, millis, &node, incarnation)),
                _ => drop(deregister(&mut directory, millis, &node, incarnation)),
            }
            if dice.below(5) == 0 {
                apply(&mut known, directory.watch(stands));
                stands = directory.revision();
                assert_eq!(known, directory.members().cloned().collect::<Vec<_>>(), "seed {seed}");
            }
        }
    }
}
