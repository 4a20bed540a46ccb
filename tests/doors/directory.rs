//! The directory's door.

use floodline::wire::v1;
use tokio::time::timeout;
use tonic::Code;
use v1::lease_answer::Outcome;
use v1::watch_membership_response::Event;

use crate::node::{RunningNode, SOON};

fn member(name: &str, incarnation: u64) -> v1::Member {
    v1::Member {
        node_id: name.to_owned(),
        incarnation,
        address: format!("{name}:7400"),
        http_address: format!("{name}:8080"),
        version: "0.1.0".to_owned(),
        concurrency: 1,
    }
}

fn identity(name: &str, incarnation: u64) -> Option<v1::Identity> {
    Some(v1::Identity { node_id: name.to_owned(), incarnation })
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_taken_renewed_superseded_and_given_back() {
    let node = RunningNode::directory().await;
    let mut door = node.bootstrap();
    let renewed = door.heartbeat(v1::HeartbeatRequest { identity: identity("a", 5) }).await.expect_err("no lease yet");
    assert_eq!(renewed.code(), Code::NotFound);
    assert_eq!(renewed.message(), "this directory has no lease of a@5; register again");

    let register = |incarnation| v1::RegisterWorkerRequest { member: Some(member("a", incarnation)) };
    let leased = door.register_worker(register(5)).await.expect("a lease").into_inner();
    assert_eq!(leased.outcome, Some(Outcome::LeaseTtlMs(8_000)));
    let renewed =
        door.heartbeat(v1::HeartbeatRequest { identity: identity("a", 5) }).await.expect("a lease").into_inner();
    assert_eq!(renewed.outcome, Some(Outcome::LeaseTtlMs(8_000)));
    let late = door.register_worker(register(4)).await.expect("an answer").into_inner();
    assert_eq!(late.outcome, Some(Outcome::SupersededBy(5)));

    let random = v1::GetRandomWorkerRequest { except_node_id: String::new() };
    let random = door.get_random_worker(random).await.expect("a worker").into_inner();
    assert_eq!(random.member, Some(member("a", 5)));
    let other = v1::GetRandomWorkerRequest { except_node_id: "a".to_owned() };
    assert_eq!(door.get_random_worker(other).await.expect_err("no other").code(), Code::NotFound);

    door.deregister(v1::DeregisterRequest { identity: identity("a", 5) }).await.expect("left");
    let active = door.get_active_workers(v1::GetActiveWorkersRequest {}).await.expect("an answer").into_inner();
    assert_eq!(active.members, []);
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn membership_is_a_snapshot_then_changes_and_can_be_resumed() {
    let node = RunningNode::directory().await;
    let mut door = node.bootstrap();
    door.register_worker(v1::RegisterWorkerRequest { member: Some(member("a", 1)) }).await.expect("a lease");
    let mut watch =
        door.watch_membership(v1::WatchMembershipRequest { after: None }).await.expect("a stream").into_inner();
    let mut next =
        async || timeout(SOON, watch.message()).await.expect("soon").expect("a stream").and_then(|it| it.event);
    let Some(Event::Snapshot(snapshot)) = next().await else { panic!("a snapshot first") };
    assert_eq!(snapshot.members, [member("a", 1)]);
    door.register_worker(v1::RegisterWorkerRequest { member: Some(member("b", 2)) }).await.expect("a lease");
    let Some(Event::Joined(joined)) = next().await else { panic!("b joined") };
    assert_eq!(joined.member, Some(member("b", 2)));

    let resumed = v1::WatchMembershipRequest { after: snapshot.revision };
    let mut resumed = door.watch_membership(resumed).await.expect("a stream").into_inner();
    let again = timeout(SOON, resumed.message()).await.expect("soon").expect("a stream").and_then(|it| it.event);
    assert_eq!(again, Some(Event::Joined(joined)));
    let other = v1::Revision { incarnation: 1, number: 1 };
    let strange = v1::WatchMembershipRequest { after: Some(other) };
    let mut strange = door.watch_membership(strange).await.expect("a stream").into_inner();
    let first = timeout(SOON, strange.message()).await.expect("soon").expect("a stream").and_then(|it| it.event);
    assert_eq!(first, Some(Event::Resync(v1::Resync {})));
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_member_is_refused() {
    let node = RunningNode::directory().await;
    let nameless = v1::Member { node_id: String::new(), ..member("a", 1) };
    let refused = node.bootstrap().register_worker(v1::RegisterWorkerRequest { member: Some(nameless) }).await;
    let refused = refused.expect_err("no name");
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().starts_with("member.node_id is \"\"; allowed is "), "{}", refused.message());
    let empty = node.bootstrap().heartbeat(v1::HeartbeatRequest { identity: None }).await.expect_err("no identity");
    assert_eq!(empty.message(), "identity is not set; allowed is a value");
    node.end().await;
}
