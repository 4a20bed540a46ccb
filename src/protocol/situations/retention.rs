//! What is kept of ended jobs (section 8), at the leader that drops and at replicas that meet again.

use super::jobs_of;
use crate::protocol::ids::{Jac, Number, StreamId, Term};
use crate::protocol::input::Input;
use crate::protocol::ledger::{Floors, Keep, Ledger, Record, RecordName, Turn};
use crate::protocol::message::Request;
use crate::protocol::testkit::lone::{ack, join_at};
use crate::protocol::testkit::{Lone, job, leadership, node, query, quiet, submission, sum_to_100};
use crate::protocol::time::Wall;
use crate::protocol::view::{Admission, JobState};
use crate::protocol::{Settings, Stored};

/// A leader alone that keeps so many, with jobs of one slice.
fn keeping(breakdowns: usize, lines: usize) -> Lone {
    let settings = Settings { max_tasks: 1, max_jobs_per_term: 99, keep: Keep { breakdowns, lines }, ..quiet() };
    Lone::leading_with(settings, &[], 5, &[])
}

/// It does jobs, one after the other; `from` is its next computation.
fn does(n1: &mut Lone, from: u64, ids: &[&str]) {
    for (compute, id) in (from..).zip(ids) {
        n1.called(Request::SubmitJob(submission(id))).skip();
        n1.saved().skip();
        n1.computed(compute, 1_060).skip();
        n1.saved().skip();
    }
}

#[test]
fn the_last_keep_their_breakdown_more_of_them_a_line_and_the_rest_is_gone() {
    let mut n1 = keeping(1, 3);
    does(&mut n1, 1, &["a", "b", "c", "d", "e"]);
    assert_eq!(jobs_of(&n1.worker.ledger), ["c", "d", "e"]);
    let view = |id| n1.worker.ledger.view(&job(id)).expect("it is kept");
    assert_eq!((view("e").tasks.len(), view("e").completed, view("e").total), (1, 1, 1));
    let line = view("c");
    assert_eq!((line.state, line.tasks.len(), line.completed, line.total), (JobState::Succeeded, 0, 1, 1));
    assert_eq!(line.answer.map(|value| value.0), Some(1_060));
}

#[test]
fn what_is_dropped_goes_from_the_journal_in_the_write_that_raises_the_floors() {
    let mut n1 = keeping(1, 2);
    does(&mut n1, 1, &["a", "b"]);
    n1.called(Request::SubmitJob(submission("c"))).skip();
    n1.saved().skip();
    n1.computed(3, 1_060).only("save").is("
            save 6 [job c Succeeded, task c/0 of 1 done by n1, floors b a] without [job a, payload c, task b/0 of 1] at 5-n1#17, term 5, jac 3
        ");
}

#[test]
fn whoever_watches_a_job_of_which_nothing_is_kept_learns_that_it_is_gone() {
    let mut n1 = keeping(0, 0);
    does(&mut n1, 1, &["a"]);
    n1.give(Input::TimerFired).only("moved").is("moved a");
}

#[test]
fn an_outcome_that_is_not_held_yet_is_not_dropped() {
    let mut n1 = keeping(0, 0);
    n1.called(Request::SubmitJob(submission("a"))).skip();
    n1.saved().skip();
    n1.computed(1, 1_060).skip();
    assert_eq!(jobs_of(&n1.worker.ledger), ["a"]);
    n1.saved().skip();
    n1.called(Request::GetCluster).skip();
    assert!(jobs_of(&n1.worker.ledger).is_empty());
}

#[test]
fn a_late_repeat_of_a_job_of_which_a_line_is_left_gets_its_answer() {
    let mut n1 = keeping(0, 9);
    does(&mut n1, 1, &["a", "b"]);
    n1.called(Request::SubmitJob(submission("a"))).only("reply").is("reply 4: held, a Succeeded = 1060 1/1");
    n1.called(Request::GetJob(query("b"))).only("reply").is("reply 5: b Succeeded = 1060 1/1");
}

#[test]
fn a_job_that_ends_under_a_clock_that_stepped_back_still_comes_after_those_before_it() {
    let mut ledger = ledger("n1");
    ends(&mut ledger, "a", 1, 9_000);
    ends(&mut ledger, "b", 2, 10);
    ledger.tell(ledger.number());
    ledger.retain(Keep { breakdowns: 1, lines: 1 });
    assert_eq!(jobs_of(&ledger), ["b"], "the wall clock said 10, but it ended last");
}

#[test]
fn a_replica_that_comes_back_with_an_unfinished_copy_takes_the_outcome_of_the_line() {
    let mut back = ledger("n2");
    admits(&mut back, "a", 1);
    let mut here = ledger("n1");
    ends(&mut here, "a", 1, 10);
    here.tell(here.number());
    here.retain(Keep { breakdowns: 0, lines: 9 });
    here.merge(back.changed_since(Number(0)), Some(Number(0)));
    let view = here.view(&job("a")).expect("a line");
    assert_eq!((view.state, view.tasks.len()), (JobState::Succeeded, 0));
    assert!(!here.is_unfinished(&job("a")));
}

#[test]
fn a_join_with_the_other_part_s_floors_drops_here_what_is_under_them() {
    let (mut here, mut there) = (ledger("n1"), ledger("n2"));
    ends(&mut here, "oldest", 1, 5);
    ends(&mut here, "old", 2, 10);
    ends(&mut there, "new", 1, 20);
    ends(&mut there, "newer", 2, 30);
    for ledger in [&mut here, &mut there] {
        ledger.tell(ledger.number());
        ledger.retain(Keep { breakdowns: 1, lines: 1 });
    }
    assert_eq!(jobs_of(&here), ["old"], "it has floors of its own");
    let merged = here.merge(there.changed_since(Number(0)), Some(Number(0)));
    assert!(here.gone() < here.number(), "it is a number of this replica's own");
    assert_eq!(jobs_of(&here), ["newer"]);
    assert!(merged.gone.contains(&job("old")), "whoever watches it learns that it is gone");
}

#[test]
fn a_job_at_work_here_stays_when_a_copy_comes_whose_end_is_long_forgotten() {
    let mut here = ledger("n1");
    for (place, id) in (1..).zip(["a", "b", "c"]) {
        ends(&mut here, id, place, 100 * u64::from(place));
    }
    here.tell(here.number());
    here.retain(Keep { breakdowns: 1, lines: 1 });
    assert_eq!(jobs_of(&here), ["c"]);
    admits(&mut here, "a", 4);
    let before = here.number();
    let mut back = ledger("n2");
    ends(&mut back, "a", 1, 100);
    here.merge(back.changed_since(Number(0)), Some(Number(0)));
    assert!(here.is_unfinished(&job("a")));
    let sent: Vec<RecordName> = here.changed_since(before).iter().map(|stamped| stamped.record.name()).collect();
    assert!(sent.contains(&RecordName::Job(job("a"))) && sent.contains(&RecordName::Payload(job("a"))), "{sent:?}");
}

#[test]
fn a_follower_that_takes_over_lower_floors_has_what_its_leader_has() {
    let mut back = ledger("n2");
    for (place, id) in (1..).zip(["a", "b"]) {
        ends(&mut back, id, place, 100 * u64::from(place));
    }
    back.tell(back.number());
    back.retain(Keep { breakdowns: 0, lines: 1 });
    let mut leader = ledger("n1");
    ends(&mut leader, "a", 1, 100);
    let records = leader.changed_since(Number(0));
    let none = Record::Floors(Floors::default());
    let stamp = records[0].stamp.clone();
    let records = records.into_iter().chain([crate::protocol::ledger::Stamped { stamp, record: none }]).collect();
    back.take_over(&leadership(6, "n1", 0), records, leader.number(), None);
    assert!(jobs_of(&back).contains(&"a".to_owned()));
}

#[test]
fn a_follower_that_missed_the_end_of_a_job_that_is_gone_compares_jobs_instead_of_numbers() {
    let mut n1 = keeping(0, 0);
    n1.called(Request::SubmitJob(submission("a"))).skip();
    n1.saved().skip();
    let before = n1.worker.ledger.position().clone();
    n1.computed(1, 1_060).skip();
    n1.saved().skip();
    n1.give(Input::TimerFired).skip();
    assert!(jobs_of(&n1.worker.ledger).is_empty());
    let stream = n1.opened();
    n1.sent(stream, join_at("n2", 5, "n1", before)).only("down").is("down 101 WANT HASHES");
    let now = n1.worker.ledger.position().clone();
    let stream = n1.opened();
    n1.sent(stream, join_at("n3", 5, "n1", now)).only("down 102 BATCH").is("down 102 BATCH joins 5-n1#6 [] held 5");
}

#[test]
fn a_live_follower_that_lags_behind_a_job_that_is_gone_joins_again() {
    let settings = Settings { max_tasks: 1, keep: Keep { breakdowns: 0, lines: 0 }, ..quiet() };
    let mut n1 = Lone::leading_with(settings, &[], 5, &["n2", "n3"]);
    n1.called(Request::SubmitJob(submission("a"))).skip();
    n1.saved().skip();
    n1.worker.fill_outbox(StreamId(102));
    n1.result("n2 RUN a/0", 1_060).skip();
    n1.saved().skip();
    n1.sent(StreamId(101), ack(9)).skip();
    n1.give(Input::TimerFired).only("down 102 REJOIN").is("down 102 REJOIN 5-n1");
}

#[test]
fn a_replica_restored_from_its_records_has_dropped_the_same() {
    let mut n1 = keeping(1, 2);
    does(&mut n1, 1, &["a", "b", "c"]);
    let records = n1.worker.ledger.changed_since(Number(0));
    let position = n1.worker.ledger.position().clone();
    let again = Lone::unborn(quiet(), Stored { records, position, term: Term(5), jac: Jac(3), ..Stored::default() });
    assert_eq!(jobs_of(&again.worker.ledger), ["b", "c"]);
    assert_eq!(again.worker.ledger.hashes(), n1.worker.ledger.hashes());
}

fn ledger(owner: &str) -> Ledger {
    let mut ledger = Ledger::restore(node(owner), Vec::new(), Default::default(), Default::default());
    ledger.enter(leadership(5, owner, 0));
    ledger
}

fn admits(ledger: &mut Ledger, id: &str, place: u32) {
    let jac = Jac(u64::from(place));
    let admission = Admission { term: Term(5), leader: node("n1"), place, jac, slices: 1 };
    ledger.admit(&job(id), sum_to_100(), admission, None, None, Wall(1));
}

fn ends(ledger: &mut Ledger, id: &str, place: u32, wall: u64) {
    admits(ledger, id, place);
    ledger.end(&job(id), crate::protocol::ledger::Outcome::Succeeded(crate::jobs::Value(1_060)), Wall(wall));
}

#[test]
fn no_turn_lies_beyond_the_last() {
    let mut ledger = ledger("n1");
    ends(&mut ledger, "a", 1, u64::MAX);
    ends(&mut ledger, "b", 2, u64::MAX);
    let turn = |id| ledger.job(&job(id)).and_then(|job| job.ended.as_ref()).map(|ended| ended.turn);
    assert_eq!((turn("a"), turn("b")), (Some(Turn::LAST), Some(Turn::LAST)));
}
