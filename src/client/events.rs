//! What happens in the cluster, followed for as long as somebody listens.
//!
//! Owns the place in one node's events. Events that another node had while nobody listened are not made up for:
//! their numbers are its own.

use crate::protocol::ids::Address;
use crate::protocol::view::Event;

use super::error::Trouble;
use super::line::{self, EventMessages};
use super::{Client, ClientError};

/// What a listener hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// Something happened.
    Event(Event),
    /// Another node is listened to now; says which, and why.
    Moved(String),
}

/// Yields events; has no end of its own.
#[derive(Debug)]
pub struct Events {
    client: Client,
    all_members: bool,
    messages: Option<Box<EventMessages>>,
    /// The seq of the last event, and whose it is.
    last: Option<(Address, u64)>,
}

impl Events {
    pub(super) fn new(client: Client, all_members: bool) -> Events {
        Events { client, all_members, messages: None, last: None }
    }

    /// The next event.
    ///
    /// # Errors
    /// No node has answered for too long.
    pub async fn next(&mut self) -> Result<Heard, ClientError> {
        loop {
            self.client.reach().await?;
            if let Some(moved) = self.client.moved() {
                return Ok(Heard::Moved(moved));
            }
            match self.advance().await {
                Ok(Some(event)) => return Ok(Heard::Event(event)),
                Ok(None) => {}
                Err(trouble) => {
                    self.messages = None;
                    self.client.stumbled(trouble).await?;
                }
            }
        }
    }

    async fn advance(&mut self) -> Result<Option<Event>, Trouble> {
        let Some(line) = self.client.line.clone() else { return Ok(None) };
        let Some(messages) = &mut self.messages else {
            let own = self.last.as_ref().filter(|(of, _)| of == line.address() && !self.all_members);
            self.messages = Some(Box::new(line.events(self.all_members, own.map(|(_, seq)| *seq)).await?));
            return Ok(None);
        };
        let next = async { messages.message().await.map_err(line::failed) };
        let Some(message) = self.client.attended(next).await? else {
            return Err(Trouble::Elsewhere("ended the stream".to_owned()));
        };
        let event = line::event(message)?;
        self.last = Some((line.address().clone(), event.seq));
        Ok(Some(event))
    }
}
