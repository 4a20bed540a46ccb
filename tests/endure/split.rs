//! Two halves that are cut apart for a minute, both of which work, and become one cluster again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use floodline::client::{ClientError, job_named};
use floodline::protocol::ids::JobKey;
use floodline::protocol::view::{ClusterView, JobView};
use floodline::wire;
use tokio::time::{MissedTickBehavior, interval};

use crate::fleet::{DIRECTORY, Fleet, Plan, are_alive};
use crate::follow::result;
use crate::nodes::{Node, settled, within};
use crate::work::{Known, id, jobs_at};
use crate::{figure, scale, turn};

const HALF: [&str; 4] = [DIRECTORY, "worker-1", "worker-2", "worker-3"];

/// The workers of both halves.
fn halves(fleet: &Fleet) -> [Vec<&Node>; 2] {
    let (one, other) = fleet.workers.values().partition(|worker| HALF.contains(&worker.name.as_str()));
    [one, other]
}

/// What a half told of a job, once it had ended, and the job.
type Shown = Vec<(Known, JobView)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_halves_work_while_they_are_cut_apart_and_become_one_with_all_jobs() {
    let _turn = turn().await;
    let seconds = scale("FLOODLINE_SPLIT_SECONDS", 12);
    let fleet = Fleet::start(Plan::new(6, &[]).with_disks().with_links()).await;
    let before = Known::sum("before", 0, 1);
    let mut shown = vec![ended_at(halves(&fleet)[0][0], &before).await];
    fleet.links.cut(&HALF);
    let cut = Instant::now();
    for half in halves(&fleet) {
        let is_own = |view: &ClusterView| {
            let leader = view.leadership.as_ref().map(|it| it.leader.as_str());
            half.iter().any(|worker| leader == Some(worker.name.as_str()))
        };
        settled(&half, |_, views| views.iter().all(is_own)).await;
    }
    let apart = cut.elapsed();
    shown.extend(both_halves_work(&fleet, seconds).await);
    fleet.links.heal();
    let healed = Instant::now();
    let (leadership, _) = fleet.settled(|_, views| views.iter().all(|view| are_alive(view) == 6)).await;
    let joined = healed.elapsed();
    let jobs = wanted(&shown);
    for worker in fleet.workers.values() {
        has_all(worker, &jobs).await;
    }
    let everywhere = healed.elapsed();
    stays_as_shown(&fleet, &shown).await;
    figure(&format!(
        "6 workers cut into halves for {:.0} s: each had a leader of its own after {} ms; {} jobs of both, all right on \
         every worker {} ms after the heal; one leader ({leadership}) after {} ms; what was shown stayed",
        cut.elapsed().as_secs_f64() - healed.elapsed().as_secs_f64(),
        apart.as_millis(),
        jobs.len(),
        everywhere.as_millis(),
        joined.as_millis()
    ));
}

/// Hands a job to a worker, and waits for its end there.
async fn ended_at(worker: &Node, job: &Known) -> (Known, JobView) {
    let view = result(job.handed_to(worker.client().await)).await;
    job.assert_answered(&view);
    (job.clone(), JobView::clone(&view))
}

/// A job a second in each half, whichever worker takes it, for as long as the cut lasts: that is a matter of time. Two
/// names are taken in both, one of them for the same work.
async fn both_halves_work(fleet: &Fleet, seconds: u64) -> Shown {
    let mut shown = Shown::new();
    for (number, half) in halves(fleet).into_iter().enumerate() {
        shown.push(ended_at(half[0], &Known::sum("same", 0, 2)).await);
        shown.push(ended_at(half[1], &Known::trivial("twofold", 10 + number as i64)).await);
    }
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let until = Instant::now() + Duration::from_secs(seconds);
    for second in 0.. {
        ticks.tick().await;
        if Instant::now() >= until {
            break;
        }
        for (number, half) in halves(fleet).into_iter().enumerate() {
            let name = format!("half-{number}-{second}");
            let job = match second % 2 {
                0 => Known::sum(&name, number, 2 + number),
                _ => Known::trivial(&name, second),
            };
            shown.push(ended_at(half[second as usize % half.len()], &job).await);
        }
    }
    shown
}

fn wanted(shown: &Shown) -> BTreeMap<JobKey, Known> {
    shown.iter().map(|(job, _)| (job.key(), job.clone())).collect()
}

/// A worker's own copy has these jobs and no other, all with the right answers.
async fn has_all(worker: &Node, jobs: &BTreeMap<JobKey, Known>) {
    let copy = within("the jobs of both halves", async {
        loop {
            let copy = jobs_at(worker).await;
            if jobs.keys().all(|key| copy.get(key).is_some_and(|job| job.state.is_terminal())) {
                return copy;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(copy.keys().eq(jobs.keys()), "at {}: {:?}", worker.name, copy.keys());
    for (key, job) in jobs {
        job.assert_answered(&copy[key]);
        let sides = if job.id == id("same") { 2 } else { 1 };
        assert_eq!(copy[key].admissions.len(), sides, "at {}: {:?}", worker.name, copy[key]);
    }
}

/// An answer that was shown is the only one, at every worker, and by the name that its client has.
async fn stays_as_shown(fleet: &Fleet, shown: &Shown) {
    for worker in fleet.workers.values() {
        let copy = jobs_at(worker).await;
        for (job, view) in shown {
            let now = &copy[&job.key()];
            assert_eq!((now.state, now.answer), (view.state, view.answer), "at {}: {now:?}", worker.name);
            assert!(view.admissions.iter().all(|it| now.admissions.contains(it)), "{view:?} became {now:?}");
        }
        let name = job_named("twofold").expect("a name");
        let bare = result(worker.client().await.follow(name)).await;
        let smaller = shown.iter().filter(|(job, _)| job.id == id("twofold")).map(|(job, _)| job.key()).min();
        assert_eq!(Some(&bare.key), smaller.as_ref(), "a bare name is the smaller digest");
        let other = Known::trivial("twofold", 99);
        let refused = other.handed_to(worker.client().await).next().await;
        assert!(matches!(refused, Err(ClientError::Refused(_))), "{refused:?}");
        assert_ne!(wire::digest_of(&other.payload), bare.key.digest);
    }
}
