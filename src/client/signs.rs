//! Signs of life of the node that is asked, so that a silent node is told from a slow job.
//!
//! Owns the pings, and when they bring the members too. Never decides where the client goes on.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::error::Trouble;
use super::line::{Line, living};
use crate::protocol::ids::Address;

/// Between two signs.
const EVERY: Duration = Duration::from_millis(500);
/// How long a sign may take. Nodes compute on threads of lower priority, so a busy one answers in time.
const WITHIN: Duration = Duration::from_millis(1_000);
/// The first so many signs bring the members too, since a cluster may just be forming; later each so-manieth does.
const FIRST: u32 = 4;
const EACH: u32 = 20;

/// What the node names with a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// All living members.
    Members(Vec<Address>),
    /// The leader that it follows, if any.
    Leader(Option<Address>),
}

/// The signs of one node, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Signs {
    received: mpsc::Receiver<Result<Sign, Trouble>>,
    _asking: AbortOnDropHandle<()>,
}

impl Signs {
    /// Begins to ask.
    pub(super) fn of(line: Line) -> Signs {
        // One place: who does not listen is not told more than what came last.
        let (sender, received) = mpsc::channel(1);
        let asking = AbortOnDropHandle::new(tokio::spawn(async move {
            for count in 1.. {
                let sign = timeout(WITHIN, ask(&line, count)).await;
                let sign = sign.unwrap_or_else(|_| Err(Trouble::Elsewhere("silent".to_owned())));
                if sender.send(sign).await.is_err() {
                    break;
                }
                sleep(EVERY).await;
            }
        }));
        Signs { received, _asking: asking }
    }

    /// The next sign. Nothing is lost when this wait is given up.
    pub(super) async fn next(&mut self) -> Result<Sign, Trouble> {
        self.received.recv().await.unwrap_or_else(|| Err(Trouble::Elsewhere("silent".to_owned())))
    }
}

async fn ask(line: &Line, count: u32) -> Result<Sign, Trouble> {
    if count <= FIRST || count.is_multiple_of(EACH) {
        return Ok(Sign::Members(living(&line.cluster().await?)));
    }
    Ok(Sign::Leader(line.leader().await?))
}
