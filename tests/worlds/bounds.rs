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

/// When messages may take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Always.
    Always,
    /// What is on its way when trouble begins, or comes up within [`NEAR`] of that.
    Begin,
    /// What comes up within [`NEAR`] of the end of the trouble.
    End,
}

/// When a trouble may end: at moments at which nothing is on its way, within [`LASTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// At each of them.
    AnyRest,
    /// At the first one after each of [`Ends::SOME`].
    SomeRests,
}

impl Ends {
    /// At once, while its absence is noticed, when another leads, and long after.
    pub(crate) const SOME: [Duration; 4] =
        [Duration::ZERO, Duration::from_millis(60), Duration::from_millis(700), Duration::from_millis(2_000)];
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
    /// When they may.
    pub(crate) when: When,
    /// At which moments of rest a trouble may end.
    pub(crate) ends: Ends,
    /// Admissions in a leadership.
    pub(crate) cap: u32,
    /// Whether a leader hands over after its last admission, instead of finishing first.
    pub(crate) hands_over: bool,
    /// FLOODLINE_MIN_MEMBERS.
    pub(crate) min_members: u32,
    /// The journal says that it has what it has not: for the search's own test.
    pub(crate) lying_disk: bool,
}

/// How close to the trouble a turn counts as near it.
pub(crate) const NEAR: Duration = Duration::from_millis(5);
/// How long after its begin a trouble may end.
pub(crate) const LASTS: Duration = Duration::from_millis(2_500);
/// How long after the last trouble the world may take to become whole.
pub(crate) const PATIENCE: Duration = Duration::from_secs(12);

const PLAIN: Bounds = Bounds {
    nodes: 2,
    trouble: Trouble::None,
    turns: 1,
    when: When::Always,
    ends: Ends::AnyRest,
    cap: 5,
    hands_over: false,
    min_members: 1,
    lying_disk: false,
};

pub(crate) const QUIET_TWO: Bounds = Bounds { turns: 1, ..PLAIN };
pub(crate) const CRASH_OF_TWO: Bounds = Bounds { trouble: Trouble::Crash, turns: 0, ..PLAIN };
const SPLIT_OF_TWO: Bounds = Bounds { trouble: Trouble::Split, turns: 0, ..PLAIN };
const QUIET_THREE: Bounds = Bounds { nodes: 3, ..PLAIN };
const CRASH_OF_THREE: Bounds = Bounds { nodes: 3, ..CRASH_OF_TWO };
const SPLIT_OF_THREE: Bounds = Bounds { nodes: 3, ..SPLIT_OF_TWO };

const NEAR_CRASH: Bounds =
    Bounds { turns: 1, when: When::Begin, ends: Ends::SomeRests, trouble: Trouble::Crash, ..PLAIN };
const NEAR_SPLIT: Bounds = Bounds { trouble: Trouble::Split, ..NEAR_CRASH };

/// Every search.
pub(crate) const ALL: &[Bounds] = &[
    Bounds { turns: 2, ..QUIET_TWO },
    Bounds { turns: 2, cap: 1, ..QUIET_TWO },
    Bounds { cap: 1, hands_over: true, ..QUIET_TWO },
    QUIET_THREE,
    Bounds { cap: 1, ..QUIET_THREE },
    Bounds { cap: 1, hands_over: true, ..QUIET_THREE },
    CRASH_OF_TWO,
    NEAR_CRASH,
    Bounds { when: When::End, ..NEAR_CRASH },
    CRASH_OF_THREE,
    Bounds { cap: 1, ..CRASH_OF_THREE },
    Bounds { cap: 1, hands_over: true, ..CRASH_OF_THREE },
    Bounds { min_members: 2, ..CRASH_OF_THREE },
    Bounds { nodes: 3, ..NEAR_CRASH },
    SPLIT_OF_TWO,
    NEAR_SPLIT,
    Bounds { when: When::End, ..NEAR_SPLIT },
    SPLIT_OF_THREE,
    Bounds { cap: 1, ..SPLIT_OF_THREE },
    Bounds { min_members: 2, ..SPLIT_OF_THREE },
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
        let near = match self.when {
            When::Always => "",
            When::Begin => " as it begins",
            When::End => " as it ends",
        };
        let rotation = if self.hands_over { ", handing over" } else { "" };
        let quorum = if self.min_members > 1 { format!(", {} needed", self.min_members) } else { String::new() };
        let Bounds { nodes, turns, cap, .. } = self;
        write!(f, "{nodes} workers, {trouble}, {turns} turns{near}, {cap} jobs a term{rotation}{quorum}")
    }
}
