//! Dialling: a host name to a connection.
//!
//! Owns the deadline of dialling and the pause after a failure. A name is resolved anew at each dial, so that a changed
//! IP heals. Invariant: the first dial, and the first after a success, goes out at once.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tonic::codegen::Service;
use tonic::codegen::http::Uri;
use tonic::transport::{Channel, Endpoint};

use crate::protocol::ids::Address;

/// How long a dial may take. Below the second after which the system would send a lost SYN again.
const DIAL: Duration = Duration::from_millis(500);
/// The pause after a first failure; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(5);
/// The longest pause. Short, since a peer that has just come back is worth more than a dial that fails.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// A connection on which calls wait is asked for a sign of life when it was silent for so long,
const SILENCE: Duration = Duration::from_secs(1);
/// and is given up when it brought none in so long. A peer that took its IP with it is so dialled anew.
const SIGN: Duration = Duration::from_secs(2);
/// Bytes that may be under way unread on a stream and on a connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Calls under way on one connection. All of them may be abandoned at once: what the peer still sends for them must
/// be known for that, or it would break the connection.
pub(super) const CALLS: usize = 1_024;

/// Dials one address. Clones share the pause after a failure.
#[derive(Clone, Debug)]
pub(super) struct Dialer {
    address: Address,
    failures: Arc<Mutex<Failures>>,
}

#[derive(Debug, Default)]
struct Failures {
    in_a_row: u32,
    last: Option<(Instant, String)>,
}

impl Dialer {
    pub(super) fn new(address: Address) -> Dialer {
        Dialer { address, failures: Arc::default() }
    }

    /// A channel that dials when it is first used, and again whenever its connection is gone.
    pub(super) fn channel(&self) -> Result<Channel, String> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))
            .map_err(|error| format!("{} can't be dialled: {error}", self.address))?;
        let endpoint = endpoint
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(SILENCE)
            .keep_alive_timeout(SIGN)
            .keep_alive_while_idle(false)
            .http2_max_concurrent_reset_streams(CALLS);
        Ok(endpoint.connect_with_connector_lazy(self.clone()))
    }

    async fn dial(self) -> io::Result<TokioIo<TcpStream>> {
        self.pause()?;
        let dialled = timeout(DIAL, TcpStream::connect(self.address.as_str())).await;
        let connected = dialled.unwrap_or_else(|_| {
            let text = format!("{} did not answer within {} ms", self.address, DIAL.as_millis());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        });
        let connected = connected.and_then(|stream| stream.set_nodelay(true).map(|()| stream));
        let mut failures = self.failures();
        match connected {
            Ok(stream) => {
                *failures = Failures::default();
                Ok(TokioIo::new(stream))
            }
            Err(error) => {
                failures.in_a_row = failures.in_a_row.saturating_add(1);
                failures.last = Some((Instant::now(), error.to_string()));
                Err(io::Error::new(error.kind(), format!("{}: {error}", self.address)))
            }
        }
    }

    /// Refuses while the pause after a failure lasts. Who calls learns of it at once and need not wait it out.
    fn pause(&self) -> io::Result<()> {
        let failures = self.failures();
        let Some((at, why)) = &failures.last else { return Ok(()) };
        let doubled = PAUSE.saturating_mul(1 << failures.in_a_row.saturating_sub(1).min(10));
        if at.elapsed() < doubled.min(LONGEST_PAUSE) {
            let text = format!("{}: dialled {} ms ago: {why}", self.address, at.elapsed().as_millis());
            return Err(io::Error::new(io::ErrorKind::NotConnected, text));
        }
        Ok(())
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address is the dialler's own; that of the request is the same, as tonic read it.
impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<TcpStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().dial())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn after_a_failure_a_dial_is_refused_for_a_while_and_a_success_forgets_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let place = listener.local_addr().expect("bound");
        let dialer = Dialer::new(Address::new(&place.to_string()).expect("a good address"));
        drop(listener);
        let first = dialer.clone().dial().await.expect_err("nobody listens");
        assert_eq!(first.kind(), io::ErrorKind::ConnectionRefused);
        let second = dialer.clone().dial().await.expect_err("too early");
        assert_eq!(second.kind(), io::ErrorKind::NotConnected, "{second}");

        let _listener = TcpListener::bind(place).await.expect("free again");
        let after_the_pause = async {
            while dialer.clone().dial().await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        timeout(LONGEST_PAUSE * 50, after_the_pause).await.expect("a dial after the pause");
        dialer.clone().dial().await.expect("no pause after a success");
    }
}
