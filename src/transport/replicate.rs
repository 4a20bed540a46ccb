//! The stream to the leader: this node's frames out, the leader's frames in.
//!
//! Owns one connection per stream, so that a large payload delays no heartbeat of another. Never reorders: frames
//! come back in the order in which the leader sent them. Invariant: it ends with one [`Input::LeaderEnded`], unless
//! this node closed it.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::AbortHandle;
use tokio_stream::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::protocol::Input;
use crate::protocol::ids::StreamId;
use crate::protocol::message::{CallFailure, Up};
use crate::wire::frames::{Joined, LARGEST_FRAME, Outgoing};
use crate::wire::v1::coordinator_service_client::CoordinatorServiceClient;
use crate::wire::{status, v1};

use super::calls::Caller;
use super::dial::Dialer;

/// Frames that wait to be sent: an acknowledgement for each batch on its way, and as many again.
const OUTBOX: usize = 256;
/// How long a leader may take to accept a stream; it does so before it looks at the first frame.
const ACCEPT: Duration = Duration::from_secs(1);
/// How long a closed stream may take to send what it still has.
const LINGER: Duration = Duration::from_secs(1);

/// A stream, as the transport holds it.
#[derive(Debug)]
pub(super) struct UpStream<H = AbortHandle> {
    outbox: mpsc::Sender<Up>,
    closed: CancellationToken,
    task: H,
}

/// A stream, as its task holds it.
#[derive(Debug)]
pub(super) struct Running {
    stream: StreamId,
    caller: Caller,
    outbox: mpsc::Receiver<Up>,
    closed: CancellationToken,
    inputs: mpsc::Sender<Input>,
}

impl UpStream {
    /// A stream that is not opened yet: the other half runs it.
    pub(super) fn new(stream: StreamId, caller: Caller, inputs: mpsc::Sender<Input>) -> (UpStream<()>, Running) {
        let (sender, outbox) = mpsc::channel(OUTBOX);
        let closed = CancellationToken::new();
        let open = UpStream { outbox: sender, closed: closed.clone(), task: () };
        (open, Running { stream, caller, outbox, closed, inputs })
    }

    pub(super) fn send(&self, frame: Up) -> Result<(), &'static str> {
        match self.outbox.try_send(frame) {
            Err(TrySendError::Full(_)) => Err("its outbox is full"),
            // Its task ends and says so, or has.
            Ok(()) | Err(TrySendError::Closed(_)) => Ok(()),
        }
    }

    /// Ends it at once.
    pub(super) fn abort(&self) {
        self.task.abort();
    }

    /// Ends it after what waits.
    pub(super) fn close(self) {
        self.closed.cancel();
    }
}

impl UpStream<()> {
    pub(super) fn with(self, task: AbortHandle) -> UpStream {
        UpStream { outbox: self.outbox, closed: self.closed, task }
    }
}

impl Running {
    pub(super) async fn run(self, dialer: Dialer) {
        let Running { stream, caller, outbox, closed, inputs } = self;
        let opened = closed.run_until_cancelled(open(&caller, &dialer, outbox)).await;
        let broke = match opened {
            None => return,
            Some(Err(failure)) => failure,
            Some(Ok(mut frames)) => match closed.run_until_cancelled(pass_on(stream, &mut frames, &inputs)).await {
                Some(failure) => failure,
                None => {
                    linger(frames).await;
                    return;
                }
            },
        };
        tracing::debug!(%stream, ?broke, "the stream to the leader ended");
        inputs.send(Input::LeaderEnded { stream }).await.ok();
    }
}

async fn open(
    caller: &Caller,
    dialer: &Dialer,
    outbox: mpsc::Receiver<Up>,
) -> Result<tonic::Streaming<v1::LeaderFrame>, CallFailure> {
    let channel = dialer.channel().map_err(CallFailure::Unreachable)?;
    let mut leader = CoordinatorServiceClient::new(channel).max_decoding_message_size(LARGEST_FRAME);
    let frames = Outgoing::<Up, v1::FollowerFrame>::new(outbox).map_while(|frame| match frame {
        Ok(frame) => Some(frame),
        Err(error) => {
            tracing::error!(%error, "a frame to the leader is too large");
            None
        }
    });
    let accepted = tokio::time::timeout(ACCEPT, leader.replicate(caller.request(frames))).await;
    let accepted = accepted.map_err(|_| CallFailure::TimedOut)?;
    Ok(accepted.map_err(|status| status::failure_of(&status))?.into_inner())
}

/// Passes the leader's frames on until there are no more, and says why.
async fn pass_on(
    stream: StreamId,
    frames: &mut tonic::Streaming<v1::LeaderFrame>,
    inputs: &mpsc::Sender<Input>,
) -> CallFailure {
    let mut joined = Joined::default();
    loop {
        let frame = match frames.message().await {
            Ok(Some(frame)) => frame,
            Ok(None) => return CallFailure::Unreachable("the leader ended it".to_owned()),
            Err(status) => return status::failure_of(&status),
        };
        let whole = joined.take(frame).and_then(|whole| whole.map(TryInto::try_into).transpose());
        let input = match whole {
            Ok(Some(frame)) => Input::LeaderSent { stream, frame },
            Ok(None) => Input::LeaderStirred { stream },
            Err(error) => {
                tracing::warn!(%stream, %error, "the leader sent a frame that makes no sense");
                return CallFailure::Unreachable(error.to_string());
            }
        };
        if inputs.send(input).await.is_err() {
            return CallFailure::Unreachable("this node has ended".to_owned());
        }
    }
}

/// The outbox is closed: lets it drain, until the leader has seen its end.
async fn linger(mut frames: tonic::Streaming<v1::LeaderFrame>) {
    let drained = async { while let Ok(Some(_)) = frames.message().await {} };
    tokio::time::timeout(LINGER, drained).await.ok();
}
