//! Jobs and tasks: payloads with their digest, and the calls that hand them in and out.
//!
//! Owns the canonical form of a payload. Its digest names a job, so that form never changes.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::fields::{cropped, job_id, list, maybe, micros, missing, need, number, sentence, value};
use super::people::state;
use super::{Malformed, v1};
use crate::jobs::{Kind, Payload};
use crate::protocol::ids::{Digest, JobId, JobKey, Number, Term};
use crate::protocol::limits;
use crate::protocol::message::{
    CancelTask, ExecuteTask, JobQuery, ListJobs, SubmitJob, Submitted, TaskAnswer, TaskFailure,
};
use crate::protocol::progress::Cursor;
use crate::protocol::time::Wall;
use crate::protocol::view::{JobView, full_name};

impl From<Kind> for v1::Kind {
    fn from(it: Kind) -> Self {
        match it {
            Kind::Max => v1::Kind::Max,
            Kind::PrimeCount => v1::Kind::Primecount,
            Kind::PrimeSum => v1::Kind::Primesum,
        }
    }
}

pub(super) fn kind(given: i32) -> Result<Kind, Malformed> {
    match v1::Kind::try_from(given) {
        Ok(v1::Kind::Max) => Ok(Kind::Max),
        Ok(v1::Kind::Primecount) => Ok(Kind::PrimeCount),
        Ok(v1::Kind::Primesum) => Ok(Kind::PrimeSum),
        Ok(v1::Kind::Unspecified) | Err(_) => Err(Malformed::new("kind", given, "1 to 3")),
    }
}

impl From<&Payload> for v1::Payload {
    fn from(it: &Payload) -> Self {
        let kind = match it {
            Payload::Max(numbers) => v1::payload::Kind::Max(v1::Max { numbers: numbers.to_vec() }),
            Payload::PrimeCount(numbers) => v1::payload::Kind::Primecount(v1::PrimeCount { numbers: numbers.to_vec() }),
            Payload::PrimeSum { start, end } => v1::payload::Kind::Primesum(v1::PrimeSum { start: *start, end: *end }),
        };
        v1::Payload { kind: Some(kind) }
    }
}

/// Only the form is looked at here. Empty lists, ranges that run backwards and the like are each kind's own to
/// refuse: its file says how it is checked.
impl TryFrom<v1::Payload> for Payload {
    type Error = Malformed;

    fn try_from(it: v1::Payload) -> Result<Self, Malformed> {
        match it.kind {
            Some(v1::payload::Kind::Max(it)) => Ok(Payload::Max(it.numbers.into())),
            Some(v1::payload::Kind::Primecount(it)) => Ok(Payload::PrimeCount(it.numbers.into())),
            Some(v1::payload::Kind::Primesum(it)) => Ok(Payload::PrimeSum { start: it.start, end: it.end }),
            None => Err(Malformed::new("kind", "not set", "max, primecount or primesum")),
        }
    }
}

/// SHA-256 of a payload's canonical form: the kind's name, a line feed, then its numbers, each as eight bytes with the
/// lowest first. Not of its protobuf encoding, of which there may be several.
#[must_use]
pub fn digest_of(payload: &Payload) -> Digest {
    let mut sum = Sha256::new();
    match payload {
        Payload::Max(numbers) => {
            sum.update(b"MAX\n");
            numbers.iter().for_each(|number| sum.update(number.to_le_bytes()));
        }
        Payload::PrimeCount(numbers) => {
            sum.update(b"PRIMECOUNT\n");
            numbers.iter().for_each(|number| sum.update(number.to_le_bytes()));
        }
        Payload::PrimeSum { start, end } => {
            sum.update(b"PRIMESUM\n");
            sum.update(start.to_le_bytes());
            sum.update(end.to_le_bytes());
        }
    }
    Digest(sum.finalize().into())
}

/// A client's submission, under the name that its payload gives it.
#[must_use]
pub fn submission(id: JobId, payload: Payload) -> SubmitJob {
    SubmitJob {
        key: JobKey { id, digest: digest_of(&payload) },
        payload,
        deadline: None,
        forwarded: false,
        trace: None,
    }
}

/// A job's name as people type it: `ID`, or `ID:DIGEST` with the digest as 64 hexadecimal digits.
///
/// # Errors
/// [`Malformed`] with what is allowed.
pub fn job_query(text: &str, forwarded: bool) -> Result<JobQuery, Malformed> {
    let (id, digest) = match text.split_once(':') {
        None => (text, None),
        Some((id, hex)) => (id, Some(digest_from(hex)?)),
    };
    Ok(JobQuery { id: job_id(id, "job")?, digest, forwarded })
}

fn digest_from(hex: &str) -> Result<Digest, Malformed> {
    let refuse = || {
        let shown: String = hex.chars().take(80).collect();
        Malformed::new(
            "job",
            format_args!("a name with the digest {shown:?}"),
            "ID or ID:DIGEST, with 64 hexadecimal digits",
        )
    };
    let digits = hex.as_bytes();
    if digits.len() != 64 {
        return Err(refuse());
    }
    let mut digest = Digest::default();
    for (byte, pair) in digest.0.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = pair else { return Err(refuse()) };
        let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = nibble(*high).zip(nibble(*low)).map(|(high, low)| high << 4 | low).ok_or_else(refuse)?;
    }
    Ok(digest)
}

/// The text that [`job_query`] reads.
pub(super) fn job_name(query: &JobQuery) -> String {
    match &query.digest {
        None => query.id.to_string(),
        Some(digest) => full_name(query.id.as_str(), digest),
    }
}

impl From<&SubmitJob> for v1::SubmitJobRequest {
    fn from(it: &SubmitJob) -> Self {
        v1::SubmitJobRequest {
            job_id: it.key.id.to_string(),
            payload: Some((&it.payload).into()),
            forwarded: it.forwarded,
            deadline_ms: it.deadline.map(|at| at.0),
        }
    }
}

/// The digest is made here, whoever sends it on: what nobody sends nobody can forge.
impl TryFrom<v1::SubmitJobRequest> for SubmitJob {
    type Error = Malformed;

    fn try_from(it: v1::SubmitJobRequest) -> Result<Self, Malformed> {
        let id = job_id(&it.job_id, "job_id")?;
        let payload: Payload = need(it.payload, "payload")?;
        let deadline = it.deadline_ms.map(Wall);
        Ok(SubmitJob { deadline, forwarded: it.forwarded, ..submission(id, payload) })
    }
}

impl From<&Submitted> for v1::SubmitJobResponse {
    fn from(it: &Submitted) -> Self {
        let outcome = match it {
            Submitted::Held(job) => v1::submit_job_response::Outcome::Job(job.as_ref().into()),
            Submitted::NoRoom => v1::submit_job_response::Outcome::NoRoom(v1::NoRoom {}),
        };
        v1::SubmitJobResponse { outcome: Some(outcome) }
    }
}

impl TryFrom<v1::SubmitJobResponse> for Submitted {
    type Error = Malformed;

    fn try_from(it: v1::SubmitJobResponse) -> Result<Self, Malformed> {
        match it.outcome {
            Some(v1::submit_job_response::Outcome::Job(job)) => {
                let job: JobView = need(Some(job), "job")?;
                Ok(Submitted::Held(job.into()))
            }
            Some(v1::submit_job_response::Outcome::NoRoom(v1::NoRoom {})) => Ok(Submitted::NoRoom),
            None => Err(missing("outcome")),
        }
    }
}

impl From<&JobQuery> for v1::CancelJobRequest {
    fn from(it: &JobQuery) -> Self {
        v1::CancelJobRequest { job: job_name(it), forwarded: it.forwarded }
    }
}

impl TryFrom<v1::CancelJobRequest> for JobQuery {
    type Error = Malformed;

    fn try_from(it: v1::CancelJobRequest) -> Result<Self, Malformed> {
        job_query(&it.job, it.forwarded)
    }
}

impl From<&JobQuery> for v1::GetJobRequest {
    fn from(it: &JobQuery) -> Self {
        v1::GetJobRequest { job: job_name(it), forwarded: it.forwarded }
    }
}

impl TryFrom<v1::GetJobRequest> for JobQuery {
    type Error = Malformed;

    fn try_from(it: v1::GetJobRequest) -> Result<Self, Malformed> {
        job_query(&it.job, it.forwarded)
    }
}

impl From<&ListJobs> for v1::ListJobsRequest {
    fn from(it: &ListJobs) -> Self {
        v1::ListJobsRequest { after: it.after.as_ref().map(Into::into), limit: it.limit }
    }
}

impl TryFrom<v1::ListJobsRequest> for ListJobs {
    type Error = Malformed;

    fn try_from(it: v1::ListJobsRequest) -> Result<Self, Malformed> {
        let limit = if it.limit == 0 { limits::PAGE } else { it.limit };
        Ok(ListJobs { after: maybe(it.after, "after")?, limit: number(limit, "limit", 0, limits::PAGE)? })
    }
}

/// A page of jobs; at most as many as anybody may ask for.
impl TryFrom<v1::ListJobsResponse> for Vec<JobView> {
    type Error = Malformed;

    fn try_from(it: v1::ListJobsResponse) -> Result<Self, Malformed> {
        list(it.jobs, "jobs", usize::try_from(limits::PAGE).unwrap_or(usize::MAX))
    }
}

impl From<&Cursor> for v1::Cursor {
    fn from(it: &Cursor) -> Self {
        v1::Cursor {
            term: it.term.0,
            number: it.number.0,
            state: v1::JobState::from(it.state).into(),
            completed: it.completed,
            total: it.total,
        }
    }
}

impl TryFrom<v1::Cursor> for Cursor {
    type Error = Malformed;

    fn try_from(it: v1::Cursor) -> Result<Self, Malformed> {
        let total = number(it.total, "total", 0, limits::SLICES)?;
        Ok(Cursor {
            term: Term(it.term),
            number: Number(it.number),
            state: state(it.state)?,
            completed: number(it.completed, "completed", 0, total)?,
            total,
        })
    }
}

/// A subscriber, as it comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// To which job.
    pub job: JobQuery,
    /// The last message that it has seen, if it has seen one.
    pub after: Option<Cursor>,
}

impl TryFrom<v1::SubscribeJobProgressRequest> for Subscription {
    type Error = Malformed;

    fn try_from(it: v1::SubscribeJobProgressRequest) -> Result<Self, Malformed> {
        Ok(Subscription { job: job_query(&it.job, false)?, after: maybe(it.after, "after")? })
    }
}

impl From<&ExecuteTask> for v1::ExecuteTaskRequest {
    fn from(it: &ExecuteTask) -> Self {
        v1::ExecuteTaskRequest {
            leadership: Some((&it.leadership).into()),
            task: Some((&it.task).into()),
            attempt: it.attempt,
            slice: Some((&it.slice).into()),
        }
    }
}

impl TryFrom<v1::ExecuteTaskRequest> for ExecuteTask {
    type Error = Malformed;

    fn try_from(it: v1::ExecuteTaskRequest) -> Result<Self, Malformed> {
        Ok(ExecuteTask {
            leadership: need(it.leadership, "leadership")?,
            task: need(it.task, "task")?,
            attempt: number(it.attempt, "attempt", 1, u32::MAX)?,
            slice: need(it.slice, "slice")?,
        })
    }
}

impl From<&TaskAnswer> for v1::ExecuteTaskResponse {
    fn from(it: &TaskAnswer) -> Self {
        let result = match &it.result {
            Ok(value) => v1::execute_task_response::Result::Value(value.to_string()),
            Err(failure) => v1::execute_task_response::Result::Failure(v1::TaskFailure {
                retryable: failure.retryable,
                charged: failure.charged,
                reason: cropped(&failure.reason),
            }),
        };
        v1::ExecuteTaskResponse { result: Some(result), took_us: micros(it.took) }
    }
}

impl TryFrom<v1::ExecuteTaskResponse> for TaskAnswer {
    type Error = Malformed;

    fn try_from(it: v1::ExecuteTaskResponse) -> Result<Self, Malformed> {
        let result = match it.result {
            Some(v1::execute_task_response::Result::Value(text)) => Ok(value(&text, "value")?),
            Some(v1::execute_task_response::Result::Failure(failure)) => Err(TaskFailure {
                retryable: failure.retryable,
                charged: failure.charged,
                reason: sentence(failure.reason, "failure.reason")?,
            }),
            None => return Err(missing("result")),
        };
        Ok(TaskAnswer { result, took: Duration::from_micros(it.took_us) })
    }
}

impl From<&CancelTask> for v1::CancelTaskRequest {
    fn from(it: &CancelTask) -> Self {
        v1::CancelTaskRequest {
            leadership: Some((&it.leadership).into()),
            task: Some((&it.task).into()),
            attempt: it.attempt,
        }
    }
}

impl TryFrom<v1::CancelTaskRequest> for CancelTask {
    type Error = Malformed;

    fn try_from(it: v1::CancelTaskRequest) -> Result<Self, Malformed> {
        Ok(CancelTask {
            leadership: need(it.leadership, "leadership")?,
            task: need(it.task, "task")?,
            attempt: number(it.attempt, "attempt", 1, u32::MAX)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_payload_never_changes() {
        let sum = Payload::PrimeSum { start: 1, end: 100 };
        assert_eq!(digest_of(&sum).to_string(), "6df4f84303f5a27046f0cd1bcc0a9d27785e1587e56e2edcfc48108d35019d51");
        let max = Payload::Max([-1, 5].into());
        assert_eq!(digest_of(&max).to_string(), "ebbe49958b9648b379b4a3442a4c9b96325923a3925ee2581479af03b7ca176e");
        let count = Payload::PrimeCount([u64::MAX, 5].into());
        assert_ne!(digest_of(&count), digest_of(&max), "equal bytes of another kind are another payload");
    }

    #[test]
    fn a_job_is_named_by_its_id_or_by_id_and_digest() {
        let digest = digest_of(&Payload::PrimeSum { start: 1, end: 100 });
        let full = format!("a-1:{digest}");
        let query = job_query(&full, false).expect("a good name");
        assert_eq!((query.id.as_str(), query.digest), ("a-1", Some(digest)));
        assert_eq!(job_name(&query), full);
        let bare = job_query("a-1", true).expect("a good name");
        assert_eq!((bare.digest, bare.forwarded, job_name(&bare)), (None, true, "a-1".to_owned()));
        for bad in ["", "a b", "a:", "a:12", &format!("a:{}", "g".repeat(64)), &format!("a:{}", "é".repeat(32))] {
            let error = job_query(bad, false).expect_err("a bad name");
            assert!(error.to_string().starts_with("job is "), "{error}");
        }
    }
}
