//! The initiator's side of an election: begin the flood, weigh what came back, tell the winner.
//!
//! Each stage waits for calls that have deadlines, so a campaign always ends.

use std::time::Duration;

use crate::protocol::Worker;
use crate::protocol::calls::Errand;
use crate::protocol::effects::Effects;
use crate::protocol::ids::{Candidate, ElectionId, Identity, Leadership, Term};
use crate::protocol::leadership::{Role, Seeking};
use crate::protocol::limits;
use crate::protocol::message::{
    Announce, AnnounceAnswer, CallFailure, Edge, Elect, ElectAnswer, Leader, Peer, Purpose, Request, Status,
};
use crate::protocol::notice::Notice;

use super::flood::Origin;

/// An election that this worker began.
#[derive(Clone, Debug)]
pub(crate) struct Campaign {
    election: ElectionId,
    term: Term,
    replaces: Option<Leadership>,
    around: Vec<Edge>,
    excluded: Vec<Identity>,
    /// It has flooded around failed edges once; now it takes what it gets.
    repeated: bool,
    /// Leaders that refusals named and that could not be reached.
    unreachable: Vec<Leadership>,
    /// What the flood found.
    found: ElectAnswer,
}

impl Worker {
    /// Begins an election, unless one of its own is under way, or it stops and hands nothing over.
    pub(crate) fn start_election(&mut self, cause: &'static str, out: &mut Effects) {
        if self.elections.campaign.is_some() || self.is_leading() || !self.may_elect() {
            return;
        }
        let replaces = self.lost.clone();
        self.run_campaign(replaces, Vec::new(), Vec::new(), false, cause, out);
    }

    fn run_campaign(
        &mut self,
        replaces: Option<Leadership>,
        around: Vec<Edge>,
        excluded: Vec<Identity>,
        repeated: bool,
        cause: &'static str,
        out: &mut Effects,
    ) {
        self.finish_campaign(cause.to_owned(), out);
        let election = self.elections.fresh_id(self.me.identity());
        let followed = self.followed.as_ref().map_or(Term(0), |leader| leader.leadership.term);
        let term = self.elections.highest.max(followed).next();
        self.elections.meet_term(term);
        self.elections.memory.meet(election.clone(), true);
        let (begun, replaced, jac) = (election.clone(), replaces.clone(), self.jac);
        out.notices.push(Notice::ElectionStarted { election: begun, term, cause, replaces: replaced, jac });
        let budget = self.settings.flood_budget;
        let elect = Elect {
            election: election.clone(),
            term,
            from: self.me.clone(),
            replaces: replaces.clone(),
            around: around.clone(),
            excluded: excluded.clone(),
            budget,
        };
        let (unreachable, found) = (Vec::new(), ElectAnswer::default());
        self.elections.campaign =
            Some(Campaign { election, term, replaces, around, excluded, repeated, unreachable, found });
        self.flood(Origin::Own, &elect, budget, out);
    }

    /// Whether an election is this worker's own and under way.
    pub(super) fn campaigns_in(&self, election: &ElectionId) -> bool {
        self.elections.campaign.as_ref().is_some_and(|own| own.election == *election)
    }

    /// The flood has come back.
    pub(crate) fn conclude(&mut self, election: &ElectionId, found: ElectAnswer, out: &mut Effects) {
        let highest = found.highest_term;
        let Some(campaign) = self.elections.campaign.as_mut().filter(|own| own.election == *election) else { return };
        campaign.found = found;
        self.elections.meet_term(highest);
        self.weigh(out);
    }

    /// Decides on what the flood found: follow a leader that lives, else flood again where that helps, else take
    /// the best candidate.
    fn weigh(&mut self, out: &mut Effects) {
        let Some(campaign) = &mut self.elections.campaign else { return };
        let reached = |leader: &&Leader| !campaign.unreachable.contains(&leader.leadership);
        if let Some(named) = campaign.found.refusals.iter().find(reached).cloned() {
            let errand = Errand::NamedLeader(campaign.election.clone(), named.clone());
            let ping = Request::Ping(Some(self.status()));
            self.call(Peer::from(&named.member), ping, limits::LEADER_PING, errand, out);
            return;
        }
        if campaign.found.highest_term > campaign.term {
            self.end_campaign("its term is stale", out);
            return;
        }
        if !campaign.found.failed.is_empty() && !campaign.repeated {
            let mut around = std::mem::take(&mut campaign.around);
            around.append(&mut campaign.found.failed);
            around.truncate(limits::EDGES);
            let (replaces, excluded) = (campaign.replaces.take(), std::mem::take(&mut campaign.excluded));
            self.run_campaign(replaces, around, excluded, true, "an edge failed: once more around it", out);
            return;
        }
        match campaign.found.best.clone() {
            Some(best) => self.choose(&best, out),
            None => {
                self.end_campaign("nobody can lead", out);
                self.put_off_own_election();
                self.hand_to_nobody();
            }
        }
    }

    fn choose(&mut self, best: &Candidate, out: &mut Effects) {
        let Some(campaign) = &self.elections.campaign else { return };
        let leadership = Leadership {
            term: campaign.term,
            leader: best.member.node.clone(),
            incarnation: best.member.incarnation,
            jac: best.jac,
        };
        let announce = Announce {
            purpose: Purpose::Won,
            from: self.me.clone(),
            leader: Leader { leadership, member: best.member.clone() },
            election: Some(campaign.election.clone()),
            replaces: campaign.replaces.clone(),
            workers: campaign.found.nodes,
        };
        if best.member.identity() == self.me.identity() && best.jac != self.jac {
            // Others have told it of its JAC meanwhile: what it offered when the flood began is no candidacy any more.
            self.end_campaign("its own JAC has changed", out);
            return;
        }
        if best.member.identity() == self.me.identity() {
            self.finish_campaign(format!("{} wins", best.member.node), out);
            self.become_leader(announce, out);
            return;
        }
        let (election, winner) = (campaign.election.clone(), announce.leader.leadership.clone());
        out.notices.push(Notice::WinnerChosen { election, winner });
        let errand = Errand::TellWinner(campaign.election.clone());
        self.call(Peer::from(&best.member), Request::Announce(announce), limits::ANNOUNCE, errand, out);
    }

    /// The winner answered, or did not. If it can't be reached the next election starts at once, without it.
    pub(crate) fn on_winner_told(
        &mut self,
        election: &ElectionId,
        result: Result<AnnounceAnswer, CallFailure>,
        out: &mut Effects,
    ) {
        let leads = |leader: &Leader| !self.is_malformed(leader);
        let won = result.as_ref().ok().filter(|answer| answer.accepted);
        let won = won.and_then(|answer| answer.following.clone()).filter(leads);
        let Some(campaign) = self.elections.campaign.as_mut().filter(|own| own.election == *election) else { return };
        let Some(best) = campaign.found.best.clone() else { return };
        match (won.filter(|leader| leader.member.node == best.member.node), result) {
            (Some(leader), _) => {
                let (replaces, workers) = (campaign.replaces.clone(), campaign.found.nodes);
                let election = Some(campaign.election.clone());
                self.finish_campaign(format!("{} wins", best.member.node), out);
                let from = self.me.clone();
                let announce = Announce { purpose: Purpose::Flood, from, leader, election, replaces, workers };
                self.take_announcement(&announce, out);
            }
            (None, Ok(answer)) => {
                self.end_campaign("the winner declined", out);
                if let Some(leader) = answer.following {
                    self.meet_leader(&leader, true, out);
                }
            }
            (None, Err(_)) => {
                let mut excluded = std::mem::take(&mut campaign.excluded);
                excluded.push(best.member.identity());
                if excluded.len() > limits::EXCLUDED {
                    self.end_campaign("too many winners could not be reached", out);
                    return;
                }
                let (replaces, around) = (campaign.replaces.take(), std::mem::take(&mut campaign.around));
                self.run_campaign(replaces, around, excluded, false, "the winner could not be reached", out);
            }
        }
    }

    /// A leader that a refusal named answered the ping, or did not.
    pub(crate) fn on_named_leader(
        &mut self,
        election: &ElectionId,
        named: &Leader,
        result: Result<Status, CallFailure>,
        out: &mut Effects,
    ) {
        let Some(campaign) = self.elections.campaign.as_mut().filter(|own| own.election == *election) else { return };
        let leads = |status: &Status| status.following.clone().filter(|leader| leader.member == status.member);
        match result.ok().as_ref().and_then(leads) {
            Some(leader) => {
                self.end_campaign("a leader lives", out);
                // One that is older than what this worker has followed has to move up first, and hears so now.
                self.put_off_own_election();
                self.meet_leader(&leader, true, out);
            }
            None => {
                campaign.unreachable.push(named.leadership.clone());
                self.weigh(out);
            }
        }
    }

    /// Ends the campaign without a leader of its own; the next try comes after a pause at random.
    fn end_campaign(&mut self, outcome: &str, out: &mut Effects) {
        self.finish_campaign(outcome.to_owned(), out);
        let pause = self.dice.span(Duration::ZERO, limits::START_SPREAD);
        if matches!(self.role, Role::Seeking(_)) {
            self.role = Role::Seeking(Seeking { start_at: self.now.time + pause, cause: "the election before failed" });
        }
    }

    pub(crate) fn finish_campaign(&mut self, outcome: String, out: &mut Effects) {
        if let Some(own) = self.elections.campaign.take() {
            out.notices.push(Notice::ElectionEnded { election: own.election, term: own.term, outcome });
        }
    }
}
