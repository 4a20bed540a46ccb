//! Subscriptions, as the shell serves them: newest state only, one message on its way at a time; and the subscriber
//! that roams from node to node with its last cursor.

use std::sync::Arc;
use std::time::Duration;

use floodline::guarantees::history::Seen;
use floodline::protocol::Shown;
use floodline::protocol::ids::JobKey;
use floodline::protocol::message::JobQuery;
use floodline::protocol::progress::Cursor;
use floodline::protocol::view::JobView;

use crate::clients::{Stage, Step};
use crate::marks::Mark;
use crate::process::Life;
use crate::world::{Happening, World};

/// One subscriber at one node.
#[derive(Debug)]
pub(crate) struct Subscription {
    query: JobQuery,
    job: JobKey,
    serial: u64,
    cursor: Option<Cursor>,
    /// A message is on its way: the next one waits, and will be the newest.
    busy: bool,
}

impl World {
    /// A client opens a stream at some node, with its last cursor.
    pub(crate) fn subscribe(&mut self, at: usize) {
        let host = self.any_host();
        self.errands[at].serial += 1;
        let serial = self.errands[at].serial;
        self.tell(|world| {
            format!("client {at} subscribes at {} after {:?}", world.hosts[host].node, world.errands[at].cursor)
        });
        let delay = self.net.delay(&mut self.dice);
        self.after(delay, Happening::Errand(at, Step::Arrives { serial, host }));
    }

    pub(crate) fn subscription_arrives(&mut self, at: usize, serial: u64, host: usize) {
        if self.errands[at].serial != serial {
            return;
        }
        let (query, cursor) = (self.query(at), self.errands[at].cursor);
        let (job, now) = (self.errands[at].key.clone(), self.now);
        let Some(process) = &mut self.hosts[host].process else {
            let soon = self.dice.span(Duration::from_millis(1), Duration::from_millis(200));
            return self.after(soon, Happening::Errand(at, Step::Ended { serial }));
        };
        if process.free_at > now {
            let free_at = process.free_at;
            return self.queue.add(free_at, Happening::Errand(at, Step::Arrives { serial, host }));
        }
        process.subscribers.insert(at as u64, Subscription { query, job, serial, cursor, busy: false });
        if cursor.is_some() && self.pump(host, at) == Some(false) {
            self.marks.hit(Mark::WaitedForReplica);
        } else {
            self.pump(host, at);
        }
    }

    /// Sends a subscriber what it lacks. Says whether it sent something; none if there is no such subscriber.
    fn pump(&mut self, host: usize, subscriber: usize) -> Option<bool> {
        let process = self.hosts[host].process.as_mut()?;
        let life = process.life;
        let subscription = process.subscribers.get_mut(&(subscriber as u64))?;
        if subscription.busy {
            return Some(false);
        }
        let serial = subscription.serial;
        match process.worker.show(&subscription.query, subscription.cursor.as_ref()) {
            Shown::Wait => Some(false),
            Shown::Unknown => {
                process.subscribers.remove(&(subscriber as u64));
                let delay = self.net.delay(&mut self.dice);
                self.after(delay, Happening::Errand(subscriber, Step::Ended { serial }));
                Some(true)
            }
            Shown::Next(view) => {
                let cursor = Cursor::of(&view);
                if subscription.cursor == Some(cursor) {
                    let text = format!("{} shows {} twice: {cursor:?}", process.member.node, view.key.id);
                    self.break_("show (section 9)", text);
                    return None;
                }
                (subscription.cursor, subscription.busy) = (Some(cursor), true);
                self.shown_own(host, &view);
                let delay = self.net.delay(&mut self.dice);
                self.after(delay, Happening::Errand(subscriber, Step::Message { serial, host, life, view }));
                Some(true)
            }
        }
    }

    /// A job moved: whoever waits for it gets its newest state.
    pub(crate) fn pump_all(&mut self, host: usize, job: &JobKey) {
        let Some(process) = &self.hosts[host].process else { return };
        let of_job = |subscription: &Subscription| subscription.job == *job;
        let waiting: Vec<u64> =
            process.subscribers.iter().filter(|(_, subscription)| of_job(subscription)).map(|(id, _)| *id).collect();
        for subscriber in waiting {
            self.pump(host, subscriber as usize);
        }
    }

    /// A message reaches its subscriber, if it still listens there.
    pub(crate) fn message(&mut self, at: usize, serial: u64, host: usize, life: Life, view: &Arc<JobView>) {
        let errand = &mut self.errands[at];
        if errand.serial != serial || errand.stage != Stage::Following {
            return;
        }
        errand.cursor = Some(Cursor::of(view));
        let by = self.process(host, life).map(|process| process.identity());
        let by = by.unwrap_or_else(|| floodline::protocol::ids::Identity {
            node: self.hosts[host].node.clone(),
            incarnation: self.hosts[host].last,
        });
        self.tell(|_| {
            format!(
                "client {at} is told {} {:?} {}/{} {:?}",
                view.key.id, view.state, view.completed, view.total, view.stamp
            )
        });
        self.see(Seen::Told { subscriber: at as u64, by, view: view.clone() });
        if view.state.is_terminal() {
            self.errands[at].stage = Stage::Over;
            if self.errands[at].roamed {
                self.marks.hit(Mark::Roamed);
            }
            if let Some(process) = self.process(host, life) {
                process.subscribers.remove(&(at as u64));
            }
            return;
        }
        if self.quiet_since.is_none() && self.dice.below(8) == 0 {
            self.errands[at].roamed = true;
            if let Some(process) = self.process(host, life) {
                process.subscribers.remove(&(at as u64));
            }
            return self.subscribe(at);
        }
        let now = self.now;
        let Some(process) = self.process(host, life) else { return };
        let free_at = process.free_at;
        let Some(subscription) = process.subscribers.get_mut(&(at as u64)) else { return };
        subscription.busy = false;
        if free_at <= now {
            self.pump(host, at);
        } else {
            self.queue.add(free_at, Happening::Errand(at, Step::Ready { host, life }));
        }
    }

    /// A node that had no time when its last message arrived has some now.
    pub(crate) fn ready(&mut self, at: usize, host: usize, life: Life) {
        if self.process(host, life).is_some() {
            self.pump(host, at);
        }
    }

    /// The node that served a subscriber died.
    pub(crate) fn server_died(&mut self, subscriber: u64, serial: u64) {
        let at = subscriber as usize;
        self.errands[at].roamed |= self.errands[at].cursor.is_some();
        let after = self.dice.span(Duration::from_millis(1), Duration::from_millis(500));
        self.after(after, Happening::Errand(at, Step::Ended { serial }));
    }
}

impl Subscription {
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}
