//! What will happen and when: events by time, and among equal times in the order in which they were added.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use floodline::protocol::time::Time;

#[derive(Debug)]
struct Entry<T> {
    at: Time,
    serial: u64,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.serial) == (other.at, other.serial)
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
}

/// The event queue.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    entries: BinaryHeap<Reverse<Entry<T>>>,
    serial: u64,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue { entries: BinaryHeap::new(), serial: 0 }
    }

    pub(crate) fn add(&mut self, at: Time, what: T) {
        self.serial += 1;
        self.entries.push(Reverse(Entry { at, serial: self.serial, what }));
    }

    pub(crate) fn take(&mut self) -> Option<(Time, T)> {
        self.entries.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

#[test]
fn events_come_by_time_and_then_in_the_order_of_adding() {
    let mut queue = Queue::new();
    for (at, what) in [(5, "c"), (1, "a"), (5, "d"), (2, "b")] {
        queue.add(Time(at), what);
    }
    let order: Vec<_> = std::iter::from_fn(|| queue.take()).map(|(_, what)| what).collect();
    assert_eq!(order, ["a", "b", "c", "d"]);
}
