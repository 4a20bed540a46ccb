//! The metrics of a node, in the text form of Prometheus and OpenMetrics.
//!
//! Owns what is counted and how it is said to be read. Labels have a handful of values each, and none names a job, a
//! node or an election: so a scrape is small however long a node lives.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::export::Counts;
use super::names::metric;
use crate::protocol::ids::NodeId;
use crate::protocol::notice::Notice;
use crate::protocol::view::{ClusterView, JobState};

/// The content type of a scrape.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds in seconds of what takes from a millisecond to a minute.
const SPANS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 60.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

type ByOutcome = Family<Outcome, Counter>;

/// What a node counts.
#[derive(Debug)]
pub struct Metrics {
    elections: ByOutcome,
    election_time: Seconds,
    edges_failed: Counter,
    leaderships: Counter,
    admitted: Counter,
    ended: ByOutcome,
    attempts: ByOutcome,
    attempt_time: Seconds,
    fenced: Counter,
    computed: Seconds,
    late: Seconds,
    saved: Seconds,
}

/// A counter whose outcomes are all there from the start, so that a rate of none is 0 and not unknown.
fn outcomes(all: &[&'static str]) -> ByOutcome {
    let family = ByOutcome::default();
    all.iter().for_each(|outcome| drop(family.get_or_create(&Outcome { outcome })));
    family
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            elections: outcomes(&["winner", "none"]),
            election_time: Seconds::default(),
            edges_failed: Counter::default(),
            leaderships: Counter::default(),
            admitted: Counter::default(),
            ended: outcomes(&["succeeded", "failed", "cancelled"]),
            attempts: outcomes(&["completed", "failed", "called_off", "abandoned"]),
            attempt_time: Seconds::default(),
            fenced: Counter::default(),
            computed: Seconds::default(),
            late: Seconds::default(),
            saved: Seconds::default(),
        }
    }
}

/// A histogram of times.
#[derive(Clone, Debug)]
struct Seconds(Histogram);

impl Default for Seconds {
    fn default() -> Seconds {
        Seconds(Histogram::new(SPANS))
    }
}

impl Seconds {
    fn observe(&self, took: Duration) {
        self.0.observe(took.as_secs_f64());
    }
}

impl Metrics {
    /// Counts one thing that happened, at a node that leads or does not.
    pub fn tell(&self, notice: &Notice, leads: bool) {
        match notice {
            Notice::ElectionEnded { outcome, .. } => {
                let outcome = if outcome.ends_with(" wins") { "winner" } else { "none" };
                self.elections.get_or_create(&Outcome { outcome }).inc();
            }
            Notice::EdgeFailed { .. } => drop(self.edges_failed.inc()),
            Notice::LeadershipBegan { .. } => drop(self.leaderships.inc()),
            Notice::JobAdmitted { .. } => drop(self.admitted.inc()),
            Notice::JobEnded(_, state, _) if leads => {
                let outcome = match state {
                    JobState::Succeeded => "succeeded",
                    JobState::Failed => "failed",
                    JobState::Cancelled => "cancelled",
                    JobState::Queued | JobState::Running => return,
                };
                self.ended.get_or_create(&Outcome { outcome }).inc();
            }
            Notice::TaskEnded { failure, .. } => {
                let outcome = if failure.is_none() { "completed" } else { "failed" };
                self.attempts.get_or_create(&Outcome { outcome }).inc();
            }
            Notice::TaskCalledOff { .. } => {
                self.attempts.get_or_create(&Outcome { outcome: "called_off" }).inc();
            }
            Notice::Fenced { .. } => drop(self.fenced.inc()),
            _ => {}
        }
    }

    /// So many attempts were out when the leadership ended.
    pub fn abandoned(&self, attempts: u64) {
        self.attempts.get_or_create(&Outcome { outcome: "abandoned" }).inc_by(attempts);
    }

    /// An election of this node took so long.
    pub fn election_took(&self, took: Duration) {
        self.election_time.observe(took);
    }

    /// An attempt took so long.
    pub fn attempt_took(&self, took: Duration) {
        self.attempt_time.observe(took);
    }

    /// A slice took so long to compute.
    pub fn computed(&self, took: Duration) {
        self.computed.observe(took);
    }

    /// A timer of the loop was so late.
    pub fn late(&self, by: Duration) {
        self.late.observe(by);
    }

    /// A change was in the journal after so long.
    pub fn saved(&self, took: Duration) {
        self.saved.observe(took);
    }

    /// A scrape: all counters, and what the node sees of the cluster now, if it answers.
    #[must_use]
    pub fn scrape(&self, node: &NodeId, view: Option<&ClusterView>, spans: Option<&Counts>) -> String {
        let mut registry = Registry::default();
        self.register(&mut registry);
        if let Some(view) = view {
            register_view(&mut registry, node, view);
        }
        text_of(registry, spans)
    }

    /// A scrape of a node that is no worker.
    #[must_use]
    pub fn scrape_process(spans: Option<&Counts>) -> String {
        text_of(Registry::default(), spans)
    }

    fn register(&self, registry: &mut Registry) {
        let seconds = |registry: &mut Registry, name: &str, help: &str, times: &Seconds| {
            let name = name.trim_end_matches("_seconds");
            registry.register_with_unit(name, help, Unit::Seconds, times.0.clone());
        };
        registry.register(
            metric::ELECTIONS,
            "Elections that this node began, by what they came to",
            self.elections.clone(),
        );
        seconds(registry, metric::ELECTION_TIME, "Time of elections at the node that began them", &self.election_time);
        registry.register(metric::EDGES_FAILED, "Links over which a flood got no answer", self.edges_failed.clone());
        registry.register(metric::LEADERSHIPS, "Leaderships of this node", self.leaderships.clone());
        registry.register(metric::ADMITTED, "Jobs admitted by this node", self.admitted.clone());
        registry.register(metric::ENDED, "Jobs that ended while this node led, by state", self.ended.clone());
        registry.register(metric::ATTEMPTS, "Attempts that this node handed out, by outcome", self.attempts.clone());
        seconds(registry, metric::ATTEMPT_TIME, "From hand-out to outcome", &self.attempt_time);
        registry.register(metric::FENCED, "Completions that did not count", self.fenced.clone());
        seconds(registry, metric::COMPUTED, "Time of slices computed here", &self.computed);
        seconds(registry, metric::LATE, "How late timers of the loop were", &self.late);
        seconds(registry, metric::SAVED, "From a change to its place in the journal", &self.saved);
    }
}

fn text_of(mut registry: Registry, spans: Option<&Counts>) -> String {
    if let Some(spans) = spans {
        let family = ByOutcome::default();
        family.get_or_create(&Outcome { outcome: "sent" }).inc_by(spans.sent());
        family.get_or_create(&Outcome { outcome: "lost" }).inc_by(spans.lost());
        registry.register(metric::SPANS, "Spans that ended here, by what became of them", family);
    }
    register_process(&mut registry);
    let mut text = String::new();
    // Writing to a string does not fail.
    encode(&mut text, &registry).ok();
    text
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    registry.register(name, help, ConstGauge::<i64>::new(value));
}

fn register_view(registry: &mut Registry, node: &NodeId, view: &ClusterView) {
    let own = view.nodes.iter().find(|other| other.member.node == *node);
    let leads = view.leadership.as_ref().is_some_and(|leadership| leadership.leader == *node);
    let term = view.leadership.as_ref().map_or(0, |leadership| leadership.term.0);
    let alive = view.nodes.iter().filter(|other| other.alive).count() as u64;
    gauge(registry, metric::LEADING, "1 while this node leads", u64::from(leads));
    gauge(registry, metric::TERM, "The term that this node follows, 0 without a leader", term);
    gauge(registry, metric::JAC, "Job allocation counter of this node", own.map_or(0, |own| own.jac.0));
    gauge(registry, metric::MEMBERS, "Workers that this node counts as alive", alive);
    gauge(registry, metric::LINKS, "Links of this node", own.map_or(0, |own| own.links.len() as u64));
    gauge(registry, metric::QUEUED, "Submissions that wait at this node", u64::from(view.queued));
    gauge(registry, metric::RUNNING, "Tasks that this node computes", own.map_or(0, |own| u64::from(own.running)));
}

/// Memory and processor time, where the system tells them.
fn register_process(registry: &mut Registry) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in brackets may hold spaces; what follows it is numbers (proc(5)).
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
    if let Some(pages) = number(21) {
        gauge(registry, metric::MEMORY, "Resident memory", pages.saturating_mul(rustix::param::page_size() as u64));
    }
    if let (Some(user), Some(system)) = (number(11), number(12)) {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        #[allow(clippy::cast_precision_loss)]
        let seconds = (user + system) as f64 / ticks as f64;
        let name = metric::CPU.trim_end_matches("_seconds");
        registry.register_with_unit(name, "Processor time", Unit::Seconds, ConstCounter::new(seconds));
    }
}
