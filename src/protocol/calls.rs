//! Calls of this worker's that wait for an answer, each with what it was made for and when it is given up.
//!
//! Owns the deadlines of calls: the transport's own timeout is a backstop, so that stopping the protocol's clocks
//! stops deadlines, too. Bound: [`limits::CALLS`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ids::{AttemptName, CallId, ElectionId, JobId, Leadership, NodeId, ReplyToken, TaskKey};
use super::limits;
use super::message::{Leader, Peer};
use super::time::Time;

/// What a call was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// A hop of an election that this worker takes part in.
    Hop(ElectionId),
    /// An initiator asks whether a leader that a refusal named can be reached.
    NamedLeader(ElectionId, Leader),
    /// An initiator tells the winner.
    TellWinner(ElectionId),
    /// A hop of an announcement, or a word to the own leader: nothing hangs on its answer.
    Tell,
    /// A leader asks another which of them stays; true if somebody can't follow this one otherwise.
    Settle(Leader, bool),
    /// A follower whose stream broke asks whether its leader lives.
    LeaderLives(Leadership),
    /// Linking up.
    Link,
    /// The regular ping of a link.
    LinkPing,
    /// A ping to a member that is no neighbour.
    Ask,
    /// A submission on its way to the leader.
    Submission(u64),
    /// A cancel or a query, passed on for a caller; with the job's id if it waited here and was withdrawn.
    PassedOn(ReplyToken, Option<JobId>),
    /// An attempt.
    Attempt(TaskKey, AttemptName),
    /// Taking an attempt back.
    CancelAttempt,
    /// Taking down a link.
    Unlink,
}

/// A call that waits.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(crate) errand: Errand,
    pub(crate) to: Peer,
    due: Time,
}

/// All calls that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    last: CallId,
    open: BTreeMap<CallId, Open>,
    due: BTreeSet<(Time, CallId)>,
}

impl Calls {
    /// Opens a call; none if too many wait.
    pub(crate) fn open(&mut self, now: Time, within: Duration, to: Peer, errand: Errand) -> Option<CallId> {
        if self.open.len() >= limits::CALLS {
            return None;
        }
        self.last = self.last.next();
        let due = now + within;
        self.due.insert((due, self.last));
        self.open.insert(self.last, Open { errand, to, due });
        Some(self.last)
    }

    /// Takes a call out; none if it is not waited for any more.
    pub(crate) fn close(&mut self, id: CallId) -> Option<Open> {
        let open = self.open.remove(&id)?;
        self.due.remove(&(open.due, id));
        Some(open)
    }

    /// Takes out one call that is overdue.
    pub(crate) fn overdue(&mut self, now: Time) -> Option<(CallId, Open)> {
        let (due, id) = self.due.first().copied()?;
        if due > now {
            return None;
        }
        self.close(id).map(|open| (id, open))
    }

    /// Takes out every call that `given_up` picks.
    pub(crate) fn give_up(&mut self, given_up: impl Fn(&Open) -> bool) -> Vec<(CallId, Open)> {
        let picked = self.open.iter().filter(|(_, open)| given_up(open)).map(|(id, _)| *id);
        let ids: Vec<CallId> = picked.collect();
        ids.into_iter().filter_map(|id| self.close(id).map(|open| (id, open))).collect()
    }

    /// Whether any call for such an errand waits.
    pub(crate) fn any(&self, wanted: impl Fn(&Open) -> bool) -> bool {
        self.open.values().any(wanted)
    }

    /// When the next one is overdue.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }
}

impl Open {
    /// A call that never opened.
    pub(crate) fn closed(errand: Errand, to: Peer) -> Open {
        Open { errand, to, due: Time::ZERO }
    }

    /// Whether it went to this node.
    pub(crate) fn went_to(&self, node: &NodeId) -> bool {
        self.to.node.as_ref() == Some(node)
    }
}
