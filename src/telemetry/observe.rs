//! From what happened to logs, spans and metrics: code says it once, as a [`Notice`], and this decides the rest.
//!
//! Owns how loud each happening is: ERROR is our bug or lost data, WARN is for someone tomorrow, per-task and per-hop
//! is DEBUG.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::Level;

use super::metrics::Metrics;
use super::spans::Spans;
use crate::protocol::ids::{ElectionId, NodeId, SaveId, TaskKey};
use crate::protocol::notice::{Notice, Told};
use crate::protocol::trace::{Trace, TraceId};

/// Beginnings remembered of one kind; the oldest go first.
const MOST: usize = 4_096;

/// What a node tells of itself.
#[derive(Debug)]
pub struct Observer {
    /// Its traces.
    pub spans: Spans,
    metrics: Arc<Metrics>,
    leads: bool,
    elections: BTreeMap<ElectionId, Instant>,
    attempts: BTreeMap<(TaskKey, u32), Instant>,
    saves: VecDeque<(SaveId, Instant)>,
}

impl Observer {
    /// Of a node that has just started; it counts in `metrics`.
    #[must_use]
    pub fn new(node: &NodeId, metrics: Arc<Metrics>) -> Observer {
        Observer {
            spans: Spans::new(node),
            metrics,
            leads: false,
            elections: BTreeMap::new(),
            attempts: BTreeMap::new(),
            saves: VecDeque::new(),
        }
    }

    /// One step is over, which `cause` set off if a call brought it. Gives what happened with the traces that tell of it.
    pub fn stepped(&mut self, cause: Option<Trace>, notices: Vec<Notice>) -> Vec<(Notice, Option<TraceId>)> {
        self.spans.begin_step();
        let tell = |notice: Notice| {
            let trace = self.spans.tell(cause, &notice).map(|trace| trace.id);
            self.count(&notice);
            log(&notice, trace);
            (notice, trace)
        };
        notices.into_iter().map(tell).collect()
    }

    /// A change is on its way to the journal.
    pub fn saves(&mut self, save: SaveId) {
        if self.saves.len() < MOST {
            self.saves.push_back((save, Instant::now()));
        }
    }

    /// The journal has it, and all before it.
    pub fn saved(&mut self, save: SaveId) {
        while let Some((_, since)) = self.saves.pop_front_if(|(waiting, _)| *waiting <= save) {
            self.metrics.saved(since.elapsed());
        }
    }

    /// A slice was computed in so long.
    pub fn computed(&self, took: Duration) {
        self.metrics.computed(took);
    }

    /// A timer of the loop was so late.
    pub fn late(&self, by: Duration) {
        self.metrics.late(by);
    }

    fn count(&mut self, notice: &Notice) {
        self.metrics.tell(notice, self.leads);
        match notice {
            Notice::ElectionStarted { election, .. } => begin(&mut self.elections, election.clone()),
            Notice::ElectionEnded { election, .. } => {
                let since = self.elections.remove(election);
                since.into_iter().for_each(|since| self.metrics.election_took(since.elapsed()));
            }
            Notice::TaskHandedOut { task, attempt, .. } => begin(&mut self.attempts, (task.clone(), *attempt)),
            Notice::TaskEnded { task, attempt, failure, .. } => {
                let since = self.attempts.remove(&(task.clone(), *attempt)).filter(|_| failure.is_none());
                since.into_iter().for_each(|since| self.metrics.attempt_took(since.elapsed()));
            }
            Notice::TaskCalledOff { task, attempt, .. } => drop(self.attempts.remove(&(task.clone(), *attempt))),
            Notice::LeadershipBegan { .. } => self.leads = true,
            Notice::LeadershipEnded(..) => {
                self.leads = false;
                self.metrics.abandoned(self.attempts.len() as u64);
                self.attempts.clear();
            }
            _ => {}
        }
    }
}

fn begin<K: Ord>(beginnings: &mut BTreeMap<K, Instant>, key: K) {
    if beginnings.len() >= MOST {
        beginnings.pop_first();
    }
    beginnings.insert(key, Instant::now());
}

/// Writes the line of a notice, with the trace that tells of it.
fn log(notice: &Notice, trace: Option<TraceId>) {
    // A macro's level must be a constant, and a sentence is made only for a line that is written.
    match level(notice) {
        Level::ERROR if tracing::enabled!(Level::ERROR) => tell!(tracing::error, notice.told(), trace),
        Level::WARN if tracing::enabled!(Level::WARN) => tell!(tracing::warn, notice.told(), trace),
        Level::INFO if tracing::enabled!(Level::INFO) => tell!(tracing::info, notice.told(), trace),
        Level::DEBUG if tracing::enabled!(Level::DEBUG) => tell!(tracing::debug, notice.told(), trace),
        Level::TRACE if tracing::enabled!(Level::TRACE) => tell!(tracing::trace, notice.told(), trace),
        _ => {}
    }
}

macro_rules! tell {
    ($macro:path, $told:expr, $trace:expr) => {{
        let Told { kind, term, job, task, attempt, text } = $told;
        let (term, job) = (term.map(|term| term.0), job.as_ref().map(|job| job.as_str()));
        let trace_id = $trace.map(tracing::field::display);
        $macro!(kind, term, job, task, attempt, trace_id, "{text}")
    }};
}
use tell;

const fn level(notice: &Notice) -> Level {
    match notice {
        // Two workers computed one slice to different values: one of them is wrong, and so may be the answer.
        Notice::ValuesDiffer(_) => Level::ERROR,
        // An answer that somebody was told has changed, as section 10 allows after a split.
        Notice::OutcomeRaised(..) | Notice::PeerIgnored(..) => Level::WARN,
        Notice::MemberJoined(_)
        | Notice::MemberLeft(_)
        | Notice::ElectionStarted { .. }
        | Notice::ElectionEnded { .. }
        | Notice::LeadershipBegan { .. }
        | Notice::LeadershipActive(..)
        | Notice::LeadershipMovedUp(..)
        | Notice::LeadershipEnded(..)
        | Notice::Following(_)
        | Notice::FollowerJoined(..)
        | Notice::FollowerLost(..)
        | Notice::JobAdmitted { .. }
        | Notice::JobTakenUp { .. }
        | Notice::JobEnded(..)
        | Notice::Stopping => Level::INFO,
        Notice::LinkUp(_)
        | Notice::LinkDown(..)
        | Notice::ElectionReached { .. }
        | Notice::ElectionDeclined { .. }
        | Notice::EdgeFailed { .. }
        | Notice::BranchEnded { .. }
        | Notice::WinnerChosen { .. }
        | Notice::SubmissionWaits { .. }
        | Notice::SubmissionSent(..)
        | Notice::SubmissionAnswered { .. }
        | Notice::TaskHandedOut { .. }
        | Notice::TaskTaken { .. }
        | Notice::TaskEnded { .. }
        | Notice::TaskCalledOff { .. }
        | Notice::Fenced { .. } => Level::DEBUG,
    }
}
