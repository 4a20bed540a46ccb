//! The join's laws, and what replicas exchange (section 8).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::jobs::{Kind, Value};
use crate::protocol::dice::Dice;
use crate::protocol::ids::{AttemptName, Digest, Incarnation, Jac, JobId, TaskKey, Term};
use crate::protocol::message::JobQuery;
use crate::protocol::trace::{Trace, TraceId};
use crate::protocol::view::{Admission, JobState};

fn node(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

fn key(id: &str, digest: u8) -> JobKey {
    JobKey { id: JobId::new(id).expect("a good name"), digest: Digest([digest; 32]) }
}

fn leadership(term: u64, leader: &str) -> Leadership {
    Leadership { term: Term(term), leader: node(leader), incarnation: Incarnation(1), jac: Jac(0) }
}

fn attempt(number: u32, term: u64, leader: &str) -> AttemptName {
    AttemptName { number, term: Term(term), leader: node(leader) }
}

fn admission(term: u64, leader: &str, place: u32, slices: u32) -> Admission {
    Admission { term: Term(term), leader: node(leader), place, jac: Jac(u64::from(place)), slices }
}

fn task(job: &JobKey, slices: u32, slice: u32) -> TaskKey {
    TaskKey { job: job.clone(), slices, slice }
}

fn payload() -> Payload {
    Payload::PrimeSum { start: 1, end: 100 }
}

fn empty(owner: &str) -> Ledger {
    Ledger::restore(node(owner), Vec::new(), Position::default(), Past::default())
}

fn led_by(owner: &str, term: u64) -> Ledger {
    let mut ledger = empty(owner);
    ledger.enter(leadership(term, owner));
    ledger
}

/// A random state of one task, as some history of attempts could leave it.
fn random_task(dice: &mut Dice) -> Task {
    let name = |dice: &mut Dice| {
        let leader = if dice.below(2) == 0 { "a" } else { "b" };
        attempt(1 + u32::try_from(dice.below(3)).expect("small"), 1 + dice.below(2), leader)
    };
    let worker = |dice: &mut Dice| node(if dice.below(2) == 0 { "w1" } else { "w2" });
    let completion = (dice.below(3) == 0).then(|| Completion {
        attempt: name(dice),
        worker: worker(dice),
        value: Value(7),
        took: Duration::from_millis(dice.below(3)),
    });
    let attempt = (completion.is_none() && dice.below(4) > 0).then(|| Attempt {
        name: name(dice),
        worker: worker(dice),
        ended: dice.below(2) == 0,
    });
    Task { completion, attempt, charged: u32::try_from(dice.below(3)).expect("small") }
}

fn random_job(dice: &mut Dice) -> Job {
    let mut admissions = BTreeSet::new();
    for _ in 0..=dice.below(2) {
        let leader = if dice.below(2) == 0 { "a" } else { "b" };
        admissions.insert(admission(1 + dice.below(2), leader, 1, 4));
    }
    let outcome = match dice.below(5) {
        0 => Some(Outcome::Cancelled),
        1 => Some(Outcome::Failed(Arc::from(if dice.below(2) == 0 { "x" } else { "y" }))),
        2 => Some(Outcome::Succeeded(Value(5))),
        _ => None,
    };
    let mut small = || u32::try_from(dice.below(3)).expect("small");
    let (at, turn, completed) = (Wall(small().into()), Turn(small().into()), small());
    let ended = outcome.map(|outcome| Ended { outcome, at, turn, completed, total: 4 });
    let deadline = (dice.below(2) == 0).then(|| Wall(dice.below(3)));
    let trace = (dice.below(2) == 0).then(|| Trace { id: TraceId(1), span: 1 + dice.below(3), sampled: true });
    let submitted_at = Wall(dice.below(3));
    Job { key: key("j", 1), kind: Kind::PrimeSum, submitted_at, admissions, deadline, trace, ended }
}

#[test]
fn joining_tasks_in_any_order_and_any_number_of_times_gives_the_same() {
    let mut dice = Dice::new(1);
    let joined = |a: &Task, b: &Task| {
        let mut both = a.clone();
        both.join(b);
        both
    };
    for _ in 0..20_000 {
        let (a, b, c) = (random_task(&mut dice), random_task(&mut dice), random_task(&mut dice));
        assert_eq!(joined(&a, &a), a, "idempotent");
        assert_eq!(joined(&a, &b), joined(&b, &a), "commutative: {a:?} {b:?}");
        assert_eq!(joined(&joined(&a, &b), &c), joined(&a, &joined(&b, &c)), "associative: {a:?} {b:?} {c:?}");
    }
}

#[test]
fn joining_jobs_in_any_order_and_any_number_of_times_gives_the_same() {
    let mut dice = Dice::new(2);
    let joined = |a: &Job, b: &Job| {
        let mut both = a.clone();
        both.join(b);
        both
    };
    for _ in 0..20_000 {
        let (a, b, c) = (random_job(&mut dice), random_job(&mut dice), random_job(&mut dice));
        assert_eq!(joined(&a, &a), a, "idempotent");
        assert_eq!(joined(&a, &b), joined(&b, &a), "commutative: {a:?} {b:?}");
        assert_eq!(joined(&joined(&a, &b), &c), joined(&a, &joined(&b, &c)), "associative: {a:?} {b:?} {c:?}");
    }
}

#[test]
fn a_task_given_back_stays_pending_when_a_copy_still_says_running() {
    let running = Task {
        attempt: Some(Attempt { name: attempt(1, 1, "a"), worker: node("w"), ended: false }),
        ..Task::default()
    };
    let mut given_back = running.clone();
    given_back.attempt.as_mut().expect("it has one").ended = true;
    let mut joined = given_back.clone();
    joined.join(&running);
    assert!(joined.completion.is_none() && joined.attempt.as_ref().is_some_and(|attempt| attempt.ended));
    assert_eq!(joined, given_back);
}

#[test]
fn two_cuts_of_one_job_are_kept_apart_and_progress_goes_by_the_larger_share() {
    let job = key("j", 1);
    let mut here = led_by("a", 1);
    here.admit(&job, payload(), admission(1, "a", 1, 8), None, None, Wall(1));
    here.complete(&task(&job, 8, 3), attempt(1, 1, "a"), node("w"), Value(1), Duration::ZERO);
    let mut there = led_by("b", 1);
    there.admit(&job, payload(), admission(1, "b", 1, 12), None, None, Wall(2));
    for slice in [3, 4] {
        there.complete(&task(&job, 12, slice), attempt(1, 1, "b"), node("w"), Value(1), Duration::ZERO);
    }
    here.merge(there.changed_since(Number(0)), Some(Number(0)));
    let view = here.view(&job).expect("it is there");
    assert_eq!((view.completed, view.total), (2, 12), "2 of 12 is more than 1 of 8");
    assert_eq!(view.admissions.len(), 2, "both admissions are kept");
    assert_eq!(here.completions(&job, 8).count(), 1, "the other set is kept");
}

#[test]
fn a_follower_at_a_past_leadership_uploads_what_the_leader_lacks_and_both_end_equal() {
    let (early, late) = (key("early", 1), key("late", 2));
    let mut old = led_by("a", 1);
    old.admit(&early, payload(), admission(1, "a", 1, 4), None, None, Wall(1));
    let mut new = empty("b");
    new.take_over(&leadership(1, "a"), old.changed_since(Number(0)), old.number(), Some(old.past().clone()));
    // "a" admits one more that nobody gets, and dies; "b" leads on.
    old.admit(&late, payload(), admission(1, "a", 2, 4), None, None, Wall(2));
    new.enter(leadership(2, "b"));
    new.complete(&task(&early, 4, 0), attempt(1, 2, "b"), node("b"), Value(1), Duration::ZERO);
    let shared = new.shared_with(old.position().leadership.as_ref()).expect("it followed that leadership");
    assert!(old.number() > shared);
    let merged = new.merge(old.changed_since(shared), Some(shared));
    assert_eq!(merged.jobs, BTreeSet::from([late.clone()]));
    let back = new.changed_since(shared.min(old.number()));
    old.take_over(&leadership(2, "b"), back, new.number(), Some(new.past().clone()));
    assert_eq!(old.hashes(), new.hashes());
    assert_eq!(old.position(), new.position());
    assert_eq!(old.past(), new.past());
    assert!(new.is_unfinished(&late));
}

#[test]
fn what_a_follower_numbered_anew_without_a_change_goes_back_to_it_and_both_end_equal() {
    let job = key("j", 1);
    let mut old = led_by("a", 1);
    old.admit(&job, payload(), admission(1, "a", 1, 4), None, None, Wall(1));
    let mut new = empty("b");
    new.take_over(&leadership(1, "a"), old.changed_since(Number(0)), old.number(), Some(old.past().clone()));
    // "a" gets its own records back from a third replica that has gone further, and gives them new numbers.
    old.merge(old.changed_since(Number(0)), Some(Number(9)));
    assert_eq!((new.number(), old.number()), (Number(2), Number(4)));
    new.enter(leadership(2, "b"));
    let shared = new.shared_with(old.position().leadership.as_ref()).expect("it followed that leadership");
    let merged = new.merge(old.changed_since(shared), Some(shared));
    assert!(merged.jobs.is_empty(), "nothing has changed");
    old.take_over(&leadership(2, "b"), new.changed_since(shared), new.number(), Some(new.past().clone()));
    assert_eq!(old.hashes(), new.hashes());
    let again = new.merge(old.changed_since(shared), Some(shared));
    assert_eq!((again.jobs.len(), new.number()), (0, old.number()), "what goes back in any case keeps its number");
}

#[test]
fn replicas_with_foreign_pasts_end_equal_after_exchanging_the_jobs_that_differ() {
    let mut dice = Dice::new(3);
    for round in 0..200 {
        let mut here = led_by("a", 5);
        let mut there = led_by("b", 6);
        for id in 0..6 {
            let job = key(&format!("j{id}"), 1);
            for (ledger, leader) in [(&mut here, "a"), (&mut there, "b")] {
                if dice.below(2) == 0 {
                    ledger.admit(&job, payload(), admission(5, leader, 1, 4), None, None, Wall(dice.below(9)));
                    let slice = u32::try_from(dice.below(4)).expect("small");
                    ledger.complete(&task(&job, 4, slice), attempt(1, 5, leader), node("w"), Value(1), Duration::ZERO);
                    if dice.below(3) == 0 {
                        ledger.end(&job, Outcome::Cancelled, Wall(3));
                    }
                }
            }
        }
        assert_eq!(here.shared_with(there.position().leadership.as_ref()), None);
        let ours = here.hashes();
        let differ: Vec<JobKey> =
            there.hashes().into_iter().filter(|pair| !ours.contains(pair)).map(|(key, _)| key).collect();
        let lacking = ours.iter().map(|(key, _)| key.clone()).filter(|key| there.job(key).is_none());
        let back: Vec<JobKey> = differ.iter().cloned().chain(lacking).collect();
        here.merge(there.records_of(&differ), Some(Number(0)));
        there.take_over(&leadership(5, "a"), here.records_of(&back), here.number(), Some(here.past().clone()));
        assert_eq!(here.hashes(), there.hashes(), "round {round}");
        assert_eq!(here.changed_since(Number(0)), there.changed_since(Number(0)), "round {round}");
    }
}

#[test]
fn a_restored_replica_is_the_one_that_was_saved() {
    let job = key("j", 1);
    let mut ledger = led_by("b", 1);
    ledger.enter(leadership(2, "b"));
    assert_eq!(ledger.take_unsaved(), Unsaved::default(), "a leadership alone is not written");
    ledger.admit(&job, payload(), admission(2, "b", 1, 4), None, None, Wall(1));
    ledger.hand_out(&task(&job, 4, 2), attempt(1, 2, "b"), node("w"));
    let saved = ledger.take_unsaved();
    let past = saved.past.expect("it is written with the first record");
    let restored = Ledger::restore(node("b"), saved.records, ledger.position().clone(), past);
    assert_eq!(restored.hashes(), ledger.hashes());
    assert_eq!(restored.position(), ledger.position());
    assert_eq!(restored.past(), ledger.past());
    assert_eq!(ledger.take_unsaved(), Unsaved::default(), "nothing is saved twice");
}

#[test]
fn an_outcome_is_shown_when_it_is_held_and_its_payload_goes_at_once() {
    let job = key("j", 1);
    let mut ledger = led_by("a", 1);
    ledger.admit(&job, payload(), admission(1, "a", 1, 4), None, None, Wall(1));
    ledger.end(&job, Outcome::Succeeded(Value(9)), Wall(2));
    assert_eq!(ledger.payload(&job), None);
    let shown = |ledger: &Ledger| ledger.view(&job).map(|view| (view.state, view.answer));
    assert_eq!(shown(&ledger), Some((JobState::Running, None)));
    let held = ledger.number();
    assert_eq!(ledger.tell(Number(held.0 - 1)), Vec::new());
    assert_eq!(ledger.tell(held), vec![(job.clone(), None, JobState::Succeeded)]);
    assert_eq!(shown(&ledger), Some((JobState::Succeeded, Some(Value(9)))));
}

#[test]
fn a_higher_outcome_from_the_other_side_of_a_split_replaces_the_one_shown_when_it_is_held() {
    let job = key("j", 1);
    let mut here = led_by("a", 1);
    here.admit(&job, payload(), admission(1, "a", 1, 4), None, None, Wall(1));
    let mut there = led_by("b", 2);
    there.merge(here.changed_since(Number(0)), Some(Number(0)));
    here.end(&job, Outcome::Cancelled, Wall(2));
    here.tell(here.number());
    there.end(&job, Outcome::Succeeded(Value(9)), Wall(3));
    here.merge(there.changed_since(Number(0)), Some(Number(0)));
    assert_eq!(here.view(&job).map(|view| view.state), Some(JobState::Cancelled), "not held yet");
    let told = here.tell(here.number());
    assert_eq!(told, vec![(job.clone(), Some(JobState::Cancelled), JobState::Succeeded)]);
    assert_eq!(here.view(&job).map(|view| view.state), Some(JobState::Succeeded));
}

#[test]
fn a_bare_id_means_the_smaller_digest_and_a_full_name_its_own() {
    let mut ledger = led_by("a", 1);
    for digest in [9, 4] {
        ledger.admit(&key("j", digest), payload(), admission(1, "a", 1, 4), None, None, Wall(1));
    }
    let id = JobId::new("j").expect("a good name");
    let bare = JobQuery { id: id.clone(), digest: None, forwarded: false };
    assert_eq!(ledger.find(&bare), Some(key("j", 4)));
    let full = JobQuery { digest: Some(Digest([9; 32])), ..bare.clone() };
    assert_eq!(ledger.find(&full), Some(key("j", 9)));
    let other = JobQuery { id: JobId::new("i").expect("a good name"), ..bare };
    assert_eq!(ledger.find(&other), None, "the next job is not the one that was asked for");
}

#[test]
fn the_past_keeps_the_last_leaderships_only() {
    let mut past = Past::default();
    for term in 0..3_000 {
        past.leave(leadership(term, "a"), Number(term));
    }
    assert_eq!(past.parts().count(), crate::protocol::limits::PAST);
    assert_eq!(past.left_at(&leadership(2_999, "a")), Some(Number(2_999)));
    assert_eq!(past.left_at(&leadership(0, "a")), None);
}

#[test]
fn what_a_follower_gets_grows_with_what_changed_not_with_the_ledger() {
    let job = key("j", 1);
    let mut ledger = led_by("a", 1);
    ledger.admit(&job, payload(), admission(1, "a", 1, 3_200), None, None, Wall(1));
    for slice in 0..3_200 {
        ledger.hand_out(&task(&job, 3_200, slice), attempt(1, 1, "a"), node("w"));
    }
    let before = ledger.number();
    ledger.complete(&task(&job, 3_200, 5), attempt(1, 1, "a"), node("w"), Value(1), Duration::ZERO);
    assert_eq!(ledger.changed_since(before).len(), 1);
}

#[test]
fn a_line_shows_its_own_last_change_whether_or_not_its_tasks_were_here() {
    let mut ledger = led_by("a", 1);
    let (job, only) = (key("j", 1), task(&key("j", 1), 1, 0));
    ledger.admit(&job, payload(), admission(1, "a", 1, 1), None, None, Wall(5));
    ledger.hand_out(&only, attempt(1, 1, "a"), node("a"));
    ledger.end(&job, Outcome::Cancelled, Wall(6));
    ledger.give_back(&only, false);
    ledger.tell(ledger.number());
    ledger.retain(Keep { breakdowns: 0, lines: 9 });
    let (records, position) = (ledger.changed_since(Number(0)), ledger.position().clone());
    let mut other = Ledger::restore(node("b"), records, position, Past::default());
    other.tell(other.number());
    assert_eq!(ledger.view(&job), other.view(&job));
}

#[test]
fn the_cut_with_the_larger_completed_share_leads_whatever_it_was_cut_into() {
    // Completed of 8 slices, completed of 3 slices, and which leads: 2/8 < 1/3 < 3/8, and 0 = 0 goes to fewer slices.
    for (of_eight, of_three, leads) in [(2, 1, 3), (3, 1, 8), (5, 2, 3), (6, 2, 8), (0, 0, 3)] {
        let job = key("j", 1);
        let mut here = led_by("a", 1);
        here.admit(&job, payload(), admission(1, "a", 1, 8), None, None, Wall(1));
        let mut there = led_by("b", 2);
        there.admit(&job, payload(), admission(2, "b", 1, 3), None, None, Wall(1));
        here.merge(there.changed_since(Number(0)), Some(Number(0)));
        for (slices, completed) in [(8, of_eight), (3, of_three)] {
            for slice in 0..completed {
                let done = (node("w"), Value(1), Duration::from_millis(5));
                here.complete(&task(&job, slices, slice), attempt(1, 1, "a"), done.0, done.1, done.2);
            }
        }
        assert_eq!(here.leading_cut(&job), Some(leads), "{of_eight} of 8 and {of_three} of 3");
        let busy = Duration::from_millis(5 * u64::from(if leads == 8 { of_eight } else { of_three }));
        let view = here.view(&job).expect("it is there");
        assert_eq!(view.workers.iter().map(|share| share.busy).sum::<Duration>(), busy);
    }
}
