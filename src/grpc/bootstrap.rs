//! The door of BootstrapService: the directory's.

use std::pin::Pin;

use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use crate::node::DirectoryHandle;
use crate::protocol::ids::{Identity, Member, NodeId};
use crate::protocol::message::{Code, DirectoryAnswer, DirectoryRequest, MembershipEvent, Refusal, Revision};
use crate::wire::status::status_of;
use crate::wire::v1;
use crate::wire::v1::bootstrap_service_server::BootstrapService;

use super::door::same_cluster;

/// The door.
#[derive(Debug)]
pub(super) struct Bootstrap {
    directory: DirectoryHandle,
}

impl Bootstrap {
    pub(super) fn new(directory: DirectoryHandle) -> Bootstrap {
        Bootstrap { directory }
    }

    fn enter<M>(&self, request: Request<M>) -> Result<M, Status> {
        same_cluster(request.metadata(), self.directory.cluster())?;
        Ok(request.into_inner())
    }

    async fn lease(&self, request: DirectoryRequest, who: &Identity) -> Result<Response<v1::LeaseAnswer>, Status> {
        match self.directory.request(request).await.map_err(|refusal| status_of(&refusal))? {
            DirectoryAnswer::UnknownLease | DirectoryAnswer::Left => {
                let message = format!("this directory has no lease of {who}; register again");
                Err(status_of(&Refusal::new(Code::NotFound, message)))
            }
            answer @ (DirectoryAnswer::Leased(_) | DirectoryAnswer::Superseded(_)) => {
                Ok(Response::new((&answer).into()))
            }
        }
    }
}

#[tonic::async_trait]
impl BootstrapService for Bootstrap {
    type WatchMembershipStream = Pin<Box<dyn Stream<Item = Result<v1::WatchMembershipResponse, Status>> + Send>>;

    async fn register_worker(
        &self,
        request: Request<v1::RegisterWorkerRequest>,
    ) -> Result<Response<v1::LeaseAnswer>, Status> {
        let member: Member = self.enter(request)?.try_into()?;
        let who = member.identity();
        self.lease(DirectoryRequest::Register(member), &who).await
    }

    async fn heartbeat(&self, request: Request<v1::HeartbeatRequest>) -> Result<Response<v1::LeaseAnswer>, Status> {
        let who: Identity = self.enter(request)?.try_into()?;
        self.lease(DirectoryRequest::Heartbeat(who.clone()), &who).await
    }

    async fn deregister(
        &self,
        request: Request<v1::DeregisterRequest>,
    ) -> Result<Response<v1::DeregisterResponse>, Status> {
        let who: Identity = self.enter(request)?.try_into()?;
        let left = self.directory.request(DirectoryRequest::Deregister(who)).await;
        left.map(|_| Response::new(v1::DeregisterResponse {})).map_err(|refusal| status_of(&refusal))
    }

    async fn watch_membership(
        &self,
        request: Request<v1::WatchMembershipRequest>,
    ) -> Result<Response<Self::WatchMembershipStream>, Status> {
        let after = self.enter(request)?.after.map_or_else(Revision::default, Into::into);
        let events = self.directory.watch(after);
        Ok(Response::new(Box::pin(events.map(|event: MembershipEvent| Ok((&event).into())))))
    }

    async fn get_active_workers(
        &self,
        request: Request<v1::GetActiveWorkersRequest>,
    ) -> Result<Response<v1::GetActiveWorkersResponse>, Status> {
        self.enter(request)?;
        let (revision, members) = self.directory.members().await.map_err(|refusal| status_of(&refusal))?;
        let members = members.iter().map(Into::into).collect();
        Ok(Response::new(v1::GetActiveWorkersResponse { revision: Some(revision.into()), members }))
    }

    async fn get_random_worker(
        &self,
        request: Request<v1::GetRandomWorkerRequest>,
    ) -> Result<Response<v1::GetRandomWorkerResponse>, Status> {
        let except: Option<NodeId> = self.enter(request)?.try_into()?;
        match self.directory.random(except).await.map_err(|refusal| status_of(&refusal))? {
            Some(member) => Ok(Response::new(v1::GetRandomWorkerResponse { member: Some((&member).into()) })),
            None => {
                let message = "this directory has no other worker; start one with this FLOODLINE_BOOTSTRAP";
                Err(status_of(&Refusal::new(Code::NotFound, message)))
            }
        }
    }
}
