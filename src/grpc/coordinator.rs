//! The door of CoordinatorService: election, overlay, replication, and all that clients ask.
//!
//! Every stream is returned before its first message is known, so that a caller learns at once that it is served.

use std::pin::Pin;
use std::sync::Arc;

use prost::Message;
use tokio_stream::{Stream, StreamExt};
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status, Streaming};

use crate::protocol::message;
use crate::protocol::trace::Trace;
use crate::protocol::view::{Event, JobView};
use crate::telemetry::context::Open;
use crate::telemetry::names::{attribute, span};
use crate::wire::status::status_of;
use crate::wire::v1::coordinator_service_server::CoordinatorService;
use crate::wire::{Subscription, v1};

use super::door::{Door, trace_of};
use super::follower;
use super::gather::Gathering;

/// A submission above so many bytes is parsed apart: its digest takes milliseconds, and a heartbeat may be waiting.
const LARGE: usize = 64 << 10;

type Messages<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

/// The door.
#[derive(Debug)]
pub(super) struct Coordinator {
    door: Door,
    gathering: Gathering,
    tasks: TaskTracker,
}

impl Coordinator {
    /// Readers of streams run among `tasks`.
    pub(super) fn new(door: Door, gathering: Gathering, tasks: TaskTracker) -> Coordinator {
        Coordinator { door, gathering, tasks }
    }
}

impl Coordinator {
    /// A client's submission begins a span, which the job keeps; a forwarded one has it.
    async fn submit(
        &self,
        trace: Option<Trace>,
        job: message::SubmitJob,
    ) -> Result<Response<v1::SubmitJobResponse>, Status> {
        if job.forwarded {
            return self.door.ask(trace, message::Request::SubmitJob(message::SubmitJob { trace, ..job })).await;
        }
        let open = Open::new(span::SUBMIT, self.door.handle().member().node.as_str(), trace);
        open.set(attribute::JOB, job.key.id.to_string());
        let trace = open.trace();
        let answer = self.door.ask(trace, message::Request::SubmitJob(message::SubmitJob { trace, ..job })).await;
        if let Err(status) = &answer {
            open.fail(status.message().to_owned());
        }
        answer
    }
}

#[tonic::async_trait]
impl CoordinatorService for Coordinator {
    type ReplicateStream = Messages<v1::LeaderFrame>;
    type SubscribeJobProgressStream = Messages<v1::SubscribeJobProgressResponse>;
    type WatchClusterStream = Messages<v1::WatchClusterResponse>;

    async fn elect(&self, request: Request<v1::ElectRequest>) -> Result<Response<v1::ElectResponse>, Status> {
        self.door.pass(request).await
    }

    async fn announce(&self, request: Request<v1::AnnounceRequest>) -> Result<Response<v1::AnnounceResponse>, Status> {
        self.door.pass(request).await
    }

    async fn add_neighbor(
        &self,
        request: Request<v1::AddNeighborRequest>,
    ) -> Result<Response<v1::AddNeighborResponse>, Status> {
        self.door.pass(request).await
    }

    async fn remove_neighbor(
        &self,
        request: Request<v1::RemoveNeighborRequest>,
    ) -> Result<Response<v1::RemoveNeighborResponse>, Status> {
        self.door.pass(request).await
    }

    async fn replicate(
        &self,
        request: Request<Streaming<v1::FollowerFrame>>,
    ) -> Result<Response<Self::ReplicateStream>, Status> {
        let frames = self.door.enter(request)?;
        let served = follower::serve(self.door.handle(), frames, &self.tasks)?;
        Ok(Response::new(Box::pin(served)))
    }

    async fn submit_job(
        &self,
        request: Request<v1::SubmitJobRequest>,
    ) -> Result<Response<v1::SubmitJobResponse>, Status> {
        let trace = trace_of(request.metadata());
        let submission = self.door.enter(request)?;
        let parsed = if submission.encoded_len() <= LARGE {
            message::SubmitJob::try_from(submission)
        } else {
            let parsed = tokio::task::spawn_blocking(|| message::SubmitJob::try_from(submission)).await;
            parsed.map_err(|_| Status::unavailable("this node is ending; try another one"))?
        };
        self.submit(trace, parsed?).await
    }

    async fn cancel_job(
        &self,
        request: Request<v1::CancelJobRequest>,
    ) -> Result<Response<v1::CancelJobResponse>, Status> {
        self.door.pass(request).await
    }

    async fn get_job(&self, request: Request<v1::GetJobRequest>) -> Result<Response<v1::GetJobResponse>, Status> {
        self.door.pass(request).await
    }

    async fn list_jobs(&self, request: Request<v1::ListJobsRequest>) -> Result<Response<v1::ListJobsResponse>, Status> {
        self.door.pass(request).await
    }

    async fn subscribe_job_progress(
        &self,
        request: Request<v1::SubscribeJobProgressRequest>,
    ) -> Result<Response<Self::SubscribeJobProgressStream>, Status> {
        let Subscription { job, after } = self.door.enter(request)?.try_into()?;
        let message = |job: Arc<JobView>| v1::SubscribeJobProgressResponse { job: Some(job.as_ref().into()) };
        let messages = self.door.handle().subscribe(job, after);
        let messages = messages.map(move |moved| moved.map(message).map_err(|refusal| status_of(&refusal)));
        Ok(Response::new(Box::pin(messages)))
    }

    async fn get_cluster(
        &self,
        request: Request<v1::GetClusterRequest>,
    ) -> Result<Response<v1::GetClusterResponse>, Status> {
        self.door.enter(request)?;
        let handle = self.door.handle();
        let answer = handle.call(message::Request::GetCluster).await.map_err(|refusal| status_of(&refusal))?;
        Ok(Response::new(v1::GetClusterResponse::named(handle.cluster(), answer)?))
    }

    async fn watch_cluster(
        &self,
        request: Request<v1::WatchClusterRequest>,
    ) -> Result<Response<Self::WatchClusterStream>, Status> {
        let v1::WatchClusterRequest { after, all_members } = self.door.enter(request)?;
        let message = |event: Event| Ok(v1::WatchClusterResponse { event: Some((&event).into()) });
        let messages: Self::WatchClusterStream = if all_members {
            Box::pin(self.gathering.watch().map(message))
        } else {
            Box::pin(self.door.handle().events(after).map(message))
        };
        Ok(Response::new(messages))
    }
}
