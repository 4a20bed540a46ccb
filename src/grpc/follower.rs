//! A follower's Replicate stream, as its leader serves it.
//!
//! Owns the reading of its frames. Invariant: when the stream ends, for whatever reason and at whichever end, the
//! worker is told, and nothing of it is left.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::{Status, Streaming};

use crate::node::Handle;
use crate::protocol::ids::StreamId;
use crate::protocol::message::{Down, Up};
use crate::wire::frames::{Joined, Outgoing};
use crate::wire::status::status_of;
use crate::wire::{Malformed, v1};

/// What the leader sends. Dropped by the server when the follower is gone.
#[derive(Debug)]
pub(super) struct Served {
    frames: Outgoing<Down, v1::LeaderFrame>,
    /// Why the stream must end, if the follower made a mistake.
    mistake: Arc<OnceLock<Malformed>>,
    told: bool,
    _reader: DropGuard,
}

/// Serves a stream; its reader runs among `tasks`.
pub(super) fn serve(
    handle: &Handle,
    frames: Streaming<v1::FollowerFrame>,
    tasks: &TaskTracker,
) -> Result<Served, Status> {
    let follower = handle.accept_follower().map_err(|refusal| status_of(&refusal))?;
    let mistake = Arc::new(OnceLock::new());
    let gone = CancellationToken::new();
    let reader = read(handle.clone(), follower.id, frames, Arc::clone(&mistake), gone.clone());
    tasks.spawn(reader);
    Ok(Served { frames: Outgoing::new(follower.frames), mistake, told: false, _reader: gone.drop_guard() })
}

async fn read(
    handle: Handle,
    stream: StreamId,
    frames: Streaming<v1::FollowerFrame>,
    mistake: Arc<OnceLock<Malformed>>,
    gone: CancellationToken,
) {
    if let Some(Err(error)) = gone.run_until_cancelled(pass_on(&handle, stream, frames)).await {
        tracing::warn!(%stream, %error, "a follower sent a frame that makes no sense");
        mistake.get_or_init(|| error);
    }
    handle.follower_ended(stream);
}

/// Passes frames on until there are no more. A broken connection is no mistake.
async fn pass_on(handle: &Handle, stream: StreamId, mut frames: Streaming<v1::FollowerFrame>) -> Result<(), Malformed> {
    let mut joined = Joined::default();
    while let Ok(Some(frame)) = frames.message().await {
        if let Some(whole) = joined.take(frame)? {
            handle.follower_sent(stream, Up::try_from(whole)?).await;
        }
    }
    Ok(())
}

impl Stream for Served {
    type Item = Result<v1::LeaderFrame, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match ready!(Pin::new(&mut self.frames).poll_next(cx)) {
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
            Some(Err(error)) => {
                tracing::error!(%error, "a frame to a follower is too large");
                Poll::Ready(Some(Err(Status::resource_exhausted(error.to_string()))))
            }
            None => {
                let mistake = self.mistake.get().filter(|_| !self.told).cloned();
                self.told = true;
                Poll::Ready(mistake.map(|error| Err(error.into())))
            }
        }
    }
}
