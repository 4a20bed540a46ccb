//! One flood at one worker: the first visit forwards it, the branches' answers converge back to who sent it.
//!
//! Every hop passes on less time than it was given, so that a dead branch costs its own subtree, never the flood.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::protocol::Worker;
use crate::protocol::calls::Errand;
use crate::protocol::effects::Effects;
use crate::protocol::ids::{Candidate, ElectionId, Identity, Member, NodeId, ReplyToken, Term};
use crate::protocol::limits;
use crate::protocol::message::{CallFailure, Code, Edge, Elect, ElectAnswer, Leader, Peer, Refusal, Request, Response};
use crate::protocol::notice::{Declined, Notice};

/// To whom the outcome of a flood goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This worker began it.
    Own,
    /// A caller waits; if it is gone the branch ends all the same.
    Caller(ReplyToken),
}

/// A flood that waits for its branches.
#[derive(Clone, Debug)]
pub(crate) struct Flood {
    pub(crate) origin: Origin,
    waiting: BTreeSet<NodeId>,
    answer: ElectAnswer,
}

impl Flood {
    fn fold(&mut self, branch: ElectAnswer) {
        self.answer.highest_term = self.answer.highest_term.max(branch.highest_term);
        self.answer.refusals = newest_first(self.answer.refusals.drain(..).chain(branch.refusals));
        if branch.duplicate {
            return;
        }
        self.answer.nodes = self.answer.nodes.saturating_add(branch.nodes);
        self.answer.failed.extend(branch.failed);
        self.answer.failed.truncate(limits::EDGES);
        self.answer.best = match (self.answer.best.take(), branch.best) {
            (Some(ours), Some(theirs)) => Some(if theirs.beats(&ours) { theirs } else { ours }),
            (ours, theirs) => ours.or(theirs),
        };
    }
}

fn newest_first(leaders: impl Iterator<Item = Leader>) -> Vec<Leader> {
    let mut sorted: Vec<Leader> = leaders.collect();
    sorted.sort_by(|a, b| b.leadership.cmp(&a.leadership));
    sorted.dedup_by(|a, b| a.leadership == b.leadership);
    sorted.truncate(limits::REFUSALS);
    sorted
}

impl Worker {
    /// ELECTION from a neighbour.
    pub(crate) fn on_elect(&mut self, token: ReplyToken, elect: Elect, out: &mut Effects) {
        if let Some(refusal) = self.refuse_malformed(&elect) {
            out.replies.push((token, Err(refusal)));
            return;
        }
        self.meet_member(&elect.from, out);
        let answer = |answer| (token, Ok(Response::Elect(answer)));
        if let Some((without, why)) = self.stay_out(&elect) {
            let Elect { election, term, from, .. } = elect;
            out.notices.push(Notice::ElectionDeclined { election, term, from: from.node, why });
            out.replies.push(answer(without));
            return;
        }
        let Elect { election, term, from, .. } = &elect;
        self.elections.meet_term(*term);
        self.elections.memory.meet(election.clone(), true);
        self.put_off_own_election();
        let (election, term, from, jac) = (election.clone(), *term, from.node.clone(), self.jac);
        out.notices.push(Notice::ElectionReached { election, term, from, jac, budget: elect.budget });
        let budget = elect.budget.saturating_sub(self.settings.hop_reserve);
        self.flood(Origin::Caller(token), &elect, budget, out);
    }

    fn refuse_malformed(&self, elect: &Elect) -> Option<Refusal> {
        let bad = |text: String| Some(Refusal::new(Code::InvalidArgument, text));
        let highest = self.elections.highest;
        if self.elections.is_impossible(elect.term) {
            return bad(format!("term {} is more than 2^32 above the highest known, {highest}", elect.term));
        }
        if elect.around.len() > limits::EDGES || elect.excluded.len() > limits::EXCLUDED {
            return bad(format!("at most {} edges and {} excluded fit", limits::EDGES, limits::EXCLUDED));
        }
        if elect.from.node == self.me.node {
            return bad(format!("{} is this worker's own node id", elect.from.node));
        }
        if self.elections.floods.len() >= limits::FLOODS {
            return Some(Refusal::new(Code::ResourceExhausted, "too many floods wait here"));
        }
        None
    }

    /// The answer of a worker that takes no part: a duplicate, a stale term, or a leader that lives. The leader's
    /// name travels in the answer, and the flood goes on around it.
    fn stay_out(&mut self, elect: &Elect) -> Option<(ElectAnswer, Declined)> {
        if elect.term == self.elections.highest && self.elections.memory.has_met(&elect.election) {
            return Some((ElectAnswer { duplicate: true, ..ElectAnswer::default() }, Declined::Duplicate));
        }
        let led = self.living_leader().filter(|leader| leader.member.node != elect.election.initiator).cloned();
        let followed = self.followed.as_ref().map_or(Term(0), |leader| leader.leadership.term);
        let stale = elect.term < self.elections.highest || elect.term <= followed;
        if led.is_none() && !stale {
            return None;
        }
        if !stale {
            self.elections.meet_term(elect.term);
            self.elections.memory.meet(elect.election.clone(), false);
        }
        let highest_term = if stale { self.elections.highest.max(followed) } else { elect.term };
        let why = if stale { Declined::Stale } else { Declined::LeaderLives };
        Some((ElectAnswer { refusals: led.into_iter().collect(), highest_term, ..ElectAnswer::default() }, why))
    }

    /// Sends a flood on to every neighbour but those that it came from or goes around, and folds in this worker's
    /// own candidacy.
    pub(crate) fn flood(&mut self, origin: Origin, elect: &Elect, budget: Duration, out: &mut Effects) {
        let own = self.candidacy(&elect.excluded);
        let mut flood = Flood {
            origin,
            waiting: BTreeSet::new(),
            answer: ElectAnswer { best: own, nodes: 1, highest_term: elect.term, ..ElectAnswer::default() },
        };
        let targets = self.flood_targets(elect);
        let wait = budget.saturating_sub(self.settings.hop_reserve / 2);
        if wait.is_zero() {
            // No time for another hop: what lies behind counts as failed, not as absent.
            let edge = |to: &Member| Edge { from: self.me.node.clone(), to: to.node.clone() };
            flood.answer.failed = targets.iter().map(edge).take(limits::EDGES).collect();
        } else {
            flood.waiting = targets.iter().map(|member| member.node.clone()).collect();
        }
        let going = flood.waiting.clone();
        let ends_here = going.is_empty();
        self.elections.floods.insert(elect.election.clone(), flood);
        if ends_here {
            self.end_flood(&elect.election, out);
            return;
        }
        let hop = Elect { from: self.me.clone(), budget, ..elect.clone() };
        for member in targets {
            let errand = Errand::Hop(elect.election.clone());
            self.call(Peer::from(&member), Request::Elect(hop.clone()), wait, errand, out);
        }
    }

    fn flood_targets(&self, elect: &Elect) -> Vec<Member> {
        let replaced = elect.replaces.as_ref();
        let is_replaced = |to: &Member| replaced.is_some_and(|old| old.identity() == to.identity());
        let around = |to: &Member| elect.around.iter().any(|edge| edge.from == self.me.node && edge.to == to.node);
        let fit = |to: &Member| to.node != elect.from.node && !is_replaced(to) && !around(to);
        let mut links = self.overlay.members();
        if links.is_empty() && elect.from.node == self.me.node {
            links = self.members.alive(self.now.time);
        }
        links.into_iter().filter(fit).collect()
    }

    /// This worker's own offer; none when it is excluded or stopping, or has not heard yet what others remember of
    /// its JAC.
    fn candidacy(&self, excluded: &[Identity]) -> Option<Candidate> {
        let out_of_it =
            self.stopping.is_some() || self.asking_until.is_some() || excluded.contains(&self.me.identity());
        (!out_of_it).then(|| Candidate { jac: self.jac, member: self.me.clone() })
    }

    /// A branch came back, or did not.
    pub(crate) fn on_hop_answered(
        &mut self,
        election: &ElectionId,
        to: &Peer,
        result: Result<ElectAnswer, CallFailure>,
        out: &mut Effects,
    ) {
        let me = self.me.node.clone();
        let sound = result.and_then(|branch| {
            let impossible = self.elections.is_impossible(branch.highest_term);
            if impossible { Err(CallFailure::Unreachable("its term is impossible".to_owned())) } else { Ok(branch) }
        });
        let Some(flood) = self.elections.floods.get_mut(election) else { return };
        let Some(node) = to.node.clone().filter(|node| flood.waiting.remove(node)) else { return };
        match sound {
            Ok(branch) => flood.fold(branch),
            Err(failure) => {
                out.notices.push(Notice::EdgeFailed { election: election.clone(), to: node.clone(), failure });
                flood.fold(ElectAnswer { failed: vec![Edge { from: me, to: node }], ..ElectAnswer::default() });
            }
        }
        if flood.waiting.is_empty() {
            self.end_flood(election, out);
        }
    }

    /// All branches are in: the answer goes back to where the flood came from.
    fn end_flood(&mut self, election: &ElectionId, out: &mut Effects) {
        let Some(flood) = self.elections.floods.remove(election) else { return };
        let ElectAnswer { nodes, best, .. } = &flood.answer;
        let (election_id, nodes, best) = (election.clone(), *nodes, best.clone());
        out.notices.push(Notice::BranchEnded { election: election_id, nodes, best });
        match flood.origin {
            Origin::Own => self.conclude(election, flood.answer, out),
            Origin::Caller(token) => out.replies.push((token, Ok(Response::Elect(flood.answer)))),
        }
    }
}
