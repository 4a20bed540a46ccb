//! A job on its way, from its submission or from its present state to its end, over as many nodes as it takes.
//!
//! Owns the cursor: what was seen last. Invariant: of what it yields neither the state, nor (term, number), nor the
//! completed share goes back, and the terminal message is the last. Section 9 of the contract.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

use crate::jobs::Payload;
use crate::protocol::ids::{JobId, JobKey};
use crate::protocol::message::{JobQuery, SubmitJob};
use crate::protocol::progress::{Cursor, next_message};
use crate::protocol::time::Wall;
use crate::protocol::view::JobView;
use crate::wire;

use super::error::Trouble;
use super::line::{self, JobMessages};
use super::{Client, ClientError};

/// What a follower learns.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// The submission is acknowledged: from now on the cluster answers for the job.
    Acknowledged(Arc<JobView>),
    /// The job moved.
    Progress(Arc<JobView>),
    /// Another node is asked now; says which, and why.
    Moved(String),
}

#[derive(Debug)]
enum Phase {
    Submitting(SubmitJob),
    Following(Option<Box<JobMessages>>),
    Ended,
}

/// The wall clock so much later.
fn from_now(within: Duration) -> Wall {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_add(within);
    Wall(u64::try_from(at.as_millis()).unwrap_or(u64::MAX))
}

/// Yields what becomes of a job.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    job: JobQuery,
    phase: Phase,
    /// When it is too late for a submission to be acknowledged.
    late_at: Option<Instant>,
    acknowledged: bool,
    last: Option<Cursor>,
}

impl Follow {
    pub(super) fn submission(client: Client, id: JobId, payload: Payload, deadline: Option<Duration>) -> Follow {
        let key = JobKey { id, digest: wire::digest_of(&payload) };
        let late_at = deadline.map(|within| Instant::now() + within);
        let deadline = deadline.map(from_now);
        let job = SubmitJob { key, payload, deadline, forwarded: false, trace: None };
        // By its whole name: the other side of a split may have taken another payload under this id.
        let query = JobQuery { id: job.key.id.clone(), digest: Some(job.key.digest), forwarded: false };
        Follow { client, job: query, phase: Phase::Submitting(job), late_at, acknowledged: false, last: None }
    }

    pub(super) fn of(client: Client, job: JobQuery) -> Follow {
        Follow { client, job, phase: Phase::Following(None), late_at: None, acknowledged: false, last: None }
    }

    /// Whether the cluster answers for the job.
    #[must_use]
    pub fn is_acknowledged(&self) -> bool {
        self.acknowledged
    }

    /// The next news; none after the terminal message.
    ///
    /// # Errors
    /// There is no such job, it was refused, or no node has answered for too long.
    pub async fn next(&mut self) -> Result<Option<News>, ClientError> {
        loop {
            if matches!(self.phase, Phase::Ended) {
                return Ok(None);
            }
            self.client.reach().await?;
            if let Some(moved) = self.client.moved() {
                return Ok(Some(News::Moved(moved)));
            }
            match self.advance().await {
                Ok(Some(news)) => return Ok(Some(news)),
                Ok(None) => {}
                Err(trouble) => self.recover(trouble).await?,
            }
        }
    }

    /// One step at the present node.
    async fn advance(&mut self) -> Result<Option<News>, Trouble> {
        let Some(line) = self.client.line.clone() else { return Ok(None) };
        match &mut self.phase {
            Phase::Submitting(job) => {
                let view = Arc::new(self.client.attended(line.submit(job)).await?);
                // The wait may have been that for the cluster to form: who came to it is known now.
                self.client.learn(&line).await;
                self.acknowledged = true;
                self.saw(&view);
                Ok(Some(News::Acknowledged(view)))
            }
            Phase::Following(None) => {
                let messages = line.subscribe(&self.job, self.last.as_ref()).await?;
                self.phase = Phase::Following(Some(Box::new(messages)));
                Ok(None)
            }
            Phase::Following(Some(messages)) => {
                let next = async { messages.message().await.map_err(line::failed) };
                let Some(message) = self.client.attended(next).await? else {
                    return Err(Trouble::Elsewhere("ended the stream".to_owned()));
                };
                // Nodes see to it that nothing goes back; this is for one that fails to.
                let Some(view) = next_message(Arc::new(line::job(message)?), self.last.as_ref()) else {
                    return Ok(None);
                };
                self.saw(&view);
                Ok(Some(News::Progress(view)))
            }
            Phase::Ended => Ok(None),
        }
    }

    fn saw(&mut self, view: &JobView) {
        self.last = Some(Cursor::of(view));
        if view.state.is_terminal() {
            self.phase = Phase::Ended;
        } else if matches!(self.phase, Phase::Submitting(_)) {
            self.phase = Phase::Following(None);
        }
    }

    async fn recover(&mut self, trouble: Trouble) -> Result<(), ClientError> {
        if let Phase::Following(messages) = &mut self.phase {
            *messages = None;
        }
        let is_late = self.late_at.is_some_and(|at| Instant::now() >= at);
        if is_late && matches!(self.phase, Phase::Submitting(_)) {
            return Err(ClientError::Late(self.job.id.to_string()));
        }
        match trouble {
            // A node that came back empty, or a leader that has not joined its followers yet.
            Trouble::Final(ClientError::NotFound(why)) if self.acknowledged || self.last.is_some() => {
                self.client.stumbled(Trouble::Elsewhere(why.clone())).await.map_err(|_| ClientError::NotFound(why))
            }
            trouble => self.client.stumbled(trouble).await,
        }
    }
}
