//! What every door of a worker does with a call.
//!
//! Owns who is let in: callers that name this cluster, and those that name none. Never looks into a request.

use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};

use crate::node::Handle;
use crate::protocol::message::{self, Code, Refusal};
use crate::protocol::trace::Trace;
use crate::telemetry::context::TRACE_PARENT;
use crate::wire::status::status_of;
use crate::wire::{CLUSTER_KEY, Malformed, Mismatched};

/// The way from a call to the worker and back.
#[derive(Clone, Debug)]
pub(super) struct Door {
    handle: Handle,
}

impl Door {
    pub(super) fn new(handle: Handle) -> Door {
        Door { handle }
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Lets a call in, or says why not.
    pub(super) fn enter<M>(&self, request: Request<M>) -> Result<M, Status> {
        same_cluster(request.metadata(), self.handle.cluster())?;
        Ok(request.into_inner())
    }

    /// A whole unary call.
    pub(super) async fn pass<M, A>(&self, request: Request<M>) -> Result<Response<A>, Status>
    where
        message::Request: TryFrom<M, Error = Malformed>,
        A: TryFrom<message::Response, Error = Mismatched>,
    {
        let trace = trace_of(request.metadata());
        let request = self.enter(request)?.try_into()?;
        self.ask(trace, request).await
    }

    /// The part of a unary call that follows its parsing.
    pub(super) async fn ask<A>(&self, trace: Option<Trace>, request: message::Request) -> Result<Response<A>, Status>
    where
        A: TryFrom<message::Response, Error = Mismatched>,
    {
        let answer = self.handle.call_in(trace, request).await.map_err(|refusal| status_of(&refusal))?;
        Ok(Response::new(answer.try_into()?))
    }
}

/// Where a call stands in a trace, if its caller says so. What makes no sense there is passed over, as the
/// recommendation demands.
pub(super) fn trace_of(metadata: &MetadataMap) -> Option<Trace> {
    metadata.get(TRACE_PARENT)?.to_str().ok()?.parse().ok()
}

/// Refuses a caller of another cluster.
pub(super) fn same_cluster(metadata: &MetadataMap, ours: &str) -> Result<(), Status> {
    let Some(theirs) = metadata.get(CLUSTER_KEY) else { return Ok(()) };
    if theirs.as_bytes() == ours.as_bytes() {
        return Ok(());
    }
    let theirs = String::from_utf8_lossy(theirs.as_bytes());
    let shown: String = theirs.chars().take(80).collect();
    let message = format!(
        "this node is of cluster {ours:?}, the caller of cluster {shown:?}; give both the same FLOODLINE_CLUSTER, or \
         remove this address from the caller's FLOODLINE_BOOTSTRAP and FLOODLINE_PEERS"
    );
    Err(status_of(&Refusal::new(Code::FailedPrecondition, message)))
}
