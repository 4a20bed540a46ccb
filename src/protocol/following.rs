//! The follower's side of Replicate: it uploads what the leader lacks and takes over what the leader sends.
//!
//! Every frame is acknowledged at once, with the number journalled so far: a slow disk delays the number, never
//! the acknowledgement (section 3). Records and position are stored in one write.

use super::Worker;
use super::effects::{Effects, Ending, StreamEffect};
use super::ids::StreamId;
use super::leadership::Role;
use super::ledger::RecordName;
use super::message::{Batch, Down, Heartbeat, Leader, Up};

impl Worker {
    /// A part of a large frame: a sign of life that is acknowledged like any.
    pub(crate) fn on_leader_stirred(&mut self, stream: StreamId, out: &mut Effects) {
        if self.hear_leader(stream) {
            self.acknowledge(out);
        }
    }

    /// A frame of the leader's.
    pub(crate) fn on_leader_sent(&mut self, stream: StreamId, frame: Down, out: &mut Effects) {
        if !self.hear_leader(stream) {
            return;
        }
        match frame {
            Down::NotLeader(hint) => {
                self.on_not_leader(hint, out);
                return;
            }
            Down::Superseded(by) if by > self.me.incarnation => {
                out.ended = Some(Ending::Superseded(by));
                return;
            }
            Down::Superseded(_) => {}
            Down::Rejoin(leader) => self.on_rejoin(leader, out),
            Down::WantRecords(above) => {
                let records = self.ledger.changed_since(above);
                out.streams.push(StreamEffect::Up(stream, Up::Upload(records)));
            }
            Down::WantHashes => out.streams.push(StreamEffect::Up(stream, Up::Hashes(self.ledger.hashes()))),
            Down::WantJobs(keys) => {
                let mut records = self.ledger.records_of(&keys);
                records.extend(self.ledger.record(&RecordName::Floors));
                out.streams.push(StreamEffect::Up(stream, Up::Upload(records)));
            }
            Down::Batch(batch) => self.on_batch(batch, out),
            Down::Heartbeat(heartbeat) => self.on_heartbeat(&heartbeat, out),
            Down::Roster(statuses) => {
                for status in &statuses {
                    self.members.hear_of(status);
                }
            }
        }
        self.acknowledge(out);
    }

    /// The leader moved up: the same process in a higher term.
    fn on_rejoin(&mut self, leader: Leader, out: &mut Effects) {
        let Role::Following(following) = &mut self.role else { return };
        let same = following.leader.member.identity() == leader.member.identity();
        if !same || leader.leadership < following.leader.leadership || self.is_malformed(&leader) {
            return;
        }
        let Role::Following(following) = &mut self.role else { return };
        following.leader = leader.clone();
        self.elections.meet_term(leader.leadership.term);
        self.followed = Some(leader);
        self.send_join(out);
    }

    /// Changes, whole.
    fn on_batch(&mut self, batch: Batch, out: &mut Effects) {
        let Role::Following(following) = &mut self.role else { return };
        // Older frames of a leader that has moved up since, and changes to what it has not joined yet, are not its.
        if batch.leadership != following.leader.leadership || (batch.past.is_none() && !following.joined) {
            return;
        }
        let joins = batch.past.is_some();
        following.joined = true;
        following.held = following.held.max(batch.held);
        let held = following.held;
        let changed = self.ledger.take_over(&batch.leadership, batch.records, batch.number, batch.past);
        if joins {
            following.held = batch.held;
            self.saving.begin_axis();
            self.asking_until = None;
            self.recall_jac(batch.remembers.max(self.ledger.jac_of(&self.me.node)));
        }
        for job in &changed {
            if !self.ledger.is_unfinished(job) {
                self.cancel_computations_of(job, out);
            }
        }
        out.moved.extend(changed);
        self.tell_outcomes(held, out);
    }

    fn on_heartbeat(&mut self, heartbeat: &Heartbeat, out: &mut Effects) {
        let Role::Following(following) = &mut self.role else { return };
        if heartbeat.leadership != following.leader.leadership {
            return;
        }
        following.room = heartbeat.room;
        following.admitted = heartbeat.admitted;
        if following.joined {
            following.held = following.held.max(heartbeat.held);
            let held = following.held;
            self.tell_outcomes(held, out);
        }
    }

    /// Tells the leader how much is journalled here; nothing while joining.
    pub(crate) fn acknowledge(&mut self, out: &mut Effects) {
        let number = self.acknowledged();
        let (jac, running, links) = (self.saving.jac(), self.running(), self.overlay.nodes());
        if let Role::Following(following) = &self.role
            && let Some(stream) = following.stream
        {
            out.streams.push(StreamEffect::Up(stream, Up::Ack { number, jac, running, links }));
        }
    }
}
