//! The leader's side of Replicate: followers join by position, then get what changes (section 8).
//!
//! Owns each follower's phase and how far it has come, what is live and what is held (section 1). An admission
//! is journalled here before it is sent: while one is not, nothing new is sent, since positions name content.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Worker;
use super::effects::{Effects, Ending, StreamEffect};
use super::ids::{Incarnation, JobKey, Leadership, Member, NodeId, Number, Position, StreamId};
use super::leadership::{Leading, Role};
use super::ledger::{Ledger, Merged, Record, RecordName, Stamped};
use super::limits;
use super::message::{Batch, Down, Heartbeat, Leader, Status, Up};
use super::notice::Notice;
use super::time::Time;

/// How far a follower's joining is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// It has not said where it stands.
    Opened,
    /// It sends its records after a number that both share; what changed since `since` goes back.
    Uploading { above: Number, since: Number },
    /// It sends a hash per job.
    Hashing,
    /// It sends the jobs that differ; these go back, and what changed here since they were compared.
    Differing(Vec<JobKey>, Number),
    /// All is here; what changed since goes out with the next batch.
    Since(Number),
    /// All is here; these jobs go out with the next batch, and what changed since they were compared.
    Jobs(Vec<JobKey>, Number),
    /// Equal up to what it has acknowledged; changes follow.
    Joined,
}

/// One follower.
#[derive(Clone, Debug)]
struct Follower {
    status: Option<Status>,
    phase: Phase,
    sent: Number,
    /// Journalled there, in this leadership's numbers.
    acknowledged: Number,
    heard: Time,
    in_flight: usize,
}

/// All followers, by stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Followers {
    streams: BTreeMap<StreamId, Follower>,
}

impl Followers {
    pub(crate) fn streams(&self) -> Vec<StreamId> {
        self.streams.keys().copied().collect()
    }

    /// How many have said where they stand, those included that join again since their leader moved up.
    fn reached(&self) -> usize {
        self.streams.values().filter(|follower| follower.status.is_some()).count()
    }

    /// How many have joined.
    pub(crate) fn joined(&self) -> usize {
        self.streams.values().filter(|follower| follower.phase == Phase::Joined).count()
    }

    /// Those that have joined: they get tasks.
    pub(crate) fn workers(&self) -> Vec<Member> {
        let joined = self.streams.values().filter(|follower| follower.phase == Phase::Joined);
        joined.filter_map(|follower| follower.status.as_ref().map(|status| status.member.clone())).collect()
    }

    pub(crate) fn has_node(&self, node: &NodeId) -> bool {
        self.streams.values().any(|follower| follower.node() == Some(node))
    }

    /// Those that are live: their stream is open, and they were heard since `since` (section 1).
    fn live(&self, since: Time) -> impl Iterator<Item = &Follower> {
        self.streams.values().filter(move |follower| follower.heard > since)
    }

    /// How many are live and have joined.
    pub(crate) fn live_joined(&self, since: Time) -> usize {
        self.live(since).filter(|follower| follower.phase == Phase::Joined).count()
    }

    /// Up to which number the ledger is held: by the leader and a majority of the live, or by all when they are
    /// fewer than three, and by `min_members` at least (section 1).
    pub(crate) fn held(&self, journalled: Number, since: Time, min_members: usize) -> Number {
        let live: Vec<&Follower> = self.live(since).collect();
        let count = live.len() + 1;
        let needed = if count < 3 { count } else { count / 2 + 1 }.max(min_members);
        let number =
            |follower: &Follower| if follower.phase == Phase::Joined { follower.acknowledged } else { Number(0) };
        let mut numbers: Vec<Number> = live.into_iter().map(number).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        // The leader is one of those needed.
        match needed.checked_sub(2) {
            None => journalled,
            Some(last) => numbers.get(last).map_or(Number(0), |held| journalled.min(*held)),
        }
    }

    fn statuses(&self) -> Vec<Status> {
        self.streams.values().filter_map(|follower| follower.status.clone()).collect()
    }
}

impl Follower {
    /// From which number on the next batch tells what changed.
    fn compared(&self) -> Option<Number> {
        match &self.phase {
            Phase::Opened | Phase::Uploading { .. } | Phase::Hashing | Phase::Differing(..) => None,
            Phase::Since(number) | Phase::Jobs(_, number) => Some(*number),
            Phase::Joined => Some(self.sent),
        }
    }

    fn node(&self) -> Option<&NodeId> {
        self.status.as_ref().map(|status| &status.member.node)
    }
}

/// The batch that a follower is due, if any.
fn batch_for(follower: &Follower, ledger: &Ledger, leadership: &Leadership, held: Number) -> Option<Batch> {
    let (records, joins): (Vec<Stamped>, bool) = match &follower.phase {
        Phase::Opened | Phase::Uploading { .. } | Phase::Hashing | Phase::Differing(..) => return None,
        Phase::Since(number) => (ledger.changed_since(*number), true),
        Phase::Jobs(keys, compared) => {
            let whole: BTreeSet<&JobKey> = keys.iter().collect();
            let changed = ledger.changed_since(*compared).into_iter();
            let others = changed.filter(|stamped| stamped.record.job().is_some_and(|job| !whole.contains(job)));
            let floors = ledger.record(&RecordName::Floors);
            (ledger.records_of(keys).into_iter().chain(others).chain(floors).collect(), true)
        }
        Phase::Joined if follower.sent >= ledger.number() => return None,
        Phase::Joined if follower.in_flight >= limits::BATCHES_IN_FLIGHT => return None,
        Phase::Joined => (ledger.changed_since(follower.sent), false),
    };
    let past = joins.then(|| ledger.past().clone());
    let remembers = follower.node().filter(|_| joins).map(|node| ledger.jac_of(node)).unwrap_or_default();
    Some(Batch { leadership: leadership.clone(), records, number: ledger.number(), past, held, remembers })
}

/// Whether a replica with these records has dropped jobs that changed after `number`.
fn dropped_after(records: &[Stamped], number: Number) -> bool {
    records.iter().any(|stamped| matches!(&stamped.record, Record::Floors(floors) if floors.gone > number))
}

impl Worker {
    /// How many workers this leader reaches, itself included; 0 if it leads not.
    pub(crate) fn reaches(&self) -> u32 {
        match &self.role {
            Role::Leading(leading) => u32::try_from(leading.followers.reached()).unwrap_or(u32::MAX).saturating_add(1),
            Role::Starting | Role::Seeking(_) | Role::Following(_) => 0,
        }
    }

    /// Somebody opens a Replicate stream to this worker.
    pub(crate) fn on_follower_opened(&mut self, stream: StreamId, out: &mut Effects) {
        let heard = self.now.time;
        if let Role::Leading(leading) = &mut self.role
            && leading.followers.streams.len() < limits::FOLLOWERS
        {
            let (sent, acknowledged) = (Number(0), Number(0));
            let follower = Follower { status: None, phase: Phase::Opened, sent, acknowledged, heard, in_flight: 0 };
            leading.followers.streams.insert(stream, follower);
            return;
        }
        out.streams.push(StreamEffect::Down(stream, Down::NotLeader(self.leader_now().cloned())));
        out.streams.push(StreamEffect::CloseDown(stream));
    }

    /// A follower's stream ended.
    pub(crate) fn on_follower_ended(&mut self, stream: StreamId, out: &mut Effects) {
        self.retired.remove(&stream);
        self.drop_follower(stream, "its stream ended", out);
    }

    /// A follower's frame.
    pub(crate) fn on_follower_sent(&mut self, stream: StreamId, frame: Up, out: &mut Effects) {
        let now = self.now.time;
        let Role::Leading(leading) = &mut self.role else { return };
        let Some(follower) = leading.followers.streams.get_mut(&stream) else { return };
        follower.heard = now;
        match frame {
            Up::Join { status, position, jobs: _ } => self.on_join(stream, status, &position, out),
            Up::Hashes(hashes) => self.on_hashes(stream, hashes, out),
            Up::Upload(records) => self.on_upload(stream, records, out),
            Up::Ack { number, jac, running, links } => {
                follower.in_flight = follower.in_flight.saturating_sub(1);
                if let (Some(number), Phase::Joined) = (number, &follower.phase) {
                    follower.acknowledged = follower.acknowledged.max(number.min(follower.sent));
                }
                if let Some(status) = &mut follower.status {
                    (status.jac, status.running, status.links) = (jac, running, links);
                }
            }
        }
    }

    /// A follower says where its replica stands.
    fn on_join(&mut self, stream: StreamId, status: Status, position: &Position, out: &mut Effects) {
        let member = status.member.clone();
        let follows = status.following.as_ref().map(|leader| leader.leadership.clone());
        if position.leadership.as_ref().is_some_and(|theirs| self.elections.is_impossible(theirs.term)) {
            out.streams.push(StreamEffect::CloseDown(stream));
            self.drop_follower(stream, "its position is malformed", out);
            return;
        }
        if member.node == self.me.node && member.incarnation > self.me.incarnation {
            out.ended = Some(Ending::Superseded(member.incarnation));
            return;
        }
        if let Some(by) = self.live_owner_above(&member) {
            out.streams.push(StreamEffect::Down(stream, Down::Superseded(by)));
            out.streams.push(StreamEffect::CloseDown(stream));
            self.drop_follower(stream, "another process owns its node id", out);
            return;
        }
        self.members.hear(self.now.time, &status);
        self.recall_jac(status.remembers);
        self.end_older_streams(stream, &member, out);
        let Role::Leading(leading) = &mut self.role else { return };
        let mine = leading.leadership.clone();
        let Some(follower) = leading.followers.streams.get_mut(&stream) else { return };
        follower.status = Some(status);
        let present = Leader { leadership: mine.clone(), member: self.me.clone() };
        if follows.as_ref().map(Leadership::identity) != Some(mine.identity()) {
            // It follows this process's predecessor, at whose address it found this one: it would take no frame.
            out.streams.push(StreamEffect::Down(stream, Down::NotLeader(Some(present))));
            out.streams.push(StreamEffect::CloseDown(stream));
            self.drop_follower(stream, "it follows another process", out);
            return;
        }
        if let Some(theirs) = position.leadership.as_ref().filter(|theirs| theirs.term >= mine.term && **theirs != mine)
        {
            // It followed a leadership that is not below this one's term: this one moves up, all join again.
            follower.phase = Phase::Opened;
            self.move_up_above(&theirs.clone(), out);
            return;
        }
        if follows.as_ref() != Some(&mine) {
            // This leader has moved up while the stream was on its way: the follower would take no frame of the new
            // leadership for its leader's.
            follower.phase = Phase::Opened;
            out.streams.push(StreamEffect::Down(stream, Down::Rejoin(present)));
            return;
        }
        // Below that number changes alone do not tell it everything.
        let tells = |number: &Number| *number >= self.ledger.gone();
        let shared = self.ledger.shared_with(position.leadership.as_ref());
        let (phase, ask) = match shared.filter(|shared| tells(shared.min(&position.number))) {
            Some(shared) if position.number > shared => {
                (Phase::Uploading { above: shared, since: shared }, Some(Down::WantRecords(shared)))
            }
            Some(_) => (Phase::Since(position.number), None),
            None => (Phase::Hashing, Some(Down::WantHashes)),
        };
        follower.phase = phase;
        out.streams.extend(ask.map(|frame| StreamEffect::Down(stream, frame)));
    }

    /// The incarnation of a live process with the same node id and a higher incarnation, if there is one.
    fn live_owner_above(&self, member: &Member) -> Option<Incarnation> {
        if member.node == self.me.node {
            return (self.me.incarnation > member.incarnation).then_some(self.me.incarnation);
        }
        let Role::Leading(leading) = &self.role else { return None };
        let streams = leading.followers.streams.values().filter_map(|other| other.status.as_ref());
        let joined = streams.filter(|other| other.member.node == member.node).map(|other| other.member.incarnation);
        let known = self.members.living(self.now.time, &member.node);
        joined.chain(known).max().filter(|by| *by > member.incarnation)
    }

    /// One process has one stream, and a newer incarnation takes its predecessor's place at once.
    fn end_older_streams(&mut self, stream: StreamId, member: &Member, out: &mut Effects) {
        let Role::Leading(leading) = &self.role else { return };
        let others =
            leading.followers.streams.iter().filter(|(id, other)| **id != stream && other.node() == Some(&member.node));
        let older: Vec<StreamId> = others.map(|(id, _)| *id).collect();
        for id in older {
            out.streams.push(StreamEffect::CloseDown(id));
            self.drop_follower(id, "it opened another stream", out);
        }
    }

    /// A follower whose past is foreign sent a hash per job.
    fn on_hashes(&mut self, stream: StreamId, theirs: Vec<(JobKey, u64)>, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        let Some(follower) = leading.followers.streams.get_mut(&stream) else { return };
        if follower.phase != Phase::Hashing {
            return;
        }
        let ours: BTreeMap<JobKey, u64> = self.ledger.hashes().into_iter().collect();
        let theirs: BTreeMap<JobKey, u64> = theirs.into_iter().collect();
        let wanted: Vec<JobKey> =
            theirs.iter().filter(|(key, hash)| ours.get(*key) != Some(*hash)).map(|(key, _)| key.clone()).collect();
        let lacking = ours.keys().filter(|key| !theirs.contains_key(*key)).cloned();
        let back: Vec<JobKey> = wanted.iter().cloned().chain(lacking).collect();
        // Also where no job differs: its floors may.
        follower.phase = Phase::Differing(back, self.ledger.number());
        out.streams.push(StreamEffect::Down(stream, Down::WantJobs(wanted)));
    }

    /// A follower brought what this replica may lack.
    fn on_upload(&mut self, stream: StreamId, records: Vec<Stamped>, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        let Some(follower) = leading.followers.streams.get_mut(&stream) else { return };
        let (above, phase) = match &follower.phase {
            // It dropped jobs whose end this replica has not seen: what it lacks no change tells.
            Phase::Uploading { above, .. } if dropped_after(&records, *above) => (Some(*above), Phase::Hashing),
            Phase::Uploading { above, since } => (Some(*above), Phase::Since(*since)),
            Phase::Differing(keys, compared) => (None, Phase::Jobs(keys.clone(), *compared)),
            Phase::Opened | Phase::Hashing | Phase::Since(_) | Phase::Jobs(..) | Phase::Joined => return,
        };
        if phase == Phase::Hashing {
            out.streams.push(StreamEffect::Down(stream, Down::WantHashes));
        }
        follower.phase = phase;
        let merged = self.ledger.merge(records, above);
        self.recall_jac(self.ledger.jac_of(&self.me.node));
        self.after_merge(merged, out);
    }

    fn after_merge(&mut self, merged: Merged, out: &mut Effects) {
        out.notices.extend(merged.differ.into_iter().map(Notice::ValuesDiffer));
        for job in merged.jobs {
            self.go_on_with(&job, out);
            out.moved.insert(job);
        }
        self.after_drop(merged.gone, out);
    }

    /// The leader moved up: everyone joins again, on the stream that is open.
    pub(crate) fn rejoin_followers(&mut self, leader: &Leader, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        for (stream, follower) in &mut leading.followers.streams {
            follower.phase = Phase::Opened;
            follower.acknowledged = Number(0);
            out.streams.push(StreamEffect::Down(*stream, Down::Rejoin(leader.clone())));
        }
    }

    /// Sends every follower what it is due.
    pub(crate) fn replicate(&mut self, out: &mut Effects) {
        if self.saving.holds_admission() {
            return;
        }
        let Role::Leading(leading) = &mut self.role else { return };
        let present = Leader { leadership: leading.leadership.clone(), member: self.me.clone() };
        for (stream, follower) in &mut leading.followers.streams {
            if follower.compared().is_some_and(|number| number < self.ledger.gone()) {
                // It lags behind what is still told of jobs that are gone.
                follower.phase = Phase::Opened;
                follower.acknowledged = Number(0);
                out.streams.push(StreamEffect::Down(*stream, Down::Rejoin(present.clone())));
                continue;
            }
            let Some(batch) = batch_for(follower, &self.ledger, &leading.leadership, leading.held) else { continue };
            follower.sent = batch.number;
            follower.in_flight = follower.in_flight.saturating_add(1);
            if batch.past.is_some() {
                let how = if matches!(follower.phase, Phase::Since(_)) { "position" } else { "comparing jobs" };
                out.notices.extend(follower.node().cloned().map(|node| Notice::FollowerJoined(node, how)));
                follower.phase = Phase::Joined;
                follower.acknowledged = Number(0);
            }
            out.streams.push(StreamEffect::Down(*stream, Down::Batch(batch)));
        }
    }

    /// Heartbeats to all followers; drops those that are silent.
    pub(crate) fn heartbeat(&mut self, out: &mut Effects) {
        let (now, silent) = (self.now.time, self.settings.election_timeout_max);
        let room = self.room();
        let roster = self.roster();
        let Role::Leading(leading) = &mut self.role else { return };
        leading.heartbeat_due = now + self.settings.heartbeat_interval;
        let tell_roster = leading.roster_due <= now;
        if tell_roster {
            leading.roster_due = now + limits::ROSTER;
        }
        let heartbeat =
            Heartbeat { leadership: leading.leadership.clone(), held: leading.held, room, admitted: leading.admitted };
        let mut lost = Vec::new();
        for (stream, follower) in &leading.followers.streams {
            if now.since(follower.heard) >= silent {
                lost.push(*stream);
                continue;
            }
            out.streams.push(StreamEffect::Down(*stream, Down::Heartbeat(heartbeat.clone())));
            if tell_roster {
                out.streams.push(StreamEffect::Down(*stream, Down::Roster(roster.clone())));
            }
        }
        for stream in lost {
            out.streams.push(StreamEffect::CloseDown(stream));
            self.drop_follower(stream, "it is silent", out);
        }
        self.copy_slow_tasks(out);
    }

    fn roster(&self) -> Vec<Status> {
        match &self.role {
            Role::Leading(leading) => leading.followers.statuses().into_iter().chain([self.status()]).collect(),
            Role::Starting | Role::Seeking(_) | Role::Following(_) => Vec::new(),
        }
    }

    /// The one path for "worker lost": no longer live, whoever noticed (section 7).
    fn drop_follower(&mut self, stream: StreamId, why: &'static str, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        let Some(follower) = leading.followers.streams.remove(&stream) else { return };
        let Some(status) = follower.status else { return };
        let node = status.member.node;
        if !leading.followers.has_node(&node) {
            out.notices.push(Notice::FollowerLost(node.clone(), why));
            self.worker_lost(&node, out);
        }
    }

    /// Jobs of which nothing is kept any more: who watches them learns so.
    fn after_drop(&mut self, gone: BTreeSet<JobKey>, out: &mut Effects) {
        out.moved.extend(gone);
    }

    /// A leader keeps no more of ended jobs than people want kept (section 8).
    pub(crate) fn retain(&mut self, out: &mut Effects) {
        if matches!(&self.role, Role::Leading(leading) if leading.active) {
            let gone = self.ledger.retain(self.settings.keep);
            self.after_drop(gone, out);
        }
    }
}

#[cfg(test)]
impl Worker {
    /// As if a follower had acknowledged nothing for long.
    pub(crate) fn fill_outbox(&mut self, stream: StreamId) {
        let Role::Leading(leading) = &mut self.role else { return };
        if let Some(follower) = leading.followers.streams.get_mut(&stream) {
            follower.in_flight = limits::BATCHES_IN_FLIGHT;
        }
    }
}

impl Leading {
    /// How long a leader's own loop may stand still before its leadership ends (section 6, 1).
    pub(crate) fn may_pause(settings: &limits::Settings) -> Duration {
        settings.election_timeout_min
    }
}
