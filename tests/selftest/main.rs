//! The simulator on trial: rules of the core are broken one by one, and it has to notice each within 1,000 seeds.
//!
//! `make sim-selftest` runs it and prints a row for each rule. Without FLOODLINE_SELFTEST, as in every other test run,
//! only the table is checked against the core. Uses nothing but std and the compiler, as `make pure` does.

mod bench;
mod mutants;

use std::path::PathBuf;

use mutants::ALL;

fn repository() -> PathBuf {
    PathBuf::from(option_env!("CARGO_MANIFEST_DIR").unwrap_or("."))
}

#[test]
fn every_rule_that_gets_broken_stands_in_the_core_exactly_once() {
    let wrong = ALL.iter().filter_map(|mutant| {
        let path = repository().join("src/protocol").join(mutant.file);
        let content = std::fs::read_to_string(&path).unwrap_or_default();
        let found = content.matches(mutant.text).count();
        (found != 1).then(|| format!("{}: {found} times in {}: {}", mutant.rule, mutant.file, mutant.text))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_broken_rule_is_caught_within_1000_seeds() {
    let Ok(wanted) = std::env::var("FLOODLINE_SELFTEST") else { return };
    let missed = bench::try_all(&repository(), &wanted);
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
