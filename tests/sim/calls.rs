//! Unary calls: they get lost, doubled, late and reordered; their callers give up, their callees die.

use std::time::Duration;

use floodline::guarantees::history::Seen;
use floodline::protocol::Input;
use floodline::protocol::ids::{CallId, ReplyToken};
use floodline::protocol::message::{CallFailure, Purpose, Refusal, Request, Response};

use crate::clients::{ErrandCall, Step};
use crate::marks::Mark;
use crate::process::{Asked, Life, Question};
use crate::world::{Happening, World};

/// How long a connection may be dead before its shell notices.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Who called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller {
    Worker {
        host: usize,
        life: Life,
        call: CallId,
    },
    Client {
        errand: usize,
        serial: u64,
        errand_call: ErrandCall,
    },
    /// Sends what should be refused, or at least not believed.
    Vandal {
        what: &'static str,
        refused: bool,
    },
}

/// A call on its way or waiting.
#[derive(Debug)]
pub(crate) struct Flight {
    caller: Caller,
    to: Option<usize>,
    within: Duration,
    waits_at: Vec<(usize, Life, ReplyToken)>,
    given_up: bool,
}

/// What comes of a call, somewhere.
#[derive(Debug)]
pub(crate) enum Arrival {
    Asks { flight: u64, to: usize, request: Request },
    Answers { flight: u64, result: Result<Response, CallFailure> },
    CallerGone { host: usize, life: Life, token: ReplyToken },
    Forgotten { flight: u64 },
}

fn unreachable() -> Result<Response, CallFailure> {
    Err(CallFailure::Unreachable("the connection broke".to_owned()))
}

impl World {
    pub(crate) fn send(&mut self, caller: Caller, to: Option<usize>, request: Request, within: Duration) -> u64 {
        let flight = self.fresh();
        self.flights.insert(flight, Flight { caller, to, within, waits_at: Vec::new(), given_up: false });
        let from = match caller {
            Caller::Worker { host, life, call } => {
                let process = self.process(host, life);
                if process.is_some_and(|process| process.calls.insert(call, flight).is_some()) {
                    self.break_("call ids", format!("{call} names a second call"));
                }
                Some(host)
            }
            Caller::Client { .. } | Caller::Vandal { .. } => None,
        };
        let Some(to) = to else {
            self.fails(flight, 5);
            return flight;
        };
        let connects = from.is_none_or(|from| self.net.connects(from, to));
        if !connects || self.hosts[to].process.is_none() {
            // A dead process refuses at once more often than one that is cut off.
            self.fails(flight, if connects { 8 } else { 2 });
            return flight;
        }
        if self.net.is_lost(&mut self.dice) {
            self.fails(flight, 0);
            return flight;
        }
        let delay = self.net.delay(&mut self.dice);
        if self.net.is_doubled(&mut self.dice) {
            let more = self.net.delay(&mut self.dice) * 2;
            let arrival = Arrival::Asks { flight, to, request: request.clone() };
            self.after(delay + more, Happening::Call(arrival));
            self.marks.hit(Mark::CallDoubled);
        }
        self.after(delay, Happening::Call(Arrival::Asks { flight, to, request }));
        flight
    }

    /// The call comes to nothing: at once in `of_ten` cases, else when the shell notices.
    fn fails(&mut self, flight: u64, of_ten: u64) {
        let Some(within) = self.flights.get(&flight).map(|flight| flight.within) else { return };
        let (result, after) = if self.dice.below(10) < of_ten {
            (unreachable(), self.dice.span(Duration::from_micros(100), Duration::from_millis(20)))
        } else {
            // A connection that lost something breaks, and its keep-alive notices that one day.
            let broken = self.dice.span(Duration::from_millis(500), KEEP_ALIVE);
            if broken < within * 10 { (unreachable(), broken) } else { (Err(CallFailure::TimedOut), within * 10) }
        };
        self.after(after, Happening::Call(Arrival::Answers { flight, result }));
    }

    pub(crate) fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Asks { flight, to, request } => self.asked(flight, to, request),
            Arrival::Answers { flight, result } => self.answered(flight, result),
            Arrival::CallerGone { host, life, token } => {
                if let Some(process) = self.process(host, life)
                    && process.tokens.remove(&token).is_some()
                {
                    process.answered.insert(token);
                    self.deliver(host, life, Input::CallerGone { token });
                }
            }
            Arrival::Forgotten { flight } => {
                self.flights.remove(&flight);
            }
        }
    }

    fn asked(&mut self, flight: u64, to: usize, request: Request) {
        let known = self.flights.get(&flight);
        let from = known.and_then(|known| match known.caller {
            Caller::Worker { host, .. } => Some(host),
            Caller::Client { .. } | Caller::Vandal { .. } => None,
        });
        if from.is_some_and(|from| !self.net.passes(from, to)) || self.hosts[to].process.is_none() {
            self.fails(flight, 5);
            return;
        }
        // A call that was given up on its way is mostly not seen at all.
        let gone = known.is_none_or(|known| known.given_up);
        if gone && self.dice.below(2) == 0 {
            return;
        }
        let Some(process) = &mut self.hosts[to].process else { return };
        process.last_token += 1;
        let (token, life) = (ReplyToken(process.last_token), process.life);
        let what = question(&request);
        process.tokens.insert(token, Asked { flight, what });
        match self.flights.get_mut(&flight) {
            Some(known) if !known.given_up => known.waits_at.push((to, life, token)),
            Some(_) | None => self.caller_gone(to, life, token),
        }
        self.deliver(to, life, Input::Called { token, request });
    }

    fn caller_gone(&mut self, host: usize, life: Life, token: ReplyToken) {
        let delay = self.net.delay(&mut self.dice);
        self.after(delay, Happening::Call(Arrival::CallerGone { host, life, token }));
    }

    /// A worker answers a caller.
    pub(crate) fn reply(&mut self, at: usize, token: ReplyToken, answer: Result<Response, Refusal>) {
        let Some(process) = &mut self.hosts[at].process else { return };
        let Some(asked) = process.tokens.remove(&token) else {
            if !process.answered.contains(&token) {
                self.break_("reply tokens", format!("{} answers {token}, which nobody asked", self.hosts[at].node));
            }
            return;
        };
        process.answered.insert(token);
        let caller = self.flights.get(&asked.flight).map(|flight| flight.caller);
        self.check_reply(at, &asked.what, caller, &answer);
        let Some(flight) = self.flights.get_mut(&asked.flight) else { return };
        flight.waits_at.retain(|(host, _, waiting)| (*host, *waiting) != (at, token));
        let back = match flight.caller {
            Caller::Worker { host, .. } => self.net.passes(at, host),
            Caller::Client { .. } | Caller::Vandal { .. } => true,
        };
        if !back || self.net.is_lost(&mut self.dice) {
            self.fails(asked.flight, 3);
            return;
        }
        let delay = self.net.delay(&mut self.dice);
        let result = answer.map_err(CallFailure::Refused);
        self.after(delay, Happening::Call(Arrival::Answers { flight: asked.flight, result }));
    }

    fn answered(&mut self, id: u64, result: Result<Response, CallFailure>) {
        let Some(flight) = self.flights.remove(&id) else { return };
        if flight.given_up {
            if self.dice.below(2) == 0 {
                return;
            }
            self.marks.hit(Mark::AnswerLate);
        }
        for (host, life, token) in flight.waits_at {
            self.caller_gone(host, life, token);
        }
        match flight.caller {
            Caller::Worker { host, life, call } => {
                if let Some(process) = self.process(host, life) {
                    process.calls.remove(&call);
                    self.deliver(host, life, Input::Answered { call, result });
                }
            }
            Caller::Client { errand, serial, errand_call } => {
                self.errand_step(errand, Step::Answered(errand_call, serial, Box::new(result)));
            }
            Caller::Vandal { what, refused } => self.vandal_answered(flight.to, what, refused, &result),
        }
    }

    fn vandal_answered(
        &mut self,
        to: Option<usize>,
        what: &'static str,
        expected: bool,
        result: &Result<Response, CallFailure>,
    ) {
        let Some(process) = to.and_then(|to| self.hosts[to].process.as_ref()).map(|process| process.identity()) else {
            return;
        };
        if !expected {
            return;
        }
        match result {
            Err(CallFailure::Refused(_)) => {
                self.marks.hit(Mark::MalformedRefused);
                self.see(Seen::Abused { process, what, refused: true });
            }
            Ok(_) => self.see(Seen::Abused { process, what, refused: false }),
            Err(CallFailure::Unreachable(_) | CallFailure::TimedOut) => {}
        }
    }

    /// A worker does not wait for a call any more.
    pub(crate) fn abandon(&mut self, at: usize, call: CallId) {
        let flight = self.hosts[at].process.as_mut().and_then(|process| process.calls.remove(&call));
        if let Some(flight) = flight {
            self.give_up(flight);
        }
    }

    pub(crate) fn give_up(&mut self, id: u64) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        flight.given_up = true;
        let waits_at = std::mem::take(&mut flight.waits_at);
        for (host, life, token) in waits_at {
            self.caller_gone(host, life, token);
        }
        self.after(Duration::from_secs(5), Happening::Call(Arrival::Forgotten { flight: id }));
    }

    pub(crate) fn callee_died(&mut self, flight: u64) {
        if self.flights.get(&flight).is_some_and(|flight| !flight.given_up) {
            self.fails(flight, 7);
        }
    }

    pub(crate) fn caller_died(&mut self, flight: u64) {
        self.give_up(flight);
    }
}

fn question(request: &Request) -> Question {
    match request {
        Request::Elect(elect) => Question::Elect(elect.term),
        Request::Announce(announce) if announce.purpose == Purpose::Won => Question::Won,
        Request::Announce(announce) if announce.purpose == Purpose::Settle => Question::Settle,
        Request::SubmitJob(submit) => Question::Submit(submit.key.clone(), false),
        Request::CancelJob(_) => Question::Cancel,
        Request::ExecuteTask(execute) => Question::Execute { task: execute.task.clone(), fenced: false, again: false },
        Request::Announce(_)
        | Request::AddNeighbor(_)
        | Request::RemoveNeighbor(_)
        | Request::Ping(_)
        | Request::GetJob(_)
        | Request::ListJobs(_)
        | Request::GetCluster
        | Request::CancelTask(_) => Question::Other,
    }
}
