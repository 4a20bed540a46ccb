//! The check of the repository's own shape: who imports whom, purity, sizes, and habits that a machine can see.
//!
//! Each rule is tried on planted samples first, since a check that finds nothing looks like a clean repository.

mod imports;
mod rules;
mod source;

use std::fmt;
use std::path::Path;

use source::{Source, repository};

/// Something that is not as it should be, and where.
#[derive(PartialEq, Eq)]
pub(crate) struct Fault {
    path: String,
    line: usize,
    text: String,
}

impl Fault {
    fn new(source: &Source, line: usize, text: String) -> Fault {
        Fault { path: source.path.clone(), line, text }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

fn check(rule: fn(&Source) -> Vec<Fault>) {
    let sources = repository(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(sources.iter().any(|source| source.path == "src/lib.rs"), "the repository was not found");
    let faults: Vec<String> = sources.iter().flat_map(rule).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn modules_import_only_what_the_table_allows() {
    check(imports::check);
}

#[test]
fn every_file_begins_with_a_module_doc() {
    check(rules::module_doc);
}

#[test]
fn every_file_is_named_after_what_is_in_it() {
    check(rules::file_name);
}

#[test]
fn no_file_is_too_long() {
    check(rules::file_length);
}

#[test]
fn no_function_is_too_long() {
    check(rules::function_length);
}

#[test]
fn pure_modules_are_pure() {
    check(rules::purity);
}

#[test]
fn pure_modules_deny_the_bans() {
    check(rules::denials);
}

#[test]
fn nothing_is_left_for_later() {
    check(rules::nothing_open);
}

#[test]
fn tests_neither_sleep_nor_are_ignored() {
    check(rules::honest_tests);
}

#[test]
fn metrics_are_named_in_one_file() {
    check(rules::metric_names);
}

#[test]
fn generated_types_and_channels_stay_in_their_bounds() {
    check(rules::owners);
}
