//! What a worker takes from others of its own past (section 6): its JAC, and from its disk whom it has followed.

use crate::protocol::ids::{Incarnation, Jac, Number, Position};
use crate::protocol::input::Input;
use crate::protocol::ledger::{Keep, Ledger, Outcome, Past, Record, Stamped};
use crate::protocol::limits;
use crate::protocol::message::{Announce, Purpose, Request, Status};
use crate::protocol::testkit::lone::stored;
use crate::protocol::testkit::{
    Lone, announce, elect, job, leader, leadership, ms, node, query, quiet, status, submission,
};
use crate::protocol::time::Wall;
use crate::protocol::view::JobState;
use crate::protocol::{Settings, Stored};

fn asking() -> Lone {
    // One directory that never answers: it asks until its time is over.
    let mut n1 = Lone::linked(&["n2"]);
    n1.worker.asking_until = Some(n1.now() + ms(1_000));
    n1
}

#[test]
fn a_worker_that_asks_others_for_its_jac_is_no_candidate_yet() {
    let mut n1 = asking();
    n1.worker.leases = crate::protocol::leases::Leases::new(1);
    n1.called(Request::Elect(elect("n2", 1, 3))).only("reply").is("reply 1: best nobody, nodes 1, term 3");
    n1.pass(ms(1_000)).skip();
    n1.called(Request::Elect(elect("n2", 9, 9))).only("reply").is("reply 2: best n1/jac 0, nodes 1, term 9");
}

#[test]
fn a_worker_that_lost_its_volume_takes_the_jac_that_others_remember_and_writes_it_down() {
    let mut n1 = Lone::linked(&["n2"]);
    let told = Status { remembers: Jac(7), ..status("n2", None) };
    n1.called(Request::Ping(Some(told))).only("save").is("save 1 [] at #0, term 0, jac 7");
    n1.called(Request::Elect(elect("n2", 1, 3))).only("reply").is("reply 2: best n1/jac 7, nodes 1, term 3");
}

#[test]
fn a_lower_memory_changes_nothing_and_an_impossible_one_neither() {
    let mut n1 = Lone::with(quiet(), stored(5, 1), &["n2"]);
    for jac in [3, 6 + limits::LEAP] {
        let told = Status { remembers: Jac(jac), ..status("n2", None) };
        n1.called(Request::Ping(Some(told))).only("save").is("");
    }
    assert_eq!(n1.worker.jac, Jac(5));
}

#[test]
fn whoever_asks_is_told_what_is_remembered_of_its_jac() {
    let (records, position) = super::replication::led(4, "n8", &["a", "b"]);
    let mut n1 = Lone::with(quiet(), Stored { records, position, ..Stored::default() }, &[]);
    assert_eq!(n1.worker.status_for(Some(&node("n8"))).remembers, Jac(2));
    n1.called(Request::Ping(Some(status("n8", None)))).skip();
    assert_eq!(n1.worker.status_for(Some(&node("n3"))).remembers, Jac(0));
}

#[test]
fn a_jac_outlives_the_jobs_that_told_of_it() {
    let mut ledger = Ledger::restore(node("n1"), Vec::new(), Position::default(), Past::default());
    ledger.remember_jac(&node("n8"), Jac(4));
    ledger.remember_jac(&node("n8"), Jac(3));
    assert_eq!(ledger.jac_of(&node("n8")), Jac(4));
    assert_eq!(ledger.take_unsaved().jacs, [(node("n8"), Some(Jac(4)))]);
}

#[test]
fn when_too_many_are_remembered_the_lowest_jac_goes() {
    let mut ledger = Ledger::restore(node("n1"), Vec::new(), Position::default(), Past::default());
    for at in 0..limits::REMEMBERED {
        ledger.remember_jac(&node(&format!("w{at}")), Jac(10 + at as u64));
    }
    ledger.remember_jac(&node("low"), Jac(9));
    ledger.remember_jac(&node("equal"), Jac(10));
    let known = ["low", "equal"].map(|name| ledger.jac_of(&node(name)));
    assert_eq!(known, [Jac(0), Jac(0)], "it would be the lowest itself");
    ledger.take_unsaved();
    ledger.remember_jac(&node("high"), Jac(99));
    assert_eq!(ledger.take_unsaved().jacs, [(node("high"), Some(Jac(99))), (node("w0"), None)]);
    assert_eq!((ledger.jac_of(&node("w0")), ledger.jac_of(&node("high"))), (Jac(0), Jac(99)));
}

#[test]
fn a_worker_follows_nothing_older_than_what_its_disk_followed() {
    let position = Position { leadership: Some(leadership(9, "n8", 0)), ..Position::default() };
    let mut n1 = Lone::with(quiet(), Stored { position, ..stored(0, 9) }, &["n2"]);
    let older: Announce = announce(Purpose::Flood, "n2", leader(7, "n2", 0), 2);
    n1.called(Request::Announce(older)).only("=").is("= seeking, jac 0, at 9-n8#0");
    let newer: Announce = announce(Purpose::Flood, "n2", leader(10, "n2", 0), 2);
    n1.called(Request::Announce(newer)).only("=").is("= following 10-n2, not joined, jac 0, at 9-n8#0");
}

#[test]
fn a_worker_that_meets_an_older_leader_than_its_disk_followed_asks_it_to_move_up() {
    let position = Position { leadership: Some(leadership(9, "n8", 0)), ..Position::default() };
    let mut n1 = Lone::with(quiet(), Stored { position, ..stored(0, 9) }, &["n2"]);
    n1.called(Request::Ping(Some(status("n2", Some(leader(7, "n2", 0))))))
        .only("call n2")
        .is("call n2 MET 9-n8 workers 0 within 200ms");
    assert!(n1.worker.leader_now().is_none());
}

#[test]
fn a_joining_brings_the_jac_that_the_leader_remembers() {
    let mut n1 = Lone::linked(&["n2"]);
    n1.called(Request::Announce(announce(Purpose::Flood, "n3", leader(3, "n3", 0), 3))).skip();
    let joins = crate::protocol::message::Batch {
        leadership: leadership(3, "n3", 0),
        records: Vec::new(),
        number: crate::protocol::ids::Number(0),
        past: Some(Past::default()),
        held: crate::protocol::ids::Number(0),
        remembers: Jac(6),
    };
    n1.frame(crate::protocol::message::Down::Batch(joins)).only("save").is("save 1 [] at 3-n3#0, term 3, jac 6");
}

#[test]
fn a_pong_that_remembers_ends_the_asking_with_the_higher_jac() {
    let mut n1 = Lone::unborn(Settings { ..quiet() }, Stored::default());
    n1.give(Input::Started).skip();
    n1.called(Request::Ping(Some(Status { remembers: Jac(3), ..status("n2", None) }))).skip();
    assert_eq!(n1.worker.jac, Jac(3));
}

#[test]
fn a_worker_that_starts_again_shows_the_outcomes_that_it_had_told_before_anybody_leads() {
    let mut n1 = Lone::leading_with(Settings { max_tasks: 1, ..quiet() }, &[], 5, &[]);
    n1.called(Request::SubmitJob(submission("old"))).skip();
    n1.saved().skip();
    n1.computed(1, 1_060).skip();
    n1.saved().skip();
    n1.called(Request::SubmitJob(submission("new"))).skip();
    let told = n1.worker.ledger.has_told_outcome(&job("old"));
    let (records, position) = (n1.worker.ledger.changed_since(Number(0)), n1.worker.ledger.position().clone());
    assert!(told);
    let stored = Stored { records, position, told: [job("old")].into(), ..stored(2, 5) };
    let again = Lone::unborn(quiet(), stored);
    let state = |id| again.worker.told(&query(id)).map(|view| view.state);
    assert_eq!((state("old"), state("new")), (Some(JobState::Succeeded), Some(JobState::Running)));
}

#[test]
fn what_was_told_is_written_with_the_next_save_and_goes_with_its_job() {
    let mut ledger = Ledger::restore(node("n1"), Vec::new(), Position::default(), Past::default());
    let (records, number) = super::admitted_by(3, "n3", "j");
    let mut records = records;
    super::end(&mut records, number.next());
    ledger.take_over(&leadership(3, "n3", 0), records, number.next(), None);
    assert_eq!(ledger.take_unsaved().told, []);
    ledger.tell(number.next());
    assert!(!ledger.has_unsaved(), "it waits for another save");
    assert_eq!(ledger.take_unsaved().told, [(job("j"), true)]);
    ledger.enter(leadership(4, "n1", 0));
    ledger.retain(Keep { breakdowns: 0, lines: 0 });
    assert_eq!(ledger.take_unsaved().told, [(job("j"), false)]);
}

#[test]
fn an_outcome_that_takes_the_place_of_one_that_was_told_is_written_as_not_told_yet() {
    let mut ledger = Ledger::restore(node("n1"), Vec::new(), Position::default(), Past::default());
    let (records, number) = super::admitted_by(3, "n3", "j");
    let mut ended = records.clone();
    super::end(&mut ended, number.next());
    let take_over = |ledger: &mut Ledger, records: &[Stamped], number| {
        ledger.take_over(&leadership(3, "n3", 0), records.to_vec(), number, None);
        ledger.take_unsaved().told
    };
    take_over(&mut ledger, &records, number);
    assert_eq!(take_over(&mut ledger, &ended, number.next()), [], "nothing was told");
    ledger.tell(number.next());
    assert_eq!(take_over(&mut ledger, &ended, number.next()), [(job("j"), true)]);
    assert_eq!(take_over(&mut ledger, &ended, number.next()), [], "it is the outcome that was told");
    for stamped in &mut ended {
        stamped.stamp.number = number.next().next();
        if let Record::Job(job) = &mut stamped.record {
            job.ended.as_mut().expect("it ended").outcome = Outcome::Succeeded(crate::jobs::Value(9));
        }
    }
    assert_eq!(take_over(&mut ledger, &ended, number.next().next()), [(job("j"), false)]);
}

#[test]
fn an_incarnation_is_above_the_one_before_and_not_below_the_clock() {
    let at_start = |stored, clock| Incarnation::at_start(Incarnation(stored), Wall(clock)).0;
    assert_eq!((at_start(0, 7_000), at_start(7_000, 6_000), at_start(7_000, 7_000)), (7_000, 7_001, 7_001));
}
