//! compose.yaml: up, scaled, killed, restarted, taken down and up again.

use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::command::{docker, eventually, output, say};
use super::outside::{ANSWER_OF_HUGE, ANSWER_OF_LARGE, Client, Events, HUGE, LARGE, Load, end, last};
use super::stack::{Stack, WORKERS};

/// The exit code of a command that reached no node.
const UNREACHABLE: Option<i32> = Some(3);
const GRACE: Duration = Duration::from_secs(10);
/// A slow worker: a job for which all of them together need a second takes some.
const SLOW: &str = "0.2";

#[test]
fn one_command_starts_a_cluster_that_answers_from_the_host_and_from_inside() {
    let stack = Stack::down("1");
    let started = Instant::now();
    stack.compose(&["up", "--wait", "--no-build"]);
    let up = started.elapsed();
    assert_eq!(stack.client.submit(&["max", "3", "-7", "12"]), "12");
    say(format_args!(
        "up after {:.1} s, the first answer after {:.1} s",
        up.as_secs_f64(),
        started.elapsed().as_secs_f64()
    ));
    let started = Instant::now();
    assert_eq!(stack.client.submit(&LARGE), ANSWER_OF_LARGE);
    say(format_args!("{} took {:.1} s", LARGE.join(" "), started.elapsed().as_secs_f64()));
    let inside =
        ["exec", "--no-TTY", "worker", "floodline", "submit", "primecount", "7", "8", "9", "11", "--output", "json"];
    assert_eq!(last(&stack.compose(&inside))["answer"], "2");
    assert_eq!(stack.containers("worker").len(), WORKERS);
}

#[test]
fn only_workers_and_the_page_of_traces_are_published_and_on_loopback_alone() {
    let stack = Stack::down("1");
    let config: Value = serde_json::from_str(&stack.compose(&["config", "--format", "json"])).expect("an object");
    let services = config["services"].as_object().expect("services");
    for (name, service) in services {
        let ports = service["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ports: Vec<(u64, &str)> =
            ports.iter().map(|port| (port["target"].as_u64().unwrap(), port["host_ip"].as_str().unwrap())).collect();
        let expected: &[(u64, &str)] = match name.as_str() {
            "worker" => &[(7400, "127.0.0.1"), (8080, "127.0.0.1")],
            "jaeger" => &[(16686, "127.0.0.1")],
            _ => &[],
        };
        assert_eq!(ports, expected, "{name}");
        let limits = &service["deploy"]["resources"]["limits"];
        for limit in ["cpus", "memory", "pids"] {
            assert!(!limits[limit].is_null(), "{name} may use {limit} without a bound");
        }
        assert_eq!(
            (&service["read_only"], &service["cap_drop"]),
            (&true.into(), &serde_json::json!(["ALL"])),
            "{name}"
        );
        assert_eq!(service["security_opt"], serde_json::json!(["no-new-privileges:true"]), "{name}");
    }
    let plain = std::process::Command::new("docker").args(["compose", "config", "--format", "json"]).output().unwrap();
    let plain: Value = serde_json::from_slice(&plain.stdout).expect("an object");
    let published: Vec<&str> = plain["services"]["worker"]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|port| port["published"].as_str())
        .collect();
    assert_eq!(published, ["7400-7415", "8080-8095"], "where the command line looks by itself");
}

#[test]
fn workers_join_in_mid_job_and_the_killed_leader_comes_back_with_its_counter() {
    let stack = Stack::up("0.5");
    stack.settles(WORKERS);
    stack.client.detach("huge", &HUGE);
    stack.client.in_the_middle_of("huge");
    stack.compose(&["up", "--wait", "--no-build", "--no-recreate", "--scale", "worker=7", "worker"]);
    let before = stack.settles(7);
    let leader = before.node(&before.leader);
    stack.client.in_the_middle_of("huge");
    docker(&["kill", &leader.host]);
    let job = last(&output(&mut stack.client.command(&["watch", "huge"])));
    assert_eq!(job["answer"], ANSWER_OF_HUGE);
    let workers = job["workers"].as_array().map_or(0, Vec::len);
    assert!(workers > WORKERS, "those that joined have a part in it: {job}");
    let without = stack.settles(6);
    assert!(!without.has(&leader.name), "{without:?}");
    docker(&["start", &leader.host]);
    let after = stack.settles(7);
    assert!(after.node(&leader.name).jac >= leader.jac && leader.jac > 0, "{before:?}, then {after:?}");
    say(format_args!("{workers} of 7 workers had a part in a job that began with {WORKERS}"));
}

#[test]
fn all_end_in_time_with_open_streams_and_silent_connections_and_go_on_when_they_are_up_again() {
    let stack = Stack::up(SLOW);
    stack.settles(WORKERS);
    let silent: Vec<TcpStream> =
        stack.published().iter().map(|at| TcpStream::connect(at).expect("published")).collect();
    assert_eq!(silent.len(), 2 * WORKERS);
    let events = Events::of(&stack.client);
    stack.client.detach("large", &LARGE);
    let watch = stack
        .client
        .command(&["watch", "large"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    stack.client.in_the_middle_of("large");
    let started = Instant::now();
    stack.compose(&["stop"]);
    let took = started.elapsed();
    assert!(took < GRACE, "{took:?}");
    for container in ["bootstrap", "worker", "jaeger"].map(|service| stack.containers(service)).concat() {
        assert_eq!(docker(&["inspect", "--format", "{{.State.ExitCode}} {{.State.OOMKilled}}", &container]), "0 false");
    }
    say(format_args!("all stopped after {:.1} s, each with 0", took.as_secs_f64()));
    drop((silent, events.end()));
    end(watch);
    stack.compose(&["down"]);
    let started = Instant::now();
    stack.compose(&["up", "--wait", "--no-build"]);
    say(format_args!("up again after {:.1} s", started.elapsed().as_secs_f64()));
    assert_eq!(stack.client.answer("large"), ANSWER_OF_LARGE);
    stack.settles(WORKERS);
}

#[test]
fn all_killed_at_once_resume_when_they_are_started() {
    let stack = Stack::up(SLOW);
    let before = stack.settles(WORKERS);
    stack.client.detach("large", &LARGE);
    stack.client.in_the_middle_of("large");
    stack.compose(&["kill"]);
    assert_eq!(stack.client.cluster(), None);
    stack.compose(&["start"]);
    assert_eq!(stack.client.answer("large"), ANSWER_OF_LARGE);
    let after = stack.settles(WORKERS);
    for node in &before.nodes {
        assert!(after.node(&node.name).jac >= node.jac, "{before:?}, then {after:?}");
    }
}

#[test]
fn recreated_under_other_addresses_they_find_each_other() {
    let stack = Stack::up("1");
    let before = stack.settles(WORKERS);
    let (ips, containers) = (stack.ips("worker"), stack.containers("worker"));
    stack.compose(&["rm", "--stop", "--force", "worker", "bootstrap", "jaeger"]);
    // Somebody else takes what they had.
    let stranger = || {
        docker(&[
            "run",
            "--detach",
            "--rm",
            "--network",
            &stack.network(),
            "--env",
            "FLOODLINE_CLUSTER=other",
            "floodline:dev",
        ])
    };
    let strangers: Vec<String> = std::iter::repeat_with(stranger).take(WORKERS + 2).collect();
    let up = stack.try_compose(&["up", "--wait", "--no-build"]);
    let (later, cluster) = (stack.ips("worker"), stack.settles(WORKERS));
    docker(&[&["rm", "--force"], &Vec::from_iter(strangers.iter().map(String::as_str))[..]].concat());
    assert_eq!(up.code, Some(0), "{}", up.err);
    assert!(ips.is_disjoint(&later), "{ips:?}, then {later:?}");
    assert!(stack.containers("worker").iter().all(|container| !containers.contains(container)));
    for node in &before.nodes {
        assert!(cluster.has(&node.name), "{node:?} goes on in another container: {cluster:?}");
    }
}

#[test]
fn restarted_one_after_the_other_and_scaled_down_no_submission_fails() {
    let stack = Stack::up("1");
    stack.settles(WORKERS);
    let load = Load::start(&stack.client, 2);
    load.goes_on(10);
    for container in [stack.containers("worker"), stack.containers("bootstrap")].concat() {
        docker(&["restart", &container]);
        healthy(&container);
        load.goes_on(10);
    }
    stack.settles(WORKERS);
    stack.compose(&["up", "--wait", "--no-build", "--no-recreate", "--scale", "worker=2", "worker"]);
    stack.settles(2);
    load.goes_on(10);
    let tally = load.end();
    say(format_args!(
        "{} submissions, {} failed, while every container was restarted and two were taken away",
        tally.succeeded,
        tally.failed.len()
    ));
    assert!(tally.failed.is_empty(), "{:?}", tally.failed);
}

#[test]
fn recreated_all_at_once_submissions_fail_only_where_no_node_is_reached() {
    let stack = Stack::up("1");
    stack.settles(WORKERS);
    let load = Load::start(&stack.client, 2);
    load.goes_on(10);
    stack.compose(&["up", "--wait", "--no-build", "--force-recreate", "--no-deps", "worker"]);
    stack.settles(WORKERS);
    load.goes_on(10);
    let tally = load.end();
    say(format_args!(
        "{} submissions, {} found no node, while all workers were recreated",
        tally.succeeded,
        tally.failed.len()
    ));
    assert!(tally.failed.iter().all(|(code, _)| *code == UNREACHABLE), "{:?}", tally.failed);
}

#[test]
fn without_jaeger_and_without_the_directory_it_works_on() {
    let stack = Stack::down("1");
    stack.compose(&["up", "--wait", "--no-build", "worker"]);
    assert_eq!(stack.containers("jaeger"), Vec::<String>::new());
    stack.settles(WORKERS);
    stack.compose(&["kill", "bootstrap"]);
    answers(&stack.client);
    // A worker that comes now finds the others by their names.
    stack.compose(&["up", "--detach", "--no-build", "--no-deps", "--no-recreate", "--scale", "worker=5", "worker"]);
    stack.settles(5);
    answers(&stack.client);
}

fn answers(client: &Client) {
    assert_eq!(client.submit(&["max", "1", "2"]), "2");
}

fn healthy(container: &str) {
    eventually("being healthy", || {
        let health = docker(&["inspect", "--format", "{{.State.Health.Status}}", container]);
        (health == "healthy").then_some(())
    });
}
