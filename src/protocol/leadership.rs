//! Whom this worker follows, or that it leads: the named transitions between its roles.
//!
//! Owns the fence: `followed` is the newest leadership ever followed and only rises (G3). Never elects (that is
//! [`election`](super::election)) and never touches records (that is [`ledger`](super::ledger)).

use std::collections::BTreeMap;
use std::time::Duration;

use super::Worker;
use super::calls::Errand;
use super::effects::{Effects, StreamEffect};
use super::ids::{JobKey, Leadership, Member, Number, StreamId};
use super::ledger::Outcome;
use super::limits;
use super::message::{Announce, CallFailure, Down, Leader, Peer, Request, Status, Up};
use super::notice::Notice;
use super::replication::Followers;
use super::schedule::Schedule;
use super::time::Time;

/// How often a stream to a leader that answers pings may break without a frame before that leader counts as gone.
const REOPENINGS: u32 = 3;

/// What a worker is at the moment.
#[derive(Clone, Debug)]
pub(crate) enum Role {
    /// It asks its directories and peers before its first election.
    Starting,
    /// It knows no leader.
    Seeking(Seeking),
    /// It follows one.
    Following(Following),
    /// It leads.
    Leading(Box<Leading>),
}

/// Without a leader.
#[derive(Clone, Debug)]
pub(crate) struct Seeking {
    /// When it begins an election, unless one reaches it first.
    pub(crate) start_at: Time,
    pub(crate) cause: &'static str,
}

/// With a leader.
#[derive(Clone, Debug)]
pub(crate) struct Following {
    pub(crate) leader: Leader,
    /// None while it is broken and the leader is asked whether it lives.
    pub(crate) stream: Option<StreamId>,
    last_frame: Option<Time>,
    /// The leader counts as gone when nothing came by then.
    silent_at: Time,
    reopened: u32,
    /// Its replica equals the leader's up to what has come since.
    pub(crate) joined: bool,
    pub(crate) held: Number,
    pub(crate) room: u32,
    pub(crate) admitted: u32,
}

/// As leader.
#[derive(Clone, Debug)]
pub(crate) struct Leading {
    pub(crate) leadership: Leadership,
    pub(crate) followers: Followers,
    pub(crate) schedule: Schedule,
    pub(crate) held: Number,
    /// Admissions so far; they go on counting when the leader moves to a higher term.
    pub(crate) admitted: u32,
    pub(crate) active: bool,
    /// Since when it has no admission left.
    pub(crate) full_since: Option<Time>,
    /// Ends that wait for more live workers; the first one of a job counts.
    pub(crate) postponed: BTreeMap<JobKey, Outcome>,
    /// Something could not end for want of live workers.
    pub(crate) short: bool,
    /// Workers that the flood counted, this one included: it admits when they have joined, or at `active_by`.
    expected: usize,
    active_by: Time,
    pub(crate) heartbeat_due: Time,
    pub(crate) roster_due: Time,
}

impl Leading {
    /// Whether those that the flood counted have joined, or were waited for; in any case as many as make a quorum.
    fn may_begin(&self, now: Time, quorum: usize) -> bool {
        let joined = self.followers.joined() + 1;
        joined >= quorum && (joined >= self.expected || now >= self.active_by)
    }
}

impl Worker {
    /// Whether this worker leads.
    pub(crate) fn is_leading(&self) -> bool {
        matches!(self.role, Role::Leading(_))
    }

    /// The leader that it follows now: itself, when it leads.
    pub(crate) fn leader_now(&self) -> Option<&Leader> {
        match &self.role {
            Role::Starting | Role::Seeking(_) => None,
            Role::Following(following) => Some(&following.leader),
            Role::Leading(_) => self.followed.as_ref(),
        }
    }

    /// A leader that lives for sure: itself, or one whose stream is unbroken and brought a frame within two
    /// heartbeat intervals (section 6, 3).
    pub(crate) fn living_leader(&self) -> Option<&Leader> {
        match &self.role {
            Role::Starting | Role::Seeking(_) => None,
            Role::Following(following) => {
                let fresh = |at| self.now.time.since(at) <= self.settings.heartbeat_interval * 2;
                let heard = following.stream.is_some() && following.last_frame.is_some_and(fresh);
                heard.then_some(&following.leader)
            }
            Role::Leading(_) => self.followed.as_ref(),
        }
    }

    /// Whether the stream to exactly this process is open.
    pub(crate) fn keeps_stream_to(&self, member: &Member) -> bool {
        match &self.role {
            Role::Following(following) => {
                following.stream.is_some() && following.leader.member.identity() == member.identity()
            }
            Role::Starting | Role::Seeking(_) | Role::Leading(_) => false,
        }
    }

    /// This worker leads from now on: it heartbeats at once, and admits when those that the flood counted have joined.
    pub(crate) fn become_leader(&mut self, won: Announce, out: &mut Effects) {
        let leadership = won.leader.leadership.clone();
        self.drop_leader_stream(out);
        // Its own election may be under way still: the other one was faster.
        self.finish_campaign("another election was faster".to_owned(), out);
        self.elections.meet_term(leadership.term);
        self.ledger.enter(leadership.clone());
        self.followed = Some(Leader { leadership: leadership.clone(), member: self.me.clone() });
        let expected = usize::try_from(won.workers).unwrap_or(usize::MAX);
        let now = self.now.time;
        self.role = Role::Leading(Box::new(Leading {
            leadership: leadership.clone(),
            followers: Followers::default(),
            schedule: Schedule::default(),
            held: Number(0),
            admitted: 0,
            active: false,
            full_since: None,
            postponed: BTreeMap::new(),
            short: false,
            expected,
            active_by: now + limits::JOIN_WAIT,
            heartbeat_due: now,
            roster_due: now,
        }));
        out.notices.push(Notice::LeadershipBegan { leadership, workers: won.workers, election: won.election.clone() });
        self.end_retired_streams(out);
        self.recall_submissions(out);
        self.forward_announcement(&Announce { from: self.me.clone(), ..won }, out);
    }

    /// A new leader admits once the expected workers have joined it, or after a bounded wait; never before as many
    /// have as make it a quorum (section 2, FLOODLINE_MIN_MEMBERS).
    pub(crate) fn activate_if_ready(&mut self, out: &mut Effects) {
        let (now, quorum) = (self.now.time, self.quorum());
        let Role::Leading(leading) = &mut self.role else { return };
        if leading.active || !leading.may_begin(now, quorum) {
            return;
        }
        let joined = leading.followers.joined() + 1;
        leading.active = true;
        leading.heartbeat_due = now;
        let workers = u32::try_from(joined).unwrap_or(u32::MAX);
        out.notices.push(Notice::LeadershipActive(leading.leadership.clone(), workers));
        self.take_up_jobs(out);
    }

    /// Stays leader in a term above its own and `other`'s, if the other's is not below its own.
    pub(crate) fn move_up_above(&mut self, other: &Leadership, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        if other.term < leading.leadership.term || *other == leading.leadership {
            return;
        }
        let before = leading.leadership.clone();
        let above = Leadership { term: other.term.max(before.term).next(), ..before.clone() };
        leading.leadership = above.clone();
        self.elections.meet_term(above.term);
        self.ledger.enter(above.clone());
        let leader = Leader { leadership: above.clone(), member: self.me.clone() };
        self.followed = Some(leader.clone());
        out.notices.push(Notice::LeadershipMovedUp(before.clone(), above));
        self.rejoin_followers(&leader, out);
        let workers = self.reaches();
        let (purpose, from, replaces) = (super::message::Purpose::Flood, self.me.clone(), Some(before));
        let announce = Announce { purpose, from, leader, election: None, replaces, workers };
        self.forward_announcement(&announce, out);
        self.take_up_jobs(out);
    }

    /// Leads no longer. Its followers' streams stay open until it knows whom to name as the next leader.
    pub(crate) fn step_down(&mut self, why: &'static str, out: &mut Effects) {
        if !self.is_leading() {
            return;
        }
        let start_at = self.now.time + self.election_timeout();
        let seeking = Role::Seeking(Seeking { start_at, cause: "no leader was found" });
        let Role::Leading(leading) = std::mem::replace(&mut self.role, seeking) else { return };
        self.lost = Some(leading.leadership.clone());
        out.notices.push(Notice::LeadershipEnded(leading.leadership.clone(), why));
        let attempts = |open: &super::calls::Open| matches!(open.errand, Errand::Attempt(..));
        out.abandoned.extend(self.calls.give_up(attempts).into_iter().map(|(id, _)| id));
        self.retired.extend(leading.followers.streams());
        self.requeue_unheld(out);
    }

    /// Follows a leader: opens the stream to it, and joins on it.
    pub(crate) fn follow(&mut self, leader: Leader, out: &mut Effects) {
        self.step_down("it follows another leader", out);
        self.drop_leader_stream(out);
        self.finish_campaign("another leader was found".to_owned(), out);
        self.elections.meet_term(leader.leadership.term);
        out.notices.push(Notice::Following(leader.leadership.clone()));
        self.followed = Some(leader.clone());
        self.lost = None;
        self.role = Role::Following(Following {
            leader,
            stream: None,
            last_frame: None,
            silent_at: self.now.time + self.election_timeout(),
            reopened: 0,
            joined: false,
            held: Number(0),
            room: 0,
            admitted: 0,
        });
        self.open_leader_stream(out);
        self.end_retired_streams(out);
        self.recall_submissions(out);
    }

    fn open_leader_stream(&mut self, out: &mut Effects) {
        let Role::Following(following) = &mut self.role else { return };
        self.last_stream = self.last_stream.next();
        let stream = self.last_stream;
        following.stream = Some(stream);
        following.joined = false;
        out.streams.push(StreamEffect::Open { stream, to: following.leader.member.clone() });
        self.send_join(out);
    }

    /// States on the open stream where this replica stands; not while an admission of the time when this worker led
    /// is on its way to the journal, since a joining tells it (section 8). [`Worker::on_saved`] does it then.
    pub(crate) fn send_join(&mut self, out: &mut Effects) {
        let join = Up::Join {
            status: self.status_for(self.leader_now().map(|leader| &leader.member.node)),
            position: self.ledger.position().clone(),
            jobs: u64::try_from(self.ledger.count()).unwrap_or(u64::MAX),
        };
        let waits = self.saving.holds_admission();
        let Role::Following(Following { stream: Some(stream), joined, .. }) = &mut self.role else { return };
        *joined = false;
        if !waits {
            out.streams.push(StreamEffect::Up(*stream, join));
        }
    }

    fn drop_leader_stream(&mut self, out: &mut Effects) {
        if let Role::Following(Following { stream: Some(stream), .. }) = &self.role {
            out.streams.push(StreamEffect::CloseUp(*stream));
        }
    }

    /// Ends the streams of the followers that it had as leader, and names the next one to them.
    fn end_retired_streams(&mut self, out: &mut Effects) {
        let next = self.leader_now().cloned();
        for stream in std::mem::take(&mut self.retired) {
            out.streams.push(StreamEffect::Down(stream, Down::NotLeader(next.clone())));
            out.streams.push(StreamEffect::CloseDown(stream));
        }
    }

    /// A frame of the leader's, or a part of one: it lives.
    pub(crate) fn hear_leader(&mut self, stream: StreamId) -> bool {
        let (now, timeout) = (self.now.time, self.election_timeout());
        let Role::Following(following) = &mut self.role else { return false };
        if following.stream != Some(stream) {
            return false;
        }
        following.last_frame = Some(now);
        following.silent_at = now + timeout;
        following.reopened = 0;
        true
    }

    /// The stream to the leader broke: it is asked whether it lives.
    pub(crate) fn on_leader_ended(&mut self, stream: StreamId, out: &mut Effects) {
        let Role::Following(following) = &mut self.role else { return };
        if following.stream != Some(stream) {
            return;
        }
        following.stream = None;
        let (to, errand) =
            (Peer::from(&following.leader.member), Errand::LeaderLives(following.leader.leadership.clone()));
        let ping = Request::Ping(Some(self.status()));
        self.call(to, ping, limits::LEADER_PING, errand, out);
    }

    /// The leader answered that ping, or did not.
    pub(crate) fn on_leader_lives(
        &mut self,
        asked: &Leadership,
        result: Result<Status, CallFailure>,
        out: &mut Effects,
    ) {
        let Role::Following(following) = &mut self.role else { return };
        if following.leader.leadership != *asked || following.stream.is_some() {
            return;
        }
        let Ok(status) = result else {
            let spread = self.dice.span(Duration::ZERO, limits::START_SPREAD);
            self.lose_leader(spread, "the leader's stream broke and it does not answer", out);
            return;
        };
        match status.following {
            Some(leader) if leader.member.identity() == asked.identity() => {
                following.reopened += 1;
                if following.reopened > REOPENINGS {
                    self.lose_leader(Duration::ZERO, "the leader's stream breaks again and again", out);
                } else {
                    self.open_leader_stream(out);
                }
            }
            other => {
                let timeout = self.election_timeout();
                self.lose_leader(timeout, "the leader leads no longer", out);
                if let Some(leader) = other {
                    self.meet_leader(&leader, false, out);
                }
            }
        }
    }

    /// The followed node says that it is not (or no longer) the leader, and whom it follows.
    pub(crate) fn on_not_leader(&mut self, hint: Option<Leader>, out: &mut Effects) {
        let timeout = self.election_timeout();
        self.lose_leader(timeout, "the leader leads no longer", out);
        if let Some(leader) = hint {
            self.meet_leader(&leader, false, out);
        }
    }

    /// Follows nobody; an election begins after `pause` unless one reaches this worker first.
    pub(crate) fn lose_leader(&mut self, pause: Duration, cause: &'static str, out: &mut Effects) {
        self.drop_leader_stream(out);
        self.lost = self.leader_now().map(|leader| leader.leadership.clone());
        self.role = Role::Seeking(Seeking { start_at: self.now.time + pause, cause });
    }

    /// An election is under way: this worker's own waits a whole timeout more, in whatever role it has met it.
    pub(crate) fn put_off_own_election(&mut self) {
        let later = self.now.time + self.election_timeout();
        match &mut self.role {
            Role::Starting | Role::Seeking(_) => {
                self.role = Role::Seeking(Seeking { start_at: later, cause: "an election came to nothing" });
            }
            Role::Following(following) => following.silent_at = following.silent_at.max(later),
            Role::Leading(_) => {}
        }
    }

    /// What of a role is due by time.
    pub(crate) fn role_timer(&mut self, out: &mut Effects) {
        let now = self.now.time;
        if let Some(until) = self.asking_until {
            let asked = self.leases.are_settled() && !self.calls.any(|open| open.errand == Errand::Ask);
            self.asking_until = (!asked && now < until).then_some(until);
        }
        match &self.role {
            Role::Starting => {
                if self.asking_until.is_none() {
                    let start_at = now + self.dice.span(Duration::ZERO, limits::START_SPREAD);
                    self.role = Role::Seeking(Seeking { start_at, cause: "nobody that answered has a leader" });
                }
            }
            Role::Seeking(seeking) if seeking.start_at <= now => {
                let cause = seeking.cause;
                self.start_election(cause, out);
            }
            Role::Following(following) if following.silent_at <= now => {
                self.lose_leader(Duration::ZERO, "the leader is silent", out);
                self.start_election("the leader is silent", out);
            }
            Role::Seeking(_) | Role::Following(_) => {}
            Role::Leading(leading) if leading.heartbeat_due <= now => self.heartbeat(out),
            Role::Leading(_) => {}
        }
    }

    /// When a role's next timer is due.
    pub(crate) fn role_deadline(&self) -> Option<Time> {
        match &self.role {
            Role::Starting => self.asking_until,
            Role::Seeking(seeking) => {
                let may_start = self.elections.campaign.is_none() && self.may_elect();
                may_start.then_some(seeking.start_at)
            }
            Role::Following(following) => Some(following.silent_at),
            Role::Leading(leading) if leading.active => Some(leading.heartbeat_due),
            // One that is complete since the middle of a step need not wait for anybody.
            Role::Leading(leading) if leading.may_begin(self.now.time, self.quorum()) => Some(self.now.time),
            // One that lacks workers still is woken by the next that joins.
            Role::Leading(leading) if leading.active_by <= self.now.time => Some(leading.heartbeat_due),
            Role::Leading(leading) => Some(leading.heartbeat_due.min(leading.active_by)),
        }
    }

    /// A follower's randomised timeout.
    pub(crate) fn election_timeout(&mut self) -> Duration {
        self.dice.span(self.settings.election_timeout_min, self.settings.election_timeout_max)
    }
}
