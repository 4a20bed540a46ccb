//! The commands of a scenario, one line each.
//!
//! Owns their words. None of them is part of the protocol: they start, hurt and ask workers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::jobs::Payload;
use crate::protocol::ids::{Digest, Jac, JobKey, Number, Term};
use crate::protocol::input::Input;
use crate::protocol::ledger::Keep;
use crate::protocol::limits::Rotation;
use crate::protocol::message::{Announce, Elect, ExecuteTask, Leader, ListJobs, Purpose, Request, SubmitJob};
use crate::protocol::saving::Saving;
use crate::protocol::time::Wall;

use super::super::network::{Fate, Network};
use super::super::{announce, elect, job, leader, query, render, submission, sum_to_100, task};
use super::{Rule, Scenario, joins};

impl Scenario {
    /// Does what the words say; gives what is asked for. None for words that say nothing.
    pub(super) fn command(&mut self, words: &[&str]) -> Option<Vec<String>> {
        match words {
            ["set", name, value] => self.set(name, value)?,
            ["workers", names @ ..] => self.workers(names),
            ["jac", name, value] => {
                let jac = Jac(value.parse().ok()?);
                let worker = self.net().worker_mut(name);
                worker.jac = jac;
                worker.saving = Saving::new(worker.ledger.number(), jac);
            }
            ["show", what] => self.shown.push((*what).to_owned()),
            ["hide", what] => self.shown.retain(|shown| shown != what),
            ["lose", rest @ ..] => self.rule(Fate::Drop, rest),
            ["hold", rest @ ..] => self.rule(Fate::Hold, rest),
            ["break", rest @ ..] => self.rule(Fate::Break, rest),
            ["release"] => {
                self.rules.borrow_mut().clear();
                self.net().release();
                self.lay_down_rules();
            }
            ["release", rest @ ..] => {
                let text = rest.join(" ");
                self.rules.borrow_mut().retain(|rule| rule.text != text);
                self.net().release_only(&text);
            }
            ["pass", rest @ ..] => self.net().pass(span(rest)?),
            ["wait", "for", "one", "leader"] => {
                let came = self.net().until(Duration::from_secs(60), |net| net.one_leader().is_some());
                return Some(if came { Vec::new() } else { vec!["there is none".to_owned()] });
            }
            ["task", rest @ ..] => return Some(joins::tasks(rest)),
            ["outcome", rest @ ..] => return Some(joins::outcomes(rest)),
            _ => return self.hurt(words).or_else(|| self.ask(words)).or_else(|| self.look(words)),
        }
        Some(Vec::new())
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let number = || value.parse::<u32>().ok();
        let settings = &mut self.settings;
        match name {
            "max_jobs_per_term" => settings.max_jobs_per_term = number()?,
            "min_members" => settings.min_members = number()?,
            "max_attempts" => settings.max_attempts = number()?,
            "tasks_per_worker" => settings.tasks_per_worker = number()?,
            "queue" => settings.queue = usize::try_from(number()?).ok()?,
            "keep_breakdowns" => settings.keep = Keep { breakdowns: value.parse().ok()?, ..settings.keep },
            "keep_lines" => settings.keep = Keep { lines: value.parse().ok()?, ..settings.keep },
            "rotation" if value == "handover" => settings.rotation = Rotation::Handover,
            "drain_limit_ms" => settings.drain_limit = Duration::from_millis(number()?.into()),
            "link_ping_ms" => settings.link_ping = Duration::from_millis(number()?.into()),
            _ => return None,
        }
        Some(())
    }

    /// `workers n1 n2 linked n1-n2`.
    fn workers(&mut self, words: &[&str]) {
        let links: Vec<&str> = words.iter().copied().skip_while(|word| *word != "linked").skip(1).collect();
        let names: Vec<&str> = words.iter().copied().take_while(|word| *word != "linked").collect();
        self.net = Some(Network::with(self.settings.clone(), &names, &links));
        self.lay_down_rules();
        self.told = self.net().log.len();
        self.clock = self.net().now;
    }

    /// `lose n1 > n2 ELECT`, `lose once n1 > n2 ELECT`.
    fn rule(&mut self, fate: Fate, words: &[&str]) {
        let (times, text) = match words {
            ["once", text @ ..] => (Some(1), text),
            text => (None, text),
        };
        self.rules.borrow_mut().push(Rule { text: text.join(" "), fate, times });
    }

    fn hurt(&mut self, words: &[&str]) -> Option<Vec<String>> {
        let net = self.net.as_mut()?;
        match words {
            ["kill", names @ ..] => names.iter().for_each(|name| net.kill(name)),
            ["start", names @ ..] => names.iter().for_each(|name| net.restart(name)),
            ["wipe", name] => net.wipe(name),
            ["freeze", name] => net.freeze(name),
            ["thaw", name] => net.thaw(name),
            ["stop", name] => {
                net.step(name, Input::Stop);
                net.settle();
            }
            ["split", parts @ ..] => split(net, parts),
            ["heal"] => net.heal(),
            ["meet", a, b] => net.meet(a, b),
            ["elect", name] => net.elect(name),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn ask(&mut self, words: &[&str]) -> Option<Vec<String>> {
        self.serial += 1;
        let serial = self.serial;
        let net = self.net.as_mut()?;
        let (caller, at, request) = match words {
            ["submit", id, "at", at] => ("client", at, Request::SubmitJob(submission(id))),
            ["submit", id, "as", other, "at", at] => {
                let job = SubmitJob { key: other_key(id), payload: max(other)?, ..submission(id) };
                ("client", at, Request::SubmitJob(job))
            }
            ["submit", id, "within", within, "at", at] => {
                let deadline = Wall(net.now.0 / 1_000 + within.strip_suffix("ms")?.parse::<u64>().ok()?);
                ("client", at, Request::SubmitJob(SubmitJob { deadline: Some(deadline), ..submission(id) }))
            }
            ["cancel", id, "at", at] => ("client", at, Request::CancelJob(query(id))),
            ["get", id, "at", at] => ("client", at, Request::GetJob(query(id))),
            ["list", "at", at] => ("client", at, Request::ListJobs(ListJobs { after: None, limit: 100 })),
            ["hop", from, to, "term", term] => {
                let hop = Elect { term: Term(term.parse().ok()?), ..elect(from, 1_000 + serial, 1) };
                (*from, to, Request::Elect(hop))
            }
            ["tell", to, "from", from, purpose, named, rest @ ..] => {
                (*from, to, Request::Announce(announcement(purpose, from, named, rest)?))
            }
            ["run", id, slice, "attempt", attempt, "as", named, "at", at] => {
                ("leader", at, Request::ExecuteTask(hand_out(id, slice, attempt, named)?))
            }
            _ => return None,
        };
        net.ask_as(caller, at, request);
        Some(Vec::new())
    }

    fn look(&mut self, words: &[&str]) -> Option<Vec<String>> {
        let names = self.names();
        let net = self.net.as_mut()?;
        match words {
            ["who"] => {
                let line = |name: &String| match net.is_up(name) {
                    true => format!("{name} {}", render::state(net.worker(name))),
                    false => format!("{name} is down"),
                };
                Some(names.iter().map(line).collect())
            }
            ["job", id] => {
                let up = names.iter().filter(|name| net.is_up(name));
                Some(up.map(|name| format!("{name} shows {}", net.shown(name, id))).collect())
            }
            ["ledger", name] => Some(vec![format!("{name} holds {}", ledger(net, name))]),
            ["disk", name] => Some(vec![format!("{name}'s disk holds [{}]", net.on_disk(name))]),
            ["replicas"] => {
                let up = names.iter().filter(|name| net.is_up(name));
                let content: BTreeSet<String> = up.map(|name| ledger(net, name)).collect();
                Some(vec![if content.len() == 1 { "all equal" } else { "they differ" }.to_owned()])
            }
            ["jacs"] => {
                let up = names.iter().filter(|name| net.is_up(name));
                let all: Vec<String> = up.map(|name| format!("{name} {}", net.worker(name).jac)).collect();
                Some(vec![all.join(", ")])
            }
            _ => None,
        }
    }

    fn names(&mut self) -> Vec<String> {
        self.net.as_ref().map(Network::names).unwrap_or_default()
    }
}

/// All records of a replica, in the order of their changes.
fn ledger(net: &Network, name: &str) -> String {
    let records = net.worker(name).ledger.changed_since(Number(0));
    let each: Vec<String> =
        records.iter().map(|stamped| format!("{}:{}", stamped.stamp.number, render::record(stamped))).collect();
    format!("[{}]", each.join(", "))
}

/// `split n1 n2 | n3`: nobody of one part reaches anybody of the other.
fn split(net: &mut Network, words: &[&str]) {
    let mut parts = words.split(|word| *word == "|");
    let (one, other) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    for a in one {
        other.iter().for_each(|b| net.cut(a, b));
    }
}

fn span(words: &[&str]) -> Option<Duration> {
    match words {
        [number, "ms"] => number.parse().ok().map(Duration::from_millis),
        [number, "s"] => number.parse().ok().map(Duration::from_secs),
        _ => None,
    }
}

/// The same id with another payload has another digest.
fn other_key(id: &str) -> JobKey {
    JobKey { digest: Digest([2; 32]), ..job(id) }
}

fn max(numbers: &str) -> Option<Payload> {
    let numbers: Option<Vec<i64>> = numbers.split(',').map(|number| number.parse().ok()).collect();
    Some(Payload::Max(Arc::from(numbers?)))
}

/// `5-n3` or `5-n3/2`, with the JAC.
fn led(named: &str) -> Option<Leader> {
    let (named, jac) = named.split_once('/').unwrap_or((named, "0"));
    let (term, name) = named.split_once('-')?;
    Some(leader(term.parse().ok()?, name, jac.parse().ok()?))
}

/// A hand-out of slice `0/4` as `5-n3`.
fn hand_out(id: &str, slice: &str, attempt: &str, named: &str) -> Option<ExecuteTask> {
    let (slice, slices) = slice.split_once('/')?;
    let (slice, slices) = (slice.parse().ok()?, slices.parse().ok()?);
    Some(ExecuteTask {
        leadership: led(named)?.leadership,
        task: task(id, slices, slice),
        attempt: attempt.parse().ok()?,
        slice: sum_to_100().slice(slices, slice)?,
    })
}

fn announcement(purpose: &str, from: &str, named: &str, rest: &[&str]) -> Option<Announce> {
    let purpose = match purpose {
        "WON" => Purpose::Won,
        "COORDINATOR" => Purpose::Flood,
        "MET" => Purpose::Met,
        "SETTLE" => Purpose::Settle,
        _ => return None,
    };
    let workers = match rest {
        ["workers", count] => count.parse().ok()?,
        _ => 1,
    };
    Some(announce(purpose, from, led(named)?, workers))
}
