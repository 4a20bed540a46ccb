//! A leader that stands still past its timeout in the middle of a job, and goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use floodline::client::{Events, Heard};
use floodline::guarantees;
use floodline::guarantees::history::{self, Right, Seen};
use floodline::protocol::ids::{Identity, Incarnation, Leadership, NodeId};
use floodline::protocol::time::Time;
use floodline::protocol::view::{ClusterView, Event, JobState, JobView};
use rustix::process::Signal;
use tokio::time::{interval, timeout};

use crate::fleet::{Fleet, Plan};
use crate::follow::{in_its_middle, next_view};
use crate::nodes::{Node, settled, within};
use crate::work::{Door, Known};
use crate::{figure, scale, turn};

/// Admissions of a term, the default.
const CAP: u32 = 5;
/// For how long all workers name one leader after it.
const STEADY: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_frozen_in_the_middle_of_a_job_says_so_and_counts_nothing_twice() {
    let _turn = turn().await;
    let fleet = Fleet::start(Plan::new(5, &["--tasks-per-worker=16", "--max-tasks=80"]).with_disks()).await;
    let mut gaps = Vec::new();
    for round in 1..=scale("FLOODLINE_FREEZES", 1) {
        gaps.push(freeze_and_thaw(&fleet, round).await);
    }
    figure(&format!(
        "{} leaders frozen in the middle of a job and thawed: one leader for {STEADY:?} after each, every answer \
         exact, every task completed once, each said that its own loop stood still; frozen to a new leader {gaps:?} ms",
        gaps.len()
    ));
}

/// Gives the time from the freeze to another leader, in milliseconds.
async fn freeze_and_thaw(fleet: &Fleet, round: u64) -> u128 {
    let (old, _) = fleet.settled(|_, _| true).await;
    let leader = fleet.worker(old.leader.as_str());
    let others = Vec::from_iter(fleet.workers.values().filter(|worker| worker.name != leader.name));
    let mut events = leader.client().await.events(false);
    let job = Known::long(&format!("frozen-{round}"));
    let mut follow = job.handed_to(others[0].client().await);
    in_its_middle(&mut follow).await;
    // The subscription stands once an event of this job has come.
    until(&mut events, |event| event.job.as_ref() == Some(&job.id)).await;
    let mut door = Door::open(&others[1].address).await;
    let by = Identity { node: id_of(others[1]), incarnation: Incarnation(0) };
    let watched = job.clone();
    let subscriber = tokio::spawn(async move { door.messages(&watched).await });
    leader.signal(Signal::STOP);
    let frozen = Instant::now();
    let (new, _) = settled(&others, |leadership, _| leadership.leader != old.leader).await;
    let gap = frozen.elapsed().as_millis();
    assert!(new.term > old.term);
    leader.signal(Signal::CONT);
    let why = |event: &Event| event.kind.as_ref() == "leadership-ended" && event.term == Some(old.term);
    let ended = until(&mut events, why).await;
    assert!(ended.text.ends_with("steps down: its own loop stood still"), "{ended:?}");
    let (settled, _) = fleet.settled(|_, _| true).await;
    stays(fleet, &settled).await;
    let mut last = None;
    while let Some(view) = next_view(&mut follow).await {
        assert!(view.completed <= view.total, "{view:?}");
        last = Some(view);
    }
    let last: Arc<_> = last.expect("it is long");
    job.assert_answered(&last);
    assert_eq!(last.admissions.len(), 1, "taking over is not admitting: {last:?}");
    assert_never_goes_back(&by, &job, within("its last message", subscriber).await.expect("it reads to the end"));
    gap
}

fn id_of(worker: &Node) -> NodeId {
    NodeId::new(&worker.name).expect("a good name")
}

/// What one subscriber was sent, as it came, before a client could smooth it.
fn assert_never_goes_back(by: &Identity, job: &Known, messages: Vec<Arc<JobView>>) {
    assert!(messages.last().is_some_and(|view| view.state == JobState::Succeeded), "the last one is the terminal one");
    let submitted = Seen::Submitted { job: job.key(), right: Right::Answer(job.answer) };
    let told = messages.into_iter().map(|view| Seen::Told { subscriber: 1, by: by.clone(), view });
    let seen = std::iter::once(submitted).chain(told).zip(0..);
    let history = Vec::from_iter(seen.map(|(seen, at)| history::Event { at: Time(at), seen }));
    assert_eq!(guarantees::judge(CAP, &history), []);
}

async fn until(events: &mut Events, is_it: impl Fn(&Event) -> bool) -> Event {
    within("an event", async {
        loop {
            match events.next().await.expect("the node answers") {
                Heard::Event(event) if is_it(&event) => return event,
                Heard::Event(_) => {}
                Heard::Moved(why) => panic!("the node was let go: {why}"),
            }
        }
    })
    .await
}

/// That nothing happens can only be seen by looking for a while: each worker names this leader, again and again.
async fn stays(fleet: &Fleet, leadership: &Leadership) {
    let mut looks = interval(Duration::from_millis(50));
    let looking = async {
        loop {
            looks.tick().await;
            for worker in fleet.workers.values() {
                let view: ClusterView = worker.view().await;
                assert_eq!(view.leadership.as_ref(), Some(leadership), "at {}", worker.name);
            }
        }
    };
    timeout(STEADY, looking).await.ok();
}
