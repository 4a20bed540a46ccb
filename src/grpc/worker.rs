//! The door of WorkerService: what a worker does for a leader and for its neighbours.

use tonic::{Request, Response, Status};

use crate::wire::v1;
use crate::wire::v1::worker_service_server::WorkerService;

use super::door::Door;

/// The door.
#[derive(Debug)]
pub(super) struct Worker {
    door: Door,
}

impl Worker {
    pub(super) fn new(door: Door) -> Worker {
        Worker { door }
    }
}

#[tonic::async_trait]
impl WorkerService for Worker {
    async fn execute_task(
        &self,
        request: Request<v1::ExecuteTaskRequest>,
    ) -> Result<Response<v1::ExecuteTaskResponse>, Status> {
        self.door.pass(request).await
    }

    async fn cancel_task(
        &self,
        request: Request<v1::CancelTaskRequest>,
    ) -> Result<Response<v1::CancelTaskResponse>, Status> {
        self.door.pass(request).await
    }

    async fn ping(&self, request: Request<v1::PingRequest>) -> Result<Response<v1::PingResponse>, Status> {
        self.door.pass(request).await
    }
}
