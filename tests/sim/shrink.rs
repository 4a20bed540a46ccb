//! Makes a failing run small: takes out faults, weather, errands and hosts as long as the same thing stays broken.
//!
//! A run is a function of its seed and its plan, so a smaller plan is another run: it may break nothing, or break
//! otherwise, and is then not taken.

use floodline::protocol::Settings;
use floodline::protocol::time::Time;

use crate::compact::compact;
use crate::network::Weather;
use crate::plan::Plan;
use crate::run;
use crate::world::Talk;

/// Runs that shrinking may cost.
const TRIES: usize = 200;
/// Lines of a transcript that are shown of its end.
const LAST_LINES: usize = 140;
const WIDTH: usize = 400;

/// What is broken, by the first words of a failure.
fn kind(failure: &str) -> &str {
    failure.split(" broken").next().unwrap_or(failure)
}

/// The smallest plan found that breaks the same, and what it breaks.
struct Search {
    seed: u64,
    plan: Plan,
    failure: String,
    tries: usize,
}

impl Search {
    /// Takes a changed plan if it breaks the same.
    fn take(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        if self.tries >= TRIES {
            return false;
        }
        self.tries += 1;
        let mut plan = self.plan.clone();
        change(&mut plan);
        let failure = run::planned(self.seed, plan.clone(), Talk::Off).failure;
        let Some(failure) = failure.filter(|failure| kind(failure) == kind(&self.failure)) else { return false };
        (self.plan, self.failure) = (plan, failure);
        true
    }

    /// Takes parts out of a list, large ones first.
    fn thin<T: 'static>(&mut self, list: fn(&mut Plan) -> &mut Vec<T>) -> bool {
        let mut any = false;
        let mut size = list(&mut self.plan.clone()).len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < list(&mut self.plan).len() {
                let taken = self.take(|plan| {
                    let list = list(plan);
                    list.drain(from..(from + size).min(list.len()));
                });
                any |= taken;
                from += if taken { 0 } else { size };
            }
            size /= 2;
        }
        any
    }

    fn calm_down(&mut self) -> bool {
        let mut any = self.take(|plan| plan.vandal = false);
        any |= self.take(|plan| plan.weather = Weather::fair());
        any |= self.take(|plan| plan.weather.lost = 0);
        any |= self.take(|plan| plan.weather.doubled = 0);
        any |= self.take(|plan| plan.weather.late = 0);
        any |= self.take(|plan| plan.disks.wiped = 0);
        any |= self.take(|plan| plan.settings = Settings::default());
        any |= self.take(|plan| plan.hosts.iter_mut().for_each(|host| (host.drift, host.slow) = (0, 1)));
        any |= self.take(|plan| plan.hosts.iter_mut().for_each(|host| host.starts = Time::ZERO));
        any
    }

    /// Later hosts only: the others keep their names.
    fn drop_hosts(&mut self) -> bool {
        let mut any = false;
        while self.plan.hosts.len() > 1 && self.take(|plan| plan.hosts.truncate(plan.hosts.len() - 1)) {
            any = true;
        }
        any
    }
}

/// What is told of a failing seed: a smaller plan that breaks the same, and the end of what happened under it.
pub(crate) fn story(seed: u64, failure: &str) -> String {
    let plan = Plan::new(seed);
    let mut search = Search { seed, plan, failure: failure.to_owned(), tries: 0 };
    loop {
        let mut smaller = search.thin(|plan| &mut plan.faults);
        smaller |= search.thin(|plan| &mut plan.errands);
        smaller |= search.drop_hosts();
        smaller |= search.calm_down() && search.tries < TRIES / 2;
        if !smaller || search.tries >= TRIES {
            break;
        }
    }
    let Search { plan, failure, tries, .. } = search;
    let transcript = run::planned(seed, plan.clone(), Talk::Keep(String::new())).transcript;
    let lines: Vec<&str> = transcript.lines().filter(|line| !line.contains("plan Plan")).collect();
    let elided = lines.len().saturating_sub(LAST_LINES);
    let shown = lines[elided..].iter().map(|line| line.chars().take(WIDTH).collect::<String>());
    let shown: Vec<String> = shown.collect();
    format!(
        "seed {seed} in its smallest form ({tries} runs): {failure}\nplan {}\n({elided} lines before)\n{}\n",
        compact(&plan),
        shown.join("\n")
    )
}

#[test]
fn a_plan_shrinks_to_nothing_when_nothing_in_it_is_needed() {
    let failure = "whatever broken".to_owned();
    let mut search = Search { seed: 3, plan: Plan::new(3), failure, tries: 0 };
    assert!(!search.take(|plan| plan.faults.clear()), "another failure, or none, is not taken");
    assert_eq!((kind("G1 broken at 5 ms"), search.tries), ("G1", 1));
}
