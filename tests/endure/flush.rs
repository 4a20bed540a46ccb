//! What a flush costs each acknowledged job: three clusters side by side, which differ in nothing else.

use std::time::{Duration, Instant};

use crate::fleet::{Fleet, Plan};
use crate::work::{Door, Known};
use crate::{figure, scale, turn};

const WAYS: [&str; 3] = ["no disk", "os", "always"];

/// A cluster that keeps its data in one way, and how long its acknowledgements took.
struct Kept {
    fleet: Fleet,
    door: Door,
    took: Vec<Duration>,
}

async fn kept(way: &str, workers: usize, cap: &str) -> Kept {
    let (cap, flush) = (format!("--max-jobs-per-term={cap}"), format!("--flush={way}"));
    let plan = match way {
        "no disk" => Plan::new(workers, &[&cap]),
        _ => Plan::new(workers, &[&cap, &flush]).with_disks(),
    };
    let fleet = Fleet::start(plan).await;
    let (leadership, _) = fleet.settled(|_, _| true).await;
    let door = Door::open(&fleet.worker(leadership.leader.as_str()).address).await;
    Kept { fleet, door, took: Vec::new() }
}

fn milliseconds(sorted: &[Duration], percent: usize) -> f64 {
    sorted[(sorted.len() - 1) * percent / 100].as_secs_f64() * 1_000.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_flush_costs_an_acknowledged_job() {
    let _turn = turn().await;
    let jobs = scale("FLOODLINE_SUBMISSIONS", 30);
    figure(&format!("submit to acknowledgement, {jobs} jobs of each row in turn, ms, median / 90th percentile:"));
    figure(&format!("{:>7} {:>9} {:>15} {:>15} {:>15}", "workers", "term", WAYS[0], WAYS[1], WAYS[2]));
    for (workers, cap) in [(3, "1000000"), (5, "1000000"), (5, "5")] {
        let mut clusters = Vec::new();
        for way in WAYS {
            clusters.push(kept(way, workers, cap).await);
        }
        // The first ones warm up and are not counted.
        for number in 0..jobs + 5 {
            for cluster in &mut clusters {
                let job = Known::trivial(&format!("flush-{number}"), number as i64);
                let began = Instant::now();
                cluster.door.submit(&job).await;
                cluster.took.extend((number >= 5).then(|| began.elapsed()));
            }
        }
        let mut cells = String::new();
        for cluster in &mut clusters {
            cluster.took.sort();
            let took = &cluster.took;
            let cell = format!("{:.2} / {:.2}", milliseconds(took, 50), milliseconds(took, 90));
            cells += &format!(" {cell:>15}");
            assert_eq!(cluster.fleet.workers.len(), workers);
        }
        figure(&format!("{workers:>7} {:>9}{cells}", format!("{cap} jobs").replace("1000000", "endless")));
    }
}
