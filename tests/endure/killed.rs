//! Every node killed at once in the middle of its work, and started again on the same disks, over and over.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use floodline::client::News;
use floodline::protocol::ids::NodeId;
use floodline::protocol::view::JobView;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::fleet::{Fleet, Plan, jacs};
use crate::follow::{in_its_middle, next_view, result};
use crate::work::{Known, jobs_at};
use crate::{figure, scale, turn};

/// Acknowledged jobs of a round.
const A_ROUND: usize = 4;

/// What must still be so after the next start.
#[derive(Default)]
struct Books {
    jobs: Vec<Known>,
    /// Jobs without an acknowledgement at the last kill.
    in_the_air: Vec<Known>,
    jacs: BTreeMap<NodeId, u64>,
    unfinished: usize,
    /// How often a job whose end was shown before the kill was listed without it at first.
    reopened: usize,
    never_admitted: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_are_killed_at_once_and_every_acknowledged_job_is_answered_after_it() {
    let _turn = turn().await;
    let rounds = scale("FLOODLINE_KILLS", 2);
    let began = Instant::now();
    let mut fleet = Fleet::start(Plan::new(5, &[]).with_disks()).await;
    let mut books = Books::default();
    let mut starts = Duration::ZERO;
    for round in 1..=rounds {
        work_and_kill(&mut fleet, &mut books, round).await;
        let started = Instant::now();
        fleet.start_all().await;
        starts += started.elapsed();
        check(&fleet, &mut books).await;
    }
    assert!(books.unfinished > 0, "all jobs had ended before the kills, which then show nothing");
    check_every_copy(&fleet, &books).await;
    figure(&format!(
        "all of 6 nodes killed {rounds} times: {} acknowledged jobs, {} of them unfinished at a kill, all right on \
         every worker, each admitted once, no JAC fell; {} submissions in the air, {} of them admitted before the \
         kill; {} times an ended job was listed as running at first; start to one leader of 5 {} ms on average; {:.0} s",
        books.jobs.len() as u64 - rounds,
        books.unfinished,
        rounds,
        rounds as usize - books.never_admitted,
        books.reopened,
        starts.as_millis() / u128::from(rounds),
        began.elapsed().as_secs_f64()
    ));
}

/// Hands in jobs, and kills all nodes while one is in its middle and another one's submission is on its way.
async fn work_and_kill(fleet: &mut Fleet, books: &mut Books, round: u64) {
    let jobs: [Known; A_ROUND] = [
        Known::sum(&format!("round-{round}-a"), 0, 3),
        Known::trivial(&format!("round-{round}-b"), round as i64),
        Known::sum(&format!("round-{round}-c"), 0, 2),
        Known::sum(&format!("round-{round}-d"), 1, 4),
    ];
    for job in jobs {
        let mut follow = job.handed_to(fleet.client().await);
        next_view(&mut follow).await.expect("its acknowledgement");
        assert!(follow.is_acknowledged());
        books.jobs.push(job);
    }
    let last = books.jobs.last().expect("just handed in");
    let mut watched = fleet.client().await.follow(floodline::client::job_named(last.id.as_str()).expect("a name"));
    let view = in_its_middle(&mut watched).await;
    // Its acknowledgement may have been written when the process dies, but not read.
    let late = Known::trivial(&format!("round-{round}-e"), -(round as i64));
    let waiting = hand_in(late.clone(), fleet).await;
    if round.is_multiple_of(2) {
        is_admitted(fleet, &late, &view).await;
    } else {
        next_view(&mut watched).await;
    }
    let seen = fleet.workers.values().next().expect("a worker").view().await;
    for (node, jac) in jacs(&seen) {
        let before = books.jacs.insert(node.clone(), jac).unwrap_or_default();
        assert!(jac >= before, "the JAC of {node} fell from {before} to {jac}");
    }
    fleet.kill_all().await;
    waiting.abort();
    books.in_the_air.push(late);
}

/// Waits until the leader of a view says that it has admitted this job, which is before its journal has it. Another
/// leader may: then this is a kill like the others.
async fn is_admitted(fleet: &mut Fleet, job: &Known, view: &JobView) {
    let leader = view.stamp.as_ref().map(|stamp| stamp.leader.as_str()).expect("it runs");
    let leader = fleet.workers.get_mut(leader).expect("it runs");
    let says = leader.says("it", |line| line["kind"] == "job-admitted" && line["job"] == job.id.as_str());
    timeout(Duration::from_secs(1), says).await.ok();
}

async fn hand_in(job: Known, fleet: &Fleet) -> JoinHandle<()> {
    let mut follow = job.handed_to(fleet.client().await);
    tokio::spawn(async move { while let Ok(Some(News::Moved(_))) = follow.next().await {} })
}

/// All jobs end right, each admitted once, and no JAC fell.
async fn check(fleet: &Fleet, books: &mut Books) {
    let found = jobs_at(fleet.workers.values().next().expect("a worker")).await;
    let latest = books.jobs.len().saturating_sub(A_ROUND);
    let (earlier, last) = books.jobs.split_at(latest);
    let open = |jobs: &[Known]| jobs.iter().filter(|job| !job.is_answered_by(&found[&job.key()])).count();
    books.reopened += open(earlier);
    books.unfinished += open(last);
    for late in std::mem::take(&mut books.in_the_air) {
        books.never_admitted += usize::from(!found.contains_key(&late.key()));
        let view = result(late.handed_to(fleet.client().await)).await;
        late.assert_answered(&view);
        books.jobs.push(late);
    }
    for job in &books.jobs {
        let query = floodline::client::job_named(job.id.as_str()).expect("a name");
        let view = result(fleet.client().await.follow(query)).await;
        job.assert_answered(&view);
        assert_eq!(view.admissions.len(), 1, "admitted once: {view:?}");
    }
    let all = books.jobs.len() as u64;
    let counted = |views: &[floodline::protocol::view::ClusterView]| {
        views.iter().all(|view| jacs(view).values().sum::<u64>() == all)
    };
    let (_, views) = fleet.settled(|_, views| counted(views)).await;
    for (node, jac) in jacs(&views[0]) {
        let before = books.jacs.insert(node.clone(), jac).unwrap_or_default();
        assert!(jac >= before, "the JAC of {node} fell from {before} to {jac}");
    }
}

/// Every worker's own copy has every job with the right answer.
async fn check_every_copy(fleet: &Fleet, books: &Books) {
    for worker in fleet.workers.values() {
        let copy = jobs_at(worker).await;
        assert_eq!(copy.len(), books.jobs.len(), "at {}", worker.name);
        for job in &books.jobs {
            job.assert_answered(&copy[&job.key()]);
        }
    }
}
