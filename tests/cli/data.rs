//! What outlives processes: a cluster whose nodes were all killed at once, and a node whose disk is full.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::messages::followed;
use crate::nodes::Cluster;
use crate::program::{Program, run};

/// Sums of the primes up to so much.
const SUMS: [(&str, &str, &str); 4] = [
    ("one", "1000000000", "24739512092254535"),
    ("two", "2000000000", "95673602693282040"),
    ("three", "1000000000", "24739512092254535"),
    ("four", "50000000", "72619548630277"),
];

/// The JAC of each worker.
fn jacs(shown: &Value) -> BTreeMap<String, u64> {
    let nodes = shown["nodes"].as_array().expect("nodes").iter();
    nodes.filter_map(|node| Some((node["node"].as_str()?.to_owned(), node["jac"].as_u64()?))).collect()
}

fn are_all_there(shown: &Value, workers: usize) -> bool {
    let alive = shown["nodes"].as_array().expect("nodes").iter().filter(|node| node["alive"] == true).count();
    !shown["leader"].is_null() && alive == workers
}

#[test]
fn a_cluster_killed_at_once_in_the_middle_of_its_work_goes_on_when_it_is_started_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = Cluster::start_on(3, folder.path()).formed();
    let name = cluster.name.clone();
    let ended = cluster.json(&["submit", "max", "1", "7", "--job-id", "before"]);
    assert_eq!(followed(&ended)["answer"], "7");
    for (id, end, _) in SUMS {
        let ended = cluster.run(&["submit", "primesum", "1", end, "--job-id", id, "--detach"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let shown = cluster.shown_once(|shown| are_all_there(shown, 3) && jacs(shown).values().sum::<u64>() == 5);
    let before = jacs(&shown);
    let watcher = cluster.begin(&["watch", "two", "--output", "json"], "");
    while watcher.json()["completed"] == 0 {}
    cluster.killed();
    drop(watcher);

    let cluster = Cluster::start_on(3, folder.path()).formed();
    assert_eq!(cluster.name, name);
    let mut unfinished = 0;
    for (id, _, answer) in SUMS.iter().chain([&("before", "", "7")]) {
        let messages = cluster.json(&["watch", id]);
        unfinished += usize::from(messages.len() > 1);
        let last = followed(&messages);
        assert_eq!((&last["state"], &last["answer"]), (&"SUCCEEDED".into(), &(*answer).into()), "{id}");
        assert_eq!(last["admissions"].as_array().map(Vec::len), Some(1), "admitted once: {last}");
    }
    assert!(unfinished > 0, "all had ended before the kill, which then shows nothing");
    assert_eq!(cluster.json(&["jobs"]).len(), 5);
    assert_eq!(jacs(&cluster.shown_once(|shown| are_all_there(shown, 3))), before);
    cluster.end();
}

#[test]
fn a_second_up_on_one_folder_and_another_cluster_s_name_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("text");
    let cluster = Cluster::start_on(1, folder.path());
    let refused = run(&["up", "--data", data, "--workers", "1"]);
    let taken = format!("floodline: another `floodline up` runs with --data {data}; end it, or give another folder\n");
    assert_eq!((refused.code, refused.out.as_str(), refused.err), (Some(2), "", taken));
    cluster.end();
    let refused = run(&["up", "--data", data, "--workers", "1", "--cluster", "other"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""));
    assert!(refused.err.contains("not other; leave --cluster out"), "{}", refused.err);
}

#[test]
fn a_node_whose_disk_is_full_ends_with_7_and_says_why_and_the_others_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let numbers = folder.path().join("numbers");
    let text = (0..900_000_u64).fold(String::new(), |mut text, number| {
        write!(text, "{} ", u64::MAX - number).expect("text takes text");
        text
    });
    std::fs::write(&numbers, text).expect("a file");
    let cluster = Cluster::start(2).formed();
    let own = [
        "node",
        "--node-id=full",
        "--listen=127.0.0.1:0",
        "--http-listen=127.0.0.1:0",
        "--advertise=127.0.0.1:0",
        "--bootstrap",
        cluster.directory(),
        "--cluster",
        &cluster.name,
        "--data-dir",
        data.to_str().expect("text"),
    ];
    let node = Program::start_with_small_files(8_192, &own);
    cluster.shown_once(|shown| are_all_there(shown, 3));
    // Its payload is larger than the limit of 4 MiB.
    let ended = cluster.json(&["submit", "primecount", "--file", numbers.to_str().expect("text")]);
    assert_eq!(followed(&ended)["state"], "SUCCEEDED");
    let ended = node.end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(7), ""), "{}", ended.err);
    let file = data.join("slot-0/journal.redb");
    let told = format!("floodline: the journal failed: cannot write {}: File too large", file.display());
    let last = ended.err.lines().last().unwrap_or_default();
    assert!(last.starts_with(&told) && last.contains("start the node again"), "{last}");
    assert!(ended.err.contains("ERROR"), "{}", ended.err);
    let ended = cluster.json(&["submit", "max", "3", "4"]);
    assert_eq!(followed(&ended)["answer"], "4");
    cluster.end();
}

#[test]
fn two_processes_never_have_one_slot() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("text");
    let own = ["node", "--node-id=a", "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--advertise=127.0.0.1:0"];
    let own = [&own[..], &["--stop-grace=500ms", "--data-dir", data]].concat();
    let first = Program::start(&own, "");
    first.told("the journal is open");
    let refused = run(&own);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
    let slot = folder.path().join("slot-0");
    let last = refused.err.lines().last().unwrap_or_default().to_owned();
    let told = format!("floodline: another process runs as a on {}; end it, or give", slot.display());
    assert!(last.starts_with(&told), "{last}");
    first.signal(rustix::process::Signal::TERM);
    assert_eq!(first.end().code, Some(0));
}
