//! The HTTP door on a real socket: what probes are told, and what no connection can do.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{routes, serve};

const WITHIN: Duration = Duration::from_secs(30);

struct Door {
    address: SocketAddr,
    ready: watch::Sender<bool>,
    stopping: CancellationToken,
    closing: CancellationToken,
    server: JoinHandle<()>,
}

async fn door() -> Door {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it has an address");
    let (ready, is_ready) = watch::channel(false);
    let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
    let scrape = || Box::pin(std::future::ready("# EOF\n".to_owned())) as std::pin::Pin<Box<_>>;
    let routes = routes("a", is_ready, stopping.clone(), std::sync::Arc::new(scrape));
    let server = tokio::spawn(serve(listener, routes, closing.clone()));
    Door { address, ready, stopping, closing, server }
}

impl Door {
    async fn answer(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        let read = timeout(WITHIN, stream.read_to_string(&mut answer)).await.expect("in time");
        // Who is refused early may find its connection reset.
        read.ok();
        answer
    }

    async fn health(&self) -> (String, String) {
        let answer = self.answer("GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.contains("content-type: application/json"), "{head}");
        (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
    }
}

#[tokio::test]
async fn health_says_whether_the_node_can_be_sent_work_and_why_not() {
    let door = door().await;
    let (status, body) = door.health().await;
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    assert!(body.starts_with(r#"{"node":"a","ready":false,"reason":"it knows no leader"#), "{body}");
    door.ready.send_replace(true);
    let ready = "{\"node\":\"a\",\"ready\":true,\"reason\":null}\n".to_owned();
    assert_eq!(door.health().await, ("HTTP/1.1 200 OK".to_owned(), ready));
    door.stopping.cancel();
    let stopping = "{\"node\":\"a\",\"ready\":false,\"reason\":\"it was told to stop\"}\n".to_owned();
    assert_eq!(door.health().await, ("HTTP/1.1 503 Service Unavailable".to_owned(), stopping));
}

#[tokio::test]
async fn garbage_and_a_head_that_is_too_large_are_refused_and_the_door_stays_open() {
    let door = door().await;
    door.ready.send_replace(true);
    assert!(door.answer("\u{1}\u{2}garbage\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    let large = format!("GET /health HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(64 * 1024));
    let answer = door.answer(&large).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert!(
        door.answer("GET /else HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.starts_with("HTTP/1.1 404")
    );
    assert_eq!(door.health().await.0, "HTTP/1.1 200 OK");
}

#[tokio::test]
async fn silent_connections_and_half_requests_do_not_hold_up_the_end() {
    let door = door().await;
    let silent = TcpStream::connect(door.address).await.expect("it listens");
    let mut half = TcpStream::connect(door.address).await.expect("it listens");
    half.write_all(b"GET /health HTTP/1.1\r\nHo").await.expect("it reads");
    door.health().await;
    door.closing.cancel();
    timeout(WITHIN, door.server).await.expect("in time").expect("it ends well");
    drop((silent, half));
}
