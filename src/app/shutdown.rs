//! How a node ends, in this order, all within `stop_grace` (8 s), also with open streams and silent connections:
//!
//! 1. It reports that it is not ready, so that nobody sends it anything new.
//! 2. The worker steps down, hands back or finishes what runs, and leaves its directories; or the directory ends.
//! 3. The streams that it serves end, so that no reader holds up what follows.
//! 4. The servers take no more connections, finish the answers under way, and cut what is left.
//! 5. The spans that ended last are sent, within [`LAST_SPANS`]. The log has everything by then.
//!
//! Owns the order and how the time is shared. Never decides what a worker does to leave: `protocol` does.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::{Node, Part};
use crate::node::Broken;
use crate::protocol::effects::Ending;
use crate::protocol::ids::Incarnation;

/// How long the collector may take for the last spans; the servers leave it twice as much of the grace.
const LAST_SPANS: Duration = Duration::from_millis(500);

/// How a node ended.
#[derive(Debug)]
pub enum Ended {
    /// It was asked to.
    Stopped,
    /// It had to: somebody else started with its node id.
    Superseded(Incarnation),
    /// Something broke.
    Broken(Broken),
}

impl Node {
    /// Lives until `told` says that it has to end, or until it ends by itself.
    pub async fn live(mut self, told: impl Future<Output = ()>) -> Ended {
        let by_itself = tokio::select! {
            ending = self.part.ended() => Some(ending),
            () = told => None,
        };
        self.end(by_itself).await
    }

    async fn end(self, by_itself: Option<Result<Ending, Broken>>) -> Ended {
        let begun = Instant::now();
        self.stopping.cancel();
        // The worker keeps to three quarters by itself; what is left then is for the servers.
        let worker_until = begun + self.stop_grace / 8 * 7;
        let ended = match (by_itself, self.part) {
            (Some(ending), _) => Ended::from(ending),
            (None, Part::Directory(directory)) => {
                if timeout_at(worker_until, directory.end()).await.is_err() {
                    tracing::warn!("the directory did not end in time; it is cut off");
                }
                Ended::Stopped
            }
            (None, Part::Worker(mut worker)) => {
                let stopped = async {
                    worker.stop().await;
                    worker.ended().await
                };
                timeout_at(worker_until, stopped).await.map_or_else(
                    |_| {
                        tracing::warn!("the worker did not leave in time; others will notice that it is gone");
                        Ended::Stopped
                    },
                    Ended::from,
                )
            }
        };
        self.closing.cancel();
        let for_spans = self.export.as_ref().map_or(Duration::ZERO, |_| LAST_SPANS * 2);
        if timeout_at(begun + self.stop_grace.saturating_sub(for_spans), self.servers.wait()).await.is_err() {
            tracing::info!("connections that did not end in time are cut off");
        }
        if let Some(export) = self.export {
            // Apart from the runtime, whose threads it needs to send with.
            let sent = tokio::task::spawn_blocking(move || export.end(LAST_SPANS));
            timeout(LAST_SPANS * 2, sent).await.ok();
        }
        tracing::info!(took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX), "ended");
        ended
    }
}

impl From<Result<Ending, Broken>> for Ended {
    fn from(ending: Result<Ending, Broken>) -> Ended {
        match ending {
            Ok(Ending::Stopped) => Ended::Stopped,
            Ok(Ending::Superseded(by)) => Ended::Superseded(by),
            Err(broken) => Ended::Broken(broken),
        }
    }
}
