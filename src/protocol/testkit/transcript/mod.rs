//! Transcripts: a scenario in a small language of commands, and below each command what happened.
//!
//! A line that begins with `> ` is a command, one with `#` says what to look at, the others are what happened, and are
//! written anew by [`play`]. Messages read `n1 > n2 ELECT ...`, their answers `n2 > n1 answer: ...`; `n1: ...` is what
//! a worker says to people. Signs of life (heartbeats, acknowledgements, pings) and what stays inside a worker (saves,
//! computations) are left out until a scenario asks for them with `show`, and all that a command brings about when it
//! begins with `quietly`.
//!
//! Owns the language alone; what happens is the [`Network`]'s.

mod commands;
mod joins;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::protocol::limits::Settings;
use crate::protocol::time::Time;

use super::network::{Fate, Network};
use super::quiet;

/// A name to ask by, and how to tell the lines that it stands for.
type Kind = (&'static str, fn(&str) -> bool);

/// What is left out unless it is asked for.
const LEFT_OUT: [Kind; 9] = [
    ("heartbeats", |line| line.contains(" HEARTBEAT ")),
    ("acks", |line| line.contains(" up ACK ")),
    ("rosters", |line| line.contains(" ROSTER ")),
    ("pings", |line| line.contains(" PING ") || (1..=9).any(|n| line.contains(&format!(" answer: n{n} follows ")))),
    ("saves", |line| line.contains(" saves ")),
    ("computations", |line| line.contains(" computes ")),
    ("streams", |line| [" opens", " closes", " stream ends", " stream breaks"].iter().any(|end| line.ends_with(end))),
    ("callers", |line| line.ends_with("caller gone") || line.ends_with("breaks") && line.contains("a call of")),
    ("members", |line| line.contains("is a member") || line.contains("is no member")),
];

/// What becomes of some mail.
#[derive(Clone, Debug)]
struct Rule {
    text: String,
    fate: Fate,
    /// How often still; none for always.
    times: Option<u32>,
}

/// A scenario under way.
struct Scenario {
    settings: Settings,
    net: Option<Network>,
    rules: Rc<RefCell<Vec<Rule>>>,
    shown: Vec<String>,
    /// Lines of the network's log that are told.
    told: usize,
    /// The time that the reader knows.
    clock: Time,
    serial: u64,
}

/// The scenario once more, with what happens now below each command.
pub(crate) fn play(text: &str) -> String {
    let mut scenario = Scenario {
        settings: Settings { tasks_per_worker: 1, ..quiet() },
        net: None,
        rules: Rc::default(),
        shown: Vec::new(),
        told: 0,
        clock: Time::ZERO,
        serial: 0,
    };
    let mut played: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            played.push(line.to_owned());
            let all: Vec<&str> = command.split_whitespace().collect();
            let words = all.strip_prefix(&["quietly"]).unwrap_or(&all);
            let answer = scenario.command(words).unwrap_or_else(|| panic!("no such command: {command}"));
            let happened = scenario.happened();
            if words.len() < all.len() {
                continue;
            }
            played.extend(happened.into_iter().chain(answer).map(|line| format!("    {line}")));
        } else if line.starts_with('#') || line.trim().is_empty() {
            played.push(line.trim_end().to_owned());
        }
    }
    played.join("\n") + "\n"
}

impl Scenario {
    fn net(&mut self) -> &mut Network {
        self.net.as_mut().expect("`workers` comes first")
    }

    /// What is in the network's log since it was told last.
    fn happened(&mut self) -> Vec<String> {
        let Some(net) = &self.net else { return Vec::new() };
        let mut lines = Vec::new();
        for (line, (at, to_people)) in net.log.iter().zip(&net.notes).skip(self.told) {
            let left_out = LEFT_OUT.iter().find(|(_, is)| is(line) || to_people.as_deref().is_some_and(is));
            if left_out.is_some_and(|(name, _)| !self.shown.iter().any(|shown| shown == name)) && !line.contains(" [") {
                continue;
            }
            if *at > self.clock {
                lines.push(format!("-- {} later", span(at.since(self.clock))));
                self.clock = *at;
            }
            lines.push(to_people.clone().unwrap_or_else(|| fate_in_words(line)));
        }
        self.told = net.log.len();
        self.clock = net.now.max(self.clock);
        lines
    }

    /// The rules hold from now on.
    fn lay_down_rules(&mut self) {
        let rules = self.rules.clone();
        self.net().rule(move |text| {
            let mut rules = rules.borrow_mut();
            let hit = rules.iter_mut().find(|rule| rule.times != Some(0) && text.contains(&rule.text));
            hit.map_or(Fate::Deliver, |rule| {
                rule.times = rule.times.map(|times| times - 1);
                rule.fate
            })
        });
    }
}

fn fate_in_words(line: &str) -> String {
    let marks = [(" [Drop]", "   (lost)"), (" [Hold]", "   (kept back)"), (" [Break]", "   (can't be delivered)")];
    let mark = marks.iter().find(|(mark, _)| line.ends_with(mark));
    mark.map_or(line.to_owned(), |(mark, words)| line.replace(mark, words))
}

fn span(span: Duration) -> String {
    let micros = span.as_micros();
    if micros >= 10_000 {
        format!("{} ms", micros / 1_000)
    } else {
        format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100)
    }
}
