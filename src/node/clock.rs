//! The only clock of a node: time since its start, and the wall clock beside it.
//!
//! Owns the reading of both. Never sets, slows or stops either. The protocol gets them as numbers with each input.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::protocol::time::{Now, Time, Wall};

/// A clock that started with its node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Now {
        Now { time: Time::ZERO + self.start.elapsed(), wall: wall() }
    }

    /// Waits until a time has come; for ever, if there is none.
    pub(crate) async fn reaches(&self, time: Option<Time>) {
        match time {
            Some(time) => tokio::time::sleep_until(self.start + Duration::from_micros(time.0)).await,
            None => std::future::pending().await,
        }
    }
}

/// The wall clock. One that stands before 1970 counts as standing there.
pub(crate) fn wall() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
