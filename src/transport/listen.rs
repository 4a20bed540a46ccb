//! Listening to the events of another member, for a node that gathers them (WatchCluster of section 3).

use std::time::Duration;

use tokio::sync::mpsc;

use crate::protocol::ids::Member;
use crate::protocol::message::CallFailure;
use crate::protocol::view::Event;
use crate::wire::v1::coordinator_service_client::CoordinatorServiceClient;
use crate::wire::{Malformed, status, v1};

use super::calls::Caller;
use super::dial::Dialer;

/// How long a member may take to accept.
const ACCEPT: Duration = Duration::from_secs(2);

/// Listens to members of a cluster.
#[derive(Clone, Debug)]
pub struct Listener {
    caller: Caller,
}

impl Listener {
    /// A listener of a cluster.
    #[must_use]
    pub fn new(cluster: &str) -> Listener {
        Listener { caller: Caller::new(cluster) }
    }

    /// Passes on a member's own events from now on, until it ends or nobody takes them any more.
    pub async fn listen(&self, member: &Member, out: mpsc::Sender<Event>) {
        tokio::select! {
            () = out.closed() => {}
            ended = self.pass_on(member, &out) => {
                if let Err(failure) = ended {
                    tracing::debug!(node = %member.node, ?failure, "its events ended");
                }
            }
        }
    }

    async fn pass_on(&self, member: &Member, out: &mpsc::Sender<Event>) -> Result<(), CallFailure> {
        let channel = Dialer::new(member.address.clone()).channel().map_err(CallFailure::Unreachable)?;
        let mut client = CoordinatorServiceClient::new(channel);
        let request = self.caller.request(v1::WatchClusterRequest { after: None, all_members: false });
        let accepted = tokio::time::timeout(ACCEPT, client.watch_cluster(request)).await;
        let accepted = accepted.map_err(|_| CallFailure::TimedOut)?;
        let mut messages = accepted.map_err(|status| status::failure_of(&status))?.into_inner();
        while let Some(message) = messages.message().await.map_err(|status| status::failure_of(&status))? {
            let event = message.event.map(TryInto::try_into).transpose();
            let event: Option<Event> = event
                .map_err(|error: Malformed| CallFailure::Unreachable(format!("its event makes no sense: {error}")))?;
            if let Some(event) = event
                && out.send(event).await.is_err()
            {
                break;
            }
        }
        Ok(())
    }
}
