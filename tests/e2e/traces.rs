//! What Jaeger has after an election, and after a job whose leader was killed.

use std::collections::BTreeMap;

use super::command::{docker, eventually};
use super::jaeger::{Span, recent, trace};
use super::outside::{ANSWER_OF_HUGE, HUGE};
use super::stack::{Stack, WORKERS};

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[test]
fn an_election_and_a_job_with_a_killed_leader_are_a_trace_each() {
    let stack = Stack::up("0.5");
    let cluster = stack.settles(WORKERS);
    stack.client.detach("traced", &HUGE);
    stack.client.in_the_middle_of("traced");
    let id = stack.client.trace_of("traced");
    let told = |name: &'static str| {
        let spans = trace(&Stack::jaeger(), &id).ok()?;
        (!named(&spans, name).is_empty()).then_some(spans)
    };
    eventually("an attempt of the first leader", || told("attempt"));
    let leader = cluster.leader.clone();
    docker(&["kill", &cluster.node(&leader).host]);
    assert_eq!(stack.client.answer("traced"), ANSWER_OF_HUGE);

    let spans = eventually("the completion", || told("completion"));
    let submit = named(&spans, "submit")[0];
    let (admission, failover) = (named(&spans, "admission")[0], named(&spans, "failover")[0]);
    assert_eq!((submit.parent.as_str(), &admission.parent, &failover.parent), ("", &submit.id, &submit.id));
    assert_eq!(admission.attributes["node"], leader);
    let attempts = named(&spans, "attempt");
    for of in [admission, failover] {
        assert!(attempts.iter().any(|attempt| attempt.parent == of.id), "no attempt under {of:?}");
    }
    assert_eq!(named(&spans, "completion")[0].attributes["node"], failover.attributes["node"]);

    // The election that made the next one leader, fetched by its id.
    let elected = eventually("the election", || {
        let election = failover.links.first()?;
        let spans = trace(&Stack::jaeger(), election).ok()?;
        let complete = !named(&spans, "leadership begins").is_empty() && !named(&spans, "announcement").is_empty();
        complete.then_some(spans)
    });
    let by_id: BTreeMap<&str, &Span> = elected.iter().map(|span| (span.id.as_str(), span)).collect();
    let root = named(&elected, "election")[0];
    assert_eq!(root.parent, "");
    let hops = named(&elected, "election hop");
    assert!(!hops.is_empty());
    for hop in hops {
        assert_eq!(by_id[hop.parent.as_str()].attributes["node"], hop.attributes["link"], "{hop:?}");
    }
    let begun = named(&elected, "leadership begins")[0];
    assert_eq!(begun.attributes["node"], failover.attributes["node"]);
    assert!(recent(&Stack::jaeger()).expect("it answers").len() > spans.len());
}
