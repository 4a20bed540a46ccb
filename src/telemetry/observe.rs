//! From what happened to a line of the log.
//!
//! Owns how loud each happening is: ERROR is our bug or lost data, WARN is for someone tomorrow, per-task is DEBUG.

use tracing::Level;

use crate::protocol::notice::{Notice, Told};

/// Writes the line of a notice.
pub fn log(notice: &Notice) {
    // A macro's level must be a constant, and a sentence is made only for a line that is written.
    match level(notice) {
        Level::ERROR if tracing::enabled!(Level::ERROR) => tell!(tracing::error, notice.told()),
        Level::WARN if tracing::enabled!(Level::WARN) => tell!(tracing::warn, notice.told()),
        Level::INFO if tracing::enabled!(Level::INFO) => tell!(tracing::info, notice.told()),
        Level::DEBUG if tracing::enabled!(Level::DEBUG) => tell!(tracing::debug, notice.told()),
        Level::TRACE if tracing::enabled!(Level::TRACE) => tell!(tracing::trace, notice.told()),
        _ => {}
    }
}

macro_rules! tell {
    ($macro:path, $told:expr) => {{
        let Told { kind, term, job, task, attempt, text } = $told;
        let (term, job) = (term.map(|term| term.0), job.as_ref().map(|job| job.as_str()));
        $macro!(kind, term, job, task, attempt, "{text}")
    }};
}
use tell;

const fn level(notice: &Notice) -> Level {
    match notice {
        // Two workers computed one slice to different values: one of them is wrong, and so may be the answer.
        Notice::ValuesDiffer(_) => Level::ERROR,
        // An answer that somebody was told has changed, as section 10 allows after a split.
        Notice::OutcomeRaised(..) | Notice::PeerIgnored(..) => Level::WARN,
        Notice::MemberJoined(_)
        | Notice::MemberLeft(_)
        | Notice::ElectionStarted { .. }
        | Notice::ElectionEnded { .. }
        | Notice::LeadershipBegan { .. }
        | Notice::LeadershipActive(..)
        | Notice::LeadershipMovedUp(..)
        | Notice::LeadershipEnded(..)
        | Notice::Following(_)
        | Notice::FollowerJoined(..)
        | Notice::FollowerLost(..)
        | Notice::JobAdmitted { .. }
        | Notice::JobEnded(..)
        | Notice::Stopping => Level::INFO,
        Notice::LinkUp(_)
        | Notice::LinkDown(..)
        | Notice::ElectionReached { .. }
        | Notice::TaskHandedOut { .. }
        | Notice::TaskEnded { .. }
        | Notice::Fenced { .. } => Level::DEBUG,
    }
}
