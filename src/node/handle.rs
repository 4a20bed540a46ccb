//! The node as its doors see it: ask it, follow it, watch it.
//!
//! Owns how a call, a follower's stream or a subscriber gets to the loop and back. Never decides anything, never
//! waits without the caller being able to leave. Invariants: the queue is bounded, and whoever waits for an answer
//! holds a place in it for saying that it is gone; so no load can keep the worker from learning of it. Clients are
//! refused while peers still get in.

use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::callers::Callers;
use super::events::Events;
use super::followers::Followers;
use super::subscribers::Subscriptions;
use crate::protocol::Input;
use crate::protocol::ids::{Member, ReplyToken, StreamId};
use crate::protocol::limits;
use crate::protocol::message::{Code, Down, JobQuery, Refusal, Request, Response, Up};
use crate::protocol::progress::Cursor;
use crate::protocol::trace::Trace;
use crate::protocol::view::{Event, JobView};
use crate::telemetry::export::Counts;
use crate::telemetry::metrics::Metrics;

/// Inputs that may wait for the loop. Every caller that waits holds one place, and there may be
/// [`limits::CALLERS`] of them, so that they take a quarter at most.
pub const QUEUE: usize = limits::CALLERS * 4;
/// Places that are left to peers, to the journal and to the pool when clients come in crowds.
const KEPT_FROM_CLIENTS: usize = QUEUE / 2;
/// How long a scrape waits for the worker.
const SCRAPE: std::time::Duration = std::time::Duration::from_secs(1);
/// Messages under way to one reader of events; the rest waits in the ring.
const EVENTS_AHEAD: usize = 64;

/// A node's worker, for whoever serves its calls. Clones speak to the same one.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// What the doors and the loop both hold. Nothing of the protocol's state is in here.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) cluster: String,
    pub(super) member: Member,
    pub(super) queue: mpsc::Sender<Input>,
    pub(super) callers: Callers,
    pub(super) followers: Followers,
    pub(super) subscriptions: Subscriptions,
    pub(super) events: Events,
    pub(super) metrics: Arc<Metrics>,
    pub(super) ready: watch::Sender<bool>,
    /// Feeders of streams; they end with their readers, or when `ended` says so.
    pub(super) feeders: TaskTracker,
    pub(super) ended: CancellationToken,
}

impl Shared {
    pub(super) fn new(cluster: String, member: Member, queue: mpsc::Sender<Input>) -> Shared {
        Shared {
            cluster,
            events: Events::new(member.node.clone()),
            metrics: Arc::default(),
            member,
            queue,
            callers: Callers::default(),
            followers: Followers::default(),
            subscriptions: Subscriptions::default(),
            ready: watch::Sender::new(false),
            feeders: TaskTracker::new(),
            ended: CancellationToken::new(),
        }
    }

    /// Says whether this node can be sent work, to those who want to know.
    pub(super) fn tell_ready(&self, ready: bool) {
        self.ready.send_if_modified(|told| std::mem::replace(told, ready) != ready);
    }

    /// Lets go of everybody who waits for this node.
    pub(super) fn close(&self) {
        self.tell_ready(false);
        self.callers.close();
        self.followers.close();
        self.ended.cancel();
        self.feeders.close();
    }
}

/// A follower's stream, as its leader serves it.
#[derive(Debug)]
pub struct FollowerStream {
    /// Names it.
    pub id: StreamId,
    /// What goes to the follower; it ends when the leader closes the stream, or finds its reader too slow.
    pub frames: mpsc::Receiver<Down>,
}

impl Handle {
    pub(super) fn new(shared: Arc<Shared>) -> Handle {
        Handle { shared }
    }

    /// Asks the worker. Whoever stops waiting drops the future, and the worker learns of it.
    ///
    /// # Errors
    /// The worker's [`Refusal`], or one that says that this node has too much to do, or ends.
    pub async fn call(&self, request: Request) -> Result<Response, Refusal> {
        self.call_in(None, request).await
    }

    /// The same for a call that stands somewhere in a trace.
    ///
    /// # Errors
    /// As [`Handle::call`].
    pub async fn call_in(&self, trace: Option<Trace>, request: Request) -> Result<Response, Refusal> {
        let shared = &self.shared;
        if is_of_client(&request) && shared.queue.capacity() < KEPT_FROM_CLIENTS {
            return Err(too_busy());
        }
        let place = shared.queue.clone().try_reserve_owned().map_err(|error| refused(&error))?;
        let (token, answer) = shared.callers.enter(trace);
        let mut waiting = Waiting { callers: &shared.callers, token, place: Some(place) };
        if let Err(error) = shared.queue.try_send(Input::Called { token, request }) {
            waiting.place = None;
            return Err(refused(&error));
        }
        answer.await.unwrap_or_else(|_| Err(ending()))
    }

    /// A follower opened a Replicate stream to this node.
    ///
    /// # Errors
    /// A [`Refusal`] when this node has too much to do, or ends.
    pub fn accept_follower(&self) -> Result<FollowerStream, Refusal> {
        let shared = &self.shared;
        let place = shared.queue.clone().try_reserve_owned().map_err(|error| refused(&error))?;
        let (stream, frames) = shared.followers.enter(place).ok_or_else(too_many_followers)?;
        if let Err(error) = shared.queue.try_send(Input::FollowerOpened { stream }) {
            shared.followers.forget(stream);
            return Err(refused(&error));
        }
        Ok(FollowerStream { id: stream, frames })
    }

    /// A follower's frame came in. Waits for a place in the queue, so that a follower that sends more than the loop
    /// takes is held back on its own stream.
    pub async fn follower_sent(&self, stream: StreamId, frame: Up) {
        // It fails when the node has ended: then nobody is left who wants to know.
        self.shared.queue.send(Input::FollowerSent { stream, frame }).await.ok();
    }

    /// A follower's stream ended. Must be said once its frames are no longer read; twice is harmless.
    pub fn follower_ended(&self, stream: StreamId) {
        self.shared.followers.end(stream);
    }

    /// A job's progress after `after`: the present state, then a message whenever it moves, the terminal one last.
    /// A slow reader gets the newest state.
    pub fn subscribe(
        &self,
        job: JobQuery,
        after: Option<Cursor>,
    ) -> impl Stream<Item = Result<Arc<JobView>, Refusal>> + Send + Unpin + 'static {
        // One message may wait: the next one is chosen when the reader has taken it.
        let (out, messages) = mpsc::channel(1);
        let handle = self.clone();
        self.shared.feeders.spawn(async move {
            let ended = handle.shared.ended.clone();
            if ended.run_until_cancelled(handle.tell_progress(job, after, out.clone())).await.is_none() {
                // A reader that has not taken its last message learns it from the end of the stream.
                out.try_send(Err(ending())).ok();
            }
        });
        ReceiverStream::new(messages)
    }

    /// This node's events after a sequence number, or from now on. When those are no longer kept it starts with a
    /// `resync` and goes on with the oldest that is.
    pub fn events(&self, after: Option<u64>) -> impl Stream<Item = Event> + Send + Unpin + 'static {
        let (out, events) = mpsc::channel(EVENTS_AHEAD);
        let shared = Arc::clone(&self.shared);
        self.shared.feeders.spawn(async move {
            shared.ended.run_until_cancelled(shared.events.tell(after, out)).await;
        });
        ReceiverStream::new(events)
    }

    /// Whether this node can be sent work, now and whenever that changes.
    #[must_use]
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.shared.ready.subscribe()
    }

    /// Name of the cluster.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.shared.cluster
    }

    /// This node, as others know it.
    #[must_use]
    pub fn member(&self) -> &Member {
        &self.shared.member
    }

    /// What `/metrics` shows, with what the worker sees of the cluster if it says so soon.
    pub async fn scrape(&self, spans: Option<&Counts>) -> String {
        let asked = tokio::time::timeout(SCRAPE, self.call(Request::GetCluster)).await;
        let view = match asked {
            Ok(Ok(Response::Cluster(view))) => Some(view),
            Ok(Ok(_) | Err(_)) | Err(_) => None,
        };
        self.shared.metrics.scrape(&self.shared.member.node, view.as_deref(), spans)
    }

    /// Brings SIGTERM to the worker, behind all that waits.
    pub(super) async fn stop(&self) {
        self.shared.queue.send(Input::Stop).await.ok();
    }

    async fn tell_progress(&self, job: JobQuery, after: Option<Cursor>, out: Messages) {
        // The worker knows, or asks the leader, whether there is such a job at all.
        let first = tokio::select! {
            first = self.call(Request::GetJob(job.clone())) => first,
            () = out.closed() => return,
        };
        let mut last = after;
        match first {
            Ok(Response::Job(view)) if last.is_none() => {
                last = Some(Cursor::of(&view));
                let is_last = view.state.is_terminal();
                if out.send(Ok(view)).await.is_err() || is_last {
                    return;
                }
            }
            // One that resumes gets what its cursor allows, which only the replica tells.
            Ok(_) => {}
            Err(refusal) => {
                out.send(Err(refusal)).await.ok();
                return;
            }
        }
        match self.shared.subscriptions.enter(job, last) {
            Some(newest) => {
                // Early timers are harmless, and this one brings the loop round to the new subscriber.
                self.shared.queue.send(Input::TimerFired).await.ok();
                pass_on(newest, out).await;
            }
            None => drop(out.send(Err(too_many_subscribers())).await),
        }
    }
}

type Messages = mpsc::Sender<Result<Arc<JobView>, Refusal>>;

/// Takes the newest message whenever the reader has room, until the loop lets go of the subscriber.
async fn pass_on(mut newest: super::subscribers::Newest, out: Messages) {
    loop {
        let Ok(room) = out.reserve().await else { return };
        tokio::select! {
            moved = newest.changed() => if moved.is_err() { return },
            () = out.closed() => return,
        }
        let message = newest.borrow_and_update().clone();
        if let Some(message) = message {
            room.send(message);
        }
    }
}

/// Somebody who waits for an answer; when it goes before that comes, the worker learns of it.
struct Waiting<'a> {
    callers: &'a Callers,
    token: ReplyToken,
    place: Option<mpsc::OwnedPermit<Input>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let was_unanswered = self.callers.leave(self.token);
        if let Some(place) = self.place.take().filter(|_| was_unanswered) {
            place.send(Input::CallerGone { token: self.token });
        }
    }
}

fn is_of_client(request: &Request) -> bool {
    match request {
        Request::SubmitJob(submission) => !submission.forwarded,
        Request::CancelJob(query) | Request::GetJob(query) => !query.forwarded,
        Request::ListJobs(_) | Request::GetCluster => true,
        Request::Elect(_)
        | Request::Announce(_)
        | Request::AddNeighbor(_)
        | Request::RemoveNeighbor(_)
        | Request::Ping(_)
        | Request::ExecuteTask(_)
        | Request::CancelTask(_) => false,
    }
}

fn refused<T>(error: &TrySendError<T>) -> Refusal {
    match error {
        TrySendError::Full(_) => too_busy(),
        TrySendError::Closed(_) => ending(),
    }
}

fn too_busy() -> Refusal {
    let message = format!("this node has {QUEUE} messages waiting, which is the most it keeps; try again in a moment");
    Refusal::new(Code::ResourceExhausted, message).retry_in(std::time::Duration::from_millis(100))
}

fn too_many_followers() -> Refusal {
    let most = limits::FOLLOWERS;
    Refusal::new(Code::ResourceExhausted, format!("this node serves {most} followers, which is the most it serves"))
}

fn too_many_subscribers() -> Refusal {
    let most = super::subscribers::MOST;
    let message = format!("this node tells {most} subscribers, which is the most it tells; try another node");
    Refusal::new(Code::ResourceExhausted, message)
}

fn ending() -> Refusal {
    Refusal::new(Code::Unavailable, "this node is ending; try another one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ids::{Address, Incarnation, JobId, NodeId};
    use crate::protocol::message::Heartbeat;

    fn node(places: usize) -> (Handle, mpsc::Receiver<Input>) {
        let (queue, inbox) = mpsc::channel(places);
        let address = Address::new("a:1").expect("a good address");
        let member = Member {
            node: NodeId::new("a").expect("a good name"),
            incarnation: Incarnation(1),
            http: address.clone(),
            address,
            version: "0".into(),
            concurrency: 1,
        };
        (Handle::new(Arc::new(Shared::new("test".to_owned(), member, queue))), inbox)
    }

    fn query() -> JobQuery {
        JobQuery { id: JobId::new("job").expect("a good name"), digest: None, forwarded: false }
    }

    fn token_of(input: Option<Input>) -> ReplyToken {
        match input {
            Some(Input::Called { token, .. }) => token,
            other => panic!("not a call: {other:?}"),
        }
    }

    #[tokio::test]
    async fn an_answer_reaches_its_caller_and_nothing_more_is_said() {
        let (node, mut inbox) = node(QUEUE);
        let call = tokio::spawn({
            let node = node.clone();
            async move { node.call(Request::Ping(None)).await }
        });
        let token = token_of(inbox.recv().await);
        node.shared.callers.answer(token, Ok(Response::Done));
        assert_eq!(call.await.expect("it ends"), Ok(Response::Done));
        assert!(inbox.try_recv().is_err());
        assert_eq!(node.shared.queue.capacity(), QUEUE, "its place is free again");
    }

    #[tokio::test]
    async fn the_worker_learns_of_a_caller_that_goes_even_when_the_queue_is_full() {
        let (node, mut inbox) = node(3);
        let call = tokio::spawn({
            let node = node.clone();
            async move { node.call(Request::Ping(None)).await }
        });
        while node.shared.queue.capacity() > 1 {
            tokio::task::yield_now().await;
        }
        node.shared.queue.try_send(Input::TimerFired).expect("one place is left");
        call.abort();
        assert!(call.await.is_err());
        let token = token_of(inbox.recv().await);
        assert_eq!(inbox.recv().await, Some(Input::TimerFired));
        assert_eq!(inbox.recv().await, Some(Input::CallerGone { token }));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_says_when_to_come_again() {
        let (node, mut inbox) = node(1);
        let refusal = node.call(Request::Ping(None)).await.expect_err("there is no second place");
        assert_eq!((refusal.code, refusal.retry_after.is_some()), (Code::ResourceExhausted, true));
        assert!(inbox.try_recv().is_err());
        assert_eq!(node.shared.queue.capacity(), 1);
    }

    #[tokio::test]
    async fn clients_are_refused_while_peers_still_get_in() {
        let (node, mut inbox) = node(KEPT_FROM_CLIENTS - 1);
        let refusal = node.call(Request::GetJob(query())).await.expect_err("the rest is for peers");
        assert_eq!(refusal.code, Code::ResourceExhausted);
        let call = tokio::spawn({
            let node = node.clone();
            async move { node.call(Request::Ping(None)).await }
        });
        token_of(inbox.recv().await);
        drop(inbox);
        node.shared.close();
        assert_eq!(call.await.expect("it ends").map_err(|refusal| refusal.code), Err(Code::Unavailable));
    }

    #[tokio::test]
    async fn a_node_that_has_ended_says_so_to_those_who_wait_and_to_those_who_come() {
        let (node, inbox) = node(QUEUE);
        let mut progress = node.subscribe(query(), None);
        drop(inbox);
        node.shared.close();
        let told = tokio_stream::StreamExt::next(&mut progress).await;
        assert!(told.is_none_or(|told| told.is_err_and(|refusal| refusal.code == Code::Unavailable)));
        let refusal = node.call(Request::GetCluster).await.expect_err("it has ended");
        assert_eq!(refusal.code, Code::Unavailable);
        node.shared.feeders.wait().await;
    }

    fn heartbeat() -> Down {
        let leadership = crate::protocol::ids::Leadership {
            term: crate::protocol::ids::Term(1),
            leader: NodeId::new("a").expect("a good name"),
            incarnation: Incarnation(1),
            jac: crate::protocol::ids::Jac(0),
        };
        Down::Heartbeat(Heartbeat { leadership, held: crate::protocol::ids::Number(0), room: 0, admitted: 0 })
    }

    #[tokio::test]
    async fn a_follower_that_does_not_read_loses_its_stream_and_the_worker_learns_of_it_once() {
        let (node, mut inbox) = node(4);
        let mut stream = node.accept_follower().expect("there is room");
        assert_eq!(inbox.recv().await, Some(Input::FollowerOpened { stream: stream.id }));
        let mut sent = 0;
        while inbox.is_empty() {
            node.shared.followers.send(stream.id, heartbeat());
            sent += 1;
        }
        assert_eq!(inbox.recv().await, Some(Input::FollowerEnded { stream: stream.id }));
        node.follower_ended(stream.id);
        assert!(inbox.is_empty());
        let mut read = 0;
        while stream.frames.recv().await.is_some() {
            read += 1;
        }
        assert_eq!(read + 1, sent, "what was under way still goes out");
    }

    #[tokio::test]
    async fn a_stream_that_the_leader_closes_ends_after_what_was_sent_and_nobody_is_told() {
        let (node, mut inbox) = node(4);
        let mut stream = node.accept_follower().expect("there is room");
        inbox.recv().await.expect("it opened");
        node.shared.followers.send(stream.id, heartbeat());
        node.shared.followers.forget(stream.id);
        assert_eq!(stream.frames.recv().await, Some(heartbeat()));
        assert_eq!(stream.frames.recv().await, None);
        node.follower_ended(stream.id);
        assert!(inbox.is_empty());
        assert_eq!(node.shared.queue.capacity(), 4);
    }

    fn view(number: u64) -> Arc<JobView> {
        use crate::protocol::ids::{Digest, JobKey, Number, Term};
        use crate::protocol::view::{JobState, Stamp};
        let leader = NodeId::new("a").expect("a good name");
        Arc::new(JobView {
            key: JobKey { id: query().id, digest: Digest::default() },
            kind: crate::jobs::Kind::Max,
            state: JobState::Running,
            answer: None,
            error: None,
            stamp: Some(Stamp { term: Term(1), number: Number(number), leader }),
            completed: 0,
            total: 1,
            submitted_at: crate::protocol::time::Wall(0),
            finished_at: None,
            admissions: Vec::new(),
            workers: Vec::new(),
            tasks: Vec::new(),
            trace: None,
        })
    }

    #[tokio::test]
    async fn a_slow_reader_gets_the_newest_state_and_then_the_end() {
        let (slot, newest) = watch::channel(None);
        let (out, mut messages) = mpsc::channel(1);
        let feeder = tokio::spawn(pass_on(newest, out));
        slot.send_replace(Some(Ok(view(1))));
        while messages.is_empty() {
            tokio::task::yield_now().await;
        }
        (2..=9).for_each(|number| drop(slot.send_replace(Some(Ok(view(number))))));
        drop(slot);
        assert_eq!(messages.recv().await, Some(Ok(view(1))), "it was under way already");
        assert_eq!(messages.recv().await, Some(Ok(view(9))));
        assert_eq!(messages.recv().await, None);
        feeder.await.expect("it ends");
    }
}
