//! The directory at run time: one task that owns a [`Directory`], and the way to it.
//!
//! Owns the queue, the timer and the streams of watchers. Never decides who is a member: `directory` does. A watcher
//! is not pushed changes, it is told that there are some and takes what it lacks, so that a slow one costs nothing.
//! Section 4 of the contract.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::clock::Clock;
use crate::directory::Directory;
use crate::protocol::ids::{Incarnation, Member, NodeId};
use crate::protocol::limits;
use crate::protocol::message::{Code, DirectoryAnswer, DirectoryRequest, MembershipEvent, Refusal, Revision};

/// Questions that may wait.
const QUEUE: usize = 1_024;
/// Questions answered at once at most.
const BATCH: usize = 256;
/// Messages under way to one watcher; what it lacks beyond it takes later.
const AHEAD: usize = 64;

/// A question, and the way back to who asked it.
#[derive(Debug)]
enum Question {
    Call(DirectoryRequest, oneshot::Sender<Result<DirectoryAnswer, Refusal>>),
    Members(oneshot::Sender<(Revision, Vec<Member>)>),
    Random(Option<NodeId>, oneshot::Sender<Option<Member>>),
    After(Revision, oneshot::Sender<(Revision, Vec<MembershipEvent>)>),
}

/// A directory, for whoever serves its calls. Clones speak to the same one.
#[derive(Clone, Debug)]
pub struct DirectoryHandle {
    questions: mpsc::Sender<Question>,
    changed: watch::Receiver<Revision>,
    cluster: std::sync::Arc<str>,
    watchers: TaskTracker,
    ended: CancellationToken,
}

/// A directory whose task runs.
#[derive(Debug)]
pub struct RunningDirectory {
    handle: DirectoryHandle,
    life: JoinHandle<()>,
}

/// Starts a directory. `seed` decides whom GetRandomWorker picks.
#[must_use]
pub fn start(cluster: &str, incarnation: Incarnation, lease_ttl: Duration, seed: u64) -> RunningDirectory {
    let directory = Directory::new(incarnation, lease_ttl, seed);
    let (questions, inbox) = mpsc::channel(QUEUE);
    let (change, changed) = watch::channel(directory.revision());
    let ended = CancellationToken::new();
    let handle = DirectoryHandle {
        questions,
        changed,
        cluster: cluster.into(),
        watchers: TaskTracker::new(),
        ended: ended.clone(),
    };
    let life = tokio::spawn(run(directory, inbox, change, ended));
    RunningDirectory { handle, life }
}

impl RunningDirectory {
    /// The way in, for its doors.
    #[must_use]
    pub fn handle(&self) -> DirectoryHandle {
        self.handle.clone()
    }

    /// Ends the directory and the streams of its watchers. Members notice by their next renewal, and go on.
    pub async fn end(self) {
        self.handle.ended.cancel();
        if let Err(panic) = self.life.await {
            tracing::error!(%panic, "the directory broke down, which is a bug");
        }
        self.handle.watchers.close();
        self.handle.watchers.wait().await;
    }
}

async fn run(
    mut directory: Directory,
    mut inbox: mpsc::Receiver<Question>,
    change: watch::Sender<Revision>,
    ended: CancellationToken,
) {
    let clock = Clock::start();
    let mut taken = Vec::new();
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            () = clock.reaches(directory.next_deadline()) => {}
            _ = inbox.recv_many(&mut taken, BATCH) => {}
        }
        directory.expire(clock.now());
        for question in taken.drain(..) {
            answer(&mut directory, &clock, question);
        }
        change.send_if_modified(|told| std::mem::replace(told, directory.revision()) != directory.revision());
    }
}

fn answer(directory: &mut Directory, clock: &Clock, question: Question) {
    // An answer that nobody waits for any more is dropped.
    match question {
        Question::Call(request, back) => drop(back.send(directory.request(clock.now(), request))),
        Question::Members(back) => drop(back.send((directory.revision(), directory.members().cloned().collect()))),
        Question::Random(besides, back) => drop(back.send(directory.random(besides.as_ref()))),
        Question::After(revision, back) => drop(back.send((directory.revision(), directory.watch(revision)))),
    }
}

impl DirectoryHandle {
    /// Registers, renews or gives back a lease.
    ///
    /// # Errors
    /// The directory's [`Refusal`], or one that says that it has too much to do, or ends.
    pub async fn request(&self, request: DirectoryRequest) -> Result<DirectoryAnswer, Refusal> {
        self.ask(|back| Question::Call(request, back)).await?
    }

    /// All members, by node id, and the revision at which they were so.
    ///
    /// # Errors
    /// A [`Refusal`] when the directory has too much to do, or ends.
    pub async fn members(&self) -> Result<(Revision, Vec<Member>), Refusal> {
        self.ask(Question::Members).await
    }

    /// A member at random, other than `besides`.
    ///
    /// # Errors
    /// A [`Refusal`] when the directory has too much to do, or ends.
    pub async fn random(&self, besides: Option<NodeId>) -> Result<Option<Member>, Refusal> {
        self.ask(|back| Question::Random(besides, back)).await
    }

    /// The membership stream after a revision; `Revision::default()` for who has seen nothing.
    pub fn watch(&self, after: Revision) -> impl Stream<Item = MembershipEvent> + Send + Unpin + 'static {
        let (out, events) = mpsc::channel(AHEAD);
        let handle = self.clone();
        self.watchers.spawn(async move {
            let ended = handle.ended.clone();
            ended.run_until_cancelled(handle.tell(after, out)).await;
        });
        ReceiverStream::new(events)
    }

    /// Name of the cluster.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    async fn tell(mut self, mut after: Revision, out: mpsc::Sender<MembershipEvent>) {
        loop {
            // Refused when the directory has too much to do: the watcher finds its stream ended and resumes it.
            let Ok((stands, events)) = self.ask(|back| Question::After(after, back)).await else { return };
            for event in events {
                if out.send(event).await.is_err() {
                    return;
                }
            }
            after = stands;
            tokio::select! {
                moved = self.changed.wait_for(|last| *last != after) => if moved.is_err() { return },
                () = out.closed() => return,
            }
        }
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Question) -> Result<T, Refusal> {
        let (back, answer) = oneshot::channel();
        self.questions.try_send(question(back)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => too_busy(),
            mpsc::error::TrySendError::Closed(_) => ending(),
        })?;
        answer.await.map_err(|_| ending())
    }
}

fn too_busy() -> Refusal {
    let message =
        format!("this directory has {QUEUE} calls waiting, which is the most it keeps; try again in a moment");
    Refusal::new(Code::ResourceExhausted, message).retry_in(limits::LINK_CALL)
}

fn ending() -> Refusal {
    Refusal::new(Code::Unavailable, "this directory is ending; it is asked again once it is back")
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;
    use crate::protocol::ids::Address;

    fn member(node: &str) -> Member {
        let address = Address::new("a:1").expect("a good address");
        Member {
            node: NodeId::new(node).expect("a good name"),
            incarnation: Incarnation(1),
            http: address.clone(),
            address,
            version: "0".into(),
            concurrency: 1,
        }
    }

    fn numbers(events: &[MembershipEvent]) -> Vec<u64> {
        let revision = |event: &MembershipEvent| match event {
            MembershipEvent::Snapshot(at, _) | MembershipEvent::Joined(at, _) | MembershipEvent::Left(at, _) => {
                at.number
            }
            MembershipEvent::Resync => u64::MAX,
        };
        events.iter().map(revision).collect()
    }

    #[tokio::test]
    async fn a_watcher_gets_a_snapshot_then_every_change_in_order_however_slowly_it_reads() {
        let directory = start("test", Incarnation(1), Duration::from_secs(600), 1);
        let handle = directory.handle();
        let mut stream = handle.watch(Revision::default());
        let first = stream.next().await.expect("a snapshot");
        assert_eq!(numbers(std::slice::from_ref(&first)), [0]);
        let joined = (AHEAD * 3) as u64;
        for node in 0..joined {
            let register = DirectoryRequest::Register(member(&format!("n{node}")));
            handle.request(register).await.expect("there is room");
        }
        let mut events = Vec::new();
        while (events.len() as u64) < joined {
            events.push(stream.next().await.expect("a change"));
        }
        assert_eq!(numbers(&events), (1..=joined).collect::<Vec<u64>>());
        directory.end().await;
        assert_eq!(stream.next().await, None);
        assert_eq!(handle.members().await.map_err(|refusal| refusal.code), Err(Code::Unavailable));
    }

    #[tokio::test]
    async fn a_lease_runs_out_by_itself_and_watchers_are_told() {
        let directory = start("test", Incarnation(1), Duration::from_millis(20), 1);
        let handle = directory.handle();
        handle.request(DirectoryRequest::Register(member("a"))).await.expect("there is room");
        let mut stream = handle.watch(Revision { incarnation: Incarnation(1), number: 1 });
        let left = MembershipEvent::Left(Revision { incarnation: Incarnation(1), number: 2 }, member("a").identity());
        assert_eq!(stream.next().await, Some(left));
        directory.end().await;
    }
}
