//! The resuming client: asks whichever node answers first, and goes on with another when that one dies or falls
//! silent.
//!
//! Owns the connection to one node at a time ([`line`](self)) and the addresses of others. Invariant: what it shows
//! of a job never goes back, whichever node it comes from ([`Follow`]). Never decides what people read. Sections 7, 9
//! and 11 of the contract.

mod error;
mod events;
mod follow;
mod health;
mod line;
mod name;
mod roster;
mod signs;

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::jobs::Payload;
use crate::protocol::ids::{Address, JobId, JobKey};
use crate::protocol::message::JobQuery;
use crate::protocol::view::JobView;
use crate::wire::{self, NamedCluster};

pub use error::ClientError;
pub use events::{Events, Heard};
pub use follow::{Follow, News};
pub use health::health;
pub use name::fresh_job_id;

use error::Trouble;
use line::Line;
use roster::Roster;
use signs::{Sign, Signs};

/// How long a client goes on while nobody answers. An election takes a second, a restart of a node a few.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client goes on asking a cluster that is full.
const FULL: Duration = Duration::from_secs(30);
/// How long a client waits to hear who is there. It goes on without.
const LEARN: Duration = Duration::from_millis(500);
/// Between two rounds in which nobody answered.
const PAUSE: Duration = Duration::from_millis(100);

/// A job's name as people type it: `ID`, or `ID:DIGEST` with the digest as 64 hexadecimal digits.
///
/// # Errors
/// What is allowed, as half a sentence.
pub fn job_named(text: &str) -> Result<JobQuery, String> {
    wire::job_query(text, false).map_err(|malformed| malformed.allowed)
}

/// A client of a cluster.
#[derive(Debug)]
pub struct Client {
    roster: Roster,
    /// The name of the cluster that answered first. An address may pass to a node of another one.
    cluster: Option<String>,
    line: Option<Line>,
    /// Of the node there, once something waits for it.
    signs: Option<Signs>,
    /// Since when nothing has come of it.
    troubled: Option<Instant>,
    /// The node that was let go and why, until another one is found.
    left: Option<String>,
}

impl Client {
    /// Connects to whichever node answers first.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if none does, within two seconds.
    pub async fn connect(nodes: Vec<Address>) -> Result<Client, ClientError> {
        let mut client =
            Client { roster: Roster::new(nodes), cluster: None, line: None, signs: None, troubled: None, left: None };
        match client.round().await {
            Ok(line) => client.line = Some(line),
            Err(last) => return Err(client.unreachable(last)),
        }
        Ok(client)
    }

    /// The cluster as the asked node sees it.
    ///
    /// # Errors
    /// No node answers.
    pub async fn cluster(&mut self) -> Result<NamedCluster, ClientError> {
        self.ask(async |line| line.cluster().await).await
    }

    /// The jobs after a key, in the order of their keys, as many as one answer holds; none at the end.
    ///
    /// # Errors
    /// No node answers.
    pub async fn jobs(&mut self, after: Option<&JobKey>) -> Result<Vec<JobView>, ClientError> {
        self.ask(async |line| line.jobs(after).await).await
    }

    /// Ends a job; the answer is the job as it ended.
    ///
    /// # Errors
    /// There is no such job, or no node answers.
    pub async fn cancel(&mut self, job: &JobQuery) -> Result<JobView, ClientError> {
        self.ask(async |line| line.cancel(job).await).await
    }

    /// Hands in a job, and follows it to its end. With a deadline it fails unless it has ended by then.
    #[must_use]
    pub fn submit(self, id: JobId, payload: Payload, deadline: Option<Duration>) -> Follow {
        Follow::submission(self, id, payload, deadline)
    }

    /// Follows a job to its end.
    #[must_use]
    pub fn follow(self, job: JobQuery) -> Follow {
        Follow::of(self, job)
    }

    /// What happens from now on: at one node, or at all members.
    #[must_use]
    pub fn events(self, all_members: bool) -> Events {
        Events::new(self, all_members)
    }

    /// Asks one node after the other until one has an answer.
    async fn ask<A>(&mut self, question: impl AsyncFn(&Line) -> Result<A, Trouble>) -> Result<A, ClientError> {
        loop {
            let line = self.reach().await?.clone();
            match self.attended(question(&line)).await {
                Ok(answer) => return Ok(answer),
                Err(trouble) => self.stumbled(trouble).await?,
            };
        }
    }

    /// The present connection, or one to whichever node answers first now.
    async fn reach(&mut self) -> Result<&mut Line, ClientError> {
        while self.line.is_none() {
            match self.round().await {
                Ok(line) => self.line = Some(line),
                Err(last) => self.stumbled(Trouble::Elsewhere(last)).await?,
            }
        }
        // The loop ends only with a connection.
        let missing = self.unreachable("no connection".to_owned());
        self.line.as_mut().ok_or(missing)
    }

    /// Tries all nodes at once, and after them the one that failed last.
    async fn round(&mut self) -> Result<Line, String> {
        let (good, failed) = self.roster.candidates();
        let mut last = String::new();
        for together in [good, Vec::from_iter(failed)] {
            let mut attempts: JoinSet<_> = together.into_iter().map(Line::open).collect();
            while let Some(attempt) = attempts.join_next().await {
                match attempt {
                    Ok(Ok((line, cluster))) => {
                        let own = self.cluster.get_or_insert_with(|| cluster.cluster.clone());
                        if *own == cluster.cluster {
                            self.roster.learn(line::living(&cluster));
                            return Ok(line);
                        }
                        last = format!("a node of another cluster, {}", cluster.cluster);
                    }
                    Ok(Err(Trouble::Elsewhere(why) | Trouble::Full(why, _))) => last = why,
                    Ok(Err(Trouble::Final(error))) => last = error.to_string(),
                    Err(error) => last = error.to_string(),
                }
            }
        }
        Err(last)
    }

    /// Asks who is there. Who gives no answer is found out by its signs.
    async fn learn(&mut self, line: &Line) {
        if let Ok(Ok(cluster)) = timeout(LEARN, line.cluster()).await {
            self.roster.learn(line::living(&cluster));
        }
    }

    /// Waits for a call that may take long, as long as the node shows that it lives.
    async fn attended<A>(&mut self, call: impl Future<Output = Result<A, Trouble>>) -> Result<A, Trouble> {
        let mut call = std::pin::pin!(call);
        let Some(line) = self.line.clone() else { return call.await };
        let signs = self.signs.get_or_insert_with(|| Signs::of(line));
        loop {
            tokio::select! {
                biased;
                result = &mut call => {
                    if result.is_ok() {
                        self.troubled = None;
                    }
                    return result;
                }
                sign = signs.next() => {
                    match sign? {
                        Sign::Members(members) => self.roster.learn(members),
                        Sign::Leader(leader) => leader.into_iter().for_each(|leader| self.roster.add(leader)),
                    }
                    self.troubled = None;
                }
            }
        }
    }

    /// An attempt failed: gives up, or lets go of the node and waits a little.
    async fn stumbled(&mut self, trouble: Trouble) -> Result<(), ClientError> {
        let is_first = self.troubled.is_none();
        let since = *self.troubled.get_or_insert_with(Instant::now);
        let (limit, pause) = match &trouble {
            Trouble::Final(error) => return Err(error.clone()),
            // Another node may answer at once, and does not hear from us more often than it should.
            Trouble::Elsewhere(_) if is_first => (PATIENCE, Duration::ZERO),
            Trouble::Elsewhere(_) => (PATIENCE, PAUSE),
            Trouble::Full(_, after) => (FULL, *after),
        };
        if since.elapsed() + pause > limit {
            return Err(match trouble {
                Trouble::Final(error) => error,
                Trouble::Elsewhere(last) => self.unreachable(last),
                Trouble::Full(why, _) => ClientError::Full(why),
            });
        }
        self.signs = None;
        if let (Some(line), Trouble::Elsewhere(why)) = (self.line.take(), &trouble) {
            self.roster.failed(line.address());
            self.left.get_or_insert_with(|| format!("{}: {why}", line.address()));
        }
        sleep(pause).await;
        Ok(())
    }

    /// Why another node is asked now than before, told once.
    fn moved(&mut self) -> Option<String> {
        let to = self.line.as_ref()?.address().clone();
        self.left.take().map(|left| format!("{left}; going on with {to}"))
    }

    fn unreachable(&self, last: String) -> ClientError {
        ClientError::Unreachable { tried: self.roster.shown(), last }
    }
}
