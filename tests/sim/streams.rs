//! Replicate streams: frames arrive in order in each direction, stall behind a cut, and break.

use std::collections::VecDeque;
use std::time::Duration;

use floodline::protocol::Input;
use floodline::protocol::effects::StreamEffect;
use floodline::protocol::ids::{Member, StreamId};
use floodline::protocol::message::{Down, Up};
use floodline::protocol::time::Time;

use crate::marks::Mark;
use crate::process::Life;
use crate::world::{Happening, World};

/// One side of a stream.
#[derive(Clone, Copy, Debug)]
struct Side {
    host: usize,
    life: Life,
    stream: StreamId,
    /// Nothing comes to it any more.
    closed: bool,
}

/// A frame, or the end of the stream after all frames.
#[derive(Debug)]
pub(crate) enum Frame {
    Up(Up),
    Down(Down),
    EndUp,
    EndDown,
}

impl Frame {
    fn goes_up(&self) -> bool {
        matches!(self, Frame::Up(_) | Frame::EndUp)
    }
}

/// A stream between two processes.
#[derive(Debug)]
pub(crate) struct Pipe {
    follower: Side,
    leader: Option<Side>,
    leader_host: usize,
    /// Nothing arrives before it: frames keep their order.
    clear_up: Time,
    clear_down: Time,
    stalled: VecDeque<Frame>,
}

/// What happens on a stream.
#[derive(Debug)]
pub(crate) enum PipeEvent {
    Opens,
    Frame(Box<Frame>),
    /// A side notices that the connection is dead.
    Breaks {
        at_leader: bool,
    },
}

impl World {
    pub(crate) fn stream(&mut self, at: usize, life: Life, effect: StreamEffect) {
        match effect {
            StreamEffect::Open { stream, to } => self.open(at, life, stream, &to),
            StreamEffect::Up(stream, frame) => {
                self.check_up(at, &frame);
                let pipe = self.process(at, life).and_then(|process| process.ups.get(&stream).copied());
                self.push(pipe, Frame::Up(frame));
            }
            StreamEffect::Down(stream, frame) => {
                self.check_down(at, &frame);
                let pipe = self.process(at, life).and_then(|process| process.downs.get(&stream).copied());
                self.push(pipe, Frame::Down(frame));
            }
            StreamEffect::CloseUp(stream) => {
                let pipe = self.process(at, life).and_then(|process| {
                    process.leader_heard = None;
                    process.ups.remove(&stream)
                });
                if let Some(pipe) = pipe.and_then(|pipe| self.pipes.get_mut(&pipe)) {
                    pipe.follower.closed = true;
                }
                self.push(pipe, Frame::EndUp);
            }
            StreamEffect::CloseDown(stream) => {
                let pipe = self.process(at, life).and_then(|process| {
                    process.heard.remove(&stream);
                    process.downs.remove(&stream)
                });
                if let Some(leader) = pipe.and_then(|pipe| self.pipes.get_mut(&pipe)?.leader.as_mut()) {
                    leader.closed = true;
                }
                self.push(pipe, Frame::EndDown);
            }
        }
    }

    fn open(&mut self, at: usize, life: Life, stream: StreamId, to: &Member) {
        let pipe = self.fresh();
        if let Some(process) = self.process(at, life)
            && process.ups.insert(stream, pipe).is_some()
        {
            self.break_("stream ids", format!("{stream} names a second stream"));
        }
        let follower = Side { host: at, life, stream, closed: false };
        let delay = self.net.delay(&mut self.dice) * 2;
        let leader_host = self.host_at(&to.address).unwrap_or(at);
        let (clear, stalled) = (self.now + delay, VecDeque::new());
        self.pipes
            .insert(pipe, Pipe { follower, leader: None, leader_host, clear_up: clear, clear_down: clear, stalled });
        if self.net.connects(at, leader_host) && self.hosts[leader_host].process.is_some() {
            self.after(delay, Happening::Pipe(pipe, PipeEvent::Opens));
        } else {
            let most = if self.dice.below(2) == 0 { Duration::from_millis(20) } else { Duration::from_secs(3) };
            let after = self.dice.span(Duration::from_micros(200), most);
            self.after(after, Happening::Pipe(pipe, PipeEvent::Breaks { at_leader: false }));
        }
    }

    fn push(&mut self, pipe: Option<u64>, frame: Frame) {
        let Some(id) = pipe else { return };
        let (now, delay) = (self.now, self.net.delay(&mut self.dice));
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        let clear = if frame.goes_up() { &mut pipe.clear_up } else { &mut pipe.clear_down };
        *clear = (*clear + Duration::from_micros(1)).max(now + delay);
        let at = *clear;
        self.queue.add(at, Happening::Pipe(id, PipeEvent::Frame(Box::new(frame))));
    }

    pub(crate) fn pipe_event(&mut self, id: u64, event: PipeEvent) {
        match event {
            PipeEvent::Opens => self.opens(id),
            PipeEvent::Frame(frame) => {
                let Some(pipe) = self.pipes.get_mut(&id) else { return };
                let (down, up) = (pipe.follower.host, pipe.leader_host);
                let (from, to) = if frame.goes_up() { (down, up) } else { (up, down) };
                let behind = pipe.stalled.iter().any(|stalled| stalled.goes_up() == frame.goes_up());
                if behind || !self.net.passes(from, to) {
                    pipe.stalled.push_back(*frame);
                } else {
                    self.frame_arrives(id, *frame);
                }
            }
            PipeEvent::Breaks { at_leader } => self.breaks(id, at_leader),
        }
    }

    fn opens(&mut self, id: u64) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        let host = pipe.leader_host;
        let connects = self.net.connects(pipe.follower.host, host);
        let Some(process) = self.hosts[host].process.as_mut().filter(|_| connects) else {
            self.breaks(id, false);
            return;
        };
        process.last_stream += 1;
        let (life, stream) = (process.life, StreamId(process.last_stream));
        process.downs.insert(stream, id);
        pipe.leader = Some(Side { host, life, stream, closed: false });
        if pipe.follower.closed {
            self.after(Duration::from_millis(1), Happening::Pipe(id, PipeEvent::Breaks { at_leader: true }));
        }
        self.deliver(host, life, Input::FollowerOpened { stream });
    }

    fn frame_arrives(&mut self, id: u64, frame: Frame) {
        let Some(pipe) = self.pipes.get(&id) else { return };
        let (follower, leader) = (pipe.follower, pipe.leader);
        match frame {
            Frame::Up(frame) => {
                let Some(Side { host, life, stream, .. }) = leader.filter(|side| !side.closed) else { return };
                self.deliver(host, life, Input::FollowerSent { stream, frame });
            }
            Frame::Down(frame) => {
                let Side { host, life, stream, closed } = follower;
                if closed {
                    return;
                }
                if matches!(frame, Down::Batch(_)) && self.dice.below(8) == 0 {
                    self.deliver(host, life, Input::LeaderStirred { stream });
                }
                self.deliver(host, life, Input::LeaderSent { stream, frame });
            }
            Frame::EndUp => self.breaks(id, true),
            Frame::EndDown => self.breaks(id, false),
        }
    }

    /// A side learns that its stream has ended; the other one, if it does not know yet, will.
    fn breaks(&mut self, id: u64, at_leader: bool) {
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        let follower = pipe.follower;
        let Some(side) = (if at_leader { pipe.leader.as_mut() } else { Some(&mut pipe.follower) }) else { return };
        let Side { host, life, stream, closed } = *side;
        side.closed = true;
        let other_closed = if at_leader { follower.closed } else { pipe.leader.is_none_or(|leader| leader.closed) };
        if other_closed {
            self.pipes.remove(&id);
        } else {
            let soon = self.net.delay(&mut self.dice);
            self.after(soon, Happening::Pipe(id, PipeEvent::Breaks { at_leader: !at_leader }));
        }
        if closed {
            return;
        }
        let Some(process) = self.process(host, life) else { return };
        let input = if at_leader {
            process.downs.remove(&stream);
            Input::FollowerEnded { stream }
        } else {
            process.ups.remove(&stream);
            Input::LeaderEnded { stream }
        };
        self.deliver(host, life, input);
    }

    /// The process at one end died: the other end learns it soon, or only when its own patience ends.
    pub(crate) fn end_died(&mut self, id: u64, at_leader: bool) {
        let (soon, late) =
            (self.net.delay(&mut self.dice), self.dice.span(Duration::from_secs(1), Duration::from_secs(8)));
        let told = self.dice.below(10) < 7;
        let Some(pipe) = self.pipes.get_mut(&id) else { return };
        match (at_leader, &mut pipe.leader) {
            (true, Some(leader)) => leader.closed = true,
            (true, None) => {}
            (false, _) => pipe.follower.closed = true,
        }
        // What it had sent before comes first.
        let clear = if at_leader { pipe.clear_down } else { pipe.clear_up };
        let at = if told { clear.max(self.now) + soon } else { self.now + late };
        self.queue.add(at, Happening::Pipe(id, PipeEvent::Breaks { at_leader: !at_leader }));
    }

    /// Hosts were cut off from each other: each stream between them breaks some day, unless it heals before.
    pub(crate) fn strain_streams(&mut self) {
        let strained: Vec<u64> = self
            .pipes
            .iter()
            .filter(|(_, pipe)| !self.net.connects(pipe.follower.host, pipe.leader_host))
            .map(|(id, _)| *id)
            .collect();
        for id in strained {
            // Half of the connections outlive a short cut.
            if self.dice.below(2) == 0 {
                let after = self.dice.span(Duration::from_millis(50), Duration::from_secs(6));
                let at_leader = self.dice.below(2) == 0;
                self.after(after, Happening::Pipe(id, PipeEvent::Breaks { at_leader }));
            }
        }
    }

    /// After a heal the stalled frames arrive, in order.
    pub(crate) fn release_streams(&mut self) {
        let stalled: Vec<u64> =
            self.pipes.iter().filter(|(_, pipe)| !pipe.stalled.is_empty()).map(|(id, _)| *id).collect();
        for id in stalled {
            let frames = self.pipes.get_mut(&id).map(|pipe| std::mem::take(&mut pipe.stalled)).unwrap_or_default();
            self.marks.hit(Mark::StreamStalled);
            for frame in frames {
                self.frame_arrives(id, frame);
            }
        }
    }
}
