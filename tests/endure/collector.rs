//! What traces cost, and what a collector costs that is absent or silent: clusters side by side, which differ in
//! nothing else, under one load.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::net::TcpListener;

use crate::fleet::{Fleet, Plan};
use crate::follow::result;
use crate::metrics::metrics;
use crate::nodes::within;
use crate::taker::Collector;
use crate::work::{Door, Known};
use crate::{figure, scale, turn};

/// How much more memory a node may take for spans that wait: twice their bound.
const MORE_MEMORY: f64 = 16.0 * 1024.0 * 1024.0;
/// Timers later than this count as late, in seconds.
const LATE: &str = "0.05";
/// How long ending a node may take.
const END: Duration = Duration::from_secs(9);

/// A cluster that sends its spans somewhere, or nowhere.
struct Traced {
    way: &'static str,
    fleet: Fleet,
    jobs: u64,
    took: Vec<Duration>,
}

async fn traced(way: &'static str, endpoint: Option<String>) -> Traced {
    let mut plan = Plan::new(3, &[]);
    plan.settings.extend(endpoint);
    Traced { way, fleet: Fleet::start(plan).await, jobs: 0, took: Vec::new() }
}

impl Traced {
    /// One small job, whoever leads.
    async fn submit(&mut self) {
        let job = Known::trivial(&format!("traced-{}", self.jobs), self.jobs as i64);
        let begun = Instant::now();
        let view = within("a job", result(job.handed_to(self.fleet.client().await))).await;
        self.took.push(begun.elapsed());
        job.assert_answered(&view);
        self.jobs += 1;
    }

    /// The highest of a metric over all workers.
    async fn highest(&self, name: &str) -> f64 {
        let mut highest = 0.0_f64;
        for worker in self.fleet.workers.values() {
            highest = highest.max(metrics(worker).await.get(name).copied().unwrap_or(0.0));
        }
        highest
    }

    /// The share of timers that were late.
    async fn late(&self) -> f64 {
        let (mut all, mut in_time) = (0.0, 0.0);
        for worker in self.fleet.workers.values() {
            let told = metrics(worker).await;
            all += told["floodline_timer_late_seconds_count"];
            in_time += told[&format!("floodline_timer_late_seconds_bucket{{le=\"{LATE}\"}}")];
        }
        1.0 - in_time / all
    }

    /// From the leader's kill to the next job's answer.
    async fn failover(&mut self) -> Duration {
        let (leadership, _) = self.fleet.settled(|_, _| true).await;
        self.fleet.kill(leadership.leader.as_str()).await;
        let killed = Instant::now();
        self.submit().await;
        let took = killed.elapsed();
        self.fleet.start_worker(leadership.leader.as_str()).await;
        took
    }

    /// The longest end of a worker that is told to.
    async fn end(&mut self) -> Duration {
        let mut longest = Duration::ZERO;
        for worker in self.fleet.workers.values_mut() {
            let begun = Instant::now();
            worker.signal(Signal::TERM);
            assert!(worker.ended().await.success());
            longest = longest.max(begun.elapsed());
        }
        longest
    }
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1_000.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_absent_or_silent_costs_no_heartbeat() {
    let _turn = turn().await;
    let load = Duration::from_secs(scale("FLOODLINE_COLLECTOR_SECONDS", 5));
    let (_taker, taking) = Collector::start().await;
    let hole = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://{}", hole.local_addr().expect("bound"));
    let stopped = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1".to_owned();
    let mut clusters = vec![
        traced("none", None).await,
        traced("taking", Some(taking)).await,
        traced("stopped", Some(stopped)).await,
        traced("silent", Some(silent)).await,
    ];
    let begun = Instant::now();
    while begun.elapsed() < load {
        for cluster in &mut clusters {
            cluster.submit().await;
        }
    }
    figure(&format!(
        "{:>9} {:>6} {:>10} {:>7} {:>13} {:>10} {:>10} {:>8}",
        "collector", "jobs", "job, ms", "late", "failover, ms", "MiB", "lost", "end, s"
    ));
    let mut without = 0.0;
    for cluster in &mut clusters {
        let late = cluster.late().await;
        let lost = cluster.highest("floodline_spans_total{outcome=\"lost\"}").await;
        let mut failovers = Vec::new();
        for _ in 0..5 {
            failovers.push(cluster.failover().await);
        }
        let memory = cluster.highest("process_resident_memory_bytes").await;
        let end = cluster.end().await;
        figure(&format!(
            "{:>9} {:>6} {:>10.1} {:>6.2}% {:>13.0} {:>10.1} {lost:>10} {:>8.2}",
            cluster.way,
            cluster.jobs,
            median(&mut cluster.took),
            late * 100.0,
            median(&mut failovers),
            memory / 1024.0 / 1024.0,
            end.as_secs_f64(),
        ));
        match cluster.way {
            "none" => without = memory,
            "taking" => assert_eq!(lost, 0.0),
            _ => assert!(lost > 0.0, "{}: nothing is counted as lost", cluster.way),
        }
        assert!(memory < without + MORE_MEMORY, "{}: {memory} bytes, {without} without", cluster.way);
        assert!(late < 0.05 && end < END, "{}: {late} of the timers were late, ended after {end:?}", cluster.way);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_traces_cost_a_task() {
    let _turn = turn().await;
    let rounds = scale("FLOODLINE_TRACED_JOBS", 2);
    let (taker, taking) = Collector::start().await;
    let many = ["--tasks-per-worker=1000", "--max-tasks=2000"];
    let mut fleets = Vec::new();
    for (way, endpoint) in [("off", None), ("on", Some(taking))] {
        let mut plan = Plan::new(3, &many);
        plan.settings.extend(endpoint);
        fleets.push((way, Fleet::start(plan).await, Vec::new()));
    }
    for round in 0..rounds {
        for (way, fleet, rates) in &mut fleets {
            let job = Known::sum(&format!("tasks-{way}-{round}"), 0, 1);
            let mut door = Door::open(&fleet.workers.values().next().expect("a worker").address).await;
            let begun = Instant::now();
            door.submit(&job).await;
            let view = door.messages(&job).await.pop().expect("an end");
            job.assert_answered(&view);
            rates.push(f64::from(view.total) / begun.elapsed().as_secs_f64());
        }
    }
    let mut medians = Vec::new();
    for (way, _, rates) in &mut fleets {
        rates.sort_by(f64::total_cmp);
        let median = rates[rates.len() / 2];
        figure(&format!("traces {way}: {median:.0} tasks a second, median of {rounds} jobs of 2,000"));
        medians.push(median);
    }
    figure(&format!("tasks a second with traces on are {:.2} of those with them off", medians[1] / medians[0]));
    let (per_election, per_job) = taker
        .until("spans of a job", |spans| {
            let of = |name: &str| {
                spans.iter().filter(|span| span.name == name).map(|span| &span.trace).collect::<BTreeSet<_>>()
            };
            let (elections, jobs, ended) = (of("election"), of("submit"), of("completion"));
            let count = |traces: &BTreeSet<&String>| spans.iter().filter(|span| traces.contains(&span.trace)).count();
            let whole = ended.len() as u64 == rounds && jobs.len() as u64 == rounds;
            whole.then(|| (count(&elections) / elections.len().max(1), count(&jobs) / jobs.len()))
        })
        .await;
    figure(&format!("spans: {per_election} an election of three workers, {per_job} a job of 2,000 tasks"));
    assert!(medians[1] > medians[0] / 4.0, "{medians:?}");
}
