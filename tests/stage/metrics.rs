//! What a node tells Prometheus.

use std::collections::BTreeMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::nodes::{Node, within};

/// A scrape, as text.
pub(crate) async fn scrape(node: &Node) -> String {
    let mut stream = TcpStream::connect(node.http).await.expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("it reads");
    let mut answer = String::new();
    within("a scrape", stream.read_to_string(&mut answer)).await.expect("text");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.trim_end().ends_with("# EOF"), "{answer}");
    answer
}

/// The same by name.
pub(crate) async fn metrics(node: &Node) -> BTreeMap<String, f64> {
    let answer = scrape(node).await;
    let lines = answer.lines().filter(|line| line.starts_with("floodline_") || line.starts_with("process_"));
    let value =
        |line: &str| line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().expect("a number")));
    lines.filter_map(value).collect()
}
