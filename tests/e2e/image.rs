//! What is in the image, and what a node of it needs.

use std::process::Command;
use std::time::{Duration, Instant};

use super::command::{docker, eventually, output, run, say};
use super::outside::{Client, Events};

const IMAGE: &str = "floodline:dev";
const LARGEST: u64 = 30 << 20;

#[test]
fn it_is_small_and_runs_as_nobody_in_particular() {
    let size: u64 = docker(&["image", "inspect", "--format", "{{.Size}}", IMAGE]).parse().expect("a number");
    assert!(size <= LARGEST, "{size} bytes are more than {LARGEST}");
    say(format_args!("the image has {:.1} MiB", size as f64 / f64::from(1 << 20)));
    let config = docker(&["image", "inspect", "--format", "{{json .Config}}", IMAGE]);
    let config: serde_json::Value = serde_json::from_str(&config).expect("an object");
    assert_eq!(
        (&config["User"], &config["Entrypoint"], &config["Cmd"], &config["StopSignal"]),
        (&"65532:65532".into(), &serde_json::json!(["floodline"]), &serde_json::json!(["node"]), &"SIGTERM".into())
    );
    assert_eq!(config["Healthcheck"]["Test"], serde_json::json!(["CMD", "floodline", "health"]));
    assert_eq!(config["Labels"]["org.opencontainers.image.licenses"], "Apache-2.0");
}

#[test]
fn it_holds_the_program_and_its_libraries_and_no_shell() {
    let container = docker(&["create", IMAGE]);
    let list = output(
        Command::new("sh").args(["-c", &format!("docker export {container} | tar --list --verbose --numeric-owner")]),
    );
    docker(&["rm", &container]);
    // What the engine itself puts into any container is empty.
    let files: Vec<&str> = list.lines().filter(|line| line.starts_with('-')).collect();
    let names = files.iter().filter(|line| line.split_whitespace().nth(2) != Some("0"));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().last()).collect();
    assert!(names.contains(&"usr/local/bin/floodline"), "{names:?}");
    let is_known = |name: &&str| {
        ["usr/local/bin/floodline", "etc/passwd", "etc/group", "etc/nsswitch.conf"].contains(name)
            || name.contains("lib")
    };
    assert_eq!(names.iter().copied().filter(|name| !is_known(name)).collect::<Vec<&str>>(), Vec::<&str>::new());
    let privileged = files.iter().filter(|line| line.split_whitespace().next().is_some_and(|mode| mode.contains('s')));
    assert_eq!(privileged.collect::<Vec<_>>(), Vec::<&&str>::new(), "no file gives its user's rights away");
    let data = list.lines().find(|line| line.ends_with(" data/")).expect("a folder for data");
    assert!(data.contains("65532/65532"), "{data}");
}

#[test]
fn every_command_is_there_and_a_bad_setting_is_named() {
    let version = docker(&["run", "--rm", IMAGE, "--version"]);
    assert_eq!(version, format!("floodline {}", env!("CARGO_PKG_VERSION")));
    let refused = run(Command::new("docker").args(["run", "--rm", "--env", "FLOODLINE_ROLE=boss", IMAGE]));
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("FLOODLINE_ROLE=\"boss\""), "{}", refused.err);
}

/// Containers of one test; they go with it.
struct Containers(Vec<String>);

impl Containers {
    fn run(&mut self, name: &str, arguments: &[&str]) {
        run(Command::new("docker").args(["rm", "--force", "--volumes", name]));
        self.0.push(name.to_owned());
        docker(&[&["run", "--detach", "--name", name, "--hostname", name], arguments].concat());
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        for name in &self.0 {
            if std::thread::panicking() {
                eprintln!("{name}:\n{}", run(Command::new("docker").args(["logs", "--tail", "100", name])).err);
            }
            run(Command::new("docker").args(["rm", "--force", "--volumes", name]));
        }
    }
}

/// A short lease is harder to keep than the usual one.
const LEASE: Duration = Duration::from_secs(2);

#[test]
fn half_a_core_and_64_mib_are_enough_to_stay_a_member_under_full_compute() {
    const NETWORK: &str = "floodline-e2e-small";
    const NODE: [&str; 8] = [
        "--network",
        NETWORK,
        "--env",
        "FLOODLINE_LEASE_TTL=2s",
        "--env",
        "FLOODLINE_LEASE_RENEW=500ms",
        "--env",
        "FLOODLINE_BOOTSTRAP=e2e-directory:7400",
    ];
    let mut containers = Containers(Vec::new());
    run(Command::new("docker").args(["network", "rm", NETWORK]));
    docker(&["network", "create", NETWORK]);
    containers.run("e2e-directory", &[&NODE[..], &["--env", "FLOODLINE_ROLE=bootstrap", IMAGE]].concat());
    let worker = [&NODE[..], &["--read-only", "--tmpfs", "/data:uid=65532", "--env", "FLOODLINE_DATA_DIR=/data"]];
    let worker = worker.concat();
    let small = ["--cpus", "0.5", "--memory", "64m", IMAGE];
    containers.run("e2e-small", &[&worker[..], &small].concat());
    let other = ["--cpus", "0.5", "--publish", "127.0.0.1:27500:7400", IMAGE];
    containers.run("e2e-other", &[&worker[..], &other].concat());

    let client = Client::of(&["127.0.0.1:27500".to_owned()]);
    client.settles(2);
    let events = Events::of(&client);
    client.detach("full", &["primesum", "1", "10000000000000"]);
    let is_busy = || {
        let cluster = client.cluster()?;
        let small = cluster["nodes"].as_array()?.iter().find(|node| node["node"] == "e2e-small")?;
        (small["alive"] == true && small["running"].as_u64() > Some(0)).then_some(())
    };
    eventually("computing", is_busy);
    let computing = Instant::now();
    while computing.elapsed() < LEASE * 10 {
        assert_eq!(is_busy(), Some(()), "it is a member that computes");
    }
    let trouble = ["member-left", "worker-lost", "link-down", "election-started", "leadership-ended"];
    let events = events.end();
    assert!(events.iter().any(|event| event["kind"] == "task-handed-out"), "{events:?}");
    let trouble: Vec<_> = events.iter().filter(|event| trouble.iter().any(|kind| event["kind"] == *kind)).collect();
    assert!(trouble.is_empty(), "{trouble:?}");
    assert_eq!(
        docker(&["inspect", "--format", "{{.State.OOMKilled}} {{.State.Status}}", "e2e-small"]),
        "false running"
    );
    drop(containers);
    docker(&["network", "rm", NETWORK]);
}
