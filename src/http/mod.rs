//! The HTTP door: `/health`, for probes, and `/metrics`, for Prometheus.
//!
//! Owns the routes and the limits of this listener. Health never asks the worker: it is told to it whenever it
//! changes. Sections 2 and 15 of the contract.

mod server;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
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

use crate::telemetry::metrics;

pub use server::serve;

/// Makes the text of a scrape.
pub type Scrape = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync>;

/// All routes. `ready` says whether the node can be sent work, `stopping` whether it was told to stop, `scrape` what
/// Prometheus reads.
pub fn routes(node: &str, ready: watch::Receiver<bool>, stopping: CancellationToken, scrape: Scrape) -> Router {
    let metrics = async move || ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], scrape().await);
    let health = get(health).with_state(Health { node: node.into(), ready, stopping });
    Router::new().route("/health", health).route("/metrics", get(metrics))
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
