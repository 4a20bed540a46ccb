//! Every name that others read: spans, their attributes, and metrics, each once.
//!
//! Renaming one breaks boards and searches, so it is an interface like the proto files. Units are in the names, as
//! Prometheus has it; what a metric is said to be stands beside it in [`metrics`](super::metrics).

/// Names of spans. Those of one election are one trace, and so are those of one job.
pub mod span {
    /// An election at its initiator, from its first hop to its end.
    pub const ELECTION: &str = "election";
    /// A hop of the flood at the worker that it reached, until its branches have come back.
    pub const HOP: &str = "election hop";
    /// A hop that did not get there, at the worker that sent it.
    pub const EDGE: &str = "election edge failed";
    /// The initiator tells the winner, first of all.
    pub const WINNER: &str = "tell winner";
    /// The winner, from its first word until it admits jobs.
    pub const LEADERSHIP: &str = "leadership begins";
    /// A follower's ledger is merged into the leader's.
    pub const MERGE: &str = "follower joins";
    /// A hop of the COORDINATOR flood, at the worker that follows from then on.
    pub const ANNOUNCEMENT: &str = "announcement";
    /// A submission at the worker that took it, until its acknowledgement.
    pub const SUBMIT: &str = "submit";
    /// A submission waits for a leader with room.
    pub const QUEUE: &str = "wait in queue";
    /// A leader admits a job.
    pub const ADMISSION: &str = "admission";
    /// The next leader goes on with a job.
    pub const FAILOVER: &str = "failover";
    /// A leader's hand-out of a task, until its outcome.
    pub const ATTEMPT: &str = "attempt";
    /// A worker computes a task.
    pub const COMPUTATION: &str = "computation";
    /// A completion that did not count, for its attempt was not out.
    pub const FENCED: &str = "fenced";
    /// A job's outcome is held, and told.
    pub const COMPLETION: &str = "completion";
}

/// Keys of attributes.
pub mod attribute {
    /// The node at which it happened.
    pub const NODE: &str = "floodline.node";
    /// The term.
    pub const TERM: &str = "floodline.term";
    /// The leader that it is about.
    pub const LEADER: &str = "floodline.leader";
    /// The election.
    pub const ELECTION: &str = "floodline.election";
    /// Why it happened.
    pub const CAUSE: &str = "floodline.cause";
    /// The leadership that an election replaces.
    pub const REPLACES: &str = "floodline.replaces";
    /// The JAC of the node.
    pub const JAC: &str = "floodline.jac";
    /// Over which link a hop came: the neighbour's node id.
    pub const LINK: &str = "floodline.link";
    /// Whether this election had been here before.
    pub const DUPLICATE: &str = "floodline.duplicate";
    /// Time that a hop's branch was given; ms.
    pub const BUDGET: &str = "floodline.budget_ms";
    /// Workers of a branch that took part.
    pub const SUBTREE: &str = "floodline.subtree";
    /// The best candidate of a branch.
    pub const BEST: &str = "floodline.best";
    /// Its JAC.
    pub const BEST_JAC: &str = "floodline.best_jac";
    /// Whom a failed edge leads to, or who joins.
    pub const PEER: &str = "floodline.peer";
    /// What a failed edge's failure was: refused, timed out, died.
    pub const FAILURE: &str = "floodline.failure";
    /// What it came to.
    pub const OUTCOME: &str = "floodline.outcome";
    /// Workers that take part in a leadership.
    pub const WORKERS: &str = "floodline.workers";
    /// The job's id.
    pub const JOB: &str = "floodline.job";
    /// The job's place in its leadership.
    pub const PLACE: &str = "floodline.place";
    /// The slice of a task, from 0.
    pub const TASK: &str = "floodline.task";
    /// Into how many slices its job is cut.
    pub const SLICES: &str = "floodline.slices";
    /// The attempt's number.
    pub const ATTEMPT: &str = "floodline.attempt";
    /// Who computes.
    pub const WORKER: &str = "floodline.worker";
    /// Under which leadership a task was handed out: term and leader.
    pub const FENCE: &str = "floodline.fence";
    /// Whether it is the second copy of a slow task.
    pub const SECOND: &str = "floodline.second_copy";
}

/// Names of metrics; the text form of a counter adds `_total`.
pub mod metric {
    /// Elections that this node began, by what they came to.
    pub const ELECTIONS: &str = "floodline_elections";
    /// Their time at this node.
    pub const ELECTION_TIME: &str = "floodline_election_seconds";
    /// Edges over which a flood failed.
    pub const EDGES_FAILED: &str = "floodline_election_edges_failed";
    /// Leaderships of this node.
    pub const LEADERSHIPS: &str = "floodline_leaderships";
    /// Jobs admitted by this node.
    pub const ADMITTED: &str = "floodline_jobs_admitted";
    /// Jobs whose end this node told as their leader, by state.
    pub const ENDED: &str = "floodline_jobs_ended";
    /// Attempts that this node handed out, by outcome.
    pub const ATTEMPTS: &str = "floodline_attempts";
    /// Their time.
    pub const ATTEMPT_TIME: &str = "floodline_attempt_seconds";
    /// Completions that did not count.
    pub const FENCED: &str = "floodline_fenced";
    /// Slices computed here.
    pub const COMPUTED: &str = "floodline_computation_seconds";
    /// How late the loop's timers were.
    pub const LATE: &str = "floodline_timer_late_seconds";
    /// From a change to its place in the journal.
    pub const SAVED: &str = "floodline_journal_seconds";
    /// Spans, by what became of them.
    pub const SPANS: &str = "floodline_spans";
    /// Whether this node leads.
    pub const LEADING: &str = "floodline_leading";
    /// The term that it follows.
    pub const TERM: &str = "floodline_term";
    /// Its job allocation counter.
    pub const JAC: &str = "floodline_jac";
    /// Workers that it counts as alive, itself included.
    pub const MEMBERS: &str = "floodline_members";
    /// Its links.
    pub const LINKS: &str = "floodline_links";
    /// Submissions that wait here.
    pub const QUEUED: &str = "floodline_queued";
    /// Tasks that it computes.
    pub const RUNNING: &str = "floodline_tasks_running";
    /// Memory of the process.
    pub const MEMORY: &str = "process_resident_memory_bytes";
    /// Processor time of the process.
    pub const CPU: &str = "process_cpu_seconds";
}
