//! One unary call to a worker: request out, answer back.
//!
//! Owns which gRPC method carries which request, and what a broken answer means.

use std::future::Future;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use crate::protocol::message::{CallFailure, Request, Response};
use crate::protocol::trace::Trace;
use crate::telemetry::context::TRACE_PARENT;
use crate::wire::v1::coordinator_service_client::CoordinatorServiceClient;
use crate::wire::v1::worker_service_client::WorkerServiceClient;
use crate::wire::{CLUSTER_KEY, LARGEST_MESSAGE, Malformed, status, v1};

use super::peers::{Lane, Line};

/// Speaks for this node: every call names its cluster.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    cluster: Option<MetadataValue<Ascii>>,
    trace: Option<Trace>,
}

/// Which connection a request takes.
pub(super) fn lane_of(request: &Request) -> Lane {
    match request {
        Request::Elect(_)
        | Request::Announce(_)
        | Request::AddNeighbor(_)
        | Request::RemoveNeighbor(_)
        | Request::Ping(_)
        | Request::CancelTask(_) => Lane::Urgent,
        Request::SubmitJob(_)
        | Request::CancelJob(_)
        | Request::GetJob(_)
        | Request::ListJobs(_)
        | Request::GetCluster
        | Request::ExecuteTask(_) => Lane::Bulk,
    }
}

impl Caller {
    pub(super) fn new(cluster: &str) -> Caller {
        // The settings allow names only that fit; without one a call passes as a client's.
        Caller { cluster: MetadataValue::try_from(cluster).ok(), trace: None }
    }

    /// The same for one call that stands there in a trace.
    pub(super) fn within(&self, trace: Option<Trace>) -> Caller {
        Caller { trace, ..self.clone() }
    }

    /// A request that says of which cluster its sender is, and what it belongs to (W3C Trace Context).
    pub(super) fn request<M>(&self, message: M) -> tonic::Request<M> {
        let mut request = tonic::Request::new(message);
        if let Some(cluster) = &self.cluster {
            request.metadata_mut().insert(CLUSTER_KEY, cluster.clone());
        }
        let trace = self.trace.and_then(|trace| MetadataValue::try_from(trace.to_string()).ok());
        if let Some(trace) = trace {
            request.metadata_mut().insert(TRACE_PARENT, trace);
        }
        request
    }

    pub(super) async fn ask(self, line: Line, request: Request) -> Result<Response, CallFailure> {
        let mut coordinator = coordinator(line.channel.clone());
        let mut worker = worker(line.channel.clone());
        match &request {
            Request::Elect(it) => answered(coordinator.elect(self.request(it.into()))).await,
            Request::Announce(it) => answered(coordinator.announce(self.request(it.into()))).await,
            Request::AddNeighbor(it) => answered(coordinator.add_neighbor(self.request(it.into()))).await,
            Request::RemoveNeighbor(it) => answered(coordinator.remove_neighbor(self.request(it.into()))).await,
            Request::Ping(it) => answered(worker.ping(self.request(it.into()))).await,
            Request::SubmitJob(it) => answered(coordinator.submit_job(self.request(it.into()))).await,
            Request::CancelJob(it) => answered(coordinator.cancel_job(self.request(it.into()))).await,
            Request::GetJob(it) => answered(coordinator.get_job(self.request(it.into()))).await,
            Request::ListJobs(it) => answered(coordinator.list_jobs(self.request(it.into()))).await,
            Request::GetCluster => answered(coordinator.get_cluster(self.request(v1::GetClusterRequest {}))).await,
            Request::ExecuteTask(it) => answered(worker.execute_task(self.request(it.into()))).await,
            Request::CancelTask(it) => answered(worker.cancel_task(self.request(it.into()))).await,
        }
    }
}

fn coordinator(channel: Channel) -> CoordinatorServiceClient<Channel> {
    CoordinatorServiceClient::new(channel)
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(LARGEST_MESSAGE)
}

fn worker(channel: Channel) -> WorkerServiceClient<Channel> {
    WorkerServiceClient::new(channel)
        .max_decoding_message_size(LARGEST_MESSAGE)
        .max_encoding_message_size(LARGEST_MESSAGE)
}

/// What a call came to. A malformed answer is as good as none.
pub(super) async fn answered<P, C>(
    sent: impl Future<Output = Result<tonic::Response<P>, tonic::Status>>,
) -> Result<C, CallFailure>
where
    C: TryFrom<P, Error = Malformed>,
{
    let message = sent.await.map_err(|status| status::failure_of(&status))?.into_inner();
    C::try_from(message).map_err(|error| CallFailure::Unreachable(format!("its answer makes no sense: {error}")))
}
