//! From what happened to spans: one trace for an election, one for a job (section 11 of the contract).
//!
//! Owns the spans that are open at this node. Each is short: it ends with the next word on its subject, so that a node
//! that is killed leaves only the last moment untold, and what it had caused hangs below a span that never came: the
//! broken edge. Bound: [`MOST`] of each kind; what the core bounds
//! itself, too, so that it is reached by what never ends alone.

use std::collections::BTreeMap;

use super::context::Open;
use super::names::{attribute, span};
use crate::protocol::ids::{ComputeId, ElectionId, JobKey, Leadership, NodeId, TaskKey, Term};
use crate::protocol::message::{CallFailure, Purpose, Request};
use crate::protocol::notice::{Declined, Notice};
use crate::protocol::trace::Trace;

/// Open spans, or places remembered, of one kind.
const MOST: usize = 4_096;
/// Terms whose elections are remembered.
const TERMS: u64 = 64;
/// Elections under way that a new one is linked to.
const LINKED: usize = 8;

/// A leadership of this node.
#[derive(Debug)]
struct Leads {
    leadership: Leadership,
    /// Until it admits.
    beginning: Option<Open>,
    trace: Option<Trace>,
}

/// The spans of a node.
#[derive(Debug)]
pub struct Spans {
    node: String,
    /// Elections that this node began.
    began: BTreeMap<ElectionId, Open>,
    /// Hops that wait for their branches.
    hops: BTreeMap<ElectionId, Open>,
    winners: BTreeMap<ElectionId, Open>,
    /// Where elections stand, also past ones: announcements come later.
    elections: BTreeMap<ElectionId, (Term, Trace)>,
    /// The election of its own that ended in this step.
    concluded: Option<Trace>,
    /// Where leaderships were made known.
    announced: BTreeMap<Leadership, Trace>,
    leads: Option<Leads>,
    queued: BTreeMap<JobKey, Open>,
    /// Jobs that this node works off as their leader, and where that stands.
    jobs: BTreeMap<JobKey, Trace>,
    attempts: BTreeMap<(TaskKey, u32), Open>,
    /// What hand-outs from elsewhere stand below.
    taken: BTreeMap<TaskKey, Trace>,
    computations: BTreeMap<ComputeId, Open>,
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V) {
    if map.len() >= MOST {
        map.pop_first();
    }
    map.insert(key, value);
}

fn count(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

impl Spans {
    /// Those of a node that has just started.
    #[must_use]
    pub fn new(node: &NodeId) -> Spans {
        Spans {
            node: node.to_string(),
            began: BTreeMap::new(),
            hops: BTreeMap::new(),
            winners: BTreeMap::new(),
            elections: BTreeMap::new(),
            concluded: None,
            announced: BTreeMap::new(),
            leads: None,
            queued: BTreeMap::new(),
            jobs: BTreeMap::new(),
            attempts: BTreeMap::new(),
            taken: BTreeMap::new(),
            computations: BTreeMap::new(),
        }
    }

    fn open(&self, name: &'static str, parent: Option<Trace>) -> Open {
        Open::new(name, &self.node, parent)
    }

    /// A new step: what it says has this cause, if a call brought it.
    pub fn begin_step(&mut self) {
        self.concluded = None;
    }

    /// Takes in one thing that happened, in a step that `cause` set off. Gives where it stands.
    pub fn tell(&mut self, cause: Option<Trace>, notice: &Notice) -> Option<Trace> {
        match notice {
            Notice::ElectionStarted { .. }
            | Notice::ElectionReached { .. }
            | Notice::ElectionDeclined { .. }
            | Notice::EdgeFailed { .. }
            | Notice::BranchEnded { .. }
            | Notice::WinnerChosen { .. }
            | Notice::ElectionEnded { .. } => self.tell_of_election(cause, notice),
            Notice::LeadershipBegan { .. }
            | Notice::LeadershipActive(..)
            | Notice::LeadershipMovedUp(..)
            | Notice::LeadershipEnded(..)
            | Notice::Following(_)
            | Notice::FollowerJoined(..) => self.tell_of_leadership(cause, notice),
            Notice::SubmissionWaits { .. }
            | Notice::SubmissionSent(..)
            | Notice::SubmissionAnswered { .. }
            | Notice::JobAdmitted { .. }
            | Notice::JobTakenUp { .. }
            | Notice::JobEnded(..) => self.tell_of_job(notice),
            Notice::TaskHandedOut { .. }
            | Notice::TaskTaken { .. }
            | Notice::TaskEnded { .. }
            | Notice::TaskCalledOff { .. }
            | Notice::Fenced { .. } => self.tell_of_task(cause, notice),
            Notice::MemberJoined(_)
            | Notice::MemberLeft(_)
            | Notice::LinkUp(_)
            | Notice::LinkDown(..)
            | Notice::FollowerLost(..)
            | Notice::OutcomeRaised(..)
            | Notice::ValuesDiffer(_)
            | Notice::Stopping
            | Notice::PeerIgnored(..) => None,
        }
    }

    fn tell_of_election(&mut self, cause: Option<Trace>, notice: &Notice) -> Option<Trace> {
        match notice {
            Notice::ElectionStarted { election, term, cause, replaces, jac } => {
                let open = self.open(span::ELECTION, None);
                self.link_to_others(&open);
                open.set(attribute::CAUSE, *cause);
                if let Some(replaced) = replaces {
                    open.set(attribute::REPLACES, replaced.to_string());
                }
                open.set(attribute::JAC, count(jac.0));
                self.name(&open, election, *term);
                let trace = open.trace();
                put(&mut self.began, election.clone(), open);
                trace
            }
            Notice::ElectionReached { election, term, from, jac, budget } => {
                let open = self.open(span::HOP, cause);
                self.link_to_others(&open);
                open.set(attribute::LINK, from.to_string());
                open.set(attribute::DUPLICATE, false);
                open.set(attribute::JAC, count(jac.0));
                open.set(attribute::BUDGET, count(budget.as_millis()));
                self.name(&open, election, *term);
                let trace = open.trace();
                put(&mut self.hops, election.clone(), open);
                trace
            }
            Notice::ElectionDeclined { .. } | Notice::EdgeFailed { .. } => self.tell_of_dead_end(cause, notice),
            Notice::BranchEnded { election, nodes, best } => {
                let hop = self.hops.remove(election);
                let open = hop.as_ref().or_else(|| self.began.get(election))?;
                open.set(attribute::SUBTREE, i64::from(*nodes));
                if let Some(best) = best {
                    open.set(attribute::BEST, best.member.node.to_string());
                    open.set(attribute::BEST_JAC, count(best.jac.0));
                }
                open.trace()
            }
            Notice::WinnerChosen { election, winner } => {
                let open = self.open(span::WINNER, self.of_election(election));
                open.set(attribute::LEADER, winner.leader.to_string());
                open.set(attribute::BEST_JAC, count(winner.jac.0));
                let trace = open.trace();
                put(&mut self.winners, election.clone(), open);
                trace
            }
            Notice::ElectionEnded { election, outcome, .. } => {
                if let Some(told) = self.winners.remove(election) {
                    told.set(attribute::OUTCOME, outcome.clone());
                }
                let open = self.began.remove(election)?;
                open.set(attribute::OUTCOME, outcome.clone());
                self.concluded = open.trace();
                self.concluded
            }
            _ => None,
        }
    }

    /// A hop that goes no further.
    fn tell_of_dead_end(&mut self, cause: Option<Trace>, notice: &Notice) -> Option<Trace> {
        match notice {
            Notice::ElectionDeclined { election, term, from, why } => {
                let open = self.open(span::HOP, cause);
                open.set(attribute::LINK, from.to_string());
                open.set(attribute::DUPLICATE, *why == Declined::Duplicate);
                open.set(attribute::OUTCOME, why.to_string());
                open.set(attribute::ELECTION, election.to_string());
                open.set(attribute::TERM, count(term.0));
                open.trace()
            }
            Notice::EdgeFailed { election, to, failure } => {
                let open = self.open(span::EDGE, self.of_election(election));
                open.set(attribute::PEER, to.to_string());
                open.set(attribute::FAILURE, failure_of(failure));
                open.fail(failure.to_string());
                open.trace()
            }
            _ => None,
        }
    }

    /// Names an election on its span, and remembers where it stands.
    fn name(&mut self, open: &Open, election: &ElectionId, term: Term) {
        open.set(attribute::ELECTION, election.to_string());
        open.set(attribute::TERM, count(term.0));
        self.elections.retain(|_, (of, _)| of.0.saturating_add(TERMS) >= term.0);
        if let Some(trace) = open.trace() {
            put(&mut self.elections, election.clone(), (term, trace));
        }
    }

    /// Elections that meet are linked, not mixed; and so is one that repeats another.
    fn link_to_others(&self, open: &Open) {
        let others = self.began.values().chain(self.hops.values()).filter_map(Open::trace);
        for other in self.concluded.into_iter().chain(others).take(LINKED) {
            open.link(other);
        }
    }

    fn of_election(&self, election: &ElectionId) -> Option<Trace> {
        self.elections.get(election).map(|(_, trace)| *trace)
    }

    fn tell_of_leadership(&mut self, cause: Option<Trace>, notice: &Notice) -> Option<Trace> {
        match notice {
            Notice::LeadershipBegan { leadership, workers, election } => {
                let of_election = || election.as_ref().and_then(|election| self.of_election(election));
                // A step that a call set off may run timers as well: only a call of that election is the cause.
                let own = of_election();
                let parent = cause.filter(|cause| own.is_none_or(|own| own.id == cause.id)).or(own);
                let open = self.open(span::LEADERSHIP, parent);
                open.set(attribute::TERM, count(leadership.term.0));
                open.set(attribute::LEADER, leadership.leader.to_string());
                open.set(attribute::JAC, count(leadership.jac.0));
                open.set(attribute::WORKERS, i64::from(*workers));
                let trace = open.trace();
                self.announce(leadership, trace);
                self.leads = Some(Leads { leadership: leadership.clone(), beginning: Some(open), trace });
                trace
            }
            Notice::LeadershipActive(_, workers) => {
                let leads = self.leads.as_mut()?;
                if let Some(open) = leads.beginning.take() {
                    open.set(attribute::WORKERS, i64::from(*workers));
                }
                leads.trace
            }
            Notice::LeadershipMovedUp(_, above) => {
                let leads = self.leads.as_mut()?;
                leads.leadership = above.clone();
                let trace = leads.trace;
                self.announce(above, trace);
                trace
            }
            Notice::LeadershipEnded(_, why) => {
                self.jobs.clear();
                for (_, open) in std::mem::take(&mut self.attempts) {
                    open.set(attribute::OUTCOME, "the leadership ended");
                }
                let leads = self.leads.take()?;
                if let Some(open) = leads.beginning {
                    open.set(attribute::OUTCOME, *why);
                }
                leads.trace
            }
            Notice::Following(leadership) => {
                // The leader of before names the next one on its stream, which brings no context: then this node's own
                // hop is where it belongs, if there is one such election only.
                let mut of_term = self.elections.values().filter(|(term, _)| *term == leadership.term);
                let own = of_term.next().filter(|_| of_term.next().is_none()).map(|(_, trace)| *trace);
                let parent = cause.or(self.concluded).or(own)?;
                let open = self.open(span::ANNOUNCEMENT, Some(parent));
                open.set(attribute::TERM, count(leadership.term.0));
                open.set(attribute::LEADER, leadership.leader.to_string());
                let trace = open.trace();
                self.announce(leadership, trace);
                trace
            }
            Notice::FollowerJoined(node, how) => {
                let open = self.open(span::MERGE, Some(self.leads.as_ref()?.trace?));
                open.set(attribute::PEER, node.to_string());
                open.set(attribute::OUTCOME, *how);
                open.trace()
            }
            _ => None,
        }
    }

    fn announce(&mut self, leadership: &Leadership, trace: Option<Trace>) {
        if let Some(trace) = trace {
            put(&mut self.announced, leadership.clone(), trace);
        }
    }

    fn tell_of_job(&mut self, notice: &Notice) -> Option<Trace> {
        match notice {
            Notice::SubmissionWaits { job, trace } => {
                let open = self.open(span::QUEUE, Some((*trace)?));
                open.set(attribute::JOB, job.id.to_string());
                put(&mut self.queued, job.clone(), open);
                *trace
            }
            Notice::SubmissionSent(job, to) => {
                let open = self.queued.remove(job)?;
                open.set(attribute::LEADER, to.to_string());
                open.trace()
            }
            Notice::SubmissionAnswered { job, refused } => {
                let open = self.queued.remove(job)?;
                open.set(attribute::OUTCOME, refused.clone().unwrap_or_else(|| "known already".to_owned()));
                open.trace()
            }
            Notice::JobAdmitted { job, term, place, jac, trace } => {
                self.queued.remove(job);
                let open = self.open(span::ADMISSION, *trace);
                open.set(attribute::JOB, job.id.to_string());
                open.set(attribute::TERM, count(term.0));
                open.set(attribute::PLACE, i64::from(*place));
                open.set(attribute::JAC, count(jac.0));
                self.work_on(job, &open)
            }
            Notice::JobTakenUp { job, trace } => {
                let open = self.open(span::FAILOVER, *trace);
                open.set(attribute::JOB, job.id.to_string());
                if let Some(leads) = &self.leads {
                    open.set(attribute::FENCE, leads.leadership.to_string());
                    leads.trace.into_iter().for_each(|election| open.link(election));
                }
                self.work_on(job, &open)
            }
            Notice::JobEnded(job, state, trace) => {
                // Followers tell it as well; the trace has it once, from the leader.
                let work = self.jobs.remove(job);
                if self.leads.is_none() {
                    return *trace;
                }
                let parent = work.or(*trace)?;
                let open = self.open(span::COMPLETION, Some(parent));
                open.set(attribute::JOB, job.id.to_string());
                open.set(attribute::OUTCOME, format!("{state:?}"));
                open.trace()
            }
            _ => None,
        }
    }

    fn work_on(&mut self, job: &JobKey, open: &Open) -> Option<Trace> {
        if let Some(trace) = open.trace() {
            put(&mut self.jobs, job.clone(), trace);
        }
        open.trace()
    }

    fn tell_of_task(&mut self, cause: Option<Trace>, notice: &Notice) -> Option<Trace> {
        match notice {
            Notice::TaskHandedOut { task, attempt, worker, second } => {
                let open = self.open(span::ATTEMPT, Some(self.jobs.get(&task.job).copied()?));
                of_task(&open, task);
                open.set(attribute::ATTEMPT, i64::from(*attempt));
                open.set(attribute::WORKER, worker.to_string());
                open.set(attribute::SECOND, *second);
                if let Some(leads) = &self.leads {
                    open.set(attribute::FENCE, leads.leadership.to_string());
                }
                let trace = open.trace();
                put(&mut self.attempts, (task.clone(), *attempt), open);
                trace
            }
            Notice::TaskEnded { task, attempt, failure, .. } => {
                let open = self.attempts.remove(&(task.clone(), *attempt))?;
                match failure {
                    None => open.set(attribute::OUTCOME, "completed"),
                    Some(why) => {
                        open.set(attribute::OUTCOME, why.to_string());
                        open.fail(why.to_string());
                    }
                }
                open.trace()
            }
            Notice::TaskCalledOff { task, attempt, .. } => {
                let open = self.attempts.remove(&(task.clone(), *attempt))?;
                open.set(attribute::OUTCOME, "called off");
                open.trace()
            }
            Notice::Fenced { task, attempt, reason } => {
                let open = self.open(span::FENCED, Some(self.jobs.get(&task.job).copied()?));
                of_task(&open, task);
                open.set(attribute::ATTEMPT, i64::from(*attempt));
                open.set(attribute::CAUSE, *reason);
                open.trace()
            }
            Notice::TaskTaken { task, .. } => {
                put(&mut self.taken, task.clone(), cause?);
                cause
            }
            _ => None,
        }
    }

    /// This node begins to compute a task.
    pub fn computes(&mut self, compute: ComputeId, task: &TaskKey) {
        // Of two copies the later one is here, or it would be the other's.
        let own = self.attempts.range((task.clone(), 0)..=(task.clone(), u32::MAX)).next_back();
        let parent = self.taken.remove(task).or_else(|| own.and_then(|(_, open)| open.trace()));
        if let Some(parent) = parent {
            let open = self.open(span::COMPUTATION, Some(parent));
            of_task(&open, task);
            put(&mut self.computations, compute, open);
        }
    }

    /// A computation ended, with a value or without.
    pub fn computed(&mut self, compute: ComputeId, with_value: bool) {
        if let Some(open) = self.computations.remove(&compute) {
            open.set(attribute::OUTCOME, if with_value { "completed" } else { "cancelled" });
        }
    }

    /// Where a call stands that this node makes.
    #[must_use]
    pub fn cause_of(&self, request: &Request) -> Option<Trace> {
        match request {
            Request::Elect(elect) => self.of_election(&elect.election),
            Request::Announce(announce) => match announce.purpose {
                Purpose::Won => self.winners.get(announce.election.as_ref()?)?.trace(),
                Purpose::Flood => self.announced.get(&announce.leader.leadership).copied(),
                Purpose::Met | Purpose::Settle => None,
            },
            Request::ExecuteTask(execute) => {
                self.attempts.get(&(execute.task.clone(), execute.attempt)).and_then(Open::trace)
            }
            Request::SubmitJob(submit) => submit.trace,
            Request::AddNeighbor(_)
            | Request::RemoveNeighbor(_)
            | Request::Ping(_)
            | Request::CancelJob(_)
            | Request::GetJob(_)
            | Request::ListJobs(_)
            | Request::GetCluster
            | Request::CancelTask(_) => None,
        }
    }
}

fn of_task(open: &Open, task: &TaskKey) {
    open.set(attribute::JOB, task.job.id.to_string());
    open.set(attribute::TASK, i64::from(task.slice));
    open.set(attribute::SLICES, i64::from(task.slices));
}

fn failure_of(failure: &CallFailure) -> &'static str {
    match failure {
        CallFailure::Refused(_) => "refused",
        CallFailure::Unreachable(_) => "died",
        CallFailure::TimedOut => "timed out",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use opentelemetry::trace::TracerProvider;
    use opentelemetry_sdk::error::OTelSdkResult;
    use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::protocol::ids::{Incarnation, Jac};

    #[derive(Clone, Debug, Default)]
    struct Kept(Arc<Mutex<Vec<SpanData>>>);

    impl SpanExporter for Kept {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            self.0.lock().expect("nobody panicked").extend(batch);
            Ok(())
        }
    }

    /// The spans that come of it, by name.
    fn spans_of(story: impl FnOnce(&mut Spans)) -> BTreeMap<String, SpanData> {
        let kept = Kept::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(kept.clone()).build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            story(&mut Spans::new(&NodeId::new("n1").expect("a good name")));
        });
        let spans = std::mem::take(&mut *kept.0.lock().expect("nobody panicked"));
        spans.into_iter().map(|span| (span.name.to_string(), span)).collect()
    }

    fn election(initiator: &str) -> ElectionId {
        let initiator = NodeId::new(initiator).expect("a good name");
        ElectionId { initiator, incarnation: Incarnation(1), serial: 1 }
    }

    fn started() -> Notice {
        let (election, term, jac) = (election("n1"), Term(4), Jac(2));
        Notice::ElectionStarted { election, term, cause: "the leader is silent", replaces: None, jac }
    }

    fn reached() -> Notice {
        let from = NodeId::new("n2").expect("a good name");
        let (election, term, jac, budget) = (election("n2"), Term(4), Jac(2), std::time::Duration::from_millis(160));
        Notice::ElectionReached { election, term, from, jac, budget }
    }

    #[test]
    fn elections_that_meet_at_a_worker_are_linked_and_stay_two_traces() {
        let cause: Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().expect("well-formed");
        let spans = spans_of(|spans| {
            spans.tell(None, &started());
            spans.tell(Some(cause), &reached());
        });
        let (own, other) = (&spans[span::ELECTION].span_context, &spans[span::HOP]);
        assert_ne!(own.trace_id(), other.span_context.trace_id());
        assert_eq!(other.span_context.trace_id().to_string(), cause.id.to_string());
        assert_eq!(other.links.iter().map(|link| link.span_context.trace_id()).collect::<Vec<_>>(), [own.trace_id()]);
    }

    #[test]
    fn an_election_that_repeats_another_is_linked_to_it() {
        let spans = spans_of(|spans| {
            spans.tell(None, &started());
            let outcome = "an edge failed: once more around it".to_owned();
            spans.tell(None, &Notice::ElectionEnded { election: election("n1"), term: Term(4), outcome });
            spans.tell(None, &reached());
        });
        let hop = &spans[span::HOP];
        assert_eq!(hop.links.iter().count(), 1);
    }

    #[test]
    fn a_second_copy_at_the_leader_is_computed_below_its_own_attempt() {
        let name = |node: &str| NodeId::new(node).expect("a good name");
        let id = crate::protocol::ids::JobId::new("j").expect("a good name");
        let job = JobKey { id, digest: crate::protocol::ids::Digest([1; 32]) };
        let task = TaskKey { job: job.clone(), slices: 4, slice: 2 };
        let spans = spans_of(|spans| {
            spans.tell(None, &Notice::JobAdmitted { job, term: Term(4), place: 1, jac: Jac(1), trace: None });
            for (attempt, worker) in [(1, "n4"), (2, "n1")] {
                let (task, worker, second) = (task.clone(), name(worker), attempt == 2);
                spans.tell(None, &Notice::TaskHandedOut { task, attempt, worker, second });
            }
            spans.computes(ComputeId(1), &task);
            spans.computed(ComputeId(1), true);
            spans.tell(None, &Notice::TaskCalledOff { task: task.clone(), attempt: 1, worker: name("n4") });
            let ended = Notice::TaskEnded { task: task.clone(), attempt: 2, worker: name("n1"), failure: None };
            spans.tell(None, &ended);
        });
        // The last attempt to end is the second one.
        assert_eq!(spans[span::COMPUTATION].parent_span_id, spans[span::ATTEMPT].span_context.span_id());
    }

    #[test]
    fn without_a_collector_what_caused_a_call_is_passed_on_as_it_came() {
        let cause: Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().expect("well-formed");
        let mut spans = Spans::new(&NodeId::new("n1").expect("a good name"));
        assert_eq!(spans.tell(Some(cause), &reached()), Some(cause));
        assert_eq!(spans.of_election(&election("n2")), Some(cause));
        assert_eq!(spans.tell(None, &started()), None);
    }

    #[test]
    fn what_never_ends_fills_a_bound() {
        let mut spans = Spans::new(&NodeId::new("n1").expect("a good name"));
        for serial in 0..(MOST as u64) * 2 {
            let Notice::ElectionStarted { election, term, cause, replaces, jac } = started() else { unreachable!() };
            let election = ElectionId { serial, ..election };
            spans.tell(None, &Notice::ElectionStarted { election, term, cause, replaces, jac });
        }
        assert_eq!(spans.began.len(), MOST);
    }
}
