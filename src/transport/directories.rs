//! Calls to directories, and their membership streams.
//!
//! Owns one connection per directory, and how long a call there may take.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tonic::transport::Channel;

use crate::protocol::Input;
use crate::protocol::ids::Address;
use crate::protocol::message::{CallFailure, Code, DirectoryAnswer, DirectoryId, DirectoryRequest, Refusal, Revision};
use crate::wire::v1::bootstrap_service_client::BootstrapServiceClient;
use crate::wire::{LARGEST_MESSAGE, status, v1};

use super::calls::{Caller, answered};
use super::dial::Dialer;
use super::peers::{Connection, Line};

/// How long a directory may take. The protocol renews its leases every two seconds and has no timer for this.
const ANSWER: Duration = Duration::from_secs(2);
/// Calls under way to one directory.
const CALLS: usize = 8;

/// The directories, each at the place of its id.
#[derive(Debug)]
pub(super) struct Directories(Vec<Directory>);

#[derive(Debug)]
struct Directory {
    dialer: Dialer,
    connection: Connection,
    watch: Option<AbortHandle>,
}

impl Directories {
    pub(super) fn new(addresses: Vec<Address>) -> Directories {
        let directory =
            |address| Directory { dialer: Dialer::new(address), connection: Connection::new(CALLS), watch: None };
        Directories(addresses.into_iter().map(directory).collect())
    }

    fn at(&mut self, id: DirectoryId) -> Result<&mut Directory, String> {
        let many = self.0.len();
        let place = usize::try_from(id.0).ok();
        place
            .and_then(|place| self.0.get_mut(place))
            .ok_or_else(|| format!("there is no directory {}, of {many}", id.0))
    }

    pub(super) fn line(&mut self, id: DirectoryId) -> Result<Line, String> {
        self.at(id).and_then(|directory| directory.connection.line(&directory.dialer))
    }

    /// A watch takes no place from calls: there is one at most.
    pub(super) fn channel(&mut self, id: DirectoryId) -> Result<Channel, String> {
        self.at(id).and_then(|directory| directory.connection.channel(&directory.dialer))
    }

    /// A watch is open, in place of the one before.
    pub(super) fn watched(&mut self, id: DirectoryId, handle: AbortHandle) {
        if let Ok(directory) = self.at(id)
            && let Some(before) = directory.watch.replace(handle)
        {
            before.abort();
        }
    }
}

/// Calls a directory.
pub(super) async fn ask(caller: Caller, line: Line, request: DirectoryRequest) -> Result<DirectoryAnswer, CallFailure> {
    let mut directory = BootstrapServiceClient::new(line.channel.clone());
    let answer = async {
        match request {
            DirectoryRequest::Register(member) => {
                let message = v1::RegisterWorkerRequest { member: Some((&member).into()) };
                answered(directory.register_worker(caller.request(message))).await
            }
            DirectoryRequest::Heartbeat(who) => {
                let message = v1::HeartbeatRequest { identity: Some((&who).into()) };
                match answered(directory.heartbeat(caller.request(message))).await {
                    Err(CallFailure::Refused(Refusal { code: Code::NotFound, .. })) => {
                        Ok(DirectoryAnswer::UnknownLease)
                    }
                    answer => answer,
                }
            }
            DirectoryRequest::Deregister(who) => {
                let message = v1::DeregisterRequest { identity: Some((&who).into()) };
                let answer = directory.deregister(caller.request(message)).await;
                answer.map(|_| DirectoryAnswer::Left).map_err(|status| status::failure_of(&status))
            }
        }
    };
    tokio::time::timeout(ANSWER, answer).await.unwrap_or(Err(CallFailure::TimedOut))
}

/// Passes a membership stream on, until it ends.
pub(super) async fn watch(
    caller: Caller,
    channel: Channel,
    directory: DirectoryId,
    after: Revision,
    inputs: mpsc::Sender<Input>,
) -> Input {
    if let Err(failure) = pass_on(caller, channel, directory, after, inputs).await {
        tracing::debug!(directory = directory.0, ?failure, "the membership stream broke");
    }
    Input::WatchEnded { directory }
}

async fn pass_on(
    caller: Caller,
    channel: Channel,
    directory: DirectoryId,
    after: Revision,
    inputs: mpsc::Sender<Input>,
) -> Result<(), CallFailure> {
    let mut client = BootstrapServiceClient::new(channel).max_decoding_message_size(LARGEST_MESSAGE);
    let begin = after == Revision::default();
    let request = v1::WatchMembershipRequest { after: (!begin).then(|| after.into()) };
    let opened = tokio::time::timeout(ANSWER, client.watch_membership(caller.request(request))).await;
    let opened = opened.map_err(|_| CallFailure::TimedOut)?;
    let mut messages = opened.map_err(|status| status::failure_of(&status))?.into_inner();
    loop {
        let message = messages.message().await.map_err(|status| status::failure_of(&status))?;
        let Some(message) = message else { return Ok(()) };
        let event = message
            .try_into()
            .map_err(|error| CallFailure::Unreachable(format!("its message makes no sense: {error}")))?;
        if inputs.send(Input::Membership { directory, event }).await.is_err() {
            return Ok(());
        }
    }
}
