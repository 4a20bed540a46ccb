//! Whole clusters on real sockets, each node a process of its own.

#[path = "../stage/follow.rs"]
mod follow;
#[path = "../stage/nodes.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod nodes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use floodline::client::{Follow, fresh_job_id};
use floodline::jobs::{Payload, Value};
use floodline::protocol::view::{JobState, JobView, TaskState};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use follow::{in_its_middle, next_view, result};
use nodes::{Cluster, Node, within};

/// A hundred times what a failover takes: the machine that runs the tests may be busy.
const FAILOVER: Duration = Duration::from_secs(5);
/// Long enough that something can be killed in its middle.
const LONG: Payload = Payload::PrimeSum { start: 1, end: 10_000_000_000 };
const ANSWER_OF_LONG: Value = Value(2_220_822_432_581_729_238);

async fn submit(cluster: &Cluster, payload: Payload) -> Follow {
    cluster.client().await.submit(fresh_job_id().expect("the system has randomness"), payload, None)
}

/// What was completed before is completed by the same attempt after: nothing was computed again.
fn assert_kept(before: &JobView, after: &JobView) {
    for task in before.tasks.iter().filter(|task| task.state == TaskState::Completed) {
        let now = after.tasks.iter().find(|it| it.slice == task.slice).expect("a task stays");
        assert_eq!((now.attempt, &now.worker), (task.attempt, &task.worker), "task {}", task.slice);
    }
}

#[tokio::test]
async fn five_workers_follow_one_leader_and_know_each_other() {
    let cluster = Cluster::start(5, &[]).await;
    let everybody = |views: &[floodline::protocol::view::ClusterView]| {
        views.iter().all(|view| view.nodes.iter().filter(|node| node.alive).count() == 5)
    };
    let (leadership, views) = cluster.settles(|_, views| everybody(views)).await;
    assert!(cluster.workers.iter().any(|worker| worker.name == leadership.leader.as_str()));
    for view in views {
        assert_eq!((view.admitted, view.cap), (0, 5));
    }
}

#[tokio::test]
async fn each_kind_of_job_is_answered_whichever_worker_takes_it() {
    let cluster = Cluster::start(3, &[]).await;
    let jobs = [
        (Payload::Max(Arc::from([3, -4, 9, 9, i64::MIN])), Value(9)),
        (Payload::PrimeCount(Arc::from([2, 3, 4, 5, 5, 18_446_744_073_709_551_557])), Value(5)),
        (Payload::PrimeSum { start: 1, end: 1_000_000 }, Value(37_550_402_023)),
    ];
    for ((payload, answer), worker) in jobs.into_iter().zip(&cluster.workers) {
        let id = fresh_job_id().expect("the system has randomness");
        let view = result(worker.client().await.submit(id, payload, None)).await;
        assert_eq!((view.state, view.answer), (JobState::Succeeded, Some(answer)));
        assert_eq!((view.completed, view.admissions.len()), (view.total, 1));
    }
}

#[tokio::test]
async fn a_worker_is_killed_in_the_middle_of_a_job_and_its_tasks_go_to_others() {
    let mut cluster = Cluster::start(4, &[]).await;
    let mut job = submit(&cluster, LONG).await;
    let before = in_its_middle(&mut job).await;
    let leader = before.admissions.first().expect("it is admitted").leader.clone();
    let busy = before.workers.iter().find(|worker| worker.running > 0 && worker.node != leader);
    let victim = cluster.place_of(busy.expect("a worker that works").node.as_str());
    cluster.workers[victim].signal(Signal::KILL);
    cluster.workers[victim].ended().await;
    let after = result(job).await;
    assert_eq!((after.state, after.answer), (JobState::Succeeded, Some(ANSWER_OF_LONG)));
    assert_kept(&before, &after);
    cluster.workers.remove(victim);
    let (leadership, _) = cluster.settles(|_, _| true).await;
    assert_eq!(leadership.leader, leader, "a lost worker deposes nobody");
}

#[tokio::test]
async fn the_leader_is_killed_in_the_middle_of_a_job_and_the_next_one_finishes_it() {
    let mut cluster = Cluster::start(4, &[]).await;
    let (leadership, _) = cluster.settles(|_, _| true).await;
    let leader = cluster.place_of(leadership.leader.as_str());
    // What a follower shows is in its replica. What the leader alone knew may be lost with it.
    let asked = &cluster.workers[(leader + 1) % cluster.workers.len()];
    let mut job = asked.client().await.submit(fresh_job_id().expect("the system has randomness"), LONG, None);
    let before = in_its_middle(&mut job).await;
    let admission = before.admissions.first().expect("it is admitted").clone();
    assert_eq!(admission.leader, leadership.leader);
    cluster.workers[leader].signal(Signal::KILL);
    let killed = Instant::now();
    cluster.workers[leader].ended().await;
    cluster.workers.remove(leader);
    let (leadership, _) = cluster.settles(|leadership, _| leadership.term > admission.term).await;
    assert_ne!(leadership.leader, admission.leader);
    assert!(killed.elapsed() < FAILOVER, "{} leads only {:?} after the kill", leadership.leader, killed.elapsed());
    let after = result(job).await;
    assert_eq!((after.state, after.answer), (JobState::Succeeded, Some(ANSWER_OF_LONG)));
    assert_eq!(after.admissions, [admission], "taking over is not admitting");
    assert_kept(&before, &after);
}

#[tokio::test]
async fn a_worker_that_joins_gets_work_of_a_job_that_runs() {
    let mut cluster = Cluster::start(1, &["--tasks-per-worker=16"]).await;
    let mut job = submit(&cluster, LONG).await;
    let running = next_view(&mut job).await.expect("the job is long");
    assert_eq!(running.state, JobState::Running);
    cluster.join().await;
    let after = result(job).await;
    assert_eq!(after.answer, Some(ANSWER_OF_LONG));
    let names: Vec<&str> = after.workers.iter().filter(|it| it.completed > 0).map(|it| it.node.as_str()).collect();
    assert_eq!(names, ["worker-1", "worker-2"]);
}

#[tokio::test]
async fn everything_goes_on_without_the_directory_and_a_new_one_is_whole_again() {
    let mut cluster = Cluster::start(3, &["--lease-renew=200ms", "--lease-ttl=1s"]).await;
    cluster.settles(|_, views| views.iter().all(|view| view.nodes.len() == 3)).await;
    cluster.directory.signal(Signal::KILL);
    cluster.directory.ended().await;
    let view = result(submit(&cluster, Payload::Max(Arc::from([1, 2]))).await).await;
    assert_eq!(view.answer, Some(Value(2)));
    let address = cluster.directory.address.to_string();
    let listen = format!("--listen={address}");
    let again = ["--role=bootstrap", "--lease-renew=200ms", "--lease-ttl=1s", &listen].map(str::to_owned);
    cluster.directory = Node::start("directory", &again).await;
    // Who joins now learns of the others from it alone.
    cluster.join().await;
    let all_four = |view: &floodline::protocol::view::ClusterView| view.nodes.iter().filter(|it| it.alive).count() == 4;
    cluster.settles(|_, views| views.iter().all(all_four)).await;
}

#[tokio::test]
async fn a_node_that_is_told_to_stop_ends_in_time_with_open_streams_and_silent_connections() {
    let mut cluster = Cluster::start(3, &[]).await;
    let (leadership, _) = cluster.settles(|_, views| views.iter().all(|view| view.nodes.len() == 3)).await;
    let leader = cluster.place_of(leadership.leader.as_str());
    let address = cluster.workers[leader].address.to_string();
    let silent = [TcpStream::connect(&address).await, TcpStream::connect(cluster.workers[leader].http).await];
    assert!(silent.iter().all(Result::is_ok));
    let mut job = cluster.workers[leader].client().await.submit(fresh_job_id().expect("randomness"), LONG, None);
    let before = in_its_middle(&mut job).await;
    let told = Instant::now();
    cluster.workers[leader].signal(Signal::TERM);
    let status = cluster.workers[leader].ended().await;
    assert_eq!((status.code(), told.elapsed() < Duration::from_secs(8)), (Some(0), true), "{:?}", told.elapsed());
    let mut gone = cluster.workers.remove(leader);
    gone.says("leaving", |line| line["kind"] == "leadership-ended").await;
    let (next, _) = cluster.settles(|next, _| next.term > leadership.term).await;
    assert_ne!(next.leader, leadership.leader);
    let addresses = cluster.addresses();
    drop(job);
    let client = floodline::client::Client::connect(addresses).await.expect("one answers");
    let query = floodline::client::job_named(before.key.id.as_str()).expect("a good name");
    assert_eq!(result(client.follow(query)).await.answer, Some(ANSWER_OF_LONG));
}

#[tokio::test]
async fn a_node_whose_standard_input_closes_ends_in_order() {
    let mut cluster = Cluster::start(1, &[]).await;
    cluster.settles(|_, _| true).await;
    cluster.workers[0].close_stdin();
    assert_eq!(cluster.workers[0].ended().await.code(), Some(0));
    cluster.directory.close_stdin();
    assert_eq!(cluster.directory.ended().await.code(), Some(0));
}

#[tokio::test]
async fn of_two_processes_with_one_node_id_the_earlier_ends_with_a_code_of_its_own() {
    let mut cluster = Cluster::start(2, &["--lease-renew=200ms"]).await;
    cluster.settles(|_, views| views.iter().all(|view| view.nodes.len() == 2)).await;
    let later = cluster.start_again(0).await;
    assert_eq!(cluster.workers[0].ended().await.code(), Some(6));
    cluster.workers[0] = later;
    cluster.settles(|_, views| views.iter().all(|view| view.nodes.len() == 2)).await;
}

#[tokio::test]
async fn health_says_503_before_there_is_a_leader_and_200_after() {
    let lonely = Node::start("worker-1", &["--bootstrap=127.0.0.1:1".to_owned(), "--min-links=1".to_owned()]).await;
    let answer = within("ready", async {
        loop {
            let answer = get(lonely.http, "/health").await;
            if answer.starts_with("HTTP/1.1 200") {
                return answer;
            }
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
            assert!(
                answer.ends_with("\n") && answer.contains(r#""ready":false,"reason":"it knows no leader"#),
                "{answer}"
            );
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(answer.ends_with("{\"node\":\"worker-1\",\"ready\":true,\"reason\":null}\n"), "{answer}");
}

async fn get(http: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(http).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    within("an answer", stream.read_to_string(&mut answer)).await.expect("it answers in text");
    answer
}
