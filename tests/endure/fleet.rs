//! A directory and workers that keep their data in folders, and can be ended and started again one by one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use floodline::client::Client;
use floodline::protocol::ids::{Leadership, NodeId};
use floodline::protocol::view::ClusterView;
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::links::Links;
use crate::nodes::{Node, settled};

/// The name under which the directory runs.
pub(crate) const DIRECTORY: &str = "directory";

/// What a fleet is made of.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    pub(crate) workers: usize,
    /// Settings of every node.
    pub(crate) settings: Vec<String>,
    /// Whether the workers keep their data in a folder.
    pub(crate) has_disks: bool,
    /// Whether nodes reach each other through links that can be cut.
    pub(crate) has_links: bool,
}

impl Plan {
    pub(crate) fn new(workers: usize, settings: &[&str]) -> Plan {
        let settings = ["--log-level=info"].iter().chain(settings).map(ToString::to_string).collect();
        Plan { workers, settings, ..Plan::default() }
    }

    pub(crate) fn with_disks(self) -> Plan {
        Plan { has_disks: true, ..self }
    }

    pub(crate) fn with_links(self) -> Plan {
        Plan { has_links: true, ..self }
    }
}

/// The nodes; they are killed with the test.
pub(crate) struct Fleet {
    plan: Plan,
    /// Where the data of the workers is. On the disk that the build is on: a temporary folder may be in memory.
    folder: TempDir,
    pub(crate) links: Links,
    directory: Option<Node>,
    /// Those that run, by name.
    pub(crate) workers: BTreeMap<String, Node>,
}

impl Fleet {
    /// Starts them, and waits until all workers know each other under one leader.
    pub(crate) async fn start(plan: Plan) -> Fleet {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let links = Links::default();
        let mut fleet = Fleet { plan, folder, links, directory: None, workers: BTreeMap::new() };
        fleet.start_all().await;
        fleet
    }

    /// Starts all nodes that do not run, and waits until all workers know each other under one leader.
    pub(crate) async fn start_all(&mut self) {
        if self.directory.is_none() {
            let arguments = self.arguments(DIRECTORY, &["--role=bootstrap".to_owned()]).await;
            let directory = Node::start(DIRECTORY, &arguments).await;
            self.links.lead(DIRECTORY, &directory);
            self.directory = Some(directory);
        }
        let names = (1..=self.plan.workers).map(|number| format!("worker-{number}"));
        let mut starting = JoinSet::new();
        for name in names.filter(|name| !self.workers.contains_key(name)) {
            let arguments = self.arguments_of_worker(&name).await;
            starting.spawn(async move { Node::start(&name, &arguments).await });
        }
        while let Some(worker) = starting.join_next().await {
            self.runs(worker.expect("it starts"));
        }
        let all = self.plan.workers;
        self.settled(|_, views| views.iter().all(|view| are_alive(view) == all)).await;
    }

    /// Starts a worker that does not run.
    pub(crate) async fn start_worker(&mut self, name: &str) {
        let arguments = self.arguments_of_worker(name).await;
        self.runs(Node::start(name, &arguments).await);
    }

    fn runs(&mut self, worker: Node) {
        self.links.lead(&worker.name, &worker);
        self.workers.insert(worker.name.clone(), worker);
    }

    async fn arguments(&self, name: &str, own: &[String]) -> Vec<String> {
        let mut arguments = [&self.plan.settings, own].concat();
        if self.plan.has_links {
            arguments.push(format!("--advertise={}", self.links.to(name).await));
        }
        arguments
    }

    async fn arguments_of_worker(&self, name: &str) -> Vec<String> {
        let directory = match &self.directory {
            _ if self.plan.has_links => self.links.to(DIRECTORY).await.to_string(),
            Some(directory) => directory.address.to_string(),
            None => panic!("the directory starts first"),
        };
        let mut own = vec![format!("--bootstrap={directory}")];
        if self.plan.has_disks {
            own.push(format!("--data-dir={}", self.disk_of(name).display()));
        }
        self.arguments(name, &own).await
    }

    /// The folder of a worker's data.
    pub(crate) fn disk_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Kills a worker, and waits until it is gone.
    pub(crate) async fn kill(&mut self, name: &str) {
        let mut worker = self.workers.remove(name).expect("it runs");
        worker.signal(Signal::KILL);
        worker.ended().await;
    }

    /// Kills every node at once, the directory too, and waits until they are gone.
    pub(crate) async fn kill_all(&mut self) {
        let all = std::mem::take(&mut self.workers).into_values().chain(self.directory.take());
        let all = Vec::from_iter(all);
        all.iter().for_each(|node| node.signal(Signal::KILL));
        for mut node in all {
            node.ended().await;
        }
    }

    /// All that run, the directory first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.directory.iter().chain(self.workers.values())
    }

    pub(crate) fn worker(&self, name: &str) -> &Node {
        self.workers.get(name).expect("it runs")
    }

    /// A client that asks any worker.
    pub(crate) async fn client(&self) -> Client {
        let addresses = self.workers.values().map(|worker| worker.address.clone()).collect();
        Client::connect(addresses).await.expect("one answers")
    }

    /// Waits until all workers that run follow one leadership that `fits`.
    pub(crate) async fn settled(
        &self,
        fits: impl Fn(&Leadership, &[ClusterView]) -> bool,
    ) -> (Leadership, Vec<ClusterView>) {
        settled(&Vec::from_iter(self.workers.values()), fits).await
    }
}

/// How many workers are alive, as a node sees it.
pub(crate) fn are_alive(view: &ClusterView) -> usize {
    view.nodes.iter().filter(|node| node.alive).count()
}

/// The JAC of each worker, as a node sees it.
pub(crate) fn jacs(view: &ClusterView) -> BTreeMap<NodeId, u64> {
    view.nodes.iter().map(|node| (node.member.node.clone(), node.jac.0)).collect()
}
