//! The test overlay, applied, with a pod beside it in which commands are run.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use super::command::{Done, output, run, say};
use super::outside::{Client, end};

const NAMESPACE: &str = "floodline-test";
/// Workers of the base.
pub(crate) const WORKERS: usize = 4;

/// `kubectl` in the namespace of the tests.
pub(crate) fn kubectl(arguments: &[&str]) -> Command {
    let mut command = Command::new("kubectl");
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["--namespace", NAMESPACE]).args(arguments);
    command
}

/// The same, which has to succeed, for its output.
pub(crate) fn told(arguments: &[&str]) -> String {
    output(&mut kubectl(arguments))
}

/// A deployment; it is removed with its test.
pub(crate) struct Deployment {
    /// Asks any ready worker, from inside.
    pub(crate) client: Client,
}

impl Deployment {
    /// Applies it and waits until all pods are ready.
    pub(crate) fn apply() -> Deployment {
        remove();
        let started = Instant::now();
        let deployment = Deployment { client: inside("floodline:7400") };
        told(&["apply", "--kustomize", "k8s/overlays/test"]);
        deployment.rolled_out();
        say(format_args!("applied, all pods ready after {:.1} s", started.elapsed().as_secs_f64()));
        told(&["apply", "--filename", "tests/k8s/client.yaml"]);
        told(&["wait", "--for=condition=Ready", "--timeout=120s", "pod/client"]);
        deployment.client.settles(WORKERS);
        deployment
    }

    /// Waits until the cluster is as the manifests want it.
    pub(crate) fn rolled_out(&self) {
        for workload in ["deployment/bootstrap", "statefulset/worker"] {
            told(&["rollout", "status", "--timeout=170s", workload]);
        }
    }

    pub(crate) fn scale(&self, workers: usize) {
        told(&["scale", "statefulset/worker", &format!("--replicas={workers}")]);
    }
}

/// A client in a pod of its own that asks this node.
pub(crate) fn inside(node: &str) -> Client {
    Client::elsewhere(&["kubectl", "--namespace", NAMESPACE, "exec", "client", "--", "floodline"], node)
}

impl Drop for Deployment {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for show in [
                &["get", "pods,persistentvolumeclaims,endpointslices", "--output=wide"][..],
                &["get", "events", "--sort-by=.lastTimestamp"],
                &["logs", "--selector=app.kubernetes.io/name=floodline", "--prefix", "--tail=100"],
            ] {
                let Done { out, err, .. } = run(&mut kubectl(show));
                eprintln!("{out}\n{err}");
            }
        }
        remove();
    }
}

fn remove() {
    run(&mut kubectl(&["delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=170s"]));
}

/// A port of this machine that leads to the service for clients.
pub(crate) struct Forwarding {
    process: Child,
    pub(crate) client: Client,
}

impl Forwarding {
    pub(crate) fn open() -> Forwarding {
        let mut process =
            kubectl(&["port-forward", "service/floodline", ":7400"]).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let line = lines.next().expect("it says where").expect("text");
        let address = line.split_whitespace().find(|word| word.starts_with("127.0.0.1:"));
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        // What it says later is of no interest, but it has to be let say it.
        std::thread::spawn(move || lines.for_each(drop));
        Forwarding { process, client: Client::of(&[address]) }
    }

    pub(crate) fn close(self) {
        end(self.process);
    }
}
