//! Time as the protocol knows it: numbers that come in with each input.
//!
//! Owns the two clocks' types. Never reads a clock: `node/clock.rs` does, and the simulator makes its own.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Monotonic time since this process started, in microseconds. Every timer of the protocol runs on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The start of the process.
    pub const ZERO: Time = Time(0);

    /// A point `millis` milliseconds after the start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1_000))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(micros))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, span: Duration) -> Time {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Time(self.0.saturating_sub(micros))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ms", self.0 / 1_000, self.0 % 1_000)
    }
}

/// Wall-clock time in milliseconds since 1970-01-01 UTC. Only incarnations, job times and deadlines use it,
/// since it may step in either direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(pub u64);

/// Both clocks, read once for one input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Time since the process started.
    pub time: Time,
    /// The wall clock at the same moment.
    pub wall: Wall,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_milliseconds_and_thousandths() {
        assert_eq!(Time(1_234_007).to_string(), "1234.007 ms");
    }
}
