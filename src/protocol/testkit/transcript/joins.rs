//! Joins of single records (section 8): `task attempt 2 at n3 + done 1 by n2` gives what both copies become.
//!
//! Each join is made both ways, and must come to the same.

use std::sync::Arc;
use std::time::Duration;

use crate::jobs::{Kind, Value};
use crate::protocol::ids::{AttemptName, Term};
use crate::protocol::ledger::{Attempt, Completion, Ended, Job, Outcome, Task, Turn};
use crate::protocol::time::Wall;

use super::super::{job, node};

fn both(words: &[&str]) -> Option<(Vec<String>, Vec<String>)> {
    let mut sides = words.split(|word| *word == "+");
    let owned = |side: &[&str]| side.iter().map(|word| (*word).to_owned()).collect();
    Some((owned(sides.next()?), owned(sides.next()?)))
}

/// `pending`, `attempt 2 of term 5 at n3 [ended]`, `done 1 of term 4 by n2 = 17`, each with `charged 2`.
pub(super) fn tasks(words: &[&str]) -> Vec<String> {
    let Some((ours, theirs)) = both(words) else { return vec!["what + what?".to_owned()] };
    let (Some(ours), Some(theirs)) = (task(&ours), task(&theirs)) else { return vec!["no such task".to_owned()] };
    let (mut one, mut other) = (ours.clone(), theirs.clone());
    let differ = one.join(&theirs);
    other.join(&ours);
    let error = if differ { ", and an ERROR: two values" } else { "" };
    let ways = if one == other { "either way" } else { "it depends on the order" };
    vec![format!("{}{error}   ({ways})", in_words(&one))]
}

fn task(words: &[String]) -> Option<Task> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (words, charged) = match words.as_slice() {
        [rest @ .., "charged", count] => (rest.to_vec(), count.parse().ok()?),
        all => (all.to_vec(), 0),
    };
    let name = |number: &str, term: &str| {
        let (number, term) = (number.parse().ok()?, Term(term.parse().ok()?));
        Some(AttemptName { number, term, leader: node("n1") })
    };
    let (completion, attempt) = match words.as_slice() {
        ["pending"] => (None, None),
        ["attempt", number, "of", "term", term, "at", worker, ended @ ..] => {
            let ended = ended == ["ended"];
            (None, Some(Attempt { name: name(number, term)?, worker: node(worker), ended }))
        }
        ["done", number, "of", "term", term, "by", worker, "=", value] => {
            let (attempt, value) = (name(number, term)?, Value(value.parse().ok()?));
            (Some(Completion { attempt, worker: node(worker), value, took: Duration::from_millis(1) }), None)
        }
        _ => return None,
    };
    Some(Task { completion, attempt, charged })
}

fn in_words(task: &Task) -> String {
    let charged = if task.charged > 0 { format!(" charged {}", task.charged) } else { String::new() };
    let what = match (&task.completion, &task.attempt) {
        (Some(done), _) => {
            let AttemptName { number, term, .. } = &done.attempt;
            format!("done {number} of term {term} by {} = {}", done.worker, done.value)
        }
        (None, Some(last)) => {
            let ended = if last.ended { " ended" } else { "" };
            format!("attempt {} of term {} at {}{ended}", last.name.number, last.name.term, last.worker)
        }
        (None, None) => "pending".to_owned(),
    };
    what + &charged
}

/// `running`, `cancelled`, `failed WHY`, `succeeded 17`.
pub(super) fn outcomes(words: &[&str]) -> Vec<String> {
    let Some((ours, theirs)) = both(words) else { return vec!["what + what?".to_owned()] };
    let (Some(ours), Some(theirs)) = (ended(&ours), ended(&theirs)) else { return vec!["no such outcome".to_owned()] };
    let (mut one, mut other) = (ours.clone(), theirs.clone());
    one.join(&theirs);
    other.join(&ours);
    let ways = if one == other { "either way" } else { "it depends on the order" };
    let what = one.ended.as_ref().map_or("running".to_owned(), |ended| match &ended.outcome {
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::Failed(why) => format!("failed {why}"),
        Outcome::Succeeded(value) => format!("succeeded {value}"),
    });
    vec![format!("{what}   ({ways})")]
}

fn ended(words: &[String]) -> Option<Job> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["running"] => None,
        ["cancelled"] => Some(Outcome::Cancelled),
        ["failed", why] => Some(Outcome::Failed(Arc::from(*why))),
        ["succeeded", value] => Some(Outcome::Succeeded(Value(value.parse().ok()?))),
        _ => return None,
    };
    let ended = |outcome| Ended { outcome, at: Wall(2), turn: Turn::default(), completed: 0, total: 1 };
    Some(Job {
        key: job("j"),
        kind: Kind::PrimeSum,
        submitted_at: Wall(1),
        admissions: [].into(),
        deadline: None,
        trace: None,
        ended: outcome.map(ended),
    })
}
