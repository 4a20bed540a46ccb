//! Starting a worker's loop, and waiting for its end.
//!
//! Owns how the parts of a node are put together. Never serves anybody: the doors do, through the [`Handle`].

use std::io;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

use super::actor::Actor;
use super::clock::Clock;
use super::handle::{Handle, Shared};
use super::perform::Performer;
use crate::journal::{Journal, JournalFailed};
use crate::protocol::effects::Ending;
use crate::protocol::{Input, Setup, Worker};
use crate::transport::Transport;

/// A worker whose loop runs.
#[derive(Debug)]
pub struct Running {
    handle: Handle,
    life: JoinHandle<Result<Ending, JournalFailed>>,
}

/// Why a worker ended without being asked.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// Its journal failed.
    #[error(
        "the journal failed: {0}; nothing that was acknowledged is lost: free space or mend the disk, then start the node again"
    )]
    Journal(#[from] JournalFailed),
    /// Its loop broke down.
    #[error("the loop of this node broke down, which is a bug: {0}")]
    Loop(#[from] JoinError),
}

/// Starts a worker. `queue` is the way in that `journal` and `transport` were given, and `inbox` its other end.
///
/// # Errors
/// When the system gives no thread more.
pub fn start(
    cluster: String,
    setup: Setup,
    (queue, inbox): (mpsc::Sender<Input>, mpsc::Receiver<Input>),
    journal: Journal,
    transport: Transport,
) -> io::Result<Running> {
    let shared = Arc::new(Shared::new(cluster, setup.member.clone(), queue));
    let performer = Performer::new(journal, transport, Arc::clone(&shared))?;
    let worker = Worker::new(setup);
    let actor = Actor::new(worker, Clock::start(), inbox, performer, Arc::clone(&shared));
    Ok(Running { handle: Handle::new(shared), life: tokio::spawn(actor.run()) })
}

impl Running {
    /// The way in, for its doors.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Asks it to step down, hand back and leave; [`Running::ended`] says when it has.
    pub async fn stop(&self) {
        self.handle.stop().await;
    }

    /// Waits until it has ended. May be dropped and asked again.
    ///
    /// # Errors
    /// [`Broken`], when it ended without being asked.
    pub async fn ended(&mut self) -> Result<Ending, Broken> {
        Ok((&mut self.life).await??)
    }
}
