//! Clients: each hands in one job, at a worker of its own, and again at the next one until it is acknowledged.

use std::time::Duration;

use floodline::guarantees::history::{Outcome, Right, Seen};
use floodline::jobs::{Payload, Value};
use floodline::protocol::Input;
use floodline::protocol::ids::{Digest, JobId, JobKey, ReplyToken};
use floodline::protocol::message::{Refusal, Request, Response, SubmitJob, Submitted};
use floodline::protocol::time::Time;

use crate::host::{At, Caller};
use crate::network::{Lane, Way};
use crate::world::World;

/// Before a client tries again without having been told when.
const RETRY: Duration = Duration::from_millis(100);
/// Before it gives up on a worker that died without a sign.
const GIVES_UP: Duration = Duration::from_secs(1);

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It hands its job in then.
    Pausing(Time),
    /// It waits for an answer.
    Waiting(ReplyToken),
    /// Its job is acknowledged.
    Done,
}

/// One client.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) key: JobKey,
    payload: Payload,
    right: i128,
    pub(crate) at: At,
    pub(crate) stage: Stage,
    tries: u64,
}

impl Client {
    /// Two: one comes before there is a leader, one soon after.
    pub(crate) fn all(begin: Time) -> Vec<Client> {
        let client = |number: u8, after: u64, payload, right| Client {
            key: JobKey {
                id: JobId::new(&format!("job-{number}")).expect("a good name"),
                digest: Digest([number; 32]),
            },
            payload,
            right,
            at: usize::from(number - 1),
            stage: Stage::Pausing(begin + Duration::from_millis(after)),
            tries: 0,
        };
        let first = client(1, 1, Payload::PrimeSum { start: 1, end: 10 }, 17);
        let second = client(2, 40, Payload::PrimeSum { start: 10, end: 20 }, 60);
        vec![first, second]
    }

    pub(crate) fn due(&self) -> Option<Time> {
        match self.stage {
            Stage::Pausing(until) => Some(until),
            Stage::Waiting(_) | Stage::Done => None,
        }
    }
}

impl World {
    /// Clients whose pause is over hand in their jobs, each at the next worker that is up.
    pub(crate) fn wake_clients(&mut self) {
        for number in 0..self.clients.len() {
            if self.clients[number].due().is_none_or(|due| due > self.now) {
                continue;
            }
            let count = self.hosts.len();
            let first = self.clients[number].at;
            let up = (0..count).map(|n| (first + n) % count).find(|at| self.hosts[*at].is_up());
            let client = &mut self.clients[number];
            let Some(at) = up else {
                client.stage = Stage::Pausing(self.now + RETRY);
                continue;
            };
            client.tries += 1;
            let token = ReplyToken(u64::MAX / 2 + client.tries * 16 + number as u64);
            (client.at, client.stage) = (at, Stage::Waiting(token));
            let (job, payload, right) = (client.key.clone(), client.payload.clone(), Value(client.right));
            if client.tries == 1 {
                self.see(Seen::Submitted { job: job.clone(), right: Right::Answer(right) });
            }
            self.hosts[at].change().callers.insert(token, Caller::Client(number));
            let request =
                Request::SubmitJob(SubmitJob { key: job, payload, deadline: None, forwarded: false, trace: None });
            self.post(Lane { to: at, way: Way::Client(number) }, Input::Called { token, request });
        }
    }

    /// A worker answers a client.
    pub(crate) fn answer_client(&mut self, number: usize, answer: Result<Response, Refusal>) {
        let key = self.clients[number].key.clone();
        let text = format!("client {} is answered {answer:?}", number + 1);
        self.tell(|| text.chars().take(300).collect());
        let by = self.hosts[self.clients[number].at].process();
        match answer {
            Ok(Response::Submitted(Submitted::Held(view))) => {
                self.clients[number].stage = Stage::Done;
                self.see(Seen::Relayed { by, view });
                self.see(Seen::Outcome { job: key, outcome: Outcome::Acknowledged });
                self.check_kept();
            }
            Ok(other) => self.break_(format!("a submission is answered {other:?}")),
            Err(refusal) => {
                let client = &mut self.clients[number];
                client.stage = Stage::Pausing(self.now + refusal.retry_after.unwrap_or(RETRY));
                client.at = (client.at + 1) % self.hosts.len();
                self.see(Seen::Outcome { job: key, outcome: Outcome::Refused(refusal.code) });
            }
        }
    }

    /// The worker that a client waits for is gone.
    pub(crate) fn leave_clients_without_answer(&mut self, gone: At, noticed: bool) {
        for number in 0..self.clients.len() {
            let client = &mut self.clients[number];
            if client.at == gone && matches!(client.stage, Stage::Waiting(_)) {
                client.stage = Stage::Pausing(self.now + if noticed { RETRY } else { GIVES_UP });
                client.at = (gone + 1) % self.hosts.len();
                let job = client.key.clone();
                self.see(Seen::Outcome { job, outcome: Outcome::Unknown });
            }
        }
    }
}
