//! Jobs whose answers are known, and how they are handed in and checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use floodline::client::{Client, Follow};
use floodline::jobs::{Payload, Value};
use floodline::protocol::ids::{Address, JobId, JobKey};
use floodline::protocol::message::{JobQuery, Submitted};
use floodline::protocol::view::{JobState, JobView};
use floodline::wire::v1::coordinator_service_client::CoordinatorServiceClient;
use floodline::wire::{submission, v1};
use tonic::transport::{Channel, Endpoint};

use crate::nodes::{Node, within};

/// Long enough that something can happen in its middle.
pub(crate) const LONG: Payload = Payload::PrimeSum { start: 1, end: 10_000_000_000 };
pub(crate) const ANSWER_OF_LONG: Value = Value(2_220_822_432_581_729_238);
/// The sums of the primes up to so much, of published tables.
const SUMS: [(u64, i128); 5] = [
    (1_000_000, 37_550_402_023),
    (10_000_000, 3_203_324_994_356),
    (100_000_000, 279_209_790_387_276),
    (1_000_000_000, 24_739_512_092_254_535),
    (2_000_000_000, 95_673_602_693_282_040),
];

/// A job with its right answer.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: JobId,
    pub(crate) payload: Payload,
    pub(crate) answer: Value,
}

impl Known {
    /// The sum of the primes between two rows of the table: all jobs of different rows have different answers.
    pub(crate) fn sum(name: &str, from: usize, to: usize) -> Known {
        let ((low, before), (high, all)) = (SUMS[from], SUMS[to]);
        let payload = Payload::PrimeSum { start: low + 1, end: high };
        Known { id: id(name), payload, answer: Value(all - before) }
    }

    /// A job of next to no work.
    pub(crate) fn trivial(name: &str, number: i64) -> Known {
        Known { id: id(name), payload: Payload::Max(Arc::from([3, number, -8])), answer: Value(number.max(3).into()) }
    }

    pub(crate) fn long(name: &str) -> Known {
        Known { id: id(name), payload: LONG, answer: ANSWER_OF_LONG }
    }

    pub(crate) fn key(&self) -> JobKey {
        submission(self.id.clone(), self.payload.clone()).key
    }

    /// Hands it in, and follows it.
    pub(crate) fn handed_to(&self, client: Client) -> Follow {
        client.submit(self.id.clone(), self.payload.clone(), None)
    }

    pub(crate) fn is_answered_by(&self, view: &JobView) -> bool {
        (&view.key, view.state, view.answer) == (&self.key(), JobState::Succeeded, Some(self.answer))
    }

    /// It succeeded with the right answer, of tasks each completed once.
    pub(crate) fn assert_answered(&self, view: &JobView) {
        assert!(self.is_answered_by(view), "{} should be answered {}: {view:?}", self.id, self.answer);
        assert_eq!((view.completed, view.tasks.len()), (view.total, view.total as usize), "{view:?}");
        assert_eq!(view.workers.iter().map(|worker| worker.completed).sum::<u32>(), view.total, "{view:?}");
    }
}

pub(crate) fn id(name: &str) -> JobId {
    JobId::new(name).expect("a good name")
}

/// All jobs of one worker's own copy.
pub(crate) async fn jobs_at(node: &Node) -> BTreeMap<JobKey, JobView> {
    let mut client = node.client().await;
    let mut all = BTreeMap::new();
    loop {
        let last = all.last_key_value().map(|(key, _): (&JobKey, &JobView)| key.clone());
        let page = within("a page of jobs", client.jobs(last.as_ref())).await.expect("it answers");
        if page.is_empty() {
            return all;
        }
        all.extend(page.into_iter().map(|job| (job.key.clone(), job)));
    }
}

/// A connection that stays, for those who count what a submission costs; what it says is not smoothed.
#[derive(Clone)]
pub(crate) struct Door(CoordinatorServiceClient<Channel>);

impl Door {
    pub(crate) async fn open(address: &Address) -> Door {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        Door(CoordinatorServiceClient::new(endpoint.connect().await.expect("it listens")))
    }

    /// Hands a job in, and waits for the acknowledgement. Any error is a fault: nobody is told to submit again.
    pub(crate) async fn submit(&mut self, job: &Known) -> Arc<JobView> {
        let request = v1::SubmitJobRequest::from(&submission(job.id.clone(), job.payload.clone()));
        let answer = within("an acknowledgement", self.0.submit_job(request)).await.expect("it is taken");
        match answer.into_inner().try_into().expect("an answer with a meaning") {
            Submitted::Held(view) => view,
            Submitted::NoRoom => panic!("a client was taken for a worker"),
        }
    }

    /// What a subscriber of an admitted job is sent, message by message, to the last one.
    pub(crate) async fn messages(&mut self, job: &Known) -> Vec<Arc<JobView>> {
        let query = JobQuery { id: job.id.clone(), digest: Some(job.key().digest), forwarded: false };
        let job = v1::GetJobRequest::from(&query).job;
        let subscription = v1::SubscribeJobProgressRequest { job, after: None };
        let answer = within("a subscription", self.0.subscribe_job_progress(subscription)).await;
        let mut messages = answer.expect("the job is known").into_inner();
        let mut all = Vec::new();
        while let Some(message) = within("progress", messages.message()).await.expect("the stream ends in order") {
            let view = message.job.expect("a job").try_into().expect("a message with a meaning");
            all.push(Arc::new(view));
        }
        all
    }
}
