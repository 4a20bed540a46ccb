//! Every bound of the protocol, and the settings that people may change.
//!
//! Owns numbers only. A bound that nobody would tune is a constant here, with its reason.

use std::time::Duration;

use super::ledger::Keep;

/// Failed edges that an election answer or a repeated flood carries; more would not fit a hop's time anyway.
pub const EDGES: usize = 256;
/// Unreachable winners that a repeated election excludes.
pub const EXCLUDED: usize = 64;
/// Living leaders that a flood's answer names.
pub const REFUSALS: usize = 8;
/// Jobs that one page of a listing holds.
pub const PAGE: u32 = 100;
/// Members known at once, dead ones included.
pub const MEMBERS: usize = 4_096;
/// Members that a worker lost and keeps trying (section 5).
pub const LOST: usize = 1_000;
/// Links of one worker; a link more is refused, the caller takes another.
pub const LINKS: usize = 32;
/// Leaderships that a replica remembers having followed (section 8).
pub const PAST: usize = 1_024;
/// Workers whose JAC this one remembers for them (section 6).
pub const REMEMBERED: usize = 4_096;
/// How far a JAC that others remember may lie above the own one before it counts as malformed.
pub const LEAP: u64 = 1 << 40;
/// Election ids and announcements remembered, of each kind.
pub const FLOODS: usize = 1_024;
/// Calls that wait for this worker's answer.
pub const CALLERS: usize = 4_096;
/// Calls of this worker's that wait for an answer.
pub const CALLS: usize = 16_384;
/// Unfinished jobs of a cluster: leaders that hand over could gather more and more of them.
pub const UNFINISHED: usize = 1_024;
/// Followers of one leader.
pub const FOLLOWERS: usize = 4_096;
/// Tasks that wait at a worker for a place in its pool.
pub const TASK_QUEUE: usize = 1_024;
/// Results that a worker keeps for a leader that asks again (section 7).
pub const RESULTS: usize = 1_024;
/// Slices of one job at most, whatever the settings and the peer say.
pub const SLICES: u32 = 1 << 20;
/// How far a term may lie above the highest known before it counts as malformed (section 6, 6).
pub const TERM_LEAP: u64 = 1 << 32;
/// Batches on their way to one follower; beyond it the leader gathers changes until it has acknowledged some.
pub const BATCHES_IN_FLIGHT: usize = 64;

/// How long a ping may take that decides whether a leader still lives (section 6, 1).
pub const LEADER_PING: Duration = Duration::from_millis(50);
/// The most that a worker waits at random before it starts an election (section 6, 1).
pub const START_SPREAD: Duration = Duration::from_millis(20);
/// How long a new leader waits for those that the flood counted (section 6).
pub const JOIN_WAIT: Duration = Duration::from_millis(100);
/// Deadline of announcements and of the call between two leaders.
pub const ANNOUNCE: Duration = Duration::from_millis(200);
/// Deadline of pings and of linking up.
pub const LINK_CALL: Duration = Duration::from_millis(500);
/// Deadline of forwarded submissions, cancels and queries.
pub const FORWARD: Duration = Duration::from_secs(5);
/// How long one attempt may take: only a backstop, since a worker that is lost is noticed otherwise.
pub const TASK_CALL: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How often a lost member is tried at least (section 5).
pub const LOST_RETRY: Duration = Duration::from_secs(60);
/// How often the leader tells everybody's status, for display.
pub const ROSTER: Duration = Duration::from_millis(500);
/// A second copy of a task goes out when it takes longer than this and than twice its siblings' median.
pub const SLOW_TASK: Duration = Duration::from_millis(500);

/// What a leader does that has admitted its jobs while some are not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// It finishes them, for the drain limit at most, and steps down.
    Drain,
    /// It steps down at once; the next leader carries on.
    Handover,
}

/// What people may set, as the protocol needs it (section 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Leader heartbeat.
    pub heartbeat_interval: Duration,
    /// Least of the randomised follower timeout; the longest gap in a leader's own loop.
    pub election_timeout_min: Duration,
    /// Most of the randomised follower timeout; how young a live follower's acknowledgement is.
    pub election_timeout_max: Duration,
    /// The whole time of a flood.
    pub flood_budget: Duration,
    /// What each hop of a flood keeps of it.
    pub hop_reserve: Duration,
    /// Between two renewals of a lease.
    pub lease_renew: Duration,
    /// Between two pings of a link.
    pub link_ping: Duration,
    /// Links kept up where enough peers exist.
    pub min_links: usize,
    /// Consecutive failed calls that drop a link.
    pub neighbour_failures: u32,
    /// Admissions in a leadership.
    pub max_jobs_per_term: u32,
    /// What a leader with its last admission does with unfinished jobs.
    pub rotation: Rotation,
    /// How long a leader drains before it hands over.
    pub drain_limit: Duration,
    /// Live workers, the leader included, without which a leader admits and ends nothing.
    pub min_members: u32,
    /// Ended jobs that are kept.
    pub keep: Keep,
    /// Slices of a range job per live worker.
    pub tasks_per_worker: u32,
    /// Slices of a range job at most.
    pub max_tasks: u32,
    /// Failures charged to a task before its job fails.
    pub max_attempts: u32,
    /// Numbers in a list job at most.
    pub max_numbers: usize,
    /// Submissions that may wait at one worker.
    pub queue: usize,
    /// How long an ending worker may take in all.
    pub stop_grace: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            heartbeat_interval: Duration::from_millis(150),
            election_timeout_min: Duration::from_millis(500),
            election_timeout_max: Duration::from_millis(1_000),
            flood_budget: Duration::from_millis(200),
            hop_reserve: Duration::from_millis(5),
            lease_renew: Duration::from_secs(2),
            link_ping: Duration::from_millis(500),
            min_links: 2,
            neighbour_failures: 3,
            max_jobs_per_term: 5,
            rotation: Rotation::Drain,
            drain_limit: Duration::from_secs(10),
            min_members: 1,
            keep: Keep { breakdowns: 1_000, lines: 20_000 },
            tasks_per_worker: 4,
            max_tasks: 32,
            max_attempts: 5,
            max_numbers: 2_000_000,
            queue: 256,
            stop_grace: Duration::from_secs(8),
        }
    }
}
