//! The HTTP door: `/health`, for probes.
//!
//! Owns the routes and the limits of this listener. Never asks the worker: what it tells is told to it whenever it
//! changes. Sections 2 and 15 of the contract.

mod server;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use server::serve;

/// All routes. `ready` says whether the node can be sent work, `stopping` whether it was told to stop.
pub fn routes(node: &str, ready: watch::Receiver<bool>, stopping: CancellationToken) -> Router {
    Router::new().route("/health", get(health)).with_state(Health { node: node.into(), ready, stopping })
}

#[derive(Clone, Debug)]
struct Health {
    node: Arc<str>,
    ready: watch::Receiver<bool>,
    stopping: CancellationToken,
}

impl Health {
    fn reason(&self) -> Option<&'static str> {
        if self.stopping.is_cancelled() {
            Some("it was told to stop")
        } else if *self.ready.borrow() {
            None
        } else {
            Some("it knows no leader: an election is under way, or it reaches too few others")
        }
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    node: &'a str,
    ready: bool,
    reason: Option<&'static str>,
}

async fn health(State(health): State<Health>) -> impl IntoResponse {
    let reason = health.reason();
    let status = if reason.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let answer = Answer { node: &health.node, ready: reason.is_none(), reason };
    match serde_json::to_string(&answer) {
        Ok(json) => (status, [(CONTENT_TYPE, "application/json")], json + "\n").into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
