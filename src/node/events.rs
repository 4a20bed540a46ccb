//! What happened at this node, kept for those who watch (WatchCluster, `floodline events`).
//!
//! Owns the sequence numbers and the last [`KEPT`] events. Never waits for a reader: one that is too slow is told to
//! begin anew. Invariant: the kept events have numbers without gaps. Section 3 of the contract.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};

use crate::protocol::ids::NodeId;
use crate::protocol::notice::{Notice, Told};
use crate::protocol::time::Wall;
use crate::protocol::trace::TraceId;
use crate::protocol::view::{Event, RESYNC};

/// Events kept.
pub(super) const KEPT: usize = 10_000;
/// Events that a reader copies at once, so that it holds the lock briefly.
const PAGE: usize = 256;

/// The ring of events.
#[derive(Debug)]
pub(super) struct Events {
    node: NodeId,
    ring: Mutex<Ring>,
    last: watch::Sender<u64>,
}

/// A notice as it came: a sentence is made of it when somebody reads it.
#[derive(Clone, Debug)]
struct Happening {
    at: Wall,
    notice: Notice,
    trace: Option<TraceId>,
}

#[derive(Debug, Default)]
struct Ring {
    last: u64,
    kept: VecDeque<Happening>,
}

/// What a reader that stands at a number gets next.
#[derive(Debug)]
enum Page {
    /// These, the first of which has this number.
    Events(u64, Vec<Happening>),
    /// Word that events up to this number are missing; the oldest that is kept happened then.
    Missing(u64, Wall),
}

impl Ring {
    fn push(&mut self, happening: Happening) {
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(happening);
        self.last = self.last.saturating_add(1);
    }

    fn after(&self, seq: u64) -> Page {
        let before_oldest = self.last.saturating_sub(self.kept.len() as u64);
        // A number from the future is of an earlier start of this node.
        if seq < before_oldest || seq > self.last {
            return Page::Missing(before_oldest, self.kept.front().map_or(Wall::default(), |oldest| oldest.at));
        }
        let skipped = usize::try_from(seq - before_oldest).unwrap_or(usize::MAX);
        Page::Events(seq.saturating_add(1), self.kept.iter().skip(skipped).take(PAGE).cloned().collect())
    }
}

impl Events {
    pub(super) fn new(node: NodeId) -> Events {
        Events { node, ring: Mutex::default(), last: watch::Sender::new(0) }
    }

    /// Takes in what happened, each with the trace that tells of it.
    pub(super) fn push(&self, at: Wall, notices: Vec<(Notice, Option<TraceId>)>) {
        if notices.is_empty() {
            return;
        }
        let last = {
            let mut ring = self.ring();
            notices.into_iter().for_each(|(notice, trace)| ring.push(Happening { at, notice, trace }));
            ring.last
        };
        self.last.send_replace(last);
    }

    /// Tells a reader of everything after a number, or from now on, until it goes.
    pub(super) async fn tell(&self, after: Option<u64>, out: mpsc::Sender<Event>) {
        let mut last = self.last.subscribe();
        let mut seq = after.unwrap_or(*last.borrow());
        loop {
            let page = self.ring().after(seq);
            let events = self.read(page);
            for event in events {
                seq = event.seq;
                if out.send(event).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                // At once, if there is more than a page. It fails with the node only.
                moved = last.wait_for(|last| *last != seq) => if moved.is_err() { return },
                () = out.closed() => return,
            }
        }
    }

    fn read(&self, page: Page) -> Vec<Event> {
        match page {
            Page::Missing(up_to, at) => {
                let text = format!("events up to {up_to} are not kept; ask for the cluster's present state");
                let told = Told { kind: RESYNC, term: None, job: None, task: None, attempt: None, text };
                vec![self.event(up_to, at, told, None)]
            }
            Page::Events(first, happenings) => {
                let numbered = (first..).zip(happenings);
                let event = |(seq, it): (u64, Happening)| self.event(seq, it.at, it.notice.told(), it.trace);
                numbered.map(event).collect()
            }
        }
    }

    fn event(&self, seq: u64, at: Wall, told: Told, trace: Option<TraceId>) -> Event {
        let Told { kind, term, job, task, attempt, text } = told;
        let (node, kind, text) = (self.node.clone(), kind.into(), text.into());
        Event { seq, at, node, kind, term, job, task, attempt, text, trace }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events_with(count: usize) -> Events {
        let events = Events::new(NodeId::new("a").expect("a good name"));
        events.push(Wall(5), vec![(Notice::Stopping, None); count]);
        events
    }

    fn seqs(events: &Events, after: u64) -> Vec<String> {
        let page = events.ring().after(after);
        events.read(page).into_iter().map(|event| format!("{} {}", event.seq, event.kind)).collect()
    }

    #[test]
    fn a_reader_gets_what_came_after_its_number() {
        let events = events_with(3);
        assert_eq!(seqs(&events, 0), ["1 stopping", "2 stopping", "3 stopping"]);
        assert_eq!(seqs(&events, 2), ["3 stopping"]);
        assert!(seqs(&events, 3).is_empty());
    }

    #[test]
    fn the_ring_is_bounded_and_who_stands_before_it_is_told_to_resync() {
        let events = events_with(KEPT + 7);
        assert_eq!(events.ring().kept.len(), KEPT);
        assert_eq!(seqs(&events, 6), ["7 resync"]);
        assert_eq!(seqs(&events, 7).first(), Some(&"8 stopping".to_owned()));
    }

    #[test]
    fn a_number_of_an_earlier_start_is_told_to_resync() {
        assert_eq!(seqs(&events_with(2), 3), ["0 resync"]);
        assert_eq!(seqs(&events_with(0), 3), ["0 resync"]);
    }

    #[tokio::test]
    async fn a_reader_gets_more_than_a_page_in_order_and_then_what_happens() {
        let events = std::sync::Arc::new(events_with(PAGE * 2 + 1));
        let (out, mut read) = mpsc::channel(4);
        let teller = tokio::spawn({
            let events = std::sync::Arc::clone(&events);
            async move { events.tell(Some(0), out).await }
        });
        for seq in 1..=(PAGE * 2 + 1) as u64 {
            assert_eq!(read.recv().await.map(|event| event.seq), Some(seq));
        }
        events.push(Wall(9), vec![(Notice::Stopping, None)]);
        let next = read.recv().await.map(|event| (event.seq, event.at));
        assert_eq!(next, Some(((PAGE * 2 + 2) as u64, Wall(9))));
        drop(read);
        teller.await.expect("it ends with its reader");
    }
}
