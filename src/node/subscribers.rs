//! Who watches jobs at this node, and what each is shown next (section 9).
//!
//! Owns a place for one message per subscriber: a newer one replaces it, so that a slow reader gets the newest state
//! and slows nobody. Never decides what may be shown: the worker does. Invariant: all subscribers together take a
//! tenth of the loop's time at most, since one is not shown anything again before that time has passed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::clock::Clock;
use crate::protocol::ids::JobKey;
use crate::protocol::message::{Code, JobQuery, Refusal};
use crate::protocol::progress::Cursor;
use crate::protocol::time::Time;
use crate::protocol::view::JobView;
use crate::protocol::{Shown, Worker};

/// Subscribers at once.
pub(super) const MOST: usize = 1_024;
/// A job that the replica still lacks after this time was lost before it was acknowledged.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a message costs times this passes before the next one.
const SHARE: u32 = 10;

/// The message that a subscriber has to read; none at first. It closes after the last one.
pub(super) type Newest = watch::Receiver<Option<Result<Arc<JobView>, Refusal>>>;

/// Where new subscribers come in.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    count: Arc<AtomicUsize>,
    new: Mutex<Vec<Subscriber>>,
}

impl Subscriptions {
    /// One more, who has seen `last`; none when there are too many.
    pub(super) fn enter(&self, job: JobQuery, last: Option<Cursor>) -> Option<Newest> {
        let place = Place::take(&self.count)?;
        let (slot, newest) = watch::channel(None);
        let subscriber =
            Subscriber { job, last, slot, moved: true, not_before: Time::ZERO, unknown_since: None, place };
        self.new.lock().unwrap_or_else(PoisonError::into_inner).push(subscriber);
        Some(newest)
    }

    fn take_new(&self) -> Vec<Subscriber> {
        std::mem::take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One of the [`MOST`] places; given back when it is dropped.
#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(count: &Arc<AtomicUsize>) -> Option<Place> {
        if count.fetch_add(1, Ordering::Relaxed) < MOST {
            return Some(Place(Arc::clone(count)));
        }
        count.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct Subscriber {
    job: JobQuery,
    last: Option<Cursor>,
    slot: watch::Sender<Option<Result<Arc<JobView>, Refusal>>>,
    /// Its job may have moved since it was last shown.
    moved: bool,
    not_before: Time,
    unknown_since: Option<Time>,
    #[expect(dead_code, reason = "held for its drop")]
    place: Place,
}

/// The subscribers, as the loop has them.
#[derive(Debug, Default)]
pub(super) struct Audience {
    seated: Vec<Subscriber>,
}

impl Audience {
    /// Shows everybody what moved.
    pub(super) fn show(&mut self, new: &Subscriptions, moved: &BTreeSet<JobKey>, worker: &Worker, clock: &Clock) {
        let now = clock.now().time;
        self.seated.extend(new.take_new());
        let crowd = u32::try_from(self.seated.len()).unwrap_or(u32::MAX);
        self.seated.retain_mut(|subscriber| {
            subscriber.moved |= moved.iter().any(|job| names(&subscriber.job, job));
            subscriber.stays(worker, clock, now, crowd)
        });
    }

    /// When somebody is due who had to wait.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.seated.iter().filter_map(Subscriber::next_deadline).min()
    }
}

impl Subscriber {
    /// Shows what there is to show. Says whether more may come.
    fn stays(&mut self, worker: &Worker, clock: &Clock, now: Time, crowd: u32) -> bool {
        if self.slot.is_closed() {
            return false;
        }
        if self.moved && now >= self.not_before {
            let begun = clock.now().time;
            let shown = worker.show(&self.job, self.last.as_ref());
            self.moved = false;
            let done = clock.now().time;
            self.not_before = done + done.since(begun) * SHARE.saturating_mul(crowd);
            return self.take(shown, now);
        }
        let is_lost = self.unknown_since.is_some_and(|since| now.since(since) >= PATIENCE);
        if is_lost {
            self.slot.send_replace(Some(Err(lost(&self.job))));
        }
        !is_lost
    }

    fn take(&mut self, shown: Shown, now: Time) -> bool {
        match shown {
            Shown::Next(view) => {
                let more = !view.state.is_terminal();
                self.unknown_since = None;
                self.last = Some(Cursor::of(&view));
                self.slot.send_replace(Some(Ok(view)));
                more
            }
            Shown::Wait => {
                self.unknown_since = None;
                true
            }
            Shown::Unknown => {
                self.unknown_since.get_or_insert(now);
                true
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        if self.moved { Some(self.not_before) } else { self.unknown_since.map(|since| since + PATIENCE) }
    }
}

fn names(query: &JobQuery, job: &JobKey) -> bool {
    query.id == job.id && query.digest.is_none_or(|digest| digest == job.digest)
}

fn lost(job: &JobQuery) -> Refusal {
    let message = format!("job {} is not known here; submit it again under the same id if you sent it", job.id);
    Refusal::new(Code::NotFound, message)
}
