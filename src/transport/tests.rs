//! The transport against real sockets: what is asked, what comes back, and what comes back when nobody answers.

mod fake;

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use super::{Listener, Transport};
use crate::config::{Settings, Sources, load};
use crate::protocol::Input;
use crate::protocol::effects::Call;
use crate::protocol::ids::{Address, CallId, Incarnation, Jac, Member, Number, StreamId};
use crate::protocol::message::*;
use crate::wire::tests::samples::Samples;
use crate::wire::v1;
use fake::{FakePeer, Script, membership};

/// Longer than anything takes that does not hang.
const SOON: Duration = Duration::from_secs(5);

struct Bench {
    transport: Transport,
    inputs: mpsc::Receiver<Input>,
}

fn settings(bootstrap: &str) -> Settings {
    let flags = vec![("node_id", "a".to_owned()), ("bootstrap", bootstrap.to_owned())];
    load(&Sources { flags, ..Sources::default() }).expect("all allowed").settings
}

impl Bench {
    fn new(bootstrap: &str) -> Bench {
        let (sender, inputs) = mpsc::channel(64);
        Bench { transport: Transport::new(&settings(bootstrap), sender), inputs }
    }

    fn call(&mut self, id: u64, to: &FakePeer, request: Request) {
        self.call_within(id, &to.address, request, Duration::from_secs(1));
    }

    fn call_within(&mut self, id: u64, to: &Address, request: Request, within: Duration) {
        let to = Peer { node: None, address: to.clone() };
        self.transport.call(Call { id: CallId(id), to, request, within }, None);
    }

    async fn next(&mut self) -> Input {
        timeout(SOON, self.inputs.recv()).await.expect("an input soon").expect("an open queue")
    }

    async fn answer(&mut self, id: u64) -> Result<Response, CallFailure> {
        match self.next().await {
            Input::Answered { call, result } if call == CallId(id) => result,
            other => panic!("not the answer to call {id}: {other:?}"),
        }
    }

    async fn nothing_more(&mut self) {
        let more = timeout(Duration::from_millis(100), self.inputs.recv()).await;
        assert!(more.is_err(), "unexpected: {more:?}");
    }
}

/// Waits until so many calls of ExecuteTask wait at a peer.
async fn until_waiting(waiting: &mut watch::Receiver<usize>, calls: usize) {
    timeout(SOON, waiting.wait_for(|waiting| *waiting == calls)).await.expect("soon").expect("a peer");
}

fn a_free_address() -> Address {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    Address::new(&listener.local_addr().expect("bound").to_string()).expect("a good address")
}

fn leader_at(address: &Address) -> Member {
    Member { address: address.clone(), ..Samples::new(2).member() }
}

fn ack(number: u64) -> Up {
    Up::Ack { number: Some(Number(number)), jac: Jac(0), running: 0, links: Vec::new() }
}

#[tokio::test]
async fn a_call_brings_the_peers_answer_once() {
    let (peer, mut bench) = (FakePeer::start(Script::default()), Bench::new(""));
    bench.call(1, &peer, Request::Ping(None));
    assert_eq!(bench.answer(1).await, Ok(Response::Ping(Samples::new(1).status())));
    bench.call(2, &peer, Request::RemoveNeighbor(Samples::new(1).identity()));
    assert_eq!(bench.answer(2).await, Ok(Response::Done));
    bench.nothing_more().await;
}

#[tokio::test]
async fn a_refusal_comes_back_as_the_peer_gave_it() {
    let (peer, mut bench) = (FakePeer::start(Script::default()), Bench::new(""));
    bench.call(1, &peer, Request::CancelTask(Samples::new(1).cancel_task()));
    let refusal = Refusal::new(Code::ResourceExhausted, "no room").retry_in(Duration::from_millis(70));
    assert_eq!(bench.answer(1).await, Err(CallFailure::Refused(refusal)));
}

#[tokio::test]
async fn a_malformed_answer_is_as_good_as_none() {
    let (peer, mut bench) = (FakePeer::start(Script::default()), Bench::new(""));
    bench.call(1, &peer, Request::GetJob(Samples::new(1).query()));
    let text = "its answer makes no sense: job is not set; allowed is a value";
    assert_eq!(bench.answer(1).await, Err(CallFailure::Unreachable(text.to_owned())));
}

#[tokio::test]
async fn two_million_numbers_pass_and_an_urgent_call_does_not_wait_for_them() {
    let (peer, mut bench) = (FakePeer::start(Script::default()), Bench::new(""));
    let payload = crate::jobs::Payload::PrimeCount(vec![u64::MAX; 2_000_000].into());
    let job = crate::wire::submission(Samples::new(1).job_key().id, payload);
    bench.call(1, &peer, Request::SubmitJob(job));
    bench.call(2, &peer, Request::Ping(None));
    bench.answer(2).await.expect("the ping first");
    assert_eq!(bench.answer(1).await, Ok(Response::Submitted(Submitted::NoRoom)));
}

#[tokio::test]
async fn where_nobody_listens_a_call_fails_at_once_and_so_do_those_that_follow() {
    let mut bench = Bench::new("");
    let nobody = a_free_address();
    let begun = Instant::now();
    for id in 0..20 {
        bench.call_within(id, &nobody, Request::Ping(None), Duration::from_secs(5));
        let failure = bench.answer(id).await.expect_err("nobody listens");
        let CallFailure::Unreachable(text) = failure else { panic!("{failure:?}") };
        assert!(text.contains(nobody.as_str()) && text.contains("refused"), "{text}");
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    bench.call_within(99, &Address::new("a:b:c").expect("a good name"), Request::Ping(None), SOON);
    assert!(matches!(bench.answer(99).await, Err(CallFailure::Unreachable(_))));
}

#[tokio::test]
async fn a_peer_that_dies_is_unreachable_at_once_and_is_found_when_it_comes_back() {
    let (peer, mut bench) = (FakePeer::start(Script::default()), Bench::new(""));
    let mut waiting = peer.script.waiting.subscribe();
    bench.call(1, &peer, Request::ExecuteTask(Samples::new(1).execute()));
    until_waiting(&mut waiting, 1).await;
    let address = peer.address.clone();
    drop(peer);
    let begun = Instant::now();
    assert!(matches!(bench.answer(1).await, Err(CallFailure::Unreachable(_))));
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());

    let _again = FakePeer::start_at(address.as_str(), Script::default());
    bench.call_within(2, &address, Request::Ping(None), SOON);
    bench.answer(2).await.expect("an answer of the new process");
}

#[tokio::test]
async fn an_abandoned_call_ends_at_the_peer_and_brings_nothing() {
    let (peer, mut bench) = (FakePeer::start(Script::default()), Bench::new(""));
    let mut waiting = peer.script.waiting.subscribe();
    bench.call(1, &peer, Request::ExecuteTask(Samples::new(1).execute()));
    until_waiting(&mut waiting, 1).await;
    bench.transport.abandon(CallId(1));
    until_waiting(&mut waiting, 0).await;
    bench.nothing_more().await;
}

#[tokio::test]
async fn a_call_without_an_answer_ends_after_ten_times_its_time() {
    let (peer, mut bench) = (FakePeer::start(Script::default()), Bench::new(""));
    let begun = Instant::now();
    let within = Duration::from_millis(10);
    bench.call_within(1, &peer.address, Request::ExecuteTask(Samples::new(1).execute()), within);
    assert_eq!(bench.answer(1).await, Err(CallFailure::TimedOut));
    assert!(begun.elapsed() >= within * 10);
}

#[tokio::test]
async fn frames_travel_in_order_both_ways_and_a_large_one_shows_life_on_its_way() {
    let mut samples = Samples::new(9);
    let hashes: Vec<_> = (0..2_000).map(|_| (samples.job_key(), samples.number())).collect();
    let records = (0..5_000).map(|_| samples.record()).collect();
    let (number, held, remembers) = (Number(7), Number(3), Jac(0));
    let batch = Batch { leadership: samples.leadership(), records, number, past: None, held, remembers };
    let down = vec![Down::WantHashes, Down::Batch(batch), Down::WantRecords(Number(4))];
    let (sender, mut arrived) = mpsc::channel(64);
    let peer = FakePeer::start(Script { down: down.clone(), up: Some(sender), ..Script::default() });
    let mut bench = Bench::new("");
    let stream = StreamId(5);
    bench.transport.open_up(stream, leader_at(&peer.address));
    bench.transport.up(stream, Up::Hashes(hashes.clone()));
    bench.transport.up(stream, ack(1));

    let (mut got, mut stirred) = (Vec::new(), 0);
    while got.len() < down.len() {
        match bench.next().await {
            Input::LeaderSent { stream: StreamId(5), frame } => got.push(frame),
            Input::LeaderStirred { stream: StreamId(5) } => stirred += 1,
            other => panic!("unexpected: {other:?}"),
        }
    }
    assert_eq!(got, down);
    assert!(stirred > 5, "{stirred} signs of life");

    let mut joined = crate::wire::frames::Joined::default();
    let mut up = Vec::new();
    while up.len() < 2 {
        let frame = timeout(SOON, arrived.recv()).await.expect("a frame soon").expect("an open stream");
        up.extend(joined.take(frame).expect("parts that fit").map(|whole| Up::try_from(whole).expect("well-formed")));
    }
    assert_eq!(up, [Up::Hashes(hashes), ack(1)]);

    bench.transport.up(stream, ack(2));
    bench.transport.close_up(stream);
    let last = timeout(SOON, arrived.recv()).await.expect("a frame soon").expect("what was sent before the end");
    assert_eq!(last, v1::FollowerFrame::from(&ack(2)));
    bench.nothing_more().await;
}

#[tokio::test]
async fn the_stream_to_a_leader_that_dies_or_is_not_there_ends_once() {
    let peer = FakePeer::start(Script { down: vec![Down::WantHashes], ..Script::default() });
    let mut bench = Bench::new("");
    let leader = leader_at(&peer.address);
    bench.transport.open_up(StreamId(1), leader.clone());
    assert_eq!(bench.next().await, Input::LeaderSent { stream: StreamId(1), frame: Down::WantHashes });
    drop(peer);
    assert_eq!(bench.next().await, Input::LeaderEnded { stream: StreamId(1) });
    bench.transport.up(StreamId(1), ack(1));
    bench.transport.close_up(StreamId(1));
    bench.transport.open_up(StreamId(2), leader);
    assert_eq!(bench.next().await, Input::LeaderEnded { stream: StreamId(2) });
    bench.nothing_more().await;
}

#[tokio::test]
async fn a_leader_that_does_not_read_loses_its_follower() {
    let (peer, mut bench) = (FakePeer::start(Script::default()), Bench::new(""));
    bench.transport.open_up(StreamId(1), leader_at(&peer.address));
    let mut samples = Samples::new(3);
    let large = Up::Hashes((0..10_000).map(|_| (samples.job_key(), 0)).collect());
    for _ in 0..1_000 {
        bench.transport.up(StreamId(1), large.clone());
    }
    assert_eq!(bench.next().await, Input::LeaderEnded { stream: StreamId(1) });
    bench.nothing_more().await;
}

#[tokio::test]
async fn directories_answer_and_tell_who_is_a_member() {
    let peer = FakePeer::start(Script::default());
    let mut bench = Bench::new(&format!("{},{}", peer.address, a_free_address()));
    let (here, away, nowhere) = (DirectoryId(0), DirectoryId(1), DirectoryId(2));
    let mut samples = Samples::new(1);
    let (member, who) = (samples.member(), samples.identity());

    let answer = |directory, result| Input::DirectoryAnswered { directory, result };
    bench.transport.directory(here, DirectoryRequest::Register(member));
    assert_eq!(bench.next().await, answer(here, Ok(DirectoryAnswer::Leased(Duration::from_secs(8)))));
    bench.transport.directory(here, DirectoryRequest::Heartbeat(who.clone()));
    assert_eq!(bench.next().await, answer(here, Ok(DirectoryAnswer::UnknownLease)));
    bench.transport.directory(here, DirectoryRequest::Deregister(who.clone()));
    assert_eq!(bench.next().await, answer(here, Ok(DirectoryAnswer::Left)));
    for directory in [away, nowhere] {
        bench.transport.directory(directory, DirectoryRequest::Heartbeat(who.clone()));
        let Input::DirectoryAnswered { result: Err(CallFailure::Unreachable(_)), .. } = bench.next().await else {
            panic!("nobody is there");
        };
        bench.transport.watch(directory, Revision::default());
        assert_eq!(bench.next().await, Input::WatchEnded { directory });
    }

    let after = Revision { incarnation: Incarnation(3), number: 41 };
    bench.transport.watch(here, after);
    for event in membership(after) {
        assert_eq!(bench.next().await, Input::Membership { directory: here, event });
    }
    assert_eq!(bench.next().await, Input::WatchEnded { directory: here });
}

#[tokio::test]
async fn at_shutdown_everything_under_way_ends() {
    let (peer, mut bench) = (FakePeer::start(Script::default()), Bench::new(""));
    bench.transport.open_up(StreamId(1), leader_at(&peer.address));
    for id in 0..10 {
        bench.call(id, &peer, Request::ExecuteTask(Samples::new(1).execute()));
    }
    let mut waiting = peer.script.waiting.subscribe();
    until_waiting(&mut waiting, 10).await;
    bench.transport.shutdown();
    timeout(SOON, bench.transport.ended()).await.expect("all tasks end");
    until_waiting(&mut waiting, 0).await;
    bench.nothing_more().await;
}

#[tokio::test]
async fn the_events_of_another_member_are_passed_on_in_order() {
    let peer = FakePeer::start(Script::default());
    let (out, mut events) = mpsc::channel(8);
    timeout(SOON, Listener::new("floodline").listen(&leader_at(&peer.address), out)).await.expect("it ends with them");
    for seed in 1..=3 {
        assert_eq!(events.recv().await, Some(Samples::new(seed).happening()));
    }
    assert_eq!(events.recv().await, None);
}
