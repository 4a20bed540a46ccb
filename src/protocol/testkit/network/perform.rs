//! What the network does with the effects of a step: saves, answers, calls, streams, computations.
//!
//! Owns the carrying out alone; what becomes of each piece of mail is the rule's.

use std::time::Duration;

use crate::jobs::Payload;
use crate::protocol::effects::{ComputeEffect, Effects, StreamEffect};
use crate::protocol::ids::{CallId, ComputeId, ReplyToken, SaveId, StreamId};
use crate::protocol::input::Input;
use crate::protocol::message::{CallFailure, Refusal, Request, Response};

use super::{Caller, Fate, Mail, Network, render};

impl Network {
    pub(crate) fn perform(&mut self, name: &str, out: Effects) {
        for notice in &out.notices {
            self.write_down(
                format!("{name}: {}", render::notice(notice)),
                Some(format!("{name}: {}", notice.told().text)),
            );
        }
        for save in out.saves {
            let (text, id) = (format!("{name} saves {}", save.id), save.id);
            self.hosts.get_mut(name).expect("a host").saving.push_back(save);
            self.post(name, text, Input::Saved { save: id });
        }
        for (token, result) in out.replies {
            self.reply(name, token, result);
        }
        for call in out.abandoned {
            if let Some((to, token)) = self.hosts.get_mut(name).and_then(|host| host.calls.remove(&call)) {
                self.post(&to, format!("{name} > {to} caller gone"), Input::CallerGone { token });
            }
        }
        for call in out.calls {
            let to = call.to.node.as_ref().map_or("", |node| node.as_str()).to_owned();
            self.make_call(name, &to, call.id, call.request);
        }
        out.streams.into_iter().for_each(|effect| self.on_stream(name, effect));
        for effect in out.computations {
            match effect {
                ComputeEffect::Start(id, _, slice) => self.compute(name, id, &slice),
                ComputeEffect::Cancel(id) => self.cancel(name, id),
            }
        }
    }

    /// The saves up to here are on the disk.
    pub(super) fn write(&mut self, name: &str, up_to: SaveId) {
        let host = self.hosts.get_mut(name).expect("a host");
        while let Some(save) = host.saving.pop_front_if(|save| save.id <= up_to) {
            host.disk.extend(save.records.into_iter().map(|stamped| (stamped.record.name(), stamped)));
            save.removed.iter().for_each(|name| {
                host.disk.remove(name);
            });
            for (job, told) in save.told {
                if told {
                    host.stored.told.insert(job);
                } else {
                    host.stored.told.remove(&job);
                }
            }
            for (node, jac) in save.remembered {
                match jac {
                    Some(jac) => host.stored.remembered.insert(node, jac),
                    None => host.stored.remembered.remove(&node),
                };
            }
            host.stored.past = save.past.unwrap_or_else(|| std::mem::take(&mut host.stored.past));
            (host.stored.position, host.stored.term, host.stored.jac) = (save.position, save.term, save.jac);
        }
    }

    fn reply(&mut self, name: &str, token: ReplyToken, result: Result<Response, Refusal>) {
        let text = render::answer(&result);
        match self.hosts.get_mut(name).and_then(|host| host.callers.remove(&token)) {
            Some(Caller::Outside(caller)) => {
                self.write_down(format!("{name} > {caller} {text}"), None);
                let before = self.answers.insert(token, text);
                assert_eq!(before, None, "a caller is answered once");
            }
            Some(Caller::Host(caller, life, call)) => {
                let result = result.map_err(CallFailure::Refused);
                if self.hosts[&caller].member.incarnation == life && self.hosts[&caller].calls.contains_key(&call) {
                    let fate = self.post(
                        &caller,
                        format!("{name} > {caller} answer: {text}"),
                        Input::Answered { call, result },
                    );
                    if fate == Fate::Deliver {
                        self.hosts.get_mut(&caller).and_then(|host| host.calls.remove(&call));
                    }
                }
            }
            None => {}
        }
    }

    fn make_call(&mut self, name: &str, to: &str, call: CallId, request: Request) {
        let text = format!("{name} > {to} {}", render::request(&request));
        let token = self.fresh_token();
        let life = self.hosts[name].member.incarnation;
        let reached = self.reaches(name, to);
        let fate = if reached { self.post(to, text, Input::Called { token, request }) } else { Fate::Break };
        if fate == Fate::Break {
            let result = Err(CallFailure::Unreachable("the test says so".to_owned()));
            self.post(name, format!("{to} can't be reached by {name}"), Input::Answered { call, result });
            return;
        }
        self.hosts.get_mut(name).expect("a host").calls.insert(call, (to.to_owned(), token));
        self.hosts.get_mut(to).expect("a host").callers.insert(token, Caller::Host(name.to_owned(), life, call));
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let lives = self.hosts.get(to).is_some_and(|host| host.worker.is_some());
        lives && !self.cut.contains(&(from.to_owned(), to.to_owned()))
    }

    pub(super) fn fail_caller(&mut self, caller: Caller) {
        if let Caller::Host(name, life, call) = caller
            && self.hosts[&name].member.incarnation == life
        {
            self.hosts.get_mut(&name).and_then(|host| host.calls.remove(&call));
            let result = Err(CallFailure::Unreachable("the callee died".to_owned()));
            self.post(&name, format!("a call of {name} breaks"), Input::Answered { call, result });
        }
    }

    fn on_stream(&mut self, name: &str, effect: StreamEffect) {
        match effect {
            StreamEffect::Open { stream, to } => {
                let to = to.node.as_str().to_owned();
                if !self.reaches(name, &to) {
                    self.post(name, format!("{to} > {name} stream ends"), Input::LeaderEnded { stream });
                    return;
                }
                let there = StreamId(self.fresh_token().0 + 1_000_000);
                self.hosts.get_mut(name).expect("a host").ups.insert(stream, (to.clone(), there));
                self.hosts.get_mut(&to).expect("a host").downs.insert(there, (name.to_owned(), stream));
                self.post(&to, format!("{name} > {to} opens"), Input::FollowerOpened { stream: there });
            }
            StreamEffect::Up(stream, frame) => {
                let Some((to, there)) = self.hosts[name].ups.get(&stream).cloned() else { return };
                let text = format!("{name} > {to} up {}", render::up(&frame));
                if self.post(&to, text, Input::FollowerSent { stream: there, frame }) == Fate::Break {
                    self.end_streams(|from, at| (from, at) == (name, to.as_str()));
                }
            }
            StreamEffect::Down(stream, frame) => {
                let Some((to, there)) = self.hosts[name].downs.get(&stream).cloned() else { return };
                let text = format!("{name} > {to} down {}", render::down(&frame));
                if self.post(&to, text, Input::LeaderSent { stream: there, frame }) == Fate::Break {
                    self.end_streams(|from, at| (from, at) == (to.as_str(), name));
                }
            }
            StreamEffect::CloseUp(stream) => {
                let Some((to, there)) = self.hosts.get_mut(name).and_then(|host| host.ups.remove(&stream)) else {
                    return;
                };
                self.hosts.get_mut(&to).and_then(|host| host.downs.remove(&there));
                self.post(&to, format!("{name} > {to} closes"), Input::FollowerEnded { stream: there });
            }
            StreamEffect::CloseDown(stream) => {
                let Some((to, there)) = self.hosts.get_mut(name).and_then(|host| host.downs.remove(&stream)) else {
                    return;
                };
                self.hosts.get_mut(&to).and_then(|host| host.ups.remove(&there));
                self.post(&to, format!("{name} > {to} stream ends"), Input::LeaderEnded { stream: there });
            }
        }
    }

    /// Breaks streams, by follower and leader.
    pub(crate) fn end_streams(&mut self, broken: impl Fn(&str, &str) -> bool) {
        let mut ended = Vec::new();
        for (name, host) in &mut self.hosts {
            let gone = host.ups.extract_if(.., |_, (to, _)| broken(name, to));
            ended.extend(gone.map(|(stream, (to, there))| (name.clone(), stream, to, there)));
        }
        for (follower, stream, leader, there) in ended {
            self.hosts.get_mut(&leader).and_then(|host| host.downs.remove(&there));
            self.post(&leader, format!("{follower} > {leader} stream breaks"), Input::FollowerEnded { stream: there });
            self.post(&follower, format!("{leader} > {follower} stream breaks"), Input::LeaderEnded { stream });
        }
    }

    fn compute(&mut self, name: &str, compute: ComputeId, slice: &Payload) {
        let (value, took) = (slice.run(&|| false).ok(), Duration::from_millis(1));
        let text = format!("{name} computes {}", render::payload(slice));
        if self.post(name, text, Input::Computed { compute, value, took }) == Fate::Break {
            // A computation that breaks off comes to an end, too, without a value.
            self.post(name, format!("{name} breaks off"), Input::Computed { compute, value: None, took });
        }
    }

    fn cancel(&mut self, name: &str, cancelled: ComputeId) {
        let of_it = |mail: &Mail| {
            mail.to == name && matches!(&mail.input, Input::Computed { compute, .. } if *compute == cancelled)
        };
        let before = self.held.len();
        self.held.retain(|mail| !of_it(mail));
        if self.held.len() < before {
            let (compute, value, took) = (cancelled, None, Duration::ZERO);
            self.post(name, format!("{name} stops"), Input::Computed { compute, value, took });
        }
    }
}
