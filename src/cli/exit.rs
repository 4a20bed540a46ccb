//! How a command ends: its exit code, and the line that says why.
//!
//! Owns the codes, which are a contract with scripts (section 11 of the contract).

use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::client::ClientError;
use crate::config::BadSettings;

/// What a command hands back.
pub(crate) type Outcome = Result<Exit, Failure>;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// The job failed, or somebody cancelled it.
    JobFailed = 1,
    /// Usage, a setting, an input, or something about this machine, such as a port that is taken: the person has to
    /// change something before it can work.
    Refused = 2,
    /// No node could be reached.
    Unreachable = 3,
    /// There is no such thing.
    NotFound = 4,
    /// The deadline passed.
    DeadlinePassed = 5,
    /// A node ended since another one started with its id.
    Superseded = 6,
    /// A node broke down, or no node of `up` is left.
    Broken = 7,
    /// The person interrupted it, or stopped reading.
    Interrupted = 130,
}

impl Exit {
    /// A failure with one line that says what, which value, and what to do; without a full stop.
    pub(crate) fn because(self, line: impl fmt::Display) -> Failure {
        Failure { exit: self, lines: vec![line.to_string()] }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// A command that did not do what it was asked for, with what to tell. Made by [`Exit::because`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its code.
    pub(crate) exit: Exit,
    /// Each a line for standard error; none where nobody needs to be told.
    pub(crate) lines: Vec<String>,
}

impl Failure {
    /// The same, with what it is about before it.
    pub(super) fn about(self, what: &str) -> Failure {
        Failure { lines: self.lines.iter().map(|line| format!("{what}: {line}")).collect(), ..self }
    }

    /// Standard output took no more. That its reader has gone (`floodline jobs | head -1`) is no news to anyone.
    pub(super) fn of_output(error: &io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure { exit: Exit::Interrupted, lines: Vec::new() };
        }
        Exit::Refused.because(format!("cannot write to standard output: {error}; free space or send it elsewhere"))
    }
}

impl From<BadSettings> for Failure {
    fn from(bad: BadSettings) -> Failure {
        Failure { exit: Exit::Refused, lines: bad.0.iter().map(ToString::to_string).collect() }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        let exit = match error {
            ClientError::Unreachable { .. } => Exit::Unreachable,
            ClientError::NotFound(_) => Exit::NotFound,
            ClientError::Refused(_) => Exit::Refused,
            ClientError::Full(_) | ClientError::Late(_) => Exit::DeadlinePassed,
        };
        exit.because(error)
    }
}
