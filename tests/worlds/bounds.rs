//! The bounds of each search: how large the world is, what goes wrong in it, and how far from its usual course it goes.

use std::fmt;
use std::time::Duration;

/// What goes wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nothing.
    None,
    /// One worker is killed after any of its steps; it starts again from its disk at any moment of rest, or never.
    Crash,
    /// One worker, or one pair of workers, is cut off after any step, and reached again at any moment of rest.
    Split,
}

/// What a search covers, completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Workers.
    pub(crate) nodes: usize,
    /// What goes wrong.
    pub(crate) trouble: Trouble,
    /// How often a message may come later than usual, or before another one.
    pub(crate) turns: u8,
    /// Whether only what is on its way when trouble begins, or comes up within [`NEAR`] of it, takes such turns.
    pub(crate) near_trouble: bool,
    /// Admissions in a leadership.
    pub(crate) cap: u32,
    /// The journal says that it has what it has not: for the search's own test.
    pub(crate) lying_disk: bool,
}

/// How close to the trouble a turn counts as near it.
pub(crate) const NEAR: Duration = Duration::from_millis(5);
/// How long after its begin a trouble may end.
pub(crate) const LASTS: Duration = Duration::from_millis(2_500);
/// How long after the last trouble the world may take to become whole.
pub(crate) const PATIENCE: Duration = Duration::from_secs(12);

const PLAIN: Bounds =
    Bounds { nodes: 2, trouble: Trouble::None, turns: 1, near_trouble: false, cap: 5, lying_disk: false };

pub(crate) const QUIET_TWO: Bounds = Bounds { turns: 1, ..PLAIN };
pub(crate) const CRASH_OF_TWO: Bounds = Bounds { trouble: Trouble::Crash, turns: 0, ..PLAIN };
const SPLIT_OF_TWO: Bounds = Bounds { trouble: Trouble::Split, turns: 0, ..PLAIN };
const QUIET_THREE: Bounds = Bounds { nodes: 3, ..PLAIN };
const CRASH_OF_THREE: Bounds = Bounds { nodes: 3, ..CRASH_OF_TWO };
const SPLIT_OF_THREE: Bounds = Bounds { nodes: 3, ..SPLIT_OF_TWO };

/// Every search.
pub(crate) const ALL: &[Bounds] = &[
    Bounds { turns: 2, ..QUIET_TWO },
    Bounds { turns: 1, cap: 1, ..QUIET_TWO },
    Bounds { turns: 1, ..CRASH_OF_TWO },
    Bounds { turns: 1, ..SPLIT_OF_TWO },
    Bounds { turns: 1, ..QUIET_THREE },
    Bounds { turns: 1, cap: 1, ..QUIET_THREE },
    CRASH_OF_THREE,
    Bounds { cap: 1, ..CRASH_OF_THREE },
    SPLIT_OF_THREE,
    Bounds { cap: 1, ..SPLIT_OF_THREE },
];

/// Those that take a moment.
pub(crate) const SHORT: &[Bounds] = &[QUIET_TWO, CRASH_OF_TWO, SPLIT_OF_TWO];

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trouble = match self.trouble {
            Trouble::None => "no trouble",
            Trouble::Crash => "one crash",
            Trouble::Split => "one split",
        };
        let near = if self.near_trouble { " near it" } else { "" };
        let Bounds { nodes, turns, cap, .. } = self;
        write!(f, "{nodes} workers, {trouble}, {turns} turns{near}, {cap} jobs a term")
    }
}
