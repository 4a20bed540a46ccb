//! What a client can't mend by asking elsewhere, and what it can.
//!
//! Owns that choice, by the canonical code of an answer. Section 7 of the contract: but for a full queue nobody is
//! told to submit again.

use std::time::Duration;

use crate::protocol::message::{CallFailure, Code};
use crate::wire::Malformed;

/// Why a request came to nothing. The text says what, which value, what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// No node answered.
    #[error("no node answers at {tried} ({last}); start a cluster with `floodline up`, or name a node with --node")]
    Unreachable {
        /// Where it was tried.
        tried: String,
        /// What the last attempt met.
        last: String,
    },
    /// There is no such job.
    #[error("{0}")]
    NotFound(String),
    /// The request can never be right.
    #[error("{0}")]
    Refused(String),
    /// The job's deadline passed before any node acknowledged it.
    #[error("the deadline of job {0} passed before it was acknowledged; give it more time with --deadline")]
    Late(String),
    /// The cluster has no room, and that lasted.
    #[error("{0}")]
    Full(String),
}

/// What an attempt at one node met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Every node would say so.
    Final(ClientError),
    /// Another node may do better, or this one a little later.
    Elsewhere(String),
    /// No room; the time after which a repeat makes sense.
    Full(String, Duration),
}

/// Where a node that is full does not say when to come back.
const SOON: Duration = Duration::from_millis(500);

impl From<CallFailure> for Trouble {
    fn from(failure: CallFailure) -> Trouble {
        let refusal = match failure {
            CallFailure::Refused(refusal) => refusal,
            CallFailure::Unreachable(why) => return Trouble::Elsewhere(why),
            CallFailure::TimedOut => return Trouble::Elsewhere("no answer in time".to_owned()),
        };
        match refusal.code {
            Code::NotFound => Trouble::Final(ClientError::NotFound(refusal.message)),
            Code::InvalidArgument | Code::AlreadyExists => Trouble::Final(ClientError::Refused(refusal.message)),
            Code::ResourceExhausted => Trouble::Full(refusal.message, refusal.retry_after.unwrap_or(SOON)),
            Code::FailedPrecondition | Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded => {
                Trouble::Elsewhere(refusal.message)
            }
        }
    }
}

impl From<Malformed> for Trouble {
    fn from(malformed: Malformed) -> Trouble {
        Trouble::Elsewhere(format!("an answer that this version does not understand: {malformed}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::message::Refusal;

    fn met(code: Code) -> Trouble {
        Trouble::from(CallFailure::Refused(Refusal::new(code, "because")))
    }

    #[test]
    fn what_every_node_would_say_is_final_and_the_rest_is_tried_elsewhere() {
        assert_eq!(met(Code::NotFound), Trouble::Final(ClientError::NotFound("because".to_owned())));
        for code in [Code::InvalidArgument, Code::AlreadyExists] {
            assert_eq!(met(code), Trouble::Final(ClientError::Refused("because".to_owned())), "{code:?}");
        }
        for code in [Code::FailedPrecondition, Code::Unavailable, Code::Cancelled, Code::DeadlineExceeded] {
            assert_eq!(met(code), Trouble::Elsewhere("because".to_owned()), "{code:?}");
        }
        assert_eq!(Trouble::from(CallFailure::TimedOut), Trouble::Elsewhere("no answer in time".to_owned()));
    }

    #[test]
    fn a_full_queue_is_asked_again_when_it_says_so() {
        let refusal = Refusal::new(Code::ResourceExhausted, "full").retry_in(Duration::from_secs(2));
        let met = Trouble::from(CallFailure::Refused(refusal));
        assert_eq!(met, Trouble::Full("full".to_owned(), Duration::from_secs(2)));
    }
}
