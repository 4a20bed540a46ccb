//! Traces of real nodes, as a collector gets them, and what nodes do when there is none.

mod collector;
#[path = "../stage/follow.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod follow;
#[path = "../stage/metrics.rs"]
mod metrics;
#[path = "../stage/nodes.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod nodes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use floodline::client::fresh_job_id;
use floodline::jobs::{Payload, Value};
use floodline::protocol::view::JobState;
use rustix::process::Signal;
use tokio::net::TcpListener;

use collector::{Collector, Span};
use follow::{in_its_middle, result};
use metrics::{metrics, scrape};
use nodes::{Cluster, within};

const LONG: Payload = Payload::PrimeSum { start: 1, end: 10_000_000_000 };
const ANSWER_OF_LONG: Value = Value(2_220_822_432_581_729_238);

/// The spans of one trace.
fn trace(spans: &[Span], id: &str) -> Vec<Span> {
    spans.iter().filter(|span| span.trace == id).cloned().collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// The trace of the election that ends a term, which one worker alone begins, once every follower's announcement has
/// come.
fn whole_election(spans: &[Span], workers: usize) -> Option<Vec<Span>> {
    let roots = spans.iter().filter(|span| span.name == "election" && span.get("subtree") == workers.to_string());
    let whole = |root: &Span| {
        let spans = trace(spans, &root.trace);
        let complete = named(&spans, "announcement").len() == workers - 1
            && named(&spans, "leadership begins").len() == 1
            && named(&spans, "follower joins").len() == workers - 1;
        complete.then_some(spans)
    };
    roots.filter(|root| root.get("cause") == "the leader has served its jobs").find_map(whole)
}

#[tokio::test]
async fn an_election_of_five_is_one_tree_of_hops_and_announcements() {
    let (collector, endpoint) = Collector::start().await;
    let cluster = Cluster::start(5, &[&endpoint, "--min-links=4", "--max-jobs-per-term=1"]).await;
    let linked = |view: &floodline::protocol::view::ClusterView| {
        view.nodes.len() == 5 && view.nodes.iter().all(|node| node.links.len() == 4)
    };
    cluster.settles(|_, views| views.iter().all(linked)).await;
    let job = cluster.client().await.submit(fresh_job_id().expect("randomness"), Payload::Max(Arc::from([1, 2])), None);
    assert_eq!(result(job).await.answer, Some(Value(2)));
    let spans = collector.until("a whole election", |spans| whole_election(spans, 5)).await;

    let root = named(&spans, "election")[0];
    assert_eq!((root.parent.as_str(), root.get("outcome").split(' ').next()), ("", Some(root.get("best"))));
    assert!(!root.get("cause").is_empty() && !root.get("term").is_empty() && !root.get("replaces").is_empty());
    // Every worker but the initiator was reached once; all other visits are duplicates.
    let hops = named(&spans, "election hop");
    let (first, again): (Vec<&Span>, Vec<&Span>) = hops.iter().partition(|hop| hop.get("duplicate") == "false");
    let reached: BTreeSet<&str> = first.iter().map(|hop| hop.get("node")).collect();
    assert_eq!((first.len(), reached.len()), (4, 4), "{hops:?}");
    assert!(!reached.contains(root.get("node")) && again.iter().all(|hop| hop.get("outcome") == "it was here before"));
    // Each hangs below the hop of the worker over whose link it came.
    let by_id: BTreeMap<&str, &Span> = spans.iter().map(|span| (span.id.as_str(), span)).collect();
    for hop in &hops {
        let above = by_id.get(hop.parent.as_str()).expect("the hop before it");
        assert_eq!(above.get("node"), hop.get("link"));
    }
    for hop in &first {
        let given = |span: &Span| span.get("budget_ms").parse::<u64>().unwrap_or(201);
        assert!(given(hop) <= 200 && given(hop) < given(by_id[hop.parent.as_str()]), "each hop gives less: {hop:?}");
        assert!(!hop.get("jac").is_empty() && !hop.get("best").is_empty() && hop.get("subtree") != "0");
    }
    // The leadership stands below the word to the winner, or below the root if the initiator itself won.
    let begun = named(&spans, "leadership begins")[0];
    let above = by_id[begun.parent.as_str()];
    assert!(above.name == if begun.get("node") == root.get("node") { "election" } else { "tell winner" }, "{above:?}");
    assert_eq!(begun.get("workers"), "5");
    for told in named(&spans, "announcement") {
        assert!(by_id.contains_key(told.parent.as_str()) && told.get("leader") == begun.get("leader"), "{told:?}");
    }
    assert!(named(&spans, "follower joins").iter().all(|join| join.parent == begun.id));
    // Each span comes from the node that it is about.
    assert!(spans.iter().all(|span| span.instance == span.get("node")));
}

#[tokio::test]
async fn a_dead_branch_is_an_edge_with_its_cause() {
    let (collector, endpoint) = Collector::start().await;
    let mut cluster = Cluster::start(4, &[&endpoint, "--min-links=3"]).await;
    let (leadership, _) = cluster.settles(|_, views| views.iter().all(|view| view.nodes.len() == 4)).await;
    let leader = cluster.place_of(leadership.leader.as_str());
    let other = (leader + 1) % 4;
    let (dead, frozen) = (cluster.workers[leader].name.clone(), cluster.workers[other].name.clone());
    cluster.workers[other].signal(Signal::STOP);
    cluster.workers[leader].signal(Signal::KILL);
    let edges = |spans: &[Span]| {
        let edge = named(spans, "election edge failed").into_iter().find(|edge| edge.get("peer") == frozen)?;
        let above = spans.iter().find(|span| span.id == edge.parent)?.clone();
        Some((edge.clone(), above))
    };
    let (edge, above) = collector.until("a broken edge", edges).await;
    assert!(edge.failed && edge.get("failure") == "timed out", "{edge:?}");
    assert_eq!(above.get("node"), edge.get("node"), "it hangs at the worker that sent the hop");
    assert_ne!(edge.get("node"), dead);
    cluster.workers[other].signal(Signal::CONT);
    cluster.workers.remove(leader);
    cluster.settles(|next, _| next.term > leadership.term).await;
}

#[tokio::test]
async fn a_job_is_one_trace_across_two_leaders() {
    let (collector, endpoint) = Collector::start().await;
    let mut cluster = Cluster::start(4, &[&endpoint]).await;
    let (leadership, _) = cluster.settles(|_, _| true).await;
    let leader = cluster.place_of(leadership.leader.as_str());
    let asked = &cluster.workers[(leader + 1) % cluster.workers.len()];
    let asked_name = asked.name.clone();
    let mut job = asked.client().await.submit(fresh_job_id().expect("the system has randomness"), LONG, None);
    let before = in_its_middle(&mut job).await;
    let id = before.trace.expect("it is traced").id.to_string();
    // Killed at once it would take with it what it did last.
    let sent = |spans: &[Span]| {
        let told = trace(spans, &id);
        let completed = named(&told, "attempt").iter().any(|attempt| attempt.get("outcome") == "completed");
        (completed && !named(&told, "admission").is_empty()).then_some(())
    };
    collector.until("the first leader's word", sent).await;
    cluster.workers[leader].signal(Signal::KILL);
    cluster.workers[leader].ended().await;
    cluster.workers.remove(leader);
    let after = result(job).await;
    assert_eq!((after.state, after.answer), (JobState::Succeeded, Some(ANSWER_OF_LONG)));
    assert_eq!(after.trace.map(|trace| trace.id.to_string()).as_ref(), Some(&id));

    let complete = |spans: &[Span]| {
        let spans = trace(spans, &id);
        (!named(&spans, "completion").is_empty() && !named(&spans, "submit").is_empty()).then_some(spans)
    };
    let spans = collector.until("the completion", complete).await;
    let submit = named(&spans, "submit")[0];
    assert_eq!((submit.parent.as_str(), submit.get("node")), ("", asked_name.as_str()));
    assert_eq!(named(&spans, "wait in queue")[0].parent, submit.id);
    let (admission, failover) = (named(&spans, "admission")[0], named(&spans, "failover")[0]);
    assert_eq!((admission.parent.as_str(), failover.parent.as_str()), (submit.id.as_str(), submit.id.as_str()));
    assert_eq!(admission.get("node"), leadership.leader.as_str());
    assert_ne!(failover.get("node"), admission.get("node"));
    assert_eq!(named(&spans, "completion")[0].get("node"), failover.get("node"));
    assert_eq!(named(&spans, "completion")[0].get("outcome"), "Succeeded");
    // The next leader's part is linked to the election that made it leader.
    let elected = |spans: &[Span]| {
        let elections: BTreeSet<&str> = named(spans, "election").iter().map(|root| root.trace.as_str()).collect();
        failover.links.iter().any(|link| elections.contains(link.as_str())).then_some(())
    };
    collector.until("the election", elected).await;
    // Attempts of both leaders, each with its fence, and computations below those that were handed out.
    let attempts = named(&spans, "attempt");
    let of = |leader: &Span| attempts.iter().filter(|attempt| attempt.parent == leader.id).count();
    assert!(of(admission) > 0 && of(failover) > 0, "{attempts:?}");
    assert!(attempts.iter().all(|it| !it.get("fence").is_empty() && !it.get("worker").is_empty()));
    let ids: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.id.as_str()).collect();
    let below = named(&spans, "computation").iter().filter(|it| ids.contains(it.parent.as_str())).count();
    assert!(below > 0, "{spans:?}");
}

#[tokio::test]
async fn a_client_s_trace_is_gone_on_with_whatever_else_it_carries() {
    let (collector, endpoint) = Collector::start().await;
    let cluster = Cluster::start(2, &[&endpoint]).await;
    cluster.settles(|_, _| true).await;
    let channel = tonic::transport::Channel::from_shared(format!("http://{}", cluster.workers[0].address))
        .expect("a good address")
        .connect_lazy();
    let client = floodline::wire::v1::coordinator_service_client::CoordinatorServiceClient::new(channel);
    let submit = |traceparent: &'static str| {
        let job = floodline::wire::submission(fresh_job_id().expect("randomness"), Payload::Max(Arc::from([1, 2])));
        let mut request = tonic::Request::new(floodline::wire::v1::SubmitJobRequest::from(&job));
        request.metadata_mut().insert("traceparent", traceparent.parse().expect("ascii"));
        request.metadata_mut().insert("baggage", "secret=1".parse().expect("ascii"));
        let mut client = client.clone();
        async move { within("submitting", client.submit_job(request)).await.expect("it is taken") }
    };
    let id = "0af7651916cd43dd8448eb211c80319c";
    submit("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").await;
    let found = |spans: &[Span]| named(&trace(spans, id), "submit").first().copied().cloned();
    let span = collector.until("the client's trace", found).await;
    assert_eq!(span.parent, "b7ad6b7169203331");
    // What is no context is no reason to refuse a job.
    submit("00-not-a-context").await;
}

#[tokio::test]
async fn a_collector_that_says_nothing_costs_a_counter_and_no_end() {
    // It takes connections and never answers.
    let hole = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endpoint = format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://{}", hole.local_addr().expect("bound"));
    let silent = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = hole.accept().await {
            held.push(stream);
        }
    });
    let mut cluster = Cluster::start(2, &[&endpoint]).await;
    let view = result(cluster.client().await.submit(fresh_job_id().expect("randomness"), LONG, None)).await;
    assert_eq!(view.answer, Some(ANSWER_OF_LONG));
    within("a loss", async {
        while metrics(&cluster.workers[0]).await["floodline_spans_total{outcome=\"lost\"}"] < 1.0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let begun = Instant::now();
    cluster.workers[0].signal(Signal::TERM);
    assert!(cluster.workers[0].ended().await.success());
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    silent.abort();
}

#[tokio::test]
async fn metrics_say_who_leads_and_what_was_done() {
    let cluster = Cluster::start(3, &[]).await;
    cluster.settles(|_, views| views.iter().all(|view| view.nodes.len() == 3)).await;
    let view = result(cluster.client().await.submit(fresh_job_id().expect("randomness"), LONG, None)).await;
    assert_eq!(view.state, JobState::Succeeded);
    let (mut leading, mut completed, mut admitted) = (0.0, 0.0, 0.0);
    for worker in &cluster.workers {
        let told = metrics(worker).await;
        leading += told["floodline_leading"];
        admitted += told["floodline_jobs_admitted_total"];
        completed += told.get("floodline_attempts_total{outcome=\"completed\"}").copied().unwrap_or(0.0);
        assert_eq!(told["floodline_members"], 3.0);
        assert!(told["process_resident_memory_bytes"] > 1e6 && told.len() < 120, "{told:?}");
    }
    assert_eq!((leading, admitted), (1.0, 1.0));
    assert!(completed >= f64::from(view.total), "{completed} of {}", view.total);
    let directory = metrics(&cluster.directory).await;
    assert!(directory["process_cpu_seconds_total"] >= 0.0);
}

#[tokio::test]
async fn the_board_asks_for_metrics_that_there_are() {
    let (_collector, endpoint) = Collector::start().await;
    let cluster = Cluster::start(1, &[&endpoint]).await;
    cluster.settles(|_, _| true).await;
    let told = scrape(&cluster.workers[0]).await;
    let board = include_str!("../../docs/grafana.json");
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = board.split(|letter| !is_name(letter));
    let asked: BTreeSet<&str> = words.filter(|it| it.starts_with("floodline_") || it.starts_with("process_")).collect();
    assert!(asked.len() > 15, "{asked:?}");
    for name in asked {
        let name = name.trim_end_matches("_bucket").trim_end_matches("_total");
        assert!(told.contains(&format!("# HELP {name} ")), "{name} is not among\n{told}");
    }
}
