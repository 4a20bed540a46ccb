//! A connection to one node: the calls that a client makes, each with a deadline.
//!
//! Owns the connection. Knows nothing of other nodes. Section 3 of the contract.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};

use super::error::Trouble;
use crate::protocol::ids::{Address, JobKey};
use crate::protocol::limits::PAGE;
use crate::protocol::message::{CallFailure, JobQuery, ListJobs, Status, SubmitJob, Submitted};
use crate::protocol::progress::Cursor;
use crate::protocol::view::{Event, JobView};
use crate::wire::v1::coordinator_service_client::CoordinatorServiceClient;
use crate::wire::v1::worker_service_client::WorkerServiceClient;
use crate::wire::{LARGEST_MESSAGE, NamedCluster, status as statuses, v1};

/// An open subscription to a job.
pub(super) type JobMessages = Streaming<v1::SubscribeJobProgressResponse>;
/// An open stream of events.
pub(super) type EventMessages = Streaming<v1::WatchClusterResponse>;

/// How long a node may take until it has answered for the first time.
const OPEN: Duration = Duration::from_millis(1_500);
/// Deadline of a question.
const ASK: Duration = Duration::from_secs(5);
/// Deadline of what waits for the cluster: a node that lives may take so long. Afterwards the same is sent again.
const WAIT: Duration = Duration::from_secs(600);

/// An open connection.
#[derive(Clone, Debug)]
pub(super) struct Line {
    address: Address,
    channel: Channel,
}

impl Line {
    /// Connects, and asks for the members: only a worker can say, and only one that lives does.
    pub(super) async fn open(address: Address) -> Result<(Line, NamedCluster), Trouble> {
        let opening = async {
            let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| unreachable(&error))?;
            let channel = endpoint.connect().await.map_err(|error| unreachable(&error))?;
            let line = Line { address, channel };
            let cluster = line.cluster().await?;
            Ok((line, cluster))
        };
        timeout(OPEN, opening).await.map_err(|_| Trouble::Elsewhere("no answer in time".to_owned()))?
    }

    /// Where it leads.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Where the leader is that this node follows: the cheapest question of all.
    pub(super) async fn leader(&self) -> Result<Option<Address>, Trouble> {
        let request = within(ASK, v1::PingRequest { status: None });
        let answer = WorkerServiceClient::new(self.channel.clone()).ping(request).await.map_err(failed)?;
        Ok(status(answer.into_inner())?.following.map(|leader| leader.member.address))
    }

    /// The cluster as this node sees it.
    pub(super) async fn cluster(&self) -> Result<NamedCluster, Trouble> {
        let request = within(ASK, v1::GetClusterRequest {});
        let answer = self.coordinator().get_cluster(request).await.map_err(failed)?;
        Ok(answer.into_inner().cluster.ok_or_else(incomplete)?.try_into()?)
    }

    /// Hands in a job; comes back when it is held.
    pub(super) async fn submit(&self, job: &SubmitJob) -> Result<JobView, Trouble> {
        let answer = self.coordinator().submit_job(within(WAIT, job.into())).await.map_err(failed)?;
        match answer.into_inner().try_into()? {
            Submitted::Held(job) => Ok(Arc::unwrap_or_clone(job)),
            Submitted::NoRoom => Err(Trouble::Elsewhere("took a client for a worker".to_owned())),
        }
    }

    /// Ends a job; comes back when its end is held.
    pub(super) async fn cancel(&self, job: &JobQuery) -> Result<JobView, Trouble> {
        let answer = self.coordinator().cancel_job(within(WAIT, job.into())).await.map_err(failed)?;
        Ok(answer.into_inner().job.ok_or_else(incomplete)?.try_into()?)
    }

    /// A page of jobs.
    pub(super) async fn jobs(&self, after: Option<&JobKey>) -> Result<Vec<JobView>, Trouble> {
        let page = ListJobs { after: after.cloned(), limit: PAGE };
        let answer = self.coordinator().list_jobs(within(ASK, (&page).into())).await.map_err(failed)?;
        Ok(answer.into_inner().try_into()?)
    }

    /// A job's messages from a cursor on.
    pub(super) async fn subscribe(&self, job: &JobQuery, after: Option<&Cursor>) -> Result<JobMessages, Trouble> {
        let job = v1::GetJobRequest::from(job).job;
        let subscription = v1::SubscribeJobProgressRequest { job, after: after.map(Into::into) };
        let answer = self.coordinator().subscribe_job_progress(within(ASK, subscription)).await.map_err(failed)?;
        Ok(answer.into_inner())
    }

    /// The events of this node, or of all members.
    pub(super) async fn events(&self, all_members: bool, after: Option<u64>) -> Result<EventMessages, Trouble> {
        let request = within(ASK, v1::WatchClusterRequest { after, all_members });
        let answer = self.coordinator().watch_cluster(request).await.map_err(failed)?;
        Ok(answer.into_inner())
    }

    fn coordinator(&self) -> CoordinatorServiceClient<Channel> {
        CoordinatorServiceClient::new(self.channel.clone()).max_decoding_message_size(LARGEST_MESSAGE)
    }
}

/// Where the living workers of a cluster are.
pub(super) fn living(cluster: &NamedCluster) -> Vec<Address> {
    let living = cluster.view.nodes.iter().filter(|node| node.alive);
    living.map(|node| node.member.address.clone()).collect()
}

/// A message of a subscription.
pub(super) fn job(message: v1::SubscribeJobProgressResponse) -> Result<JobView, Trouble> {
    Ok(message.job.ok_or_else(incomplete)?.try_into()?)
}

/// A message of a stream of events.
pub(super) fn event(message: v1::WatchClusterResponse) -> Result<Event, Trouble> {
    Ok(message.event.ok_or_else(incomplete)?.try_into()?)
}

fn status(answer: v1::PingResponse) -> Result<Status, Trouble> {
    Ok(answer.status.ok_or_else(incomplete)?.try_into()?)
}

fn incomplete() -> Trouble {
    Trouble::Elsewhere("its answer is empty; does it run another version?".to_owned())
}

/// What the node's error means here.
pub(super) fn failed(status: tonic::Status) -> Trouble {
    match status.source() {
        Some(broken) => unreachable(broken),
        None => CallFailure::Refused(statuses::refusal_of(&status)).into(),
    }
}

/// The deadline goes with the request, so that the node does not work for one who has gone.
fn within<M>(deadline: Duration, message: M) -> Request<M> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

/// tonic says only "transport error"; what people can act on is the innermost cause.
pub(super) fn unreachable(error: &dyn Error) -> Trouble {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Trouble::Elsewhere(cause.to_string())
}
