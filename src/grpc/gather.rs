//! The events of all members, gathered by this node while somebody watches (WatchCluster of section 3).
//!
//! Owns one gathering for all watchers: a stream to each living member, and numbers of its own. Never gathers for
//! nobody. Bounded in members and in what a slow watcher may lag behind; one that lags is told to begin anew.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{broadcast, mpsc};
use tokio::time::{MissedTickBehavior, interval};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::{Stream, StreamExt};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::node::Handle;
use crate::protocol::ids::{Identity, Member};
use crate::protocol::message::{Request, Response};
use crate::protocol::view::{Event, RESYNC};

/// Passes on a member's own events from now on, until they end or nobody takes them.
pub type Listen = Arc<dyn Fn(Member, mpsc::Sender<Event>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Members listened to at once.
const MEMBERS: usize = 256;
/// Events that a watcher may lag behind.
const LAG: usize = 4_096;
/// Events on their way from the members.
const AHEAD: usize = 256;
/// How often new members are looked for, and lost ones listened to again.
const LOOK: Duration = Duration::from_secs(1);

/// Gathers for whoever watches.
#[derive(Clone)]
pub(super) struct Gathering {
    handle: Handle,
    listen: Listen,
    tasks: TaskTracker,
    /// Where watchers join a gathering that is under way.
    now: Arc<Mutex<broadcast::WeakSender<Event>>>,
}

impl std::fmt::Debug for Gathering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gathering").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Gathering {
    /// Gatherings run among `tasks`.
    pub(super) fn new(handle: Handle, listen: Listen, tasks: TaskTracker) -> Gathering {
        let nothing_yet = broadcast::Sender::new(1).downgrade();
        Gathering { handle, listen, tasks, now: Arc::new(Mutex::new(nothing_yet)) }
    }

    /// The events of all members from now on.
    pub(super) fn watch(&self) -> impl Stream<Item = Event> + Send + use<> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let events = match now.upgrade() {
            Some(gathered) => gathered.subscribe(),
            None => {
                let (gathered, events) = broadcast::channel(LAG);
                *now = gathered.downgrade();
                self.tasks.spawn(gather(self.handle.clone(), Arc::clone(&self.listen), gathered));
                events
            }
        };
        let me = self.handle.member().node.clone();
        let mut last = None;
        BroadcastStream::new(events).map(move |event| match event {
            Ok(event) => {
                last = Some(event.clone());
                event
            }
            Err(BroadcastStreamRecvError::Lagged(missed)) => Event {
                seq: last.as_ref().map_or(0, |last: &Event| last.seq.saturating_add(missed)),
                at: last.as_ref().map(|last| last.at).unwrap_or_default(),
                node: me.clone(),
                kind: Arc::from(RESYNC),
                term: None,
                job: None,
                task: None,
                attempt: None,
                text: Arc::from(format!("{missed} events were missed: this watcher is too slow")),
                trace: None,
            },
        })
    }
}

/// Gathers until nobody watches or this node ends.
async fn gather(handle: Handle, listen: Listen, gathered: broadcast::Sender<Event>) {
    let (out, mut others) = mpsc::channel(AHEAD);
    let mut own = handle.events(None);
    let mut listened: BTreeMap<Identity, AbortOnDropHandle<()>> = BTreeMap::new();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seq = 0_u64;
    while gathered.receiver_count() > 0 {
        let event = tokio::select! {
            event = own.next() => match event {
                Some(event) => event,
                None => return,
            },
            Some(event) = others.recv() => event,
            _ = look.tick() => {
                let members = living(&handle).await;
                // Those that ended are listened to again, those that left are given up.
                listened.retain(|who, task| !task.is_finished() && members.iter().any(|it| it.identity() == *who));
                for member in members {
                    if listened.len() < MEMBERS && !listened.contains_key(&member.identity()) {
                        let who = member.identity();
                        listened.insert(who, AbortOnDropHandle::new(tokio::spawn(listen(member, out.clone()))));
                    }
                }
                continue;
            }
        };
        seq = seq.saturating_add(1);
        // It fails when the last watcher has just gone.
        gathered.send(Event { seq, ..event }).ok();
    }
}

/// The other members that this node sees alive.
async fn living(handle: &Handle) -> Vec<Member> {
    match handle.call(Request::GetCluster).await {
        Ok(Response::Cluster(view)) => {
            let others = view.nodes.into_iter().filter(|node| node.alive && node.member.node != handle.member().node);
            others.map(|node| node.member).collect()
        }
        Ok(_) | Err(_) => Vec::new(),
    }
}
