//! Pods deleted, killed, evicted, scaled and lost together while a job runs.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::command::{eventually, output, say};
use super::deployment::{Deployment, WORKERS, kubectl, told};
use super::outside::{ANSWER_OF_HUGE, ANSWER_OF_LARGE, Client, HUGE, LARGE};

#[test]
fn a_deleted_leader_a_killed_process_and_an_evicted_worker_cost_no_job() {
    let deployment = Deployment::apply();
    let client = &deployment.client;

    in_mid_job(client, "deleted", |leader, _| {
        told(&["delete", "pod", leader]);
    });
    deployment.rolled_out();

    let before = client.settles(WORKERS);
    let mut is_killed = true;
    in_mid_job(client, "killed", |leader, _| is_killed = kill(leader));
    deployment.rolled_out();
    let after = client.settles(WORKERS);
    for node in &before.nodes {
        assert!(after.node(&node.name).jac >= node.jac, "{before:?}, then {after:?}");
    }
    if !is_killed {
        say(format_args!("NOT TESTED: no process was killed, since the node is another machine"));
    }

    in_mid_job(client, "evicted", |_, worker| evict(worker));
    deployment.rolled_out();
    client.settles(WORKERS);
}

/// Does something to the leader or to another worker in the middle of a job, whose answer has to be right.
fn in_mid_job(client: &Client, id: &str, fault: impl FnOnce(&str, &str)) {
    let cluster = client.settles(WORKERS);
    let other = cluster.nodes.iter().find(|node| node.name != cluster.leader).expect("more than one");
    client.detach(id, &LARGE);
    client.in_the_middle_of(id);
    fault(&cluster.leader, &other.name);
    assert_eq!(client.answer(id), ANSWER_OF_LARGE, "{id}");
}

/// Kills a pod's process from its node, since its image has nothing to do it with; false where that is elsewhere.
fn kill(pod: &str) -> bool {
    let uid = told(&["get", "pod", pod, "--output=jsonpath={.metadata.uid}"]);
    let restarts = || told(&["get", "pod", pod, "--output=jsonpath={.status.containerStatuses[0].restartCount}"]);
    let before = restarts();
    let Some(pid) = process_of(&uid) else { return false };
    kill_process(pid, Signal::KILL).expect("this needs root");
    eventually("the container to be started again", || (restarts() != before).then_some(()));
    true
}

fn process_of(pod: &str) -> Option<Pid> {
    let marks = [pod.to_owned(), pod.replace('-', "_")];
    let processes =
        fs::read_dir("/proc").expect("Linux").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    processes.filter_map(|name| name.parse::<i32>().ok()).find_map(|pid| {
        let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let is_it = command.trim() == "floodline" && marks.iter().any(|mark| cgroup.contains(mark));
        is_it.then(|| Pid::from_raw(pid)).flatten()
    })
}

/// As draining its node does.
fn evict(pod: &str) {
    let namespace = told(&["get", "pod", pod, "--output=jsonpath={.metadata.namespace}"]);
    let eviction = format!(
        r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{pod}","namespace":"{namespace}"}}}}"#
    );
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), eviction).expect("it takes it");
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
    output(kubectl(&["create", "--raw", &path, "--filename"]).arg(file.path()));
}

#[test]
fn scaled_up_and_down_and_to_nothing_in_mid_job_it_goes_on() {
    let deployment = Deployment::apply();
    let client = &deployment.client;
    client.detach("huge", &HUGE);
    client.in_the_middle_of("huge");
    deployment.scale(7);
    deployment.rolled_out();
    client.settles(7);
    client.in_the_middle_of("huge");
    deployment.scale(3);
    client.settles(3);
    client.in_the_middle_of("huge");
    deployment.scale(0);
    told(&["wait", "--for=delete", "--timeout=120s", "pod", "--selector=app.kubernetes.io/component=worker"]);
    assert_eq!(client.cluster().map(|_| "a worker answers"), None);
    deployment.scale(WORKERS);
    deployment.rolled_out();
    // Pods are ready some time before the Service leads to them.
    client.settles(WORKERS);
    assert_eq!(client.answer("huge"), ANSWER_OF_HUGE);
}

#[test]
fn all_pods_deleted_at_once_the_job_goes_on_from_their_volumes() {
    let deployment = Deployment::apply();
    let client = &deployment.client;
    let before = client.settles(WORKERS);
    client.detach("large", &LARGE);
    client.in_the_middle_of("large");
    told(&["delete", "pod", "--selector=app.kubernetes.io/name=floodline"]);
    deployment.rolled_out();
    let after = client.settles(WORKERS);
    assert_eq!(client.answer("large"), ANSWER_OF_LARGE);
    for node in &before.nodes {
        assert!(after.node(&node.name).jac >= node.jac, "{before:?}, then {after:?}");
    }
}
