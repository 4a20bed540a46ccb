//! Carrying out what a step decided: saves, answers, calls, streams, computations.
//!
//! All names of things between two workers are made from the names that one of them gave, so that they are the same
//! in whatever order things happen.

use std::time::Duration;

use floodline::protocol::Input;
use floodline::protocol::effects::{Call, ComputeEffect, Effects, Save, StreamEffect};
use floodline::protocol::ids::{ReplyToken, SaveId, StreamId};
use floodline::protocol::message::{CallFailure, Peer, Refusal, Response};

use crate::host::{At, Caller, Host};
use crate::network::{Lane, Way};
use crate::world::World;

/// What `at` gave the number `own`, as others call it.
fn global(host: &Host, at: At, own: u64) -> u64 {
    (at as u64 + 1) * 1_000_000_000_000 + host.member.incarnation.0 * 1_000_000_000 + own
}

fn unreachable(why: &str) -> CallFailure {
    CallFailure::Unreachable(why.to_owned())
}

impl World {
    pub(crate) fn perform(&mut self, at: At, out: Effects) {
        self.look_at(at, &out);
        for save in out.saves {
            let id = save.id;
            self.hosts[at].change().saving.push_back(save);
            self.post(Lane { to: at, way: Way::Disk }, Input::Saved { save: id });
        }
        for (token, answer) in out.replies {
            self.reply(at, token, answer);
        }
        for call in out.abandoned {
            if let Some((to, token)) = self.hosts[at].change().calls.remove(&call) {
                self.post(Lane { to, way: Way::Calls(at) }, Input::CallerGone { token });
            }
        }
        for call in out.calls {
            self.call(at, call);
        }
        for effect in out.streams {
            self.on_stream(at, effect);
        }
        for effect in out.computations {
            self.compute(at, effect);
        }
        if let Some(ending) = out.ended {
            self.break_(format!("{} ended: {ending:?}", self.hosts[at].member.node));
        }
        self.show_moved(at, &out.moved);
    }

    /// The saves up to here are on the disk, or are said to be.
    pub(crate) fn write(&mut self, at: At, up_to: SaveId) {
        if self.bounds.lying_disk {
            self.hosts[at].change().lied = Some(up_to);
            return;
        }
        self.write_really(at, up_to);
    }

    fn write_really(&mut self, at: At, up_to: SaveId) {
        let ready = |save: &mut Save| save.id <= up_to;
        while let Some(save) = self.hosts[at].change().saving.pop_front_if(ready) {
            self.hosts[at].change().disk.write(&save);
            self.look_at_admissions(at, &save);
        }
        self.check_disk(at);
    }

    /// A disk that lied makes up for it when time moves on.
    pub(crate) fn make_up_for_lies(&mut self) {
        for at in 0..self.hosts.len() {
            if let Some(up_to) = self.hosts[at].lied {
                self.hosts[at].change().lied = None;
                self.write_really(at, up_to);
            }
        }
    }

    fn reply(&mut self, at: At, token: ReplyToken, answer: Result<Response, Refusal>) {
        match self.hosts[at].change().callers.remove(&token) {
            Some(Caller::Client(number)) => self.answer_client(number, answer),
            Some(Caller::Host(to, life, call)) => {
                let waits = self.hosts[to].member.incarnation == life && self.hosts[to].calls.contains_key(&call);
                if waits {
                    let result = answer.map_err(CallFailure::Refused);
                    self.post(Lane { to, way: Way::Calls(at) }, Input::Answered { call, result });
                }
            }
            None => {}
        }
    }

    fn at_address(&self, peer: &Peer) -> Option<At> {
        self.hosts.iter().position(|host| host.member.address == peer.address)
    }

    fn call(&mut self, at: At, call: Call) {
        let Some(to) = self.at_address(&call.to) else {
            self.break_(format!("a call to {:?}, which nobody has", call.to));
            return;
        };
        let silent = self.hosts[to].unnoticed;
        if !silent && (!self.hosts[to].is_up() || self.is_cut_off(at, to)) {
            let result = Err(unreachable("no route"));
            self.post(Lane { to: at, way: Way::Calls(at) }, Input::Answered { call: call.id, result });
            return;
        }
        let token = ReplyToken(global(&self.hosts[at], at, call.id.0));
        let life = self.hosts[at].member.incarnation;
        self.hosts[at].change().calls.insert(call.id, (to, token));
        if !silent {
            self.hosts[to].change().callers.insert(token, Caller::Host(at, life, call.id));
            self.post(Lane { to, way: Way::Calls(at) }, Input::Called { token, request: call.request });
        }
    }

    fn on_stream(&mut self, at: At, effect: StreamEffect) {
        match effect {
            StreamEffect::Open { stream, to } => self.open_stream(at, stream, &Peer::from(&to)),
            StreamEffect::Up(stream, frame) => {
                if let Some((to, there)) = self.hosts[at].ups.get(&stream).copied() {
                    self.post(Lane { to, way: Way::Stream(at) }, Input::FollowerSent { stream: there, frame });
                }
            }
            StreamEffect::Down(stream, frame) => {
                if let Some((to, there)) = self.hosts[at].downs.get(&stream).copied() {
                    self.post(Lane { to, way: Way::Stream(at) }, Input::LeaderSent { stream: there, frame });
                }
            }
            StreamEffect::CloseUp(stream) => {
                if let Some((to, there)) = self.hosts[at].change().ups.remove(&stream) {
                    self.hosts[to].change().downs.remove(&there);
                    self.post(Lane { to, way: Way::Stream(at) }, Input::FollowerEnded { stream: there });
                }
            }
            StreamEffect::CloseDown(stream) => {
                if let Some((to, there)) = self.hosts[at].change().downs.remove(&stream) {
                    self.hosts[to].change().ups.remove(&there);
                    self.post(Lane { to, way: Way::Stream(at) }, Input::LeaderEnded { stream: there });
                }
            }
        }
    }

    fn open_stream(&mut self, at: At, stream: StreamId, to: &Peer) {
        let Some(to) = self.at_address(to) else { return };
        let there = StreamId(global(&self.hosts[at], at, stream.0));
        if self.hosts[to].unnoticed {
            self.hosts[at].change().ups.insert(stream, (to, there));
        } else if !self.hosts[to].is_up() || self.is_cut_off(at, to) {
            self.post(Lane { to: at, way: Way::Stream(at) }, Input::LeaderEnded { stream });
        } else {
            self.hosts[at].change().ups.insert(stream, (to, there));
            self.hosts[to].change().downs.insert(there, (at, stream));
            self.post(Lane { to, way: Way::Stream(at) }, Input::FollowerOpened { stream: there });
        }
    }

    fn compute(&mut self, at: At, effect: ComputeEffect) {
        let lane = Lane { to: at, way: Way::Pool };
        match effect {
            ComputeEffect::Start(compute, _, slice) => {
                let value = slice.run(&|| false).ok();
                self.post(lane, Input::Computed { compute, value, took: Duration::from_millis(1) });
            }
            ComputeEffect::Cancel(cancelled) => {
                let of_it = |input: &Input| matches!(input, Input::Computed { compute, .. } if *compute == cancelled);
                let Some(line) = self.lanes.get_mut(&lane) else { return };
                let before = line.mail.len();
                line.mail.retain(|mail| !of_it(&mail.input));
                if line.mail.len() < before {
                    let (value, took) = (None, Duration::ZERO);
                    self.post(lane, Input::Computed { compute: cancelled, value, took });
                }
            }
        }
    }
}
