//! Many seeds on all cores, each alone on one thread; and the report.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::marks::Marks;
use crate::plan::Plan;
use crate::world::{Talk, World};

/// What one seed came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Why it failed.
    pub(crate) failure: Option<String>,
    pub(crate) marks: Marks,
    pub(crate) steps: u64,
    pub(crate) transcript: String,
}

/// Runs one seed.
pub(crate) fn one(seed: u64, talk: Talk) -> Outcome {
    planned(seed, Plan::new(seed), talk)
}

/// Runs one seed by a plan.
pub(crate) fn planned(seed: u64, plan: Plan, talk: Talk) -> Outcome {
    let mut world = None;
    let run = catch_unwind(AssertUnwindSafe(|| world.insert(World::new(seed, plan, talk)).run()));
    let panic = run.err().map(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("G8 broken: panicked: {}", text.unwrap_or_default())
    });
    let Some(mut world) = world else {
        return Outcome { failure: panic, marks: Marks::new(), steps: 0, transcript: String::new() };
    };
    let broken = world.judge.violations().first().or(world.broken.as_ref()).map(ToString::to_string);
    let transcript = match std::mem::replace(&mut world.talk, Talk::Off) {
        Talk::Keep(text) => text,
        Talk::Off | Talk::Print => String::new(),
    };
    Outcome { failure: panic.or(broken), marks: world.marks.clone(), steps: world.steps, transcript }
}

/// What many seeds came to.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) failures: Vec<(u64, String)>,
    pub(crate) marks: Marks,
    pub(crate) steps: u64,
}

/// Runs seeds from `first` on. Stops early when `enough` have failed: more of the same helps nobody. All seeds below
/// the last one that it began are done.
pub(crate) fn many(first: u64, seeds: u64, enough: u64) -> Report {
    let next = AtomicU64::new(first);
    let report = Mutex::new(Report { failures: Vec::new(), marks: Marks::new(), steps: 0 });
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= first + seeds {
            return;
        }
        let outcome = one(seed, Talk::Off);
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        report.marks.add_run(&outcome.marks);
        report.steps += outcome.steps;
        report.failures.extend(outcome.failure.map(|failure| (seed, failure)));
        if report.failures.len() as u64 >= enough {
            return;
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.failures.sort();
    report
}
