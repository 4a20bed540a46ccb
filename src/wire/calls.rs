//! Each unary call of a worker: its request on the way in, its answer on the way out and on the way back.
//!
//! Owns which answer belongs to which request; the doors and the transport only name the messages. Section 3 of the
//! contract.

use std::sync::Arc;

use super::fields::{maybe, need};
use super::{Malformed, NamedCluster, v1};
use crate::protocol::ids::Identity;
use crate::protocol::message::{
    Announce, AnnounceAnswer, CancelTask, Elect, ElectAnswer, ExecuteTask, JobQuery, ListJobs, Request, Response,
    Status, SubmitJob, Submitted, TaskAnswer,
};
use crate::protocol::view::JobView;

/// An answer that does not belong to the request. Only a bug makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is not one to this call, which is a bug")]
pub struct Mismatched;

impl From<Mismatched> for tonic::Status {
    fn from(mismatched: Mismatched) -> tonic::Status {
        tracing::error!(%mismatched, "an answer of the wrong kind");
        tonic::Status::internal(mismatched.to_string())
    }
}

/// A call whose request and answer are each one type of the core.
macro_rules! call {
    ($request:ty => $ask:ident($asked:ty), $response:ty => $answer:ident($answered:ty)) => {
        impl TryFrom<$request> for Request {
            type Error = Malformed;

            fn try_from(it: $request) -> Result<Self, Malformed> {
                <$asked>::try_from(it).map(Request::$ask)
            }
        }

        impl TryFrom<Response> for $response {
            type Error = Mismatched;

            fn try_from(it: Response) -> Result<Self, Mismatched> {
                match it {
                    Response::$answer(answer) => Ok((&answer).into()),
                    _ => Err(Mismatched),
                }
            }
        }

        impl TryFrom<$response> for Response {
            type Error = Malformed;

            fn try_from(it: $response) -> Result<Self, Malformed> {
                <$answered>::try_from(it).map(Response::$answer)
            }
        }
    };
}

call!(v1::ElectRequest => Elect(Elect), v1::ElectResponse => Elect(ElectAnswer));
call!(v1::AnnounceRequest => Announce(Announce), v1::AnnounceResponse => Announce(AnnounceAnswer));
call!(v1::SubmitJobRequest => SubmitJob(SubmitJob), v1::SubmitJobResponse => Submitted(Submitted));
call!(v1::ExecuteTaskRequest => ExecuteTask(ExecuteTask), v1::ExecuteTaskResponse => Task(TaskAnswer));

/// A call that is answered with a job.
macro_rules! call_for_job {
    ($request:ty => $ask:ident, $response:ident) => {
        impl TryFrom<$request> for Request {
            type Error = Malformed;

            fn try_from(it: $request) -> Result<Self, Malformed> {
                JobQuery::try_from(it).map(Request::$ask)
            }
        }

        impl TryFrom<Response> for v1::$response {
            type Error = Mismatched;

            fn try_from(it: Response) -> Result<Self, Mismatched> {
                match it {
                    Response::Job(job) => Ok(v1::$response { job: Some(job.as_ref().into()) }),
                    _ => Err(Mismatched),
                }
            }
        }

        impl TryFrom<v1::$response> for Response {
            type Error = Malformed;

            fn try_from(it: v1::$response) -> Result<Self, Malformed> {
                let job: JobView = need(it.job, "job")?;
                Ok(Response::Job(Arc::new(job)))
            }
        }
    };
}

call_for_job!(v1::GetJobRequest => GetJob, GetJobResponse);
call_for_job!(v1::CancelJobRequest => CancelJob, CancelJobResponse);

/// An answer that says nothing but that it is done.
macro_rules! done {
    ($response:ident) => {
        impl TryFrom<Response> for v1::$response {
            type Error = Mismatched;

            fn try_from(it: Response) -> Result<Self, Mismatched> {
                match it {
                    Response::Done => Ok(v1::$response {}),
                    _ => Err(Mismatched),
                }
            }
        }

        impl TryFrom<v1::$response> for Response {
            type Error = Malformed;

            fn try_from(v1::$response {}: v1::$response) -> Result<Self, Malformed> {
                Ok(Response::Done)
            }
        }
    };
}

done!(RemoveNeighborResponse);
done!(CancelTaskResponse);

impl TryFrom<v1::CancelTaskRequest> for Request {
    type Error = Malformed;

    fn try_from(it: v1::CancelTaskRequest) -> Result<Self, Malformed> {
        CancelTask::try_from(it).map(Request::CancelTask)
    }
}

impl From<&Identity> for v1::RemoveNeighborRequest {
    fn from(it: &Identity) -> Self {
        v1::RemoveNeighborRequest { identity: Some(it.into()) }
    }
}

impl TryFrom<v1::RemoveNeighborRequest> for Request {
    type Error = Malformed;

    fn try_from(it: v1::RemoveNeighborRequest) -> Result<Self, Malformed> {
        need(it.identity, "identity").map(Request::RemoveNeighbor)
    }
}

impl From<&Status> for v1::AddNeighborRequest {
    fn from(it: &Status) -> Self {
        v1::AddNeighborRequest { status: Some(it.into()) }
    }
}

impl TryFrom<v1::AddNeighborRequest> for Request {
    type Error = Malformed;

    fn try_from(it: v1::AddNeighborRequest) -> Result<Self, Malformed> {
        need(it.status, "status").map(Request::AddNeighbor)
    }
}

impl TryFrom<Response> for v1::AddNeighborResponse {
    type Error = Mismatched;

    fn try_from(it: Response) -> Result<Self, Mismatched> {
        match it {
            Response::AddNeighbor { accepted, status } => {
                Ok(v1::AddNeighborResponse { accepted, status: Some((&status).into()) })
            }
            _ => Err(Mismatched),
        }
    }
}

impl TryFrom<v1::AddNeighborResponse> for Response {
    type Error = Malformed;

    fn try_from(it: v1::AddNeighborResponse) -> Result<Self, Malformed> {
        Ok(Response::AddNeighbor { accepted: it.accepted, status: need(it.status, "status")? })
    }
}

impl From<&Option<Status>> for v1::PingRequest {
    fn from(it: &Option<Status>) -> Self {
        v1::PingRequest { status: it.as_ref().map(Into::into) }
    }
}

impl TryFrom<v1::PingRequest> for Request {
    type Error = Malformed;

    fn try_from(it: v1::PingRequest) -> Result<Self, Malformed> {
        maybe(it.status, "status").map(Request::Ping)
    }
}

impl TryFrom<Response> for v1::PingResponse {
    type Error = Mismatched;

    fn try_from(it: Response) -> Result<Self, Mismatched> {
        match it {
            Response::Ping(status) => Ok(v1::PingResponse { status: Some((&status).into()) }),
            _ => Err(Mismatched),
        }
    }
}

impl TryFrom<v1::PingResponse> for Response {
    type Error = Malformed;

    fn try_from(it: v1::PingResponse) -> Result<Self, Malformed> {
        need(it.status, "status").map(Response::Ping)
    }
}

impl TryFrom<v1::ListJobsRequest> for Request {
    type Error = Malformed;

    fn try_from(it: v1::ListJobsRequest) -> Result<Self, Malformed> {
        ListJobs::try_from(it).map(Request::ListJobs)
    }
}

impl TryFrom<Response> for v1::ListJobsResponse {
    type Error = Mismatched;

    fn try_from(it: Response) -> Result<Self, Mismatched> {
        match it {
            Response::Jobs(jobs) => {
                Ok(v1::ListJobsResponse { jobs: jobs.iter().map(|job| job.as_ref().into()).collect() })
            }
            _ => Err(Mismatched),
        }
    }
}

impl TryFrom<v1::ListJobsResponse> for Response {
    type Error = Malformed;

    fn try_from(it: v1::ListJobsResponse) -> Result<Self, Malformed> {
        let jobs: Vec<JobView> = it.try_into()?;
        Ok(Response::Jobs(jobs.into_iter().map(Arc::new).collect()))
    }
}

impl TryFrom<v1::GetClusterResponse> for Response {
    type Error = Malformed;

    fn try_from(it: v1::GetClusterResponse) -> Result<Self, Malformed> {
        let cluster: NamedCluster = need(it.cluster, "cluster")?;
        Ok(Response::Cluster(Box::new(cluster.view)))
    }
}

impl v1::GetClusterResponse {
    /// The answer of a node that knows the name of its cluster: the core does not.
    ///
    /// # Errors
    /// [`Mismatched`], if it is an answer to another call.
    pub fn named(cluster: &str, answer: Response) -> Result<Self, Mismatched> {
        match answer {
            Response::Cluster(view) => {
                let named = NamedCluster { cluster: cluster.to_owned(), view: *view };
                Ok(v1::GetClusterResponse { cluster: Some((&named).into()) })
            }
            _ => Err(Mismatched),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::samples::{self, Samples};

    fn comes_back<P>(answer: Response)
    where
        P: TryFrom<Response, Error = Mismatched>,
        Response: TryFrom<P, Error = Malformed>,
    {
        let sent = P::try_from(answer.clone()).map_err(|_| "mismatched").expect("its own answer");
        assert_eq!(Response::try_from(sent), Ok(answer));
    }

    #[test]
    fn every_answer_comes_back_as_it_went() {
        let mut it = Samples::new(5);
        comes_back::<v1::ElectResponse>(Response::Elect(it.elect_answer()));
        comes_back::<v1::AnnounceResponse>(Response::Announce(it.announce_answer()));
        comes_back::<v1::AddNeighborResponse>(Response::AddNeighbor { accepted: true, status: it.status() });
        comes_back::<v1::RemoveNeighborResponse>(Response::Done);
        comes_back::<v1::CancelTaskResponse>(Response::Done);
        comes_back::<v1::PingResponse>(Response::Ping(it.status()));
        comes_back::<v1::SubmitJobResponse>(Response::Submitted(Submitted::NoRoom));
        comes_back::<v1::GetJobResponse>(Response::Job(it.job().into()));
        comes_back::<v1::CancelJobResponse>(Response::Job(it.job().into()));
        comes_back::<v1::ListJobsResponse>(Response::Jobs(vec![it.job().into(), it.job().into()]));
        comes_back::<v1::ExecuteTaskResponse>(Response::Task(it.task_answer()));
        let cluster = samples::cluster();
        let answer = Response::Cluster(Box::new(cluster.view));
        let named = v1::GetClusterResponse::named("floodline", answer.clone()).expect("its own answer");
        assert_eq!(Response::try_from(named), Ok(answer));
    }

    #[test]
    fn every_request_comes_in_as_it_went_out() {
        let mut it = Samples::new(6);
        let (status, identity) = (it.status(), it.identity());
        assert_eq!(Request::try_from(v1::AddNeighborRequest::from(&status)), Ok(Request::AddNeighbor(status.clone())));
        assert_eq!(Request::try_from(v1::PingRequest::from(&None)), Ok(Request::Ping(None)));
        assert_eq!(Request::try_from(v1::PingRequest::from(&Some(status.clone()))), Ok(Request::Ping(Some(status))));
        assert_eq!(
            Request::try_from(v1::RemoveNeighborRequest::from(&identity)),
            Ok(Request::RemoveNeighbor(identity))
        );
    }

    #[test]
    fn an_answer_to_another_call_is_not_sent() {
        assert_eq!(v1::ElectResponse::try_from(Response::Done), Err(Mismatched));
        assert_eq!(v1::GetClusterResponse::named("floodline", Response::Done), Err(Mismatched));
    }
}
