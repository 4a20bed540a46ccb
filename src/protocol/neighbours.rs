//! Pings, links and members: how workers find each other and notice that somebody is gone (sections 4 and 5).
//!
//! Whoever is heard says which leadership it follows, so two parts of a split cluster meet by any ping.

use std::time::Duration;

use super::Worker;
use super::calls::Errand;
use super::effects::{Effects, Ending};
use super::ids::{Address, Identity, Jac, Member, NodeId, ReplyToken};
use super::leadership::Role;
use super::leases::Due;
use super::limits;
use super::message::{
    CallFailure, DirectoryAnswer, DirectoryId, DirectoryRequest, MembershipEvent, Peer, Request, Response, Status,
};
use super::notice::Notice;
use super::time::Time;

/// Members that a starting worker asks for a leader.
const ASKED_AT_START: usize = 8;
/// Lost members tried in one round.
const LOST_AT_ONCE: usize = 16;
/// Between two looks for missing links.
const UPKEEP: Duration = Duration::from_millis(100);
/// After a member did not answer.
const LEAVE_ALONE: Duration = Duration::from_secs(1);

/// An address of FLOODLINE_PEERS.
#[derive(Clone, Debug)]
pub(crate) struct StaticPeer {
    address: Address,
    node: Option<NodeId>,
    due: Time,
    ignored: bool,
}

impl StaticPeer {
    pub(crate) fn new(address: Address) -> StaticPeer {
        StaticPeer { address, node: None, due: Time::ZERO, ignored: false }
    }
}

impl Worker {
    /// What this worker says of itself to everybody.
    pub(crate) fn status(&self) -> Status {
        Status {
            remembers: Jac(0),
            member: self.me.clone(),
            following: self.leader_now().cloned(),
            jac: self.saving.jac(),
            links: self.overlay.nodes(),
            running: self.running(),
        }
    }

    /// What this worker says to one node: with what it remembers of that one's JAC.
    pub(crate) fn status_for(&self, node: Option<&NodeId>) -> Status {
        Status { remembers: node.map(|node| self.ledger.jac_of(node)).unwrap_or_default(), ..self.status() }
    }

    /// Others remember this worker's JAC, of which it may have lost its own record: the higher counts (section 6).
    pub(crate) fn recall_jac(&mut self, remembered: Jac) {
        let possible = remembered.0 <= self.jac.0.saturating_add(limits::LEAP);
        if possible && remembered > self.jac {
            self.jac = remembered;
            self.saving.demand();
        }
    }

    /// Takes in where a member is.
    pub(crate) fn meet_member(&mut self, member: &Member, out: &mut Effects) {
        if self.members.learn(member) {
            out.notices.push(Notice::MemberJoined(member.identity()));
        }
    }

    /// Takes in what a member says of itself.
    pub(crate) fn hear_status(&mut self, status: &Status, out: &mut Effects) {
        if status.member.node == self.me.node {
            return;
        }
        self.recall_jac(status.remembers);
        if self.members.hear(self.now.time, status) {
            out.notices.push(Notice::MemberJoined(status.member.identity()));
        }
        if let Some(leader) = &status.following {
            let direct = leader.member == status.member;
            let was_free = self.leader_now().is_none();
            self.meet_leader(leader, direct, out);
            let bridges = was_free && self.leader_now().is_some() && !self.overlay.has(&status.member.node);
            if bridges && !matches!(self.role, Role::Leading(_)) {
                // The overlay did not carry this leader's announcement here: it lacks a link.
                self.ask_for_link(&status.member.clone(), out);
            }
        }
    }

    /// Ping.
    pub(crate) fn on_ping(&mut self, token: ReplyToken, status: Option<&Status>, out: &mut Effects) {
        if let Some(status) = status {
            self.hear_status(status, out);
        }
        let caller = status.map(|status| &status.member.node);
        out.replies.push((token, Ok(Response::Ping(self.status_for(caller)))));
    }

    /// Somebody links up.
    pub(crate) fn on_add_neighbor(&mut self, token: ReplyToken, status: &Status, out: &mut Effects) {
        self.hear_status(status, out);
        let accepted =
            self.stopping.is_none() && status.member.node != self.me.node && self.link_up(&status.member, out);
        out.replies
            .push((token, Ok(Response::AddNeighbor { accepted, status: self.status_for(Some(&status.member.node)) })));
    }

    /// Somebody takes down its link.
    pub(crate) fn on_remove_neighbor(&mut self, token: ReplyToken, who: &Identity, out: &mut Effects) {
        if self.overlay.unlink(who) {
            out.notices.push(Notice::LinkDown(who.node.clone(), "the neighbour took it down"));
            self.members.avoid(&who.node, self.now.time + LEAVE_ALONE);
        }
        out.replies.push((token, Ok(Response::Done)));
    }

    fn link_up(&mut self, member: &Member, out: &mut Effects) -> bool {
        let new = !self.overlay.has(&member.node);
        let up = self.overlay.link(self.now.time, member);
        if up && new {
            out.notices.push(Notice::LinkUp(member.node.clone()));
        }
        up
    }

    fn ask_for_link(&mut self, member: &Member, out: &mut Effects) {
        if self.overlay.may_ask(&member.node) {
            self.call_for_link(member, out);
        }
    }

    /// Asks for the other end of a link, unless that is under way.
    fn call_for_link(&mut self, member: &Member, out: &mut Effects) {
        if self.overlay.ask(&member.node) {
            let request = Request::AddNeighbor(self.status_for(Some(&member.node)));
            self.call(Peer::from(member), request, limits::LINK_CALL, Errand::Link, out);
        }
    }

    /// A ping or a request to link came to something.
    pub(crate) fn on_status_answered(
        &mut self,
        errand: &Errand,
        to: &Peer,
        result: Result<(bool, Status), CallFailure>,
        out: &mut Effects,
    ) {
        if let Some(node) = to.node.as_ref().filter(|_| *errand == Errand::Link) {
            // Whatever the answer, and whoever gave it: it may be asked again.
            self.overlay.asked_no_more(node);
        }
        let Ok((accepted, status)) = result else {
            if let Some(node) = &to.node {
                self.members.avoid(node, self.now.time + LEAVE_ALONE);
            }
            return;
        };
        if to.node.is_none() {
            self.identify_peer(&to.address, &status.member, out);
        }
        self.hear_status(&status, out);
        let node = status.member.node.clone();
        if *errand == Errand::Link {
            if accepted {
                self.link_up(&status.member, out);
                return;
            }
            if self.overlay.unlink(&status.member.identity()) {
                out.notices.push(Notice::LinkDown(node.clone(), "the neighbour does not have it"));
            }
            self.members.avoid(&node, self.now.time + LEAVE_ALONE);
        } else if *errand == Errand::LinkPing && !status.links.contains(&self.me.node) {
            // It has restarted or dropped the link: links go both ways or not at all. This end stays up meanwhile: two
            // ends that each took theirs down first would find the other's down in turn, for ever.
            self.call_for_link(&status.member, out);
        }
    }

    fn identify_peer(&mut self, address: &Address, member: &Member, out: &mut Effects) {
        let own = member.node == self.me.node;
        for peer in self.peers.iter_mut().filter(|peer| peer.address == *address) {
            peer.node = Some(member.node.clone());
            if own && !peer.ignored {
                peer.ignored = true;
                out.notices.push(Notice::PeerIgnored(address.clone(), "it is this worker itself"));
            }
        }
    }

    /// A call to a neighbour failed or not: three failures in a row drop the link.
    pub(crate) fn judge_link(&mut self, to: &Peer, failed: bool, out: &mut Effects) {
        let Some(node) = &to.node else { return };
        if !failed {
            self.overlay.succeeded(node);
        } else if self.overlay.failed(node, self.settings.neighbour_failures) {
            out.notices.push(Notice::LinkDown(node.clone(), "it does not answer"));
        }
    }

    /// A directory's members changed.
    pub(crate) fn on_membership(&mut self, directory: DirectoryId, event: &MembershipEvent, out: &mut Effects) {
        self.leases.watched(directory, event);
        match event {
            MembershipEvent::Snapshot(_, members) => {
                let new = self.members.list_all(directory, members);
                out.notices.extend(new.into_iter().map(Notice::MemberJoined));
                self.ask_around(out);
            }
            MembershipEvent::Joined(_, member) => {
                if self.members.list(directory, member) {
                    out.notices.push(Notice::MemberJoined(member.identity()));
                }
            }
            MembershipEvent::Left(_, who) => {
                if self.members.unlist(directory, who) {
                    out.notices.push(Notice::MemberLeft(who.clone()));
                    if self.overlay.unlink(who) {
                        out.notices.push(Notice::LinkDown(who.node.clone(), "it left the cluster"));
                    }
                }
            }
            MembershipEvent::Resync => {}
        }
        self.upkeep_due = self.now.time;
    }

    /// A worker without a leader asks some members for theirs.
    fn ask_around(&mut self, out: &mut Effects) {
        if self.leader_now().is_some() {
            return;
        }
        let mut members = self.members.reachable(self.now.time);
        for _ in 0..ASKED_AT_START.min(members.len()) {
            let at = usize::try_from(self.dice.below(members.len() as u64)).unwrap_or(0);
            let member = members.swap_remove(at);
            self.ask(Peer::from(&member), out);
        }
    }

    fn ask(&mut self, to: Peer, out: &mut Effects) {
        let request = Request::Ping(Some(self.status_for(to.node.as_ref())));
        self.call(to, request, limits::LINK_CALL, Errand::Ask, out);
    }

    /// A directory answered.
    pub(crate) fn on_directory_answered(
        &mut self,
        directory: DirectoryId,
        result: &Result<DirectoryAnswer, CallFailure>,
        out: &mut Effects,
    ) {
        self.on_left(directory, result);
        let renew = self.settings.lease_renew;
        if let Some(by) = self.leases.answered(self.now.time, directory, renew, result)
            && by > self.me.incarnation
        {
            out.ended = Some(Ending::Superseded(by));
        }
    }

    /// Leases and watches that are due.
    pub(crate) fn keep_leases(&mut self, out: &mut Effects) {
        if self.stopping.is_some() {
            return;
        }
        for due in self.leases.due(self.now.time) {
            match due {
                Due::Register(id) => out.directories.push((id, DirectoryRequest::Register(self.me.clone()))),
                Due::Renew(id) => out.directories.push((id, DirectoryRequest::Heartbeat(self.me.identity()))),
                Due::Watch(id, after) => out.watches.push((id, after)),
            }
        }
    }

    /// Pings of links, missing links, strangers, lost members: all that keeps the overlay whole.
    pub(crate) fn keep_links(&mut self, out: &mut Effects) {
        let now = self.now.time;
        if self.stopping.is_some() {
            return;
        }
        for member in self.overlay.pings_due(now, self.settings.link_ping) {
            let request = Request::Ping(Some(self.status_for(Some(&member.node))));
            self.call(Peer::from(&member), request, limits::LINK_CALL, Errand::LinkPing, out);
        }
        if self.upkeep_due > now {
            return;
        }
        self.upkeep_due = now + UPKEEP;
        let reachable = self.members.reachable(now);
        if let Some(member) = self.overlay.wanted(&reachable, self.settings.min_links, &mut self.dice) {
            let request = Request::AddNeighbor(self.status_for(Some(&member.node)));
            self.call(Peer::from(&member), request, limits::LINK_CALL, Errand::Link, out);
        }
        for member in self.members.lost_due(now, LOST_AT_ONCE) {
            self.ask(Peer::from(&member), out);
        }
        self.ask_strangers(&reachable, out);
    }

    /// One member at random that is no neighbour, and the configured peers that are not known to live.
    fn ask_strangers(&mut self, reachable: &[Member], out: &mut Effects) {
        let now = self.now.time;
        if self.stranger_due <= now {
            self.stranger_due = now + self.settings.link_ping * 2;
            let strangers: Vec<&Member> = reachable.iter().filter(|member| !self.overlay.has(&member.node)).collect();
            if let Some(stranger) = self.dice.pick(&strangers).map(|member| Peer::from(*member)) {
                self.ask(stranger, out);
            }
        }
        let known = |peer: &StaticPeer| {
            let alive = |node: &NodeId| reachable.iter().any(|member| member.node == *node);
            peer.ignored || peer.node.as_ref().is_some_and(alive)
        };
        let mut asked = Vec::new();
        for peer in self.peers.iter_mut().filter(|peer| peer.due <= now && !known(peer)) {
            peer.due = now + LEAVE_ALONE;
            asked.push(Peer { node: None, address: peer.address.clone() });
        }
        for peer in asked {
            self.ask(peer, out);
        }
    }
}
