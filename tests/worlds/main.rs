//! Exhaustive search of small worlds: two and three workers, two jobs, one crash or one split, over the real core.
//!
//! A world has one usual course: what is on its way is delivered in rounds, in a fixed order, and time moves when
//! nothing is. From every state of it the search takes every other turn that its bounds allow: a message that comes
//! later than usual or before another, a worker that is killed, a split, and every moment of coming back. It goes on
//! until nothing is left to try, so a pass means that within the bounds no turn breaks a guarantee of section 10, and
//! that each of them ends with one leader and both answers.
//!
//! The bounds of each search stand in [`bounds`], and what a turn may be in [`turns`]. `FLOODLINE_WORLDS=all` runs
//! every search, otherwise the short ones run.

mod bounds;
mod clients;
mod disk;
mod host;
mod look;
mod network;
mod perform;
mod print;
mod search;
mod trouble;
mod turns;
mod world;

use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bounds::Bounds;
use search::Found;

/// Runs searches on all cores, and gives their findings in their own order.
fn run(all: &[Bounds]) -> Vec<(Bounds, Found, f64)> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        while let Some(bounds) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            let found = search::search(*bounds);
            let entry = (*bounds, found, begun.elapsed().as_secs_f64());
            done.lock().expect("no search panics").push(entry);
        }
    };
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().expect("no search panics");
    done.sort_by_key(|(bounds, ..)| all.iter().position(|other| other == bounds));
    done
}

#[test]
fn no_turn_of_a_small_world_breaks_a_guarantee() {
    let which = std::env::var("FLOODLINE_WORLDS").unwrap_or_default();
    let results = match which.parse::<usize>() {
        Ok(one) => run(&bounds::ALL[one..=one]),
        Err(_) => run(if which == "all" { bounds::ALL } else { bounds::SHORT }),
    };
    // Past the capture of passing tests: how far a search went is part of its verdict.
    let mut out = std::io::stdout();
    let mut say = |line: String| writeln!(out, "{line}").expect("stdout is open");
    say(format!("{:<72} {:>9} {:>9} {:>10} {:>7} {:>6}", "bounds", "states", "courses", "steps", "deepest", "s"));
    for (bounds, found, took) in &results {
        let Found { states, courses, steps, deepest, .. } = found;
        say(format!("{:<72} {states:>9} {courses:>9} {steps:>10} {deepest:>7} {took:>6.1}", bounds.to_string()));
    }
    for (bounds, found, _) in &results {
        if let Some(failure) = &found.failure {
            say(format!("\n{bounds}\n{}\n{}", failure.story, failure.what));
        }
    }
    for (bounds, found, _) in &results {
        assert!(found.failure.is_none(), "{bounds}: {}", found.failure.as_ref().map_or("", |failure| &failure.what));
        assert!(found.courses > 0, "{bounds}: no course came to its end");
    }
}

#[test]
fn a_disk_that_says_saved_before_it_is_loses_an_acknowledged_job() {
    let found = search::search(Bounds { lying_disk: true, ..bounds::CRASH_OF_TWO });
    let failure = found.failure.expect("what was told before it was on a disk can be lost");
    assert!(failure.what.contains("G1") || failure.what.contains("on no disk"), "{}", failure.what);
}

#[test]
fn a_search_takes_the_same_turns_every_time() {
    let figures = || {
        let found = search::search(bounds::QUIET_TWO);
        (found.states, found.courses, found.steps, found.deepest)
    };
    assert_eq!(figures(), figures());
}
