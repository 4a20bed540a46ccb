//! Announcements: the winner hears of it first, then both it and the initiator flood the COORDINATOR message.
//!
//! An announcement is handled once: what is not newer than the leadership followed is a duplicate or a worse one,
//! so the fence itself is the memory.

use crate::protocol::Worker;
use crate::protocol::calls::Errand;
use crate::protocol::effects::Effects;
use crate::protocol::ids::{Leadership, Member, ReplyToken};
use crate::protocol::leadership::Role;
use crate::protocol::limits;
use crate::protocol::message::{Announce, AnnounceAnswer, Code, Leader, Peer, Purpose, Refusal, Request, Response};

impl Worker {
    /// Announce, to whatever end.
    pub(crate) fn on_announce(&mut self, token: ReplyToken, announce: &Announce, out: &mut Effects) {
        let term = announce.leader.leadership.term;
        if self.is_malformed(&announce.leader) {
            let text = format!("term {term} is no possible term, or its leader is not who it says");
            out.replies.push((token, Err(Refusal::new(Code::InvalidArgument, text))));
            return;
        }
        self.meet_member(&announce.from, out);
        let accepted = match announce.purpose {
            Purpose::Won => self.take_win(announce, out),
            Purpose::Flood => self.take_announcement(announce, out),
            Purpose::Met => {
                self.on_met(announce, out);
                false
            }
            Purpose::Settle => self.on_settle(announce, out),
        };
        let answer = AnnounceAnswer { accepted, following: self.leader_now().cloned(), reaches: self.reaches() };
        out.replies.push((token, Ok(Response::Announce(answer))));
    }

    /// Whether a leadership can't be right: a term too far up, or a leader that is somebody else.
    pub(crate) fn is_malformed(&self, leader: &Leader) -> bool {
        let Leader { leadership, member } = leader;
        self.elections.is_impossible(leadership.term) || leadership.identity() != member.identity()
    }

    /// This worker is told that it won.
    fn take_win(&mut self, announce: &Announce, out: &mut Effects) -> bool {
        let won = &announce.leader.leadership;
        if let Role::Leading(leading) = &self.role {
            return leading.leadership == *won;
        }
        // A JAC that has changed since the flood is another candidacy; nobody but its owner states one.
        let mine = won.identity() == self.me.identity() && won.jac == self.jac;
        let newer = self.followed.as_ref().is_none_or(|leader| *won > leader.leadership);
        if !mine || !newer || self.stopping.is_some() || !self.is_free_for(announce) {
            return false;
        }
        self.become_leader(announce.clone(), out);
        true
    }

    /// A hop of the COORDINATOR flood. Says whether it was taken.
    pub(crate) fn take_announcement(&mut self, announce: &Announce, out: &mut Effects) -> bool {
        let leader = &announce.leader;
        let newer = self.followed.as_ref().is_none_or(|old| leader.leadership > old.leadership);
        if leader.member.node == self.me.node {
            return false;
        }
        if self.is_leading() || !newer {
            self.meet_leader(leader, false, out);
            return false;
        }
        if self.keeps_stream_to(&leader.member) {
            // The leader moved up; it says so itself on the stream that it keeps. Others may need the news, once: the
            // fence does not rise before the leader's own word, so it can't be the memory here.
            let passed_on = self.elections.passed_on.as_ref().is_some_and(|last| leader.leadership <= *last);
            if !passed_on {
                self.elections.passed_on = Some(leader.leadership.clone());
                self.forward_announcement(announce, out);
            }
            return !passed_on;
        }
        if !self.is_free_for(announce) {
            self.meet_leader(leader, false, out);
            return false;
        }
        if announce.election.as_ref().is_some_and(|election| self.campaigns_in(election)) {
            // The winner's own flood came before its answer.
            self.finish_campaign(format!("{} wins", leader.member.node), out);
        }
        self.follow(leader.clone(), out);
        self.forward_announcement(announce, out);
        true
    }

    /// Whether nothing binds this worker to another leader (section 6, 4): it hears none, took part in that
    /// election, or follows the leadership being replaced.
    ///
    /// That one is replaced by its own leader's word only. Who merely lost it names it, too, and others may hear it:
    /// they have refused and stay, or one cut link would depose the leader of all.
    fn is_free_for(&self, announce: &Announce) -> bool {
        let took_part = announce.election.as_ref().is_some_and(|id| self.elections.memory.took_part(id));
        let begun_by = announce.election.as_ref().map(|id| &id.initiator);
        let gives_way = |old: &&Leadership| begun_by == Some(&old.leader) || announce.leader.member.node == old.leader;
        let replaced = announce.replaces.as_ref().filter(gives_way);
        let following = self.leader_now().map(|leader| &leader.leadership);
        self.living_leader().is_none() || took_part || (following.is_some() && following == replaced)
    }

    /// Floods an announcement on: to every neighbour but the one that it came from and the leader itself.
    pub(crate) fn forward_announcement(&mut self, announce: &Announce, out: &mut Effects) {
        let skip = |to: &Member| to.node == announce.from.node || to.node == announce.leader.member.node;
        let mut targets = self.overlay.members();
        if targets.is_empty() && announce.from.node == self.me.node {
            targets = self.members.alive(self.now.time);
        }
        let hop = Announce { purpose: Purpose::Flood, from: self.me.clone(), ..announce.clone() };
        for member in targets.iter().filter(|member| !skip(member)) {
            self.call(Peer::from(member), Request::Announce(hop.clone()), limits::ANNOUNCE, Errand::Tell, out);
        }
    }
}
