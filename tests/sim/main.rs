//! The simulator: whole clusters on the pure core, from a seed.
//!
//! It takes the place of the shell: it owns time and the network, and carries out each effect of a step with the
//! chance to die between any two. A seed decides the size of the cluster, the weather, what gets hurt when, and what
//! clients do. While things get hurt every step is judged by the guarantees of section 10 and by what only a
//! simulator can know; then everything heals, and the cluster has to become whole in a bounded time.
//!
//! `FLOODLINE_SEEDS` and `FLOODLINE_FIRST_SEED` choose the seeds, `FLOODLINE_FAILURES` how many may fail before it stops, `FLOODLINE_SEED=n` replays one and prints all that
//! happens. The same seed gives the same run, to the byte.

mod attempts;
mod calls;
mod clients;
mod compact;
mod deadlines;
mod deaths;
mod disk;
mod faults;
mod marks;
mod network;
mod perform;
mod plan;
mod process;
mod queue;
mod registry;
mod replicas;
mod returning;
mod run;
mod settle;
mod shrink;
mod streams;
mod subscribers;
mod truth;
mod vandal;
mod work;
mod world;

use std::io::Write as _;
use std::time::Instant;

use marks::Mark;
use world::Talk;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.trim().parse().ok())
}

#[test]
fn every_seed_keeps_the_guarantees_and_all_together_reach_every_mark() {
    if let Some(seed) = number("FLOODLINE_SEED") {
        let outcome = run::one(seed, Talk::Print);
        assert!(outcome.failure.is_none(), "seed {seed}: {}", outcome.failure.unwrap_or_default());
        return;
    }
    let (first, seeds) = (number("FLOODLINE_FIRST_SEED").unwrap_or(1), number("FLOODLINE_SEEDS").unwrap_or(10_000));
    let begun = Instant::now();
    let report = run::many(first, seeds, number("FLOODLINE_FAILURES").unwrap_or(25));
    let took = begun.elapsed().as_secs_f64();
    // Past the capture of passing tests: what a run reached is part of its verdict.
    let mut out = std::io::stdout();
    write!(out, "{}", report.marks.table(seeds)).expect("stdout is open");
    for (seed, failure) in &report.failures {
        writeln!(out, "seed {seed}: {failure}\n  replay: make sim SEED={seed}").expect("stdout is open");
    }
    if let Some((seed, failure)) = report.failures.first().filter(|_| number("FLOODLINE_FAILURES").is_none()) {
        writeln!(out, "{}", shrink::story(*seed, failure)).expect("stdout is open");
    }
    let (reached, all, failed) = (report.marks.reached(), Mark::ALL.len(), report.failures.len());
    let steps = report.steps;
    writeln!(
        out,
        "{seeds} seeds, {steps} steps in {took:.1} s, {reached} of {all} situations reached, {failed} failed"
    )
    .expect("stdout is open");
    assert!(
        report.failures.is_empty(),
        "{} of {seeds} seeds failed, the first: {:?}",
        report.failures.len(),
        report.failures[0]
    );
    let missed = report.marks.missed(seeds);
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_byte() {
    for seed in 1..=12 {
        let transcript = || run::one(seed, Talk::Keep(String::new())).transcript;
        let (one, other) = (transcript(), transcript());
        assert!(!one.is_empty() && one == other, "seed {seed} gave two different runs");
    }
}
