//! Clients: each errand is one job that somebody hands in, with retries elsewhere, perhaps a cancel, and a
//! subscription that roams or a poll.

use std::sync::Arc;
use std::time::Duration;

use floodline::guarantees::history::{Outcome, Right, Seen};
use floodline::protocol::ids::JobKey;
use floodline::protocol::message::{CallFailure, Code, JobQuery, Request, Response, SubmitJob, Submitted};
use floodline::protocol::progress::Cursor;
use floodline::protocol::view::JobView;

use crate::calls::Caller;
use crate::marks::Mark;
use crate::plan::ErrandPlan;
use crate::process::Life;
use crate::work;
use crate::world::{Happening, World};

/// What a client's call was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrandCall {
    Submit,
    Poll,
    Cancel,
}

/// How far an errand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Submitting,
    Following,
    /// Has its last message, or was refused for good, or gave up.
    Over,
}

/// One client with one job.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) key: JobKey,
    planned: ErrandPlan,
    right: Right,
    pub(crate) stage: Stage,
    /// Whatever belongs to an earlier try is ignored.
    pub(crate) serial: u64,
    flight: Option<u64>,
    unknown: bool,
    pub(crate) acknowledged: bool,
    cancels: bool,
    pub(crate) cancel_open: bool,
    pub(crate) cursor: Option<Cursor>,
    pub(crate) roamed: bool,
}

/// What happens to an errand.
#[derive(Debug)]
pub(crate) enum Step {
    Submit,
    Answered(ErrandCall, u64, Box<Result<Response, CallFailure>>),
    OutOfPatience(u64),
    Poll(u64),
    Cancel,
    Subscribe(u64),
    Arrives { serial: u64, host: usize },
    Message { serial: u64, host: usize, life: Life, view: Arc<JobView> },
    Ready { host: usize, life: Life },
    Ended { serial: u64 },
}

impl World {
    pub(crate) fn set_out_errands(&mut self) {
        for planned in self.plan.errands.clone() {
            let key = work::key(&planned.id, &planned.payload);
            if self.errands.iter().any(|errand| errand.key == key) {
                self.marks.hit(Mark::Twins);
            }
            self.queue.add(planned.at, Happening::Errand(self.errands.len(), Step::Submit));
            self.errands.push(Errand {
                right: work::right(&planned.payload),
                key,
                stage: Stage::Submitting,
                serial: 0,
                flight: None,
                unknown: false,
                acknowledged: false,
                cancels: planned.cancels,
                cancel_open: false,
                cursor: None,
                roamed: false,
                planned,
            });
        }
    }

    pub(crate) fn errand_step(&mut self, at: usize, step: Step) {
        match step {
            Step::Submit => {
                if self.errands[at].stage == Stage::Submitting {
                    self.submit(at);
                }
            }
            Step::Answered(ErrandCall::Submit, serial, result) => {
                if self.errands[at].serial == serial && self.errands[at].stage == Stage::Submitting {
                    self.submit_answered(at, *result);
                }
            }
            Step::Answered(_, _, result) if self.is_dropped(at, &result) => self.give_up_errand(at),
            Step::Answered(ErrandCall::Poll, serial, result) => {
                let ended = matches!(&*result, Ok(Response::Job(view)) if view.state.is_terminal());
                if ended {
                    self.errands[at].stage = Stage::Over;
                } else if self.errands[at].serial == serial {
                    self.poll_soon(at);
                }
            }
            Step::Answered(ErrandCall::Cancel, _, result) => match *result {
                Ok(_) => self.errands[at].cancel_open = false,
                Err(_) if !self.errands[at].cancel_open => {}
                Err(_) => self.after(Duration::from_millis(150), Happening::Errand(at, Step::Cancel)),
            },
            Step::OutOfPatience(serial) => {
                if self.errands[at].serial == serial && self.errands[at].stage == Stage::Submitting {
                    if let Some(flight) = self.errands[at].flight.take() {
                        self.give_up(flight);
                    }
                    self.submission_unknown(at);
                }
            }
            Step::Poll(serial) => {
                if self.errands[at].serial == serial && self.errands[at].stage == Stage::Following {
                    self.call(at, ErrandCall::Poll, Request::GetJob(self.query(at)));
                }
            }
            Step::Cancel => self.call(at, ErrandCall::Cancel, Request::CancelJob(self.query(at))),
            Step::Subscribe(serial) => {
                if self.errands[at].serial == serial && self.errands[at].stage == Stage::Following {
                    self.subscribe(at);
                }
            }
            Step::Arrives { serial, host } => self.subscription_arrives(at, serial, host),
            Step::Message { serial, host, life, view } => self.message(at, serial, host, life, &view),
            Step::Ready { host, life } => self.ready(at, host, life),
            Step::Ended { serial } => {
                let job = &self.errands[at].key;
                if self.errands[at].stage == Stage::Following && self.truth.dropped.contains(job) {
                    self.give_up_errand(at);
                } else if self.errands[at].serial == serial {
                    self.subscribe_soon(at);
                }
            }
        }
    }

    /// Whether a client is told that there is no such job, of one that ended and was dropped.
    fn is_dropped(&self, at: usize, result: &Result<Response, CallFailure>) -> bool {
        let errand = &self.errands[at];
        let unknown = matches!(result, Err(CallFailure::Refused(refusal)) if refusal.code == Code::NotFound);
        unknown && errand.stage != Stage::Submitting && self.truth.dropped.contains(&errand.key)
    }

    pub(crate) fn give_up_errand(&mut self, at: usize) {
        let errand = &mut self.errands[at];
        (errand.stage, errand.cancel_open) = (Stage::Over, false);
        errand.serial += 1;
        self.see(Seen::Left { subscriber: at as u64 });
    }

    pub(crate) fn query(&self, at: usize) -> JobQuery {
        let errand = &self.errands[at];
        let digest = (!errand.planned.bare).then_some(errand.key.digest);
        JobQuery { id: errand.key.id.clone(), digest, forwarded: false }
    }

    /// Any worker, now and then one that is down.
    pub(crate) fn any_host(&mut self) -> usize {
        let up: Vec<usize> = self.running().filter(|(_, process)| !process.stopping).map(|(at, _)| at).collect();
        if up.is_empty() || self.dice.below(20) == 0 {
            return usize::try_from(self.dice.below(self.hosts.len() as u64)).unwrap_or(0);
        }
        up[usize::try_from(self.dice.below(up.len() as u64)).unwrap_or(0)]
    }

    fn call(&mut self, at: usize, errand_call: ErrandCall, request: Request) {
        let (host, serial) = (self.any_host(), self.errands[at].serial);
        self.tell(|world| {
            format!("client {at} {errand_call:?} {} at {}", world.errands[at].key.id, world.hosts[host].node)
        });
        let within = Duration::from_secs(3);
        let flight = self.send(Caller::Client { errand: at, serial, errand_call }, Some(host), request, within);
        if errand_call == ErrandCall::Submit {
            self.errands[at].flight = Some(flight);
        }
    }

    fn submit(&mut self, at: usize) {
        let errand = &mut self.errands[at];
        errand.serial += 1;
        let (serial, job, right) = (errand.serial, errand.key.clone(), errand.right);
        let payload = errand.planned.payload.clone();
        let deadline = errand.planned.deadline;
        let request = SubmitJob { key: job.clone(), payload, deadline, forwarded: false, trace: None };
        if deadline.is_some() {
            self.see(Seen::DeadlineSet(job.clone()));
        }
        self.see(Seen::Submitted { job, right });
        self.call(at, ErrandCall::Submit, Request::SubmitJob(request));
        let patience = *self.dice.pick(&[500, 2_000, 8_000, 30_000]).unwrap_or(&2_000);
        self.after(Duration::from_millis(patience), Happening::Errand(at, Step::OutOfPatience(serial)));
    }

    fn submit_soon(&mut self, at: usize) {
        let after = self.dice.span(Duration::from_millis(5), Duration::from_millis(500));
        self.after(after, Happening::Errand(at, Step::Submit));
    }

    fn outcome(&mut self, at: usize, outcome: Outcome) {
        let job = self.errands[at].key.clone();
        self.tell(|_| format!("client {at} {}: {outcome:?}", job.id));
        self.see(Seen::Outcome { job, outcome });
    }

    fn submission_unknown(&mut self, at: usize) {
        self.outcome(at, Outcome::Unknown);
        let errand = &mut self.errands[at];
        errand.unknown = true;
        errand.serial += 1;
        if self.quiet_since.is_none() && self.dice.below(10) == 0 {
            self.errands[at].stage = Stage::Over;
        } else {
            self.submit_soon(at);
        }
    }

    fn submit_answered(&mut self, at: usize, result: Result<Response, CallFailure>) {
        let refusal = match result {
            Ok(Response::Submitted(Submitted::Held(view))) => return self.acknowledged(at, &view),
            Ok(other) => return self.break_("answer kinds", format!("a submission was answered with {other:?}")),
            Err(CallFailure::Unreachable(_) | CallFailure::TimedOut) => return self.submission_unknown(at),
            Err(CallFailure::Refused(refusal)) => refusal,
        };
        self.outcome(at, Outcome::Refused(refusal.code));
        self.errands[at].serial += 1;
        match refusal.code {
            Code::AlreadyExists if self.errands[at].planned.rival => {
                self.marks.hit(Mark::Rivals);
                self.errands[at].stage = Stage::Over;
            }
            Code::ResourceExhausted if self.plan.settings.queue < 256 => {
                self.marks.hit(Mark::QueueFull);
                self.submit_soon(at);
            }
            Code::DeadlineExceeded if self.errands[at].planned.deadline.is_some() => {
                self.errands[at].stage = Stage::Over
            }
            // "But for a full queue the user is never told to submit again", by a worker that stays.
            Code::Unavailable | Code::DeadlineExceeded => self.submit_soon(at),
            // Somebody cancelled the job while this submission of it waited.
            Code::Cancelled if self.errands.iter().any(|other| other.cancels && other.key == self.errands[at].key) => {
                self.errands[at].stage = Stage::Over;
            }
            Code::AlreadyExists
            | Code::ResourceExhausted
            | Code::InvalidArgument
            | Code::NotFound
            | Code::FailedPrecondition
            | Code::Cancelled => {
                let id = &self.errands[at].key.id;
                let text = format!("{id} was refused: {:?} {}", refusal.code, refusal.message);
                self.break_("submit (section 7)", text);
            }
        }
    }

    fn acknowledged(&mut self, at: usize, view: &JobView) {
        self.outcome(at, Outcome::Acknowledged);
        let errand = &mut self.errands[at];
        if view.key != errand.key {
            let text = format!("{} was acknowledged as another job", errand.key.id);
            return self.break_("submit (section 7)", text);
        }
        (errand.acknowledged, errand.stage) = (true, Stage::Following);
        if errand.unknown {
            self.marks.hit(Mark::RetriedAfterUnknown);
        }
        if errand.cancels {
            self.cancel_within(at, Duration::from_millis(60));
        }
        if self.errands[at].planned.subscribes {
            self.subscribe(at);
        } else {
            self.poll_soon(at);
        }
    }

    /// Every copy of a job left with a worker that stopped and found nobody to hand it to.
    pub(crate) fn gone(&mut self, key: &JobKey) {
        self.tell(|_| format!("{} is gone with its last copy", key.id));
        self.see(Seen::Gone(key.clone()));
        for errand in self.errands.iter_mut().filter(|errand| errand.key == *key) {
            (errand.stage, errand.cancel_open) = (Stage::Over, false);
            errand.serial += 1;
        }
    }

    fn cancel_within(&mut self, at: usize, most: Duration) {
        let errand = &mut self.errands[at];
        (errand.cancels, errand.cancel_open) = (true, true);
        let job = errand.key.clone();
        self.see(Seen::CancelAsked(job));
        let after = self.dice.span(Duration::from_micros(10), most);
        self.after(after, Happening::Errand(at, Step::Cancel));
    }

    /// Clients lose patience when the cluster falls apart: one part ends a job that the other one finishes.
    pub(crate) fn cancel_some(&mut self) {
        for at in 0..self.errands.len() {
            let running = self.errands[at].stage == Stage::Following && !self.errands[at].cancel_open;
            if running && self.dice.below(2) == 0 {
                self.cancel_within(at, Duration::from_millis(900));
            }
        }
    }

    fn poll_soon(&mut self, at: usize) {
        let serial = self.errands[at].serial;
        let after = self.dice.span(Duration::from_millis(5), Duration::from_millis(600));
        self.after(after, Happening::Errand(at, Step::Poll(serial)));
    }

    fn subscribe_soon(&mut self, at: usize) {
        let serial = self.errands[at].serial;
        let after = self.dice.span(Duration::from_millis(5), Duration::from_millis(300));
        self.after(after, Happening::Errand(at, Step::Subscribe(serial)));
    }
}
