//! Serving HTTP within limits.
//!
//! Owns the connections. Never trusts one: it has so long to say what it wants, and there are so many at most.
//! Section 15 of the contract.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 256;
/// A request's head must be there after so long, also the second one of a connection: so silence ends it.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The largest head of a request.
const HEAD_BYTES: usize = 16 * 1024;
/// Header lines of a request.
const HEADERS: usize = 64;
/// How long an answer under way may take once the server ends.
const FINISH: Duration = Duration::from_millis(500);
/// How long to wait after an error of the listener, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `ended`; connections that are answering then may finish, all others end.
pub async fn serve(listener: TcpListener, routes: Router, ended: CancellationToken) {
    let connections = TaskTracker::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &room) => accepted,
            () = ended.cancelled() => break,
        };
        if let Some((stream, place)) = accepted {
            let (routes, ended) = (routes.clone(), ended.clone());
            connections.spawn(async move {
                converse(stream, routes, ended).await;
                drop(place);
            });
        }
    }
    connections.close();
    connections.wait().await;
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            tracing::warn!(%error, "no HTTP connection could be accepted; the limit of open files may be too low");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn converse(stream: TcpStream, routes: Router, ended: CancellationToken) {
    let mut limits = http1::Builder::new();
    limits.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES).max_headers(HEADERS);
    let connection = limits.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = ended.cancelled() => {
            connection.as_mut().graceful_shutdown();
            // One that has sent half a request would hold up the end until its time is over.
            match timeout(FINISH, connection).await {
                Ok(outcome) => outcome,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "an HTTP connection ended badly");
    }
}
