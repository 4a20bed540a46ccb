//! What the memory of nodes that stay does over thousands of elections, and over a thousand starts of another one.
//!
//! Every memory of a node has a bound, and the largest of them, 10,000 events, takes hundreds of elections until it is
//! full: so what counts is the growth since a node was warm, and the course is printed beside it. A directory's last
//! 4,096 changes are not full after a thousand starts: half a MiB of them is still to come then.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::fleet::{DIRECTORY, Fleet, Plan};
use crate::follow::result;
use crate::nodes::{Node, settled};
use crate::work::{Door, Known};
use crate::{figure, scale, turn};

/// Clients that keep the elections coming.
const CLIENTS: u64 = 4;
/// Growth that counts as none, in KiB: allocators do not give back all that they have had for a moment.
const SLACK: u64 = 3 << 10;
const STAYING: usize = 4;

/// KiB in memory of each node, by name.
type Memory = BTreeMap<String, u64>;

fn resident(node: &Node) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line for it");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

fn memory(fleet: &Fleet, without: &str) -> Memory {
    let nodes = fleet.nodes().filter(|node| node.name != without);
    nodes.map(|node| (node.name.clone(), resident(node))).collect()
}

/// No node grew by more than a tenth or [`SLACK`] since it was warm.
fn assert_flat(warm: &Memory, end: &Memory, course: &[Memory]) {
    for (node, warm) in warm {
        let most = warm + (warm / 10).max(SLACK);
        assert!(end[node] <= most, "{node} grew from {warm} to {} KiB: {course:?}", end[node]);
    }
}

/// The course of the memory of each kind of node, in MiB: of the directory, and of the largest worker.
fn shown(course: &[Memory]) -> String {
    let largest = |memory: &Memory, is_directory: bool| {
        let of = memory.iter().filter(|(node, _)| (*node == DIRECTORY) == is_directory);
        format!("{:.1}", of.map(|(_, kib)| *kib).max().unwrap_or_default() as f64 / 1_024.0)
    };
    let line = |is_directory| Vec::from_iter(course.iter().map(|memory| largest(memory, is_directory))).join(" ");
    format!("MiB of the largest worker {}; of the directory {}", line(false), line(true))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_flat_over_thousands_of_elections() {
    let _turn = turn().await;
    let elections = scale("FLOODLINE_ELECTIONS", 300);
    // Every bounded memory of 1,024 entries, and the 10,000 events, are full after so many; but for the short form.
    let warm_after = (elections / 5).clamp(100, 2_000);
    let settings = ["--max-jobs-per-term=1", "--keep-jobs=50", "--keep-lines=100", "--flush=os"];
    let fleet = Fleet::start(Plan::new(5, &settings).with_disks()).await;
    let (first, _) = fleet.settled(|_, _| true).await;
    let began = Instant::now();
    elect(&fleet, 0..warm_after).await;
    let warm = memory(&fleet, "");
    let mut course = vec![warm.clone()];
    let steps = 8;
    for step in 0..steps {
        let at = |step: u64| warm_after + (elections - warm_after) * step / steps;
        elect(&fleet, at(step)..at(step + 1)).await;
        course.push(memory(&fleet, ""));
    }
    let (last, _) = fleet.settled(|_, _| true).await;
    let terms = last.term.0 - first.term.0;
    assert!(terms >= elections, "a job a term: {terms} terms for {elections} jobs");
    let end = course.last().expect("taken");
    let (seconds, rate) = (began.elapsed().as_secs_f64(), elections as f64 / began.elapsed().as_secs_f64());
    figure(&format!(
        "{elections} elections of 5 workers in {seconds:.0} s ({rate:.0} a second), from {warm_after} on: {}",
        shown(&course)
    ));
    assert_flat(&warm, end, &course);
}

/// An election for each of these numbers: a term has one job. Several clients, so that one waits while another's
/// term begins.
async fn elect(fleet: &Fleet, numbers: std::ops::Range<u64>) {
    let mut clients = tokio::task::JoinSet::new();
    let workers = Vec::from_iter(fleet.workers.values());
    for client in 0..CLIENTS {
        let mut door = Door::open(&workers[client as usize % workers.len()].address).await;
        let own = numbers.clone().filter(move |number| number % CLIENTS == client);
        clients.spawn(async move {
            for number in own {
                door.submit(&Known::trivial(&format!("elects-{number}"), number as i64)).await;
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.expect("all its jobs are acknowledged");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_flat_over_a_thousand_starts_of_one_worker() {
    let _turn = turn().await;
    let starts = scale("FLOODLINE_STARTS", 30);
    let warm_after = (starts / 5).clamp(10, 200);
    let settings = ["--max-jobs-per-term=1", "--keep-jobs=50", "--keep-lines=100", "--flush=os"];
    let mut fleet = Fleet::start(Plan::new(STAYING + 1, &settings).with_disks()).await;
    // They fill what has a bound, so that what grows afterwards grows by the starts.
    elect(&fleet, 0..starts.min(1_500)).await;
    let restless = format!("worker-{}", STAYING + 1);
    let began = Instant::now();
    let mut course = Vec::new();
    for number in 1..=starts {
        fleet.kill(&restless).await;
        fleet.start_worker(&restless).await;
        settled(&[fleet.worker(&restless)], |_, _| true).await;
        if number % 10 == 0 {
            let job = Known::trivial(&format!("start-{number}"), number as i64);
            let view = result(job.handed_to(fleet.worker(&restless).client().await)).await;
            job.assert_answered(&view);
        }
        if number == warm_after || number > warm_after && (number - warm_after).is_multiple_of(starts.div_ceil(8)) {
            course.push(memory(&fleet, &restless));
        }
    }
    fleet.settled(|_, views| views.iter().all(|view| view.nodes.len() == STAYING + 1)).await;
    course.push(memory(&fleet, &restless));
    let (warm, end) = (&course[0], &course[course.len() - 1]);
    let each = began.elapsed().as_millis() / u128::from(starts);
    figure(&format!(
        "{starts} starts of one worker, {each} ms from kill to following again, the others from {warm_after} on: {}",
        shown(&course)
    ));
    assert_flat(warm, end, &course);
}
