//! One worker fed one input at a time; what follows is compared with a text, whole.
//!
//! Owns the worker's surroundings: the clock, the ids of its open calls, streams and computations.

use std::time::Duration;

use crate::jobs::Value;
use crate::protocol::effects::{Call, Effects, StreamEffect};
use crate::protocol::ids::{CallId, ComputeId, Jac, Number, Position, ReplyToken, SaveId, StreamId, Term};
use crate::protocol::input::Input;
use crate::protocol::leadership::Role;
use crate::protocol::limits::Settings;
use crate::protocol::message::{
    AnnounceAnswer, Batch, CallFailure, DirectoryId, Down, Heartbeat, Leader, Purpose, Request, Response, TaskAnswer,
    Up,
};
use crate::protocol::time::{Now, Time, Wall};
use crate::protocol::{Setup, Stored, Worker};

use super::{announce, leader, leadership, member, quiet, render, status};

/// A worker by itself. It is called n1 and knows n2 to n9, which a directory lists.
pub(crate) struct Lone {
    pub(crate) worker: Worker,
    now: Time,
    last_token: u64,
    last_follower: u64,
    /// Its calls that wait, oldest first.
    calls: Vec<Call>,
    /// The stream to its leader.
    pub(crate) up: StreamId,
    /// Its last save.
    save: SaveId,
}

/// What followed from an input: effects, then the state, one line each.
#[derive(Debug)]
#[must_use = "a situation states what follows"]
pub(crate) struct Outcome(pub(crate) Vec<String>);

impl Outcome {
    /// Exactly this, but for indentation and empty lines.
    #[track_caller]
    pub(crate) fn is(self, expected: &str) {
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if self.0 != expected {
            panic!("expected\n    {}\ngot\n    {}", expected.join("\n    "), self.0.join("\n    "));
        }
    }

    /// The lines that begin so.
    pub(crate) fn only(self, beginning: &str) -> Outcome {
        Outcome(self.0.into_iter().filter(|line| line.starts_with(beginning)).collect())
    }

    /// For steps that only lead up to a situation.
    pub(crate) fn skip(self) {}
}

impl Lone {
    /// A worker that looks for a leader, with links to these.
    pub(crate) fn linked(links: &[&str]) -> Lone {
        Lone::with(quiet(), Stored::default(), links)
    }

    pub(crate) fn with(settings: Settings, stored: Stored, links: &[&str]) -> Lone {
        let mut lone = Lone::unborn(settings, stored);
        lone.worker.stranger_due = Time(u64::MAX);
        for name in links {
            lone.worker.overlay.link(Time::ZERO, &member(name));
        }
        let ping = lone.worker.settings.link_ping;
        lone.worker.overlay.pings_due(lone.now, ping);
        lone.give(Input::Started).skip();
        lone.calls.clear();
        lone.worker.put_off_own_election();
        lone
    }

    /// One that has not started and has no links.
    pub(crate) fn unborn(settings: Settings, stored: Stored) -> Lone {
        let setup = Setup { member: member("n1"), directories: 0, peers: Vec::new(), settings, stored, seed: 7 };
        let mut worker = Worker::new(setup);
        for other in 2..=9 {
            worker.members.list(DirectoryId(0), &member(&format!("n{other}")));
        }
        let (now, up, save) = (Time::from_millis(1_000), StreamId(0), SaveId(0));
        Lone { worker, now, last_token: 0, last_follower: 100, calls: Vec::new(), up, save }
    }

    /// One that follows `term`-`name` and has joined it: both are empty. A first heartbeat said `room`.
    pub(crate) fn following(links: &[&str], term: u64, name: &str, room: u32) -> Lone {
        let mut lone = Lone::linked(links);
        lone.follow(term, name, room);
        lone
    }

    pub(crate) fn follow(&mut self, term: u64, name: &str, room: u32) {
        let flood = announce(Purpose::Flood, name, leader(term, name, 0), 3);
        self.called(Request::Announce(flood)).skip();
        self.calls.clear();
        self.joined(term, name).skip();
        self.frame(Down::Heartbeat(heartbeat(term, name, 0, room))).skip();
        self.saved().skip();
    }

    /// The batch that ends its joining: nothing is to be sent.
    pub(crate) fn joined(&mut self, term: u64, name: &str) -> Outcome {
        let number = self.worker.ledger.number();
        self.frame(Down::Batch(Batch {
            leadership: leadership(term, name, 0),
            records: Vec::new(),
            number,
            past: Some(self.worker.ledger.past().clone()),
            held: number,
            remembers: Jac(0),
        }))
    }

    /// One that leads in `term`, is active, and whose followers have joined: on streams 101, 102, ...
    pub(crate) fn leading(links: &[&str], term: u64, followers: &[&str]) -> Lone {
        Lone::leading_with(quiet(), links, term, followers)
    }

    pub(crate) fn leading_with(settings: Settings, links: &[&str], term: u64, followers: &[&str]) -> Lone {
        let mut lone = Lone::with(settings, Stored::default(), links);
        let workers = u32::try_from(followers.len() + 1).expect("a few");
        lone.called(Request::Announce(announce(Purpose::Won, "n9", leader(term, "n1", 0), workers))).skip();
        for name in followers {
            let stream = lone.opened();
            lone.sent(stream, join(name, term, "n1")).skip();
            lone.sent(stream, ack(0)).skip();
        }
        assert!(
            matches!(&lone.worker.role, Role::Leading(leading) if leading.active),
            "{}",
            render::state(&lone.worker)
        );
        lone.calls.clear();
        lone
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// One input now.
    pub(crate) fn give(&mut self, input: Input) -> Outcome {
        let mut out = Effects::default();
        let now = Now { time: self.now, wall: Wall(self.now.0 / 1_000) };
        self.worker.step(now, input, &mut out);
        let mut lines = render::effects(&out);
        lines.push(render::state(&self.worker));
        self.calls.retain(|call| !out.abandoned.contains(&call.id));
        self.calls.extend(out.calls);
        self.save = out.saves.last().map_or(self.save, |save| save.id);
        for effect in &out.streams {
            if let StreamEffect::Open { stream, .. } = effect {
                self.up = *stream;
            }
        }
        Outcome(lines)
    }

    /// Time goes by, without any timer: as if the loop had other things to do.
    pub(crate) fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    /// Time goes by from deadline to deadline; all that the timers do, and the last state.
    pub(crate) fn pass(&mut self, span: Duration) -> Outcome {
        let end = self.now + span;
        let mut lines = Vec::new();
        for _ in 0..100_000 {
            let Some(due) = self.worker.next_deadline().filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            lines.extend(self.give(Input::TimerFired).0);
            lines.pop();
        }
        self.now = end;
        lines.push(render::state(&self.worker));
        Outcome(lines)
    }

    /// Somebody calls; the tokens are 1, 2, ...
    pub(crate) fn called(&mut self, request: Request) -> Outcome {
        self.last_token += 1;
        self.give(Input::Called { token: ReplyToken(self.last_token), request })
    }

    /// The token of the last caller.
    pub(crate) fn token(&self) -> ReplyToken {
        ReplyToken(self.last_token)
    }

    /// To whom the oldest open call of this kind goes.
    pub(crate) fn asked(&self, kind: &str) -> String {
        let call = self.calls.iter().find(|call| render::request(&call.request).starts_with(kind));
        let to = call.and_then(|call| call.to.node.as_ref()).expect("such a call");
        to.as_str().to_owned()
    }

    /// The oldest open call whose text, with where it goes, begins so.
    #[track_caller]
    fn take_call(&mut self, beginning: &str) -> CallId {
        let text = |call: &Call| {
            let to = call.to.node.as_ref().map_or(call.to.address.as_str(), |node| node.as_str());
            format!("{to} {}", render::request(&call.request))
        };
        let at = self.calls.iter().position(|call| text(call).starts_with(beginning));
        let open: Vec<String> = self.calls.iter().map(text).collect();
        let at = at.unwrap_or_else(|| panic!("no open call `{beginning}` among {open:?}"));
        self.calls.remove(at).id
    }

    /// That call is answered.
    #[track_caller]
    pub(crate) fn answer(&mut self, call: &str, response: Response) -> Outcome {
        let call = self.take_call(call);
        self.give(Input::Answered { call, result: Ok(response) })
    }

    /// That call fails.
    #[track_caller]
    pub(crate) fn fail(&mut self, call: &str, failure: CallFailure) -> Outcome {
        let call = self.take_call(call);
        self.give(Input::Answered { call, result: Err(failure) })
    }

    /// That call can't be delivered.
    #[track_caller]
    pub(crate) fn unreachable(&mut self, call: &str) -> Outcome {
        self.fail(call, CallFailure::Unreachable("no route".to_owned()))
    }

    /// An attempt that was handed out brings a value.
    #[track_caller]
    pub(crate) fn result(&mut self, call: &str, value: i128) -> Outcome {
        let result = Ok(Value(value));
        self.answer(call, Response::Task(TaskAnswer { result, took: Duration::from_millis(1) }))
    }

    /// All saves so far are on the disk.
    pub(crate) fn saved(&mut self) -> Outcome {
        self.give(Input::Saved { save: self.save })
    }

    /// A frame of its leader's.
    pub(crate) fn frame(&mut self, frame: Down) -> Outcome {
        self.give(Input::LeaderSent { stream: self.up, frame })
    }

    /// Somebody opens a stream to it.
    pub(crate) fn opened(&mut self) -> StreamId {
        self.last_follower += 1;
        let stream = StreamId(self.last_follower);
        self.give(Input::FollowerOpened { stream }).skip();
        stream
    }

    /// A follower's frame.
    pub(crate) fn sent(&mut self, stream: StreamId, frame: Up) -> Outcome {
        self.give(Input::FollowerSent { stream, frame })
    }

    /// A computation of its own ends.
    pub(crate) fn computed(&mut self, compute: u64, value: i128) -> Outcome {
        self.give(Input::Computed {
            compute: ComputeId(compute),
            value: Some(Value(value)),
            took: Duration::from_millis(1),
        })
    }
}

/// The first frame of an empty follower of `term`-`leader`.
pub(crate) fn join(name: &str, term: u64, of: &str) -> Up {
    Up::Join { status: status(name, Some(leader(term, of, 0))), position: Position::default(), jobs: 0 }
}

/// The first frame of a follower that stands somewhere.
pub(crate) fn join_at(name: &str, term: u64, of: &str, position: Position) -> Up {
    Up::Join { status: status(name, Some(leader(term, of, 0))), position, jobs: 0 }
}

pub(crate) fn ack(number: u64) -> Up {
    Up::Ack { number: Some(Number(number)), jac: Jac(0), running: 0, links: Vec::new() }
}

pub(crate) fn heartbeat(term: u64, name: &str, held: u64, room: u32) -> Heartbeat {
    Heartbeat { leadership: leadership(term, name, 0), held: Number(held), room, admitted: 0 }
}

/// An answer to an announcement.
pub(crate) fn taken(accepted: bool, following: Option<Leader>, reaches: u32) -> Response {
    Response::Announce(AnnounceAnswer { accepted, following, reaches })
}

/// What a worker with this JAC and this highest term had stored.
pub(crate) fn stored(jac: u64, term: u64) -> Stored {
    Stored { jac: Jac(jac), term: Term(term), ..Stored::default() }
}
