//! Chance from a seed that comes in, so that a run can be repeated exactly.

use std::time::Duration;

/// A small generator (SplitMix64, Steele, Lea, Flood 2014). Not for secrets.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// A generator that always gives the same for one seed.
    #[must_use]
    pub fn new(seed: u64) -> Dice {
        Dice { state: seed }
    }

    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` - 1; 0 if `bound` is 0. The bias of the remainder does not matter here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll().checked_rem(bound).unwrap_or(0)
    }

    /// One of `choices`; none if there is none.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let at = self.below(choices.len() as u64);
        choices.get(usize::try_from(at).ok()?)
    }

    /// A span from `least` to `most`, to the microsecond.
    pub fn span(&mut self, least: Duration, most: Duration) -> Duration {
        let width = most.saturating_sub(least).as_micros();
        let width = u64::try_from(width).unwrap_or(u64::MAX).saturating_add(1);
        least + Duration::from_micros(self.below(width))
    }
}
