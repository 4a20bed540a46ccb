//! Peers made of little, for tests: they answer what a test wants, on real sockets.
//!
//! A peer runs on threads of its own, so that dropping it ends its connections as the death of a process does.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use crate::protocol::ids::{Address, Identity};
use crate::protocol::message::{Code, Down, MembershipEvent, Refusal, Revision};
use crate::wire::frames::Outgoing;
use crate::wire::status::status_of;
use crate::wire::tests::samples::Samples;
use crate::wire::v1::bootstrap_service_server::{BootstrapService, BootstrapServiceServer};
use crate::wire::v1::coordinator_service_server::{CoordinatorService, CoordinatorServiceServer};
use crate::wire::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use crate::wire::{CLUSTER_KEY, LARGEST_MESSAGE, v1};

type Answer<M> = Result<Response<M>, Status>;
type Messages<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

/// A peer that runs.
pub(super) struct FakePeer {
    runtime: Option<Runtime>,
    pub(super) address: Address,
    pub(super) script: Script,
}

/// What a peer does, and what it has seen.
#[derive(Clone, Default)]
pub(super) struct Script {
    /// Calls of ExecuteTask that wait.
    pub(super) waiting: Arc<watch::Sender<usize>>,
    /// What it sends on each Replicate stream, first of all.
    pub(super) down: Vec<Down>,
    /// Where it puts what it gets on Replicate streams; without it, it does not read them.
    pub(super) up: Option<mpsc::Sender<v1::FollowerFrame>>,
}

/// Takes an address. Another test's connection may have the port of one that was let go of, for a moment.
fn bind(place: &str) -> std::net::TcpListener {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        match std::net::TcpListener::bind(place) {
            Err(taken) if std::time::Instant::now() < until => assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse),
            listener => return listener.expect("a free port"),
        }
        std::thread::yield_now();
    }
}

impl FakePeer {
    pub(super) fn start(script: Script) -> FakePeer {
        FakePeer::start_at("127.0.0.1:0", script)
    }

    pub(super) fn start_at(place: &str, script: Script) -> FakePeer {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let listener = bind(place);
        listener.set_nonblocking(true).expect("a socket");
        let address = Address::new(&listener.local_addr().expect("bound").to_string()).expect("a good address");
        let served = script.clone();
        runtime.spawn(async move {
            let incoming = TcpListenerStream::new(TcpListener::from_std(listener).expect("a socket"));
            let nodelay = incoming.map(|stream| stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream)));
            tonic::transport::Server::builder()
                .add_service(WorkerServiceServer::new(served.clone()).max_decoding_message_size(LARGEST_MESSAGE))
                .add_service(CoordinatorServiceServer::new(served.clone()).max_decoding_message_size(LARGEST_MESSAGE))
                .add_service(BootstrapServiceServer::new(served))
                .serve_with_incoming(nodelay)
                .await
        });
        FakePeer { runtime: Some(runtime), address, script }
    }
}

impl Drop for FakePeer {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct Waits(Arc<watch::Sender<usize>>);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

#[tonic::async_trait]
impl WorkerService for Script {
    async fn execute_task(&self, _: Request<v1::ExecuteTaskRequest>) -> Answer<v1::ExecuteTaskResponse> {
        self.waiting.send_modify(|waiting| *waiting += 1);
        let _waits = Waits(Arc::clone(&self.waiting));
        std::future::pending().await
    }

    async fn cancel_task(&self, _: Request<v1::CancelTaskRequest>) -> Answer<v1::CancelTaskResponse> {
        Err(status_of(&Refusal::new(Code::ResourceExhausted, "no room").retry_in(Duration::from_millis(70))))
    }

    async fn ping(&self, request: Request<v1::PingRequest>) -> Answer<v1::PingResponse> {
        let cluster = request.metadata().get(CLUSTER_KEY).and_then(|name| name.to_str().ok());
        if cluster != Some("floodline") {
            return Err(Status::failed_precondition(format!("cluster {cluster:?}")));
        }
        Ok(Response::new(v1::PingResponse { status: Some((&Samples::new(1).status()).into()) }))
    }
}

fn not_here<M>() -> Answer<M> {
    Err(Status::unimplemented("not in this test"))
}

#[tonic::async_trait]
impl CoordinatorService for Script {
    type ReplicateStream = Messages<v1::LeaderFrame>;
    type SubscribeJobProgressStream = Messages<v1::SubscribeJobProgressResponse>;
    type WatchClusterStream = Messages<v1::WatchClusterResponse>;

    async fn elect(&self, _: Request<v1::ElectRequest>) -> Answer<v1::ElectResponse> {
        not_here()
    }

    async fn announce(&self, _: Request<v1::AnnounceRequest>) -> Answer<v1::AnnounceResponse> {
        not_here()
    }

    async fn add_neighbor(&self, _: Request<v1::AddNeighborRequest>) -> Answer<v1::AddNeighborResponse> {
        not_here()
    }

    async fn remove_neighbor(&self, _: Request<v1::RemoveNeighborRequest>) -> Answer<v1::RemoveNeighborResponse> {
        Ok(Response::new(v1::RemoveNeighborResponse {}))
    }

    async fn replicate(&self, request: Request<Streaming<v1::FollowerFrame>>) -> Answer<Self::ReplicateStream> {
        let (frames, outbox) = mpsc::channel(64);
        let (down, up) = (self.down.clone(), self.up.clone());
        tokio::spawn(async move {
            for frame in down {
                frames.send(frame).await.ok();
            }
            let mut arriving = request.into_inner();
            let Some(up) = up else { std::future::pending().await };
            while let Ok(Some(frame)) = arriving.message().await {
                up.send(frame).await.ok();
            }
            drop(frames);
        });
        let outgoing = Outgoing::<Down, v1::LeaderFrame>::new(outbox);
        Ok(Response::new(Box::pin(outgoing.map(|frame| frame.map_err(Status::from)))))
    }

    async fn submit_job(&self, request: Request<v1::SubmitJobRequest>) -> Answer<v1::SubmitJobResponse> {
        let no_room = v1::submit_job_response::Outcome::NoRoom(v1::NoRoom {});
        drop(request);
        Ok(Response::new(v1::SubmitJobResponse { outcome: Some(no_room) }))
    }

    async fn cancel_job(&self, _: Request<v1::CancelJobRequest>) -> Answer<v1::CancelJobResponse> {
        not_here()
    }

    async fn get_job(&self, _: Request<v1::GetJobRequest>) -> Answer<v1::GetJobResponse> {
        Ok(Response::new(v1::GetJobResponse { job: None }))
    }

    async fn list_jobs(&self, _: Request<v1::ListJobsRequest>) -> Answer<v1::ListJobsResponse> {
        not_here()
    }

    async fn subscribe_job_progress(
        &self,
        _: Request<v1::SubscribeJobProgressRequest>,
    ) -> Answer<Self::SubscribeJobProgressStream> {
        not_here()
    }

    async fn get_cluster(&self, _: Request<v1::GetClusterRequest>) -> Answer<v1::GetClusterResponse> {
        not_here()
    }

    async fn watch_cluster(&self, _: Request<v1::WatchClusterRequest>) -> Answer<Self::WatchClusterStream> {
        let events =
            (1..=3).map(|seed| Ok(v1::WatchClusterResponse { event: Some((&Samples::new(seed).happening()).into()) }));
        let events: Vec<_> = events.collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(events))))
    }
}

/// A membership event for each revision after the one that is asked for.
pub(super) fn membership(after: Revision) -> Vec<MembershipEvent> {
    let at = |number| Revision { number: after.number + number, ..after };
    let mut samples = Samples::new(4);
    vec![
        MembershipEvent::Resync,
        MembershipEvent::Snapshot(at(1), vec![samples.member()]),
        MembershipEvent::Joined(at(2), samples.member()),
        MembershipEvent::Left(at(3), samples.identity()),
    ]
}

#[tonic::async_trait]
impl BootstrapService for Script {
    type WatchMembershipStream = Messages<v1::WatchMembershipResponse>;

    async fn register_worker(&self, _: Request<v1::RegisterWorkerRequest>) -> Answer<v1::LeaseAnswer> {
        Ok(Response::new(v1::LeaseAnswer { outcome: Some(v1::lease_answer::Outcome::LeaseTtlMs(8_000)) }))
    }

    async fn heartbeat(&self, request: Request<v1::HeartbeatRequest>) -> Answer<v1::LeaseAnswer> {
        let who: Identity = request.into_inner().try_into()?;
        Err(Status::not_found(format!("no lease of {who}")))
    }

    async fn deregister(&self, _: Request<v1::DeregisterRequest>) -> Answer<v1::DeregisterResponse> {
        Ok(Response::new(v1::DeregisterResponse {}))
    }

    async fn watch_membership(
        &self,
        request: Request<v1::WatchMembershipRequest>,
    ) -> Answer<Self::WatchMembershipStream> {
        let after = request.into_inner().after.map_or_else(Revision::default, Into::into);
        let (events, stream) = mpsc::channel(8);
        for event in membership(after) {
            events.send(Ok((&event).into())).await.ok();
        }
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn get_active_workers(
        &self,
        _: Request<v1::GetActiveWorkersRequest>,
    ) -> Answer<v1::GetActiveWorkersResponse> {
        not_here()
    }

    async fn get_random_worker(&self, _: Request<v1::GetRandomWorkerRequest>) -> Answer<v1::GetRandomWorkerResponse> {
        not_here()
    }
}
