//! The guarantees of section 10 as judges of a history: observations in, violations out.
//!
//! Each guarantee is one file and one type that takes the observations one by one, so that a simulator can stop at
//! the very step that broke it. Never asks a node for anything: what was not observed is not judged.

#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::wildcard_enum_match_arm)]

mod g1_acknowledged_jobs_end_right;
mod g2_one_answer;
mod g3_nothing_older;
mod g4_jac_rises_by_one;
mod g5_no_more_than_the_cap;
mod g6_progress_never_falls;
mod g7_parts_become_one;
mod g8_no_input_ends_a_node;
pub mod history;
mod retained;
#[cfg(test)]
mod stories;

use std::fmt;

use crate::protocol::time::Time;

use history::Event;

/// A guarantee that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which: "G1" to "G8".
    pub guarantee: &'static str,
    /// At which observation it showed.
    pub at: Time,
    /// What was seen against what was promised.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken at {}: {}", self.guarantee, self.at, self.text)
    }
}

/// Where the judges write.
#[derive(Clone, Debug, Default)]
struct Verdict {
    at: Time,
    violations: Vec<Violation>,
}

impl Verdict {
    fn breach(&mut self, guarantee: &'static str, text: String) {
        self.violations.push(Violation { guarantee, at: self.at, text });
    }
}

/// All judges over one history.
#[derive(Clone, Debug)]
pub struct Judge {
    g1: g1_acknowledged_jobs_end_right::G1,
    g2: g2_one_answer::G2,
    g3: g3_nothing_older::G3,
    g4: g4_jac_rises_by_one::G4,
    g5: g5_no_more_than_the_cap::G5,
    g6: g6_progress_never_falls::G6,
    g7: g7_parts_become_one::G7,
    retained: retained::Retained,
    verdict: Verdict,
}

impl Judge {
    /// A judge of an empty history; `cap` is what a leadership may admit.
    #[must_use]
    pub fn new(cap: u32) -> Judge {
        Judge {
            g1: Default::default(),
            g2: Default::default(),
            g3: Default::default(),
            g4: Default::default(),
            g5: g5_no_more_than_the_cap::G5::new(cap),
            g6: Default::default(),
            g7: Default::default(),
            retained: retained::Retained::new(usize::MAX),
            verdict: Verdict::default(),
        }
    }

    /// The same of a cluster that keeps only so many ended jobs; otherwise all are expected to be kept.
    #[must_use]
    pub fn keeping(self, lines: usize) -> Judge {
        Judge { retained: retained::Retained::new(lines), ..self }
    }

    /// Takes the next observation.
    pub fn see(&mut self, event: &Event) {
        let verdict = &mut self.verdict;
        verdict.at = event.at;
        self.retained.see(&event.seen);
        self.g1.see(&event.seen, &self.retained, verdict);
        self.g2.see(&event.seen, &self.retained, verdict);
        self.g3.see(&event.seen, verdict);
        self.g4.see(&event.seen, verdict);
        self.g5.see(&event.seen, verdict);
        self.g6.see(&event.seen, verdict);
        self.g7.see(&event.seen, &self.retained, verdict);
        g8_no_input_ends_a_node::see(&event.seen, verdict);
    }

    /// What did not hold so far.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.verdict.violations
    }
}

/// Judges a whole history.
#[must_use]
pub fn judge<'a>(cap: u32, history: impl IntoIterator<Item = &'a Event>) -> Vec<Violation> {
    let mut judge = Judge::new(cap);
    history.into_iter().for_each(|event| judge.see(event));
    judge.verdict.violations
}
