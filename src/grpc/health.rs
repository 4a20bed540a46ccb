//! What probes are told, per service (grpc.health.v1).
//!
//! Owns which service serves when: a worker takes tasks from its start on, takes jobs when it knows a leader, and
//! nothing new once it was told to stop. The nameless service is the node as a whole.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic_health::ServingStatus::{self, NotServing, Serving};
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use super::bootstrap::Bootstrap;
use super::coordinator::Coordinator;
use super::worker::Worker;
use crate::wire::v1::bootstrap_service_server::BootstrapServiceServer;
use crate::wire::v1::coordinator_service_server::CoordinatorServiceServer;
use crate::wire::v1::worker_service_server::WorkerServiceServer;

const NODE: &str = "";
const WORKER: &str = WorkerServiceServer::<Worker>::NAME;
const COORDINATOR: &str = CoordinatorServiceServer::<Coordinator>::NAME;
const BOOTSTRAP: &str = BootstrapServiceServer::<Bootstrap>::NAME;

/// What is told at the moment.
#[derive(Clone, Debug)]
pub(super) struct Health {
    reporter: HealthReporter,
}

impl Default for Health {
    fn default() -> Self {
        Health { reporter: HealthReporter::new() }
    }
}

impl Health {
    pub(super) fn server(&self) -> HealthServer<HealthService> {
        HealthServer::new(HealthService::from_health_reporter(self.reporter.clone()))
    }

    async fn tell(&self, service: &str, serves: bool) {
        let status: ServingStatus = if serves { Serving } else { NotServing };
        self.reporter.set_service_status(service, status).await;
    }

    /// Follows a worker until it closes.
    pub(super) async fn tell_of_worker(
        self,
        mut ready: watch::Receiver<bool>,
        stopping: CancellationToken,
        closing: CancellationToken,
    ) {
        loop {
            let is_stopping = stopping.is_cancelled();
            let is_ready = *ready.borrow_and_update() && !is_stopping;
            self.tell(NODE, is_ready).await;
            self.tell(COORDINATOR, is_ready).await;
            self.tell(WORKER, !is_stopping).await;
            tokio::select! {
                () = stopping.cancelled(), if !is_stopping => {}
                changed = ready.changed() => if changed.is_err() { break },
                () = closing.cancelled() => break,
            }
        }
        for service in [NODE, COORDINATOR, WORKER] {
            self.tell(service, false).await;
        }
    }

    /// A directory serves from its start on.
    pub(super) async fn tell_of_directory(self, stopping: CancellationToken, closing: CancellationToken) {
        self.tell(NODE, true).await;
        self.tell(BOOTSTRAP, true).await;
        tokio::select! {
            () = stopping.cancelled() => {}
            () = closing.cancelled() => {}
        }
        self.tell(NODE, false).await;
        self.tell(BOOTSTRAP, false).await;
    }
}
