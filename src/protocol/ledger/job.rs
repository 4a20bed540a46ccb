//! One job's record and its join (section 8): admissions are gathered, outcomes rank SUCCEEDED > FAILED > CANCELLED.
//!
//! Owns what is known of a job as a whole. Its payload and its tasks are records of their own, so that a change
//! of one does not send the others again.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::jobs::{Kind, Value};
use crate::protocol::ids::JobKey;
use crate::protocol::time::Wall;
use crate::protocol::trace::Trace;
use crate::protocol::view::{Admission, JobState};

use super::retention::Turn;

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// On request.
    Cancelled,
    /// Without an answer, for this reason.
    Failed(Arc<str>),
    /// With its answer.
    Succeeded(Value),
}

impl Outcome {
    /// The state that it is shown as.
    #[must_use]
    pub fn state(&self) -> JobState {
        match self {
            Outcome::Cancelled => JobState::Cancelled,
            Outcome::Failed(_) => JobState::Failed,
            Outcome::Succeeded(_) => JobState::Succeeded,
        }
    }
}

/// A job's end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// When.
    pub at: Wall,
    /// Its turn among the ended jobs: those with a lower one are dropped first. Of a job that two parts ended it
    /// only falls, so that what is dropped once stays dropped.
    pub turn: Turn,
    /// Tasks completed by then; kept when the breakdown is dropped.
    pub completed: u32,
    /// Tasks of the cut that led.
    pub total: u32,
}

/// A job's record, without payload and tasks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    /// Id and digest.
    pub key: JobKey,
    /// Its kind.
    pub kind: Kind,
    /// When it was first admitted.
    pub submitted_at: Wall,
    /// Its admissions, at least one.
    pub admissions: BTreeSet<Admission>,
    /// When it fails unless it has ended: the client's wish, by the wall clock.
    pub deadline: Option<Wall>,
    /// Where its submission stands in a trace: whoever leads goes on there.
    pub trace: Option<Trace>,
    /// Its end; none until then.
    pub ended: Option<Ended>,
}

impl Job {
    /// Takes in another copy's record. Commutative, associative, idempotent.
    pub fn join(&mut self, other: &Job) {
        self.submitted_at = self.submitted_at.min(other.submitted_at);
        self.admissions.extend(other.admissions.iter().cloned());
        self.deadline = self.deadline.into_iter().chain(other.deadline).min();
        self.trace = self.trace.into_iter().chain(other.trace).min();
        self.ended = match (self.ended.take(), &other.ended) {
            (None, theirs) => theirs.clone(),
            (ours, None) => ours,
            (Some(ours), Some(theirs)) => {
                // The state decides; among equals the smaller content, so that the order of joining does not matter.
                let key = |ended: &Ended| {
                    let Ended { outcome, at, completed, total, turn: _ } = ended.clone();
                    (std::cmp::Reverse(outcome.state()), outcome, at, completed, total)
                };
                let turn = ours.turn.min(theirs.turn);
                let better = if key(&ours) <= key(theirs) { ours } else { theirs.clone() };
                Some(Ended { turn, ..better })
            }
        };
    }

    /// The slice counts into which it was cut, smallest first; one, or one per side of a split.
    #[must_use]
    pub fn cuts(&self) -> BTreeSet<u32> {
        self.admissions.iter().map(|admission| admission.slices).collect()
    }
}
