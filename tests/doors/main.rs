//! The gRPC doors of real nodes, on real sockets: who is let in, what is said to mistakes, and what no input does.

mod directory;
mod node;

use std::time::Duration;

use floodline::wire::v1;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use node::{RunningNode, SOON};

/// The node answers a question as it should.
async fn lives(node: &RunningNode) {
    let cluster = node.coordinator().get_cluster(v1::GetClusterRequest {}).await.expect("an answer").into_inner();
    assert_eq!(cluster.cluster.expect("a cluster").cluster, "floodline");
}

/// Waits until a service is told to serve; as a whole, a worker alone does so once it leads itself.
async fn serves(node: &RunningNode, service: &str) {
    let request = HealthCheckRequest { service: service.to_owned() };
    let mut told = HealthClient::new(node.channel()).watch(request).await.expect("a stream").into_inner();
    let serving = tonic_health::ServingStatus::Serving as i32;
    let waited = async { while told.message().await.expect("a stream").expect("a status").status != serving {} };
    timeout(SOON, waited).await.unwrap_or_else(|_| panic!("{service:?} does not serve"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_of_another_cluster_is_refused_and_one_that_names_none_is_not() {
    let node = RunningNode::worker("a").await;
    lives(&node).await;
    let mut request = tonic::Request::new(v1::PingRequest { status: None });
    request.metadata_mut().insert("floodline-cluster", "other".parse().expect("a good value"));
    let refused = node.worker_service().ping(request).await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    for part in ["\"floodline\"", "\"other\"", "FLOODLINE_CLUSTER"] {
        assert!(refused.message().contains(part), "{}", refused.message());
    }
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_request_is_told_which_field_is_wrong() {
    let node = RunningNode::worker("a").await;
    let mut door = node.coordinator();
    let announced = door.announce(v1::AnnounceRequest { purpose: 9, ..Default::default() }).await;
    let elected = door.elect(v1::ElectRequest::default()).await;
    let job_id = door.submit_job(v1::SubmitJobRequest { job_id: "a b".to_owned(), ..Default::default() }).await;
    let payload = door.submit_job(v1::SubmitJobRequest { job_id: "a".to_owned(), ..Default::default() }).await;
    let asked = door.get_job(v1::GetJobRequest { job: "a:b".to_owned(), forwarded: false }).await;
    let listed = door.list_jobs(v1::ListJobsRequest { after: None, limit: 101 }).await;
    let subscription = v1::SubscribeJobProgressRequest { job: String::new(), after: None };
    let subscribed = door.subscribe_job_progress(subscription).await;
    for (status, text) in [
        (announced.map(drop), "purpose is 9; allowed is 1 to 4"),
        (elected.map(drop), "election is not set; allowed is a value"),
        (job_id.map(drop), "job_id is \"a b\"; allowed is 1 to 64 letters, digits, '-' or '_'"),
        (payload.map(drop), "payload is not set; allowed is a value"),
        (
            asked.map(drop),
            "job is a name with the digest \"b\"; allowed is ID or ID:DIGEST, with 64 hexadecimal digits",
        ),
        (listed.map(drop), "limit is 101; allowed is 0 to 100"),
        (subscribed.map(drop), "job is \"\"; allowed is 1 to 64 letters, digits, '-' or '_'"),
    ] {
        let status = status.expect_err(text);
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, text));
    }
    lives(&node).await;
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large_is_refused_and_the_node_lives() {
    let node = RunningNode::worker("a").await;
    let numbers = vec![0; (33 << 20) / 8];
    let payload = v1::Payload { kind: Some(v1::payload::Kind::Primecount(v1::PrimeCount { numbers })) };
    let job =
        v1::SubmitJobRequest { job_id: "a".to_owned(), payload: Some(payload), forwarded: false, deadline_ms: None };
    let refused = node.coordinator().submit_job(job).await.expect_err("too large");
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    assert!(refused.message().contains("33554432"), "{}", refused.message());
    lives(&node).await;
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_the_port_ends_its_connection_and_nothing_else() {
    let node = RunningNode::worker("a").await;
    for garbage in [b"GET / HTTP/1.1\r\n\r\n".repeat(100), vec![0xff; 100_000], vec![0; 1]] {
        let mut connection = TcpStream::connect(node.address()).await.expect("a listener");
        // It may be closed before all is written.
        connection.write_all(&garbage).await.ok();
        connection.shutdown().await.ok();
        let mut answer = Vec::new();
        timeout(SOON, connection.read_to_end(&mut answer)).await.expect("the end of the connection").ok();
    }
    lives(&node).await;
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_makes_no_sense_ends_its_stream_with_the_reason() {
    let node = RunningNode::worker("a").await;
    // One that does not lead ends the stream itself.
    serves(&node, "").await;
    let (frames, outbox) = tokio::sync::mpsc::channel(4);
    let outbox = tokio_stream::wrappers::ReceiverStream::new(outbox);
    // The stream is there before anything was sent on it.
    let served = timeout(SOON, node.coordinator().replicate(outbox)).await.expect("a stream at once");
    let mut served = served.expect("a stream").into_inner();
    frames.send(v1::FollowerFrame { frame: None }).await.expect("an open stream");
    let end = async {
        loop {
            match served.message().await {
                Ok(Some(_)) => {}
                other => return other,
            }
        }
    };
    let refused = timeout(SOON, end).await.expect("the end of the stream").expect_err("a reason");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "frame is not set; allowed is a value");
    lives(&node).await;
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_describe_themselves_and_tell_their_health() {
    let node = RunningNode::worker("a").await;
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let answer = ServerReflectionClient::new(node.channel()).server_reflection_info(tokio_stream::once(request)).await;
    let answer = answer.expect("reflection").into_inner().message().await.expect("an answer").expect("an answer");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else { panic!("{answer:?}") };
    let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    for name in ["floodline.v1.CoordinatorService", "floodline.v1.WorkerService", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
    }

    for service in ["floodline.v1.WorkerService", "", "floodline.v1.CoordinatorService"] {
        serves(&node, service).await;
    }
    let directory = HealthCheckRequest { service: "floodline.v1.BootstrapService".to_owned() };
    let unknown = HealthClient::new(node.channel()).check(directory).await.expect_err("a worker is no directory");
    assert_eq!(unknown.code(), Code::NotFound);
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn open_streams_and_silent_connections_do_not_hold_up_the_end() {
    let node = RunningNode::worker("a").await;
    let mut door = node.coordinator();
    let mut own = door.watch_cluster(v1::WatchClusterRequest::default()).await.expect("a stream").into_inner();
    let request = v1::WatchClusterRequest { after: None, all_members: true };
    let mut all = door.watch_cluster(request).await.expect("a stream").into_inner();
    let mut silent = TcpStream::connect(node.address()).await.expect("a listener");
    let begun = Instant::now();
    node.end().await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    for stream in [&mut own, &mut all] {
        timeout(SOON, async { while let Ok(Some(_)) = stream.message().await {} }).await.expect("its end");
    }
    let mut rest = Vec::new();
    timeout(SOON, silent.read_to_end(&mut rest)).await.expect("its end").ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_begin_after_the_number_that_is_asked_for() {
    let node = RunningNode::worker("a").await;
    let request = v1::WatchClusterRequest { after: Some(0), all_members: false };
    let mut events = node.coordinator().watch_cluster(request).await.expect("a stream").into_inner();
    for seq in 1..=2 {
        let event = timeout(SOON, events.message()).await.expect("an event soon").expect("a stream").expect("an event");
        let event = event.event.expect("an event");
        assert_eq!((event.seq, event.node_id.as_str()), (seq, "a"));
    }
    node.end().await;
}
