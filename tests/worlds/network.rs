//! What is on its way: lanes, each in order, to one worker each; and which of them is next.

use std::collections::VecDeque;
use std::sync::Arc;

use floodline::protocol::Input;
use floodline::protocol::ids::Incarnation;
use floodline::protocol::time::Time;

use crate::host::At;
use crate::world::World;

/// How something reaches a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Its own clock.
    Clock,
    /// Its journal.
    Disk,
    /// A client.
    Client(usize),
    /// Frames of a stream, from another worker.
    Stream(At),
    /// Calls and answers, from another worker.
    Calls(At),
    /// Its own pool.
    Pool,
}

/// Things on one way keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    pub(crate) to: At,
    pub(crate) way: Way,
}

impl Lane {
    /// The worker that it comes from, where it crosses the network.
    pub(crate) fn from(self) -> Option<At> {
        match self.way {
            Way::Stream(from) | Way::Calls(from) => Some(from),
            Way::Clock | Way::Disk | Way::Client(_) | Way::Pool => None,
        }
    }
}

/// What waits on a lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) mail: VecDeque<Arc<Mail>>,
    /// Nothing comes through before.
    pub(crate) until: Time,
    /// Everything else at this moment comes first.
    pub(crate) last: bool,
}

/// One thing on its way.
#[derive(Debug)]
pub(crate) struct Mail {
    /// To which start of the worker.
    life: Incarnation,
    /// How many hands it has gone through at this moment: those of few come first.
    depth: u32,
    pub(crate) input: Input,
    pub(crate) hash: u64,
}

impl World {
    pub(crate) fn post(&mut self, lane: Lane, input: Input) {
        let life = self.hosts[lane.to].member.incarnation;
        let depth = self.depth + 1;
        let hash = crate::print::hash(&(life, depth, &input));
        self.lanes.entry(lane).or_default().mail.push_back(Arc::new(Mail { life, depth, input, hash }));
    }

    /// Whether something can come through now.
    pub(crate) fn is_open(&self, lane: Lane, line: &Line) -> bool {
        let cut = lane.from().is_some_and(|from| self.is_cut(from, lane.to));
        !line.mail.is_empty() && line.until <= self.now && !cut
    }

    /// The lane whose turn it usually is.
    pub(crate) fn next_lane(&self) -> Option<Lane> {
        let open = self.lanes.iter().filter(|(lane, line)| self.is_open(**lane, line));
        open.min_by_key(|(lane, line)| (line.last, line.mail.front().map(|mail| mail.depth), **lane))
            .map(|(lane, _)| *lane)
    }

    /// The first thing on a lane arrives.
    pub(crate) fn deliver(&mut self, lane: Lane) {
        let Some(line) = self.lanes.get_mut(&lane) else { return };
        let Some(mail) = line.mail.pop_front() else { return };
        line.last = false;
        if line.mail.is_empty() {
            self.lanes.remove(&lane);
        }
        self.acted = None;
        let host = &self.hosts[lane.to];
        if !host.is_up() || host.member.incarnation != mail.life {
            return;
        }
        self.depth = mail.depth;
        if let Input::Saved { save } = &mail.input {
            self.write(lane.to, *save);
        }
        let input = Arc::try_unwrap(mail).map_or_else(|mail| mail.input.clone(), |mail| mail.input);
        self.step(lane.to, input);
    }
}
