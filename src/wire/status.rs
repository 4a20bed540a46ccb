//! Refusals as gRPC statuses, and back.
//!
//! Owns which canonical code stands for what. A status that did not come from the peer but from the connection is no
//! refusal: who called learns that nobody answered.

use std::error::Error;

use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt};

use super::Malformed;
use crate::protocol::message::{CallFailure, Code, Refusal};

/// A refusal as a status, with RetryInfo where waiting helps.
#[must_use]
pub fn status_of(refusal: &Refusal) -> Status {
    let code = match refusal.code {
        Code::InvalidArgument => tonic::Code::InvalidArgument,
        Code::NotFound => tonic::Code::NotFound,
        Code::AlreadyExists => tonic::Code::AlreadyExists,
        Code::FailedPrecondition => tonic::Code::FailedPrecondition,
        Code::ResourceExhausted => tonic::Code::ResourceExhausted,
        Code::Unavailable => tonic::Code::Unavailable,
        Code::Cancelled => tonic::Code::Cancelled,
        Code::DeadlineExceeded => tonic::Code::DeadlineExceeded,
    };
    match refusal.retry_after {
        None => Status::new(code, &refusal.message),
        after => Status::with_error_details(code, &refusal.message, ErrorDetails::with_retry_info(after)),
    }
}

impl From<Malformed> for Status {
    fn from(malformed: Malformed) -> Status {
        status_of(&malformed.into())
    }
}

/// What a peer's status says. Codes that no worker sends fall to the nearest one that it knows.
#[must_use]
pub fn refusal_of(status: &Status) -> Refusal {
    let code = match status.code() {
        // OUT_OF_RANGE is what tonic says of a message above its limit.
        tonic::Code::InvalidArgument | tonic::Code::OutOfRange => Code::InvalidArgument,
        tonic::Code::NotFound => Code::NotFound,
        tonic::Code::AlreadyExists => Code::AlreadyExists,
        tonic::Code::FailedPrecondition
        | tonic::Code::PermissionDenied
        | tonic::Code::Unauthenticated
        | tonic::Code::Unimplemented => Code::FailedPrecondition,
        tonic::Code::ResourceExhausted => Code::ResourceExhausted,
        tonic::Code::Cancelled => Code::Cancelled,
        tonic::Code::DeadlineExceeded => Code::DeadlineExceeded,
        tonic::Code::Unavailable
        | tonic::Code::Aborted
        | tonic::Code::Internal
        | tonic::Code::Unknown
        | tonic::Code::DataLoss
        | tonic::Code::Ok => Code::Unavailable,
    };
    let retry_after = status.get_details_retry_info().and_then(|info| info.retry_delay);
    Refusal { code, message: status.message().to_owned(), retry_after }
}

/// Why a call brought no answer: what the peer said, or why it could not be reached.
#[must_use]
pub fn failure_of(status: &Status) -> CallFailure {
    // Only statuses that tonic made of an error below it carry that error; those from the peer are text.
    match status.source() {
        Some(error) => CallFailure::Unreachable(causes(error)),
        None => CallFailure::Refused(refusal_of(status)),
    }
}

/// An error and what caused it, in one line. A cause that its effect has told already is left out.
#[must_use]
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let told = cause.to_string();
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refusal_comes_back_as_it_went() {
        for code in [
            Code::InvalidArgument,
            Code::NotFound,
            Code::AlreadyExists,
            Code::FailedPrecondition,
            Code::ResourceExhausted,
            Code::Unavailable,
            Code::Cancelled,
            Code::DeadlineExceeded,
        ] {
            let plain = Refusal::new(code, "what, which value, what to do");
            assert_eq!(failure_of(&status_of(&plain)), CallFailure::Refused(plain.clone()));
            let later = plain.retry_in(Duration::from_millis(1_500));
            assert_eq!(refusal_of(&status_of(&later)), later);
        }
    }

    #[test]
    fn a_status_of_the_connection_says_that_nobody_answered() {
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let status = Status::from_error(Box::new(reset));
        assert_eq!(failure_of(&status), CallFailure::Unreachable("connection reset".to_owned()));
    }
}
