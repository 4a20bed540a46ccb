//! What replication sends for each mutation, counted outside of the nodes: it grows with what changed, not with the
//! size of the ledger.

use std::time::{Duration, Instant};

use floodline::client::job_named;
use floodline::jobs::Payload;
use floodline::protocol::ids::Term;
use floodline::protocol::view::JobView;
use tokio::time::interval;

use crate::fleet::{Fleet, Plan};
use crate::follow::result;
use crate::work::{Door, Known, id};
use crate::{figure, scale, turn};

const WORKERS: usize = 3;
const SMALL: u32 = 32;
const LARGE: u32 = 3_200;

/// The sum of the primes up to a million, cut into as many slices as the cluster's settings say.
fn job(name: &str) -> Known {
    let payload = Payload::PrimeSum { start: 1, end: 1_000_000 };
    Known { id: id(name), payload, answer: floodline::jobs::Value(37_550_402_023) }
}

/// Bytes that the followers got over connections to their leader.
struct Count<'a> {
    fleet: &'a Fleet,
    leader: String,
}

impl Count<'_> {
    fn now(&self) -> u64 {
        let followers = self.fleet.workers.keys().filter(|name| **name != self.leader);
        followers.map(|follower| self.fleet.links.back(follower, &self.leader)).sum()
    }
}

async fn ended(fleet: &Fleet, leader: &str, name: &str) -> std::sync::Arc<JobView> {
    let (worker, job) = (fleet.worker(leader), job(name));
    Door::open(&worker.address).await.submit(&job).await;
    let query = job_named(name).expect("a name");
    let view = result(worker.client().await.follow(query)).await;
    job.assert_answered(&view);
    view
}

/// Of one cut: bytes for a mutation with and without those of an idle time as long, and those of an idle second.
struct Cost {
    all: f64,
    without_idle: f64,
    idle: f64,
    mutations: u64,
}

async fn cost(tasks: u32, jobs: u64) -> Cost {
    // As many for each worker: how many live at an admission is then of no matter.
    let cut = [format!("--max-tasks={tasks}"), format!("--tasks-per-worker={tasks}")];
    let settings = ["--max-jobs-per-term=1000000", "--concurrency=4", &cut[0], &cut[1]];
    let fleet = Fleet::start(Plan::new(WORKERS, &settings).with_links()).await;
    let (leadership, _) = fleet.settled(|_, _| true).await;
    let count = Count { fleet: &fleet, leader: leadership.leader.as_str().to_owned() };
    let first = ended(&fleet, &count.leader, "first").await;
    assert_eq!(first.total, tasks);
    let number = |view: &JobView| view.stamp.as_ref().map(|stamp| (stamp.term, stamp.number.0)).expect("it ended");
    // How much a cluster says that has nothing to do is a matter of time.
    let (from, began) = (count.now(), Instant::now());
    let mut ticks = interval(Duration::from_secs(1));
    for _ in 0..4 {
        ticks.tick().await;
    }
    let idle = (count.now() - from) as f64 / began.elapsed().as_secs_f64();
    let (from, began) = (count.now(), Instant::now());
    let mut last = number(&first);
    for it in 0..jobs {
        last = number(&*ended(&fleet, &count.leader, &format!("job-{it}")).await);
    }
    let (bytes, took) = ((count.now() - from) as f64, began.elapsed().as_secs_f64());
    assert_eq!(last.0, Term(leadership.term.0), "one leadership, so that the numbers compare");
    let mutations = last.1 - number(&first).1;
    let copies = mutations as f64 * (WORKERS - 1) as f64;
    Cost { all: bytes / copies, without_idle: (bytes - idle * took).max(0.0) / copies, idle, mutations }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutation_costs_as_many_bytes_in_a_large_ledger_as_in_a_small_one() {
    let _turn = turn().await;
    let jobs = scale("FLOODLINE_LARGE_JOBS", 1);
    let small = cost(SMALL, jobs * 20).await;
    let large = cost(LARGE, jobs).await;
    let (all, without_idle) = (large.all / small.all, large.without_idle / small.without_idle);
    figure(&format!(
        "bytes leader to follower for a mutation: {:.0} with {SMALL} tasks ({} mutations), {:.0} with {LARGE} tasks ({} \
         mutations), {all:.2} times; less what an idle time as long costs: {:.0} and {:.0}, {without_idle:.2} times; an \
         idle second costs the {} followers {:.0} bytes",
        small.all,
        small.mutations,
        large.all,
        large.mutations,
        small.without_idle,
        large.without_idle,
        WORKERS - 1,
        small.idle
    ));
    assert!(all <= 1.1 && without_idle <= 1.1, "the cost grows with the ledger: {all:.2}, {without_idle:.2} times");
}
