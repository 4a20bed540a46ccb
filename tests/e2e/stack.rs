//! A cluster of compose.yaml, under a name and ports of its own, so that it meets no other on the machine.

use std::collections::BTreeSet;
use std::process::Command;

use super::command::{Done, docker, output, run};
use super::outside::{Client, Cluster};

const PROJECT: &str = "floodline-e2e";
const GRPC_PORTS: (u16, u16) = (27400, 27415);
const HTTP_PORTS: (u16, u16) = (28080, 28095);
const JAEGER_PORT: &str = "26686";
/// Workers of compose.yaml, unless scaled.
pub(crate) const WORKERS: usize = 4;

/// A cluster; it is taken down with its test.
pub(crate) struct Stack {
    /// Cores of each worker.
    cpus: &'static str,
    pub(crate) client: Client,
}

impl Stack {
    /// Starts all of it and waits as `up --wait` does. `cpus` slows the workers down, so that a job has a middle.
    pub(crate) fn up(cpus: &'static str) -> Stack {
        let stack = Stack::down(cpus);
        stack.compose(&["up", "--wait", "--no-build"]);
        stack
    }

    /// Nothing of it runs yet.
    pub(crate) fn down(cpus: &'static str) -> Stack {
        let nodes: Vec<String> = (GRPC_PORTS.0..=GRPC_PORTS.1).map(|port| format!("127.0.0.1:{port}")).collect();
        let stack = Stack { cpus, client: Client::of(&nodes) };
        stack.remove();
        stack
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.args(["compose", "--project-name", PROJECT]).args(arguments);
        command.env("FLOODLINE_GRPC_PORTS", format!("{}-{}", GRPC_PORTS.0, GRPC_PORTS.1));
        command.env("FLOODLINE_HTTP_PORTS", format!("{}-{}", HTTP_PORTS.0, HTTP_PORTS.1));
        command.env("JAEGER_PORT", JAEGER_PORT).env("FLOODLINE_CPUS", self.cpus);
        command
    }

    /// `docker compose` with these arguments, which has to succeed.
    pub(crate) fn compose(&self, arguments: &[&str]) -> String {
        output(&mut self.command(arguments))
    }

    /// The same, however it ends.
    pub(crate) fn try_compose(&self, arguments: &[&str]) -> Done {
        run(&mut self.command(arguments))
    }

    /// Waits until so many workers live and follow one leader.
    pub(crate) fn settles(&self, workers: usize) -> Cluster {
        self.client.settles(workers)
    }

    /// The containers of a service, ended ones too.
    pub(crate) fn containers(&self, service: &str) -> Vec<String> {
        self.compose(&["ps", "--all", "--quiet", service]).lines().map(str::to_owned).collect()
    }

    /// The containers' addresses in their network.
    pub(crate) fn ips(&self, service: &str) -> BTreeSet<String> {
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        self.containers(service).iter().map(|container| docker(&["inspect", "--format", format, container])).collect()
    }

    /// Where the workers are reached from here, by gRPC and by HTTP.
    pub(crate) fn published(&self) -> Vec<String> {
        let format = "{{range .NetworkSettings.Ports}}{{range .}}{{.HostIp}}:{{.HostPort}} {{end}}{{end}}";
        let of = |container: &String| docker(&["inspect", "--format", format, container]);
        self.containers("worker")
            .iter()
            .flat_map(|container| of(container).split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    /// Where Jaeger's page and queries are.
    pub(crate) fn jaeger() -> String {
        format!("http://127.0.0.1:{JAEGER_PORT}")
    }

    pub(crate) fn network(&self) -> String {
        format!("{PROJECT}_default")
    }

    fn remove(&self) {
        self.compose(&["down", "--volumes", "--remove-orphans", "--timeout", "0"]);
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.try_compose(&["logs", "--no-color", "--timestamps", "--tail", "200"]);
            eprintln!("{}\n{}", self.try_compose(&["ps", "--all"]).out, log.out);
            self.try_compose(&["down", "--volumes", "--remove-orphans", "--timeout", "0"]);
        } else {
            self.remove();
        }
    }
}
