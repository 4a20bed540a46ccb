//! Commands that speak to a cluster.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::messages::{followed, keys};
use crate::nodes::{Cluster, jacs, signal};
use crate::program::{Program, run};

/// Long enough to be broken in its middle, and it never ends by itself within a test.
const ENDLESS: [&str; 4] = ["submit", "primesum", "1", "9000000000000"];

#[test]
fn each_kind_is_answered_in_text_and_in_json() {
    let cluster = Cluster::start(3);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("numbers");
    std::fs::write(&file, "2 3\n4\t5 18446744073709551557\n").expect("a file");
    let file = file.to_str().expect("text");
    for (arguments, text, answer) in [
        (vec!["submit", "max", "-5", "3", "-9223372036854775808"], "MAX of 3 numbers = 3", "3"),
        (vec!["submit", "primecount", "--file", file], "PRIMECOUNT of 5 numbers = 4", "4"),
        (vec!["submit", "primesum", "1", "1000000"], "PRIMESUM 1..=1000000 = 37550402023", "37550402023"),
    ] {
        let ended = cluster.run(&arguments);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "no bar without a terminal");
        assert_eq!(ended.out.lines().next(), Some(text));
        let messages = cluster.json(&arguments);
        let last = followed(&messages);
        assert_eq!((&last["answer"], &last["kind"]), (&answer.into(), &text.split(' ').next().into()));
    }
    let ended = cluster.begin(&["submit", "max"], " 7\n8 9\n").end();
    assert_eq!(ended.out.lines().next(), Some("MAX of 3 numbers = 9"), "{ended:?}");
    cluster.end();
}

#[test]
fn a_detached_job_is_listed_and_watched_to_its_end_and_is_the_same_when_sent_again() {
    let cluster = Cluster::start(2);
    let submit = ["submit", "primesum", "1", "50000000", "--job-id", "mine", "--detach"];
    let ended = cluster.run(&submit);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "mine\n"), "{ended:?}");
    let acknowledged = cluster.json(&submit);
    assert_eq!(acknowledged.len(), 1, "one line for the job");
    keys(&acknowledged[0]);

    let watched = cluster.json(&["watch", "mine"]);
    let last = followed(&watched);
    assert_eq!((&last["answer"], &last["job_id"]), (&"72619548630277".into(), &"mine".into()));
    assert_eq!(last["admissions"].as_array().map(Vec::len), Some(1), "sent twice, admitted once");
    let ended = cluster.run(&["watch", "mine"]);
    assert_eq!((ended.code, ended.out.lines().next()), (Some(0), Some("PRIMESUM = 72619548630277")), "{ended:?}");

    let listed = cluster.json(&["jobs"]);
    assert_eq!(listed.iter().map(|job| &job["job_id"]).collect::<Vec<&Value>>(), ["mine"]);
    listed.iter().for_each(keys);
    let row = cluster.run(&["jobs"]).out;
    assert!(row.lines().nth(1).is_some_and(|row| row.starts_with("mine  PRIMESUM  SUCCEEDED")), "{row}");

    let other = cluster.run(&["submit", "max", "1", "--job-id", "mine"]);
    assert_eq!((other.code, other.out.as_str(), other.err.lines().count()), (Some(2), "", 1), "{other:?}");
    assert!(other.err.contains("mine"), "{}", other.err);
    cluster.end();
}

#[test]
fn a_cancelled_job_ends_its_watchers_with_1() {
    let cluster = Cluster::start(2);
    let watcher = cluster.begin(&[&ENDLESS[..], &["--job-id", "endless", "--output", "json"]].concat(), "");
    assert_eq!(watcher.json()["state"], "RUNNING");
    let ended = cluster.run(&["cancel", "endless"]);
    assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (Some(0), "job endless is cancelled\n", ""));
    let watched = watcher.end();
    assert_eq!(watched.code, Some(1), "{watched:?}");
    let last = crate::program::json(watched.out.lines().last().expect("a terminal message"));
    assert_eq!((&last["state"], &last["answer"]), (&"CANCELLED".into(), &Value::Null));
    let again = cluster.json(&["cancel", "endless"]);
    assert_eq!(again[0]["state"], "CANCELLED");
    cluster.end();
}

#[test]
fn an_unknown_job_ends_with_4() {
    let cluster = Cluster::start(2);
    let known = cluster.run(&["submit", "max", "1"]);
    assert_eq!(known.code, Some(0), "{known:?}");
    for command in ["watch", "cancel"] {
        let ended = cluster.run(&[command, "nobody"]);
        assert_eq!((ended.code, ended.out.as_str(), ended.err.lines().count()), (Some(4), "", 1), "{ended:?}");
        assert!(ended.err.starts_with("floodline: ") && ended.err.contains("nobody"), "{}", ended.err);
    }
    cluster.end();
}

#[test]
fn the_cluster_is_shown_with_its_leader_and_a_ready_node_is_healthy() {
    let cluster = Cluster::start(3).formed();
    let job = cluster.json(&["submit", "max", "1"]);
    let leader = followed(&job)["leader"].clone();
    let shown = cluster.shown_once(|shown| jacs(shown) == 1 && shown["nodes"].as_array().map(Vec::len) == Some(3));
    assert_eq!((&shown["cluster"], &shown["leader"]), (&cluster.name.as_str().into(), &leader));
    assert_eq!((&shown["cap"], &shown["queued"]), (&5.into(), &0.into()));
    let nodes = shown["nodes"].as_array().expect("nodes");
    for node in nodes {
        let keys = ["address", "alive", "http", "incarnation", "jac", "links", "node", "role", "running", "version"];
        let mut found: Vec<&str> = node.as_object().expect("an object").keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, keys);
        assert_eq!(node["jac"], u64::from(node["node"] == leader), "{node}");
    }
    let text = cluster.run(&["cluster"]).out;
    assert!(text.starts_with(&format!("{}: term ", cluster.name)), "{text}");
    assert_eq!(text.matches("coordinator").count(), 1, "{text}");

    let healthy = cluster.run(&["health"]);
    assert_eq!((healthy.code, healthy.out.ends_with(" is ready\n")), (Some(0), true), "{healthy:?}");
    cluster.end();
}

fn tells_of_a_whole_job(heard: &[Value]) -> bool {
    let of = |kind: &'static str| heard.iter().filter(move |event| event["kind"] == kind).map(|event| &event["job_id"]);
    of("job-admitted").any(|admitted| of("job-ended").any(|ended| ended == admitted))
}

#[test]
fn events_tell_of_a_job_from_its_admission_to_its_end() {
    let cluster = Cluster::start(2);
    let events = cluster.begin(&["events", "--all", "--output", "json"], "");
    // What comes before somebody listens is not told: jobs follow each other until one is told whole.
    let is_enough = &AtomicBool::new(false);
    let addresses = cluster.addresses();
    let heard = thread::scope(|scope| {
        scope.spawn(move || {
            let submit = ["submit", "max", "1", "2", "--node", &addresses];
            let rounds = (0..200).take_while(|_| !is_enough.load(Ordering::Relaxed));
            rounds.for_each(|_| assert_eq!(run(&submit).code, Some(0)));
        });
        let mut heard: Vec<Value> = Vec::new();
        while !tells_of_a_whole_job(&heard) {
            heard.push(events.json());
        }
        is_enough.store(true, Ordering::Relaxed);
        heard
    });
    let keys = ["at", "attempt", "job_id", "kind", "node", "seq", "task", "term", "text", "trace_id"];
    for event in &heard {
        let mut found: Vec<&str> = event.as_object().expect("an object").keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, keys);
    }
    events.signal(Signal::INT);
    assert_eq!(events.end().code, Some(130));
    cluster.end();
}

#[test]
fn an_interrupted_submission_says_that_the_job_goes_on() {
    let cluster = Cluster::start(2);
    let submitting = cluster.begin(&[&ENDLESS[..], &["--job-id", "left", "--output", "json"]].concat(), "");
    assert_eq!(submitting.json()["state"], "RUNNING");
    submitting.signal(Signal::INT);
    let ended = submitting.end();
    let said = "interrupted, but job left goes on; `floodline watch left` follows it, `floodline cancel left` ends it";
    assert_eq!((ended.code, ended.err), (Some(130), format!("floodline: {said}\n")));
    assert_eq!(cluster.json(&["jobs"])[0]["state"], "RUNNING");
    assert_eq!(cluster.run(&["cancel", "left"]).code, Some(0));
    cluster.end();
}

/// Follows a job by the one address of a node, which the signal meets while the job runs. The addresses of the others
/// the client has from that node.
fn followed_past(cluster: &Cluster, met: Signal) {
    let (name, address, process) = cluster.first();
    let arguments = ["submit", "primesum", "1", "1000000000", "--output", "json", "--node", address];
    let following = Program::start(&arguments, "");
    let mut messages = vec![following.json()];
    signal(process, met);
    let ended = following.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{name} got {met:?}");
    messages.extend(ended.out.lines().map(crate::program::json));
    assert_eq!(followed(&messages)["answer"], "24739512092254535");
}

#[test]
fn a_follower_goes_on_with_another_node_when_the_asked_one_is_killed() {
    let cluster = Cluster::start(3).formed();
    followed_past(&cluster, Signal::KILL);
    cluster.end();
}

#[test]
fn a_follower_goes_on_with_another_node_when_the_asked_one_falls_silent() {
    let cluster = Cluster::start(3).formed();
    followed_past(&cluster, Signal::STOP);
    signal(cluster.first().2, Signal::CONT);
    cluster.end();
}

#[test]
fn the_nodes_of_up_have_the_settings_of_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("floodline.toml");
    let name = format!("cli-{}-by-file", std::process::id());
    std::fs::write(&file, format!("cluster = \"{name}\"\nmax_jobs_per_term = 3\n")).expect("a file");
    let cluster = Cluster::start_by(2, &file);
    let shown = &cluster.json(&["cluster"])[0];
    assert_eq!((&shown["cluster"], &shown["cap"]), (&name.into(), &3.into()));
    cluster.end();
}
