//! The turns that a course can take at a state, besides going on as usual.
//!
//! Messages to different workers commute, so what matters is the order in which one worker gets its own: a message that
//! is next may come after everything else of this moment, later by a time that a deadline of the protocol depends on,
//! or after one from elsewhere that it usually precedes. A worker is killed after any of its own steps only: between
//! these its death is the same.

use std::time::Duration;

use crate::bounds::{Ends, LASTS, NEAR, Trouble, When};
use crate::host::At;
use crate::network::{Lane, Way};
use crate::trouble::{Crash, Phase, Split};
use crate::world::World;

/// Longer than a leader has to answer the ping that asks whether it lives, shorter than a flood has.
const LATE: Duration = Duration::from_millis(60);
/// Longer than any timeout of an election or of a link.
const VERY_LATE: Duration = Duration::from_millis(1_100);

/// A way on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// What is next on a lane comes after everything else of this moment.
    Last(Lane),
    /// What is next on a lane, and all behind it, comes that much later.
    Late(Lane, Duration),
    /// What is next on a lane comes now.
    First(Lane),
    /// A worker is killed.
    Crash(Crash),
    /// A split begins.
    Split(Split),
    /// The worker that was killed starts again.
    Restart(At),
    /// The split ends.
    Heal,
}

impl World {
    /// All turns that the bounds allow here.
    pub(crate) fn turns(&self) -> Vec<Turn> {
        let mut turns = Vec::new();
        match self.phase {
            Phase::Before => self.troubles(&mut turns),
            Phase::Down { at, .. } if self.may_end() => turns.push(Turn::Restart(at)),
            Phase::Apart { .. } if self.may_end() => turns.push(Turn::Heal),
            Phase::Down { .. } | Phase::Apart { .. } | Phase::Over { .. } => {}
        }
        if self.turns_left > 0 && self.may_turn() {
            self.delays(&mut turns);
        }
        turns
    }

    /// Whether the trouble may end here.
    fn may_end(&self) -> bool {
        let (Phase::Down { since, rests, .. } | Phase::Apart { since, rests, .. }) = self.phase else { return false };
        let lasted = self.now.since(since);
        let now = match self.bounds.ends {
            Ends::AnyRest => true,
            Ends::SomeRests => Ends::SOME.get(rests).is_some_and(|after| lasted >= *after),
        };
        now && lasted <= LASTS && self.is_at_rest()
    }

    /// It went on instead.
    pub(crate) fn let_rest_pass(&mut self) {
        if self.may_end()
            && let Phase::Down { rests, .. } | Phase::Apart { rests, .. } = &mut self.phase
            && self.bounds.ends == Ends::SomeRests
        {
            *rests += 1;
        }
    }

    fn may_turn(&self) -> bool {
        match (self.bounds.when, self.phase) {
            (When::Always, _) => true,
            (When::Begin, Phase::Down { since, .. } | Phase::Apart { since, .. }) => self.now.since(since) <= NEAR,
            (When::End, Phase::Over { since }) => self.now.since(since) <= NEAR,
            (When::Begin | When::End, _) => false,
        }
    }

    fn troubles(&self, turns: &mut Vec<Turn>) {
        let Some(at) = self.acted else { return };
        let flags = [true, false];
        match self.bounds.trouble {
            Trouble::None => {}
            Trouble::Crash => {
                let on_its_way = self.lanes.keys().any(|lane| lane.from() == Some(at));
                let unsaved = !self.hosts[at].saving.is_empty();
                for last_words in flags.into_iter().filter(|kept| *kept || on_its_way) {
                    for written in flags.into_iter().filter(|written| !written || unsaved) {
                        let crash = |noticed| Turn::Crash(Crash { at, last_words, written, noticed });
                        turns.extend(flags.map(crash));
                    }
                }
            }
            Trouble::Split => {
                for breaks in flags {
                    turns.push(Turn::Split(Split { one: at, other: None, breaks }));
                    let others = (0..self.hosts.len()).filter(|other| *other != at && self.hosts.len() > 2);
                    turns.extend(others.map(|other| Turn::Split(Split { one: at, other: Some(other), breaks })));
                }
            }
        }
    }

    fn delays(&self, turns: &mut Vec<Turn>) {
        let Some(next) = self.next_lane().filter(|next| next.way != Way::Clock) else { return };
        let open: Vec<Lane> =
            self.lanes.iter().filter(|(lane, line)| self.is_open(**lane, line)).map(|(l, _)| *l).collect();
        if open.len() > 1 && !self.lanes[&next].last {
            turns.push(Turn::Last(next));
        }
        turns.extend([LATE, VERY_LATE].map(|by| Turn::Late(next, by)));
        let others = open.iter().filter(|lane| **lane != next && lane.to == next.to && lane.way != Way::Clock);
        turns.extend(others.map(|lane| Turn::First(*lane)));
    }

    pub(crate) fn take(&mut self, turn: Turn) {
        match turn {
            Turn::Last(_) | Turn::Late(..) | Turn::First(_) => {
                self.turns_left -= 1;
                self.tell(|| format!("*** {turn:?}"));
            }
            Turn::Crash(_) | Turn::Split(_) | Turn::Restart(_) | Turn::Heal => {}
        }
        self.acted = None;
        match turn {
            Turn::Last(lane) => self.lanes.entry(lane).or_default().last = true,
            Turn::Late(lane, by) => self.lanes.entry(lane).or_default().until = self.now + by,
            Turn::First(lane) => self.deliver(lane),
            Turn::Crash(crash) => self.crash(crash),
            Turn::Split(split) => self.split(split),
            Turn::Restart(at) => self.restart(at),
            Turn::Heal => self.heal(),
        }
    }

    /// Whether the trouble has lasted as long as it may, so that it has to end.
    pub(crate) fn must_heal(&self) -> bool {
        matches!(self.phase, Phase::Apart { since, .. } if self.is_at_rest() && self.now.since(since) > LASTS)
    }
}
