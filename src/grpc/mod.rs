//! The gRPC doors: convert, ask the handle, convert.
//!
//! Owns the listener and its limits, who is let in, and the health that probes are told. Never decides anything: a
//! call becomes one request to the worker or the directory, and its answer one message or one error. Sections 3 and 15
//! of the contract.

mod bootstrap;
mod coordinator;
mod door;
mod follower;
mod gather;
mod health;
mod incoming;
mod worker;

use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::transport::Server;

use crate::node::{DirectoryHandle, Handle};
use crate::wire::v1::bootstrap_service_server::BootstrapServiceServer;
use crate::wire::v1::coordinator_service_server::CoordinatorServiceServer;
use crate::wire::v1::worker_service_server::WorkerServiceServer;
use crate::wire::{DESCRIPTORS, LARGEST_MESSAGE};

use bootstrap::Bootstrap;
use coordinator::Coordinator;
use door::Door;
use gather::Gathering;
use health::Health;
use worker::Worker;

pub use gather::Listen;

/// Calls and streams at once on one connection, and as many that their caller gave up before they were looked at. A node
/// has as many calls under way to a peer at most, and may abandon all of them at once.
const STREAMS: u32 = 1_024;
/// Bytes of all headers of a call.
const HEADERS: u32 = 16 << 10;
/// A connection that is silent for so long is asked for a sign of life,
const SILENCE: Duration = Duration::from_secs(10);
/// and ends when it brings none in so long.
const SIGN: Duration = Duration::from_secs(5);
/// Bytes that may be under way unread on a stream and on a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// How long answers under way may take once the servers close.
const GRACE: Duration = Duration::from_secs(1);

/// Serves a worker's calls until `closing`, and at most [`GRACE`] more. From `stopping` on probes are told to send
/// nothing new. `listen` brings the events of other members.
pub async fn serve_worker(
    listener: TcpListener,
    handle: Handle,
    listen: Listen,
    stopping: CancellationToken,
    closing: CancellationToken,
) {
    let tasks = TaskTracker::new();
    let health = Health::default();
    let door = Door::new(handle.clone());
    let gathering = Gathering::new(handle.clone(), listen, tasks.clone());
    let worker = WorkerServiceServer::new(Worker::new(door.clone()));
    let coordinator = CoordinatorServiceServer::new(Coordinator::new(door, gathering, tasks.clone()));
    let routes = Routes::new(health.server())
        .add_service(worker.max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE))
        .add_service(coordinator.max_decoding_message_size(LARGEST_MESSAGE).max_encoding_message_size(LARGEST_MESSAGE));
    tasks.spawn(health.tell_of_worker(handle.ready(), stopping, closing.clone()));
    serve(listener, routes, tasks, closing).await;
}

/// Serves a directory's calls until `closing`, and at most [`GRACE`] more. From `stopping` on probes are told to send
/// nothing new.
pub async fn serve_directory(
    listener: TcpListener,
    handle: DirectoryHandle,
    stopping: CancellationToken,
    closing: CancellationToken,
) {
    let tasks = TaskTracker::new();
    let health = Health::default();
    let bootstrap = BootstrapServiceServer::new(Bootstrap::new(handle));
    let routes = Routes::new(health.server()).add_service(bootstrap.max_encoding_message_size(LARGEST_MESSAGE));
    tasks.spawn(health.tell_of_directory(stopping, closing.clone()));
    serve(listener, routes, tasks, closing).await;
}

async fn serve(listener: TcpListener, routes: Routes, tasks: TaskTracker, closing: CancellationToken) {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1();
    let routes = match reflection {
        Ok(reflection) => routes.add_service(reflection),
        Err(error) => {
            tracing::error!(%error, "the services can't describe themselves, which is a bug");
            routes
        }
    };
    let incoming = incoming::accept(listener, closing.clone());
    let server = Server::builder()
        .max_concurrent_streams(STREAMS)
        .http2_max_pending_accept_reset_streams(usize::try_from(STREAMS).ok())
        .http2_max_header_list_size(HEADERS)
        .http2_keepalive_interval(Some(SILENCE))
        .http2_keepalive_timeout(Some(SIGN))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .add_routes(routes)
        .serve_with_incoming_shutdown(incoming, closing.clone().cancelled_owned());
    let cut = async {
        closing.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        served = server => if let Err(error) = served {
            tracing::error!(%error, "the gRPC server broke down");
        },
        () = cut => tracing::debug!("connections with calls under way are cut off"),
    }
    tasks.close();
    tokio::time::timeout(GRACE, tasks.wait()).await.ok();
}
