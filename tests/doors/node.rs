//! A node in this process, with the doors that it has anywhere.

use std::time::Duration;

use floodline::app::Node;
use floodline::config::{Sources, load};
use floodline::wire::v1::bootstrap_service_client::BootstrapServiceClient;
use floodline::wire::v1::coordinator_service_client::CoordinatorServiceClient;
use floodline::wire::v1::worker_service_client::WorkerServiceClient;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};

/// Longer than anything takes that does not hang.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A node that runs.
pub(crate) struct RunningNode {
    address: String,
    stop: oneshot::Sender<()>,
    life: JoinHandle<()>,
}

impl RunningNode {
    pub(crate) async fn worker(name: &str) -> RunningNode {
        RunningNode::start(name, "worker").await
    }

    pub(crate) async fn directory() -> RunningNode {
        RunningNode::start("directory", "bootstrap").await
    }

    async fn start(name: &str, role: &str) -> RunningNode {
        let free = "127.0.0.1:0".to_owned();
        let flags = vec![
            ("node_id", name.to_owned()),
            ("role", role.to_owned()),
            ("listen", free.clone()),
            ("http_listen", free.clone()),
            ("advertise", free),
        ];
        let settings = load(&Sources { flags, ..Sources::default() }).expect("all allowed").settings;
        let node = Node::start(&settings, None).await.expect("free ports");
        let address = node.member().address.to_string();
        let (stop, stopped) = oneshot::channel();
        let life = tokio::spawn(async move {
            node.live(async { drop(stopped.await) }).await;
        });
        RunningNode { address, stop, life }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.address)).expect("a good address").connect_lazy()
    }

    pub(crate) fn coordinator(&self) -> CoordinatorServiceClient<Channel> {
        CoordinatorServiceClient::new(self.channel())
    }

    pub(crate) fn worker_service(&self) -> WorkerServiceClient<Channel> {
        WorkerServiceClient::new(self.channel())
    }

    pub(crate) fn bootstrap(&self) -> BootstrapServiceClient<Channel> {
        BootstrapServiceClient::new(self.channel())
    }

    pub(crate) async fn end(self) {
        self.stop.send(()).ok();
        tokio::time::timeout(SOON, self.life).await.expect("it ends in time").expect("no panic");
    }
}
