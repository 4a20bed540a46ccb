//! Connections as they come in: bounded in number, and each must speak soon.
//!
//! Owns the listener. A connection too many is closed at once, which its peer sees; one that never says anything ends
//! after [`HELLO`], so that silent ones take no places and hold up no shutdown.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Connections at once.
const CONNECTIONS: usize = 4_096;
/// How long a connection may take until its first byte.
const HELLO: Duration = Duration::from_secs(10);
/// How long nothing is accepted after accepting failed: then the process has no file left, and trying again at once
/// would only burn a core.
const PAUSE: Duration = Duration::from_millis(50);

/// The connections of a listener, until `closing`.
pub(super) fn accept(listener: TcpListener, closing: CancellationToken) -> Incoming {
    Incoming { listener, places: Arc::new(Semaphore::new(CONNECTIONS)), pause: None, closing }
}

#[derive(Debug)]
pub(super) struct Incoming {
    listener: TcpListener,
    places: Arc<Semaphore>,
    pause: Option<Pin<Box<Sleep>>>,
    closing: CancellationToken,
}

impl Stream for Incoming {
    type Item = io::Result<Guest>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pause) = &mut self.pause {
                std::task::ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match std::task::ready!(self.listener.poll_accept(cx)) {
                Ok((stream, from)) => match Arc::clone(&self.places).try_acquire_owned() {
                    Ok(place) => return Poll::Ready(Some(Guest::new(stream, place, self.closing.clone()))),
                    Err(_) => tracing::debug!(%from, "refuses a connection: {CONNECTIONS} are open, which is the most"),
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; raise the limit of open files if this goes on");
                    self.pause = Some(Box::pin(sleep(PAUSE)));
                }
            }
        }
    }
}

/// One connection.
pub(super) struct Guest {
    stream: TcpStream,
    /// Ends the wait for the first byte; none once that has come.
    patience: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _place: OwnedSemaphorePermit,
}

impl Guest {
    fn new(stream: TcpStream, place: OwnedSemaphorePermit, closing: CancellationToken) -> io::Result<Guest> {
        stream.set_nodelay(true)?;
        let patience = async move {
            tokio::select! {
                () = sleep(HELLO) => {}
                () = closing.cancelled() => {}
            }
        };
        Ok(Guest { stream, patience: Some(Box::pin(patience)), _place: place })
    }
}

impl AsyncRead for Guest {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let Some(patience) = &mut self.patience else { return read };
        if read.is_ready() {
            self.patience = None;
            return read;
        }
        patience.as_mut().poll(cx).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "it never said anything")))
    }
}

impl AsyncWrite for Guest {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Connected for Guest {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}
