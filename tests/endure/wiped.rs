//! A worker whose disk is lost while it is down: it does not come back as the one that has coordinated the least.

use std::collections::BTreeMap;

use floodline::protocol::ids::NodeId;
use floodline::protocol::view::{ClusterView, JobView};

use crate::fleet::{Fleet, Plan, jacs};
use crate::follow::result;
use crate::work::{Known, jobs_at};
use crate::{figure, turn};

/// Jobs before the loss, and after it.
const BEFORE: i64 = 23;
const AFTER: i64 = 20;

async fn work(fleet: &Fleet, numbers: impl Iterator<Item = i64>) {
    for number in numbers {
        let job = Known::trivial(&format!("job-{number}"), number);
        let view = result(job.handed_to(fleet.client().await)).await;
        job.assert_answered(&view);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worker_with_the_highest_jac_loses_its_disk_and_the_others_remember_for_it() {
    let _turn = turn().await;
    let mut fleet = Fleet::start(Plan::new(4, &["--max-jobs-per-term=2"]).with_disks()).await;
    work(&fleet, 1..=BEFORE).await;
    let counts = |views: &[ClusterView], jobs: i64| {
        views.iter().all(|view| jacs(view).values().sum::<u64>() == jobs.unsigned_abs())
    };
    let (_, views) = fleet.settled(|_, views| counts(views, BEFORE)).await;
    let before = jacs(&views[0]);
    let (victim, jac) = before.iter().max_by_key(|(_, jac)| **jac).map(|(node, jac)| (node.clone(), *jac)).expect("4");
    fleet.kill(victim.as_str()).await;
    std::fs::remove_dir_all(fleet.disk_of(victim.as_str())).expect("it had a disk");
    fleet.settled(|leadership, _| leadership.leader != victim).await;
    fleet.start_all().await;
    let remembered = |views: &[ClusterView]| views.iter().all(|view| jacs(view).get(&victim) == Some(&jac));
    fleet.settled(|_, views| remembered(views)).await;
    work(&fleet, BEFORE + 1..=BEFORE + AFTER).await;
    let (_, views) = fleet.settled(|_, views| counts(views, BEFORE + AFTER)).await;
    let after = jacs(&views[0]);
    let led_from_nothing = |line: &serde_json::Value| {
        line["kind"] == "leadership-began" && line["message"].as_str().is_some_and(|text| text.contains("with JAC 0;"))
    };
    assert_eq!(fleet.worker(victim.as_str()).said(led_from_nothing), Vec::<serde_json::Value>::new());
    let jobs = jobs_at(fleet.worker(victim.as_str())).await;
    let terms = assert_rises_by_one(jobs.values(), &after);
    let (least, most) = (after.values().min().expect("4"), after.values().max().expect("4"));
    assert!(most - least <= 2, "the lowest JAC wins, so that none is more than a term ahead: {after:?}");
    figure(&format!(
        "{victim} lost its disk with JAC {jac} and came back with {jac}; after {AFTER} jobs and {terms} terms in all \
         the JACs are {:?}, each raised by one at a time",
        Vec::from_iter(after.values())
    ));
}

/// Every admission raised its owner's JAC by one, none twice to the same number. Gives how many leaderships there were.
fn assert_rises_by_one<'a>(jobs: impl Iterator<Item = &'a JobView>, jacs: &BTreeMap<NodeId, u64>) -> usize {
    let mut admissions = Vec::from_iter(jobs.flat_map(|job| job.admissions.iter().cloned()));
    admissions.sort_by_key(|admission| (admission.leader.clone(), admission.term, admission.place));
    let mut raised: BTreeMap<NodeId, u64> = BTreeMap::new();
    for admission in &admissions {
        let jac = raised.entry(admission.leader.clone()).or_default();
        assert_eq!(admission.jac.0, *jac + 1, "{admissions:?}");
        *jac += 1;
    }
    let own = jacs.iter().filter(|(_, jac)| **jac > 0).map(|(node, jac)| (node.clone(), *jac)).collect();
    assert_eq!(raised, own);
    admissions.dedup_by_key(|admission| (admission.leader.clone(), admission.term));
    admissions.len()
}
