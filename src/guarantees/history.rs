//! What clients and observers saw of a cluster, in the order in which they saw it.
//!
//! Owns the vocabulary of a history: the simulator writes one from its own omniscience, chaos from what it reads
//! off real nodes. Holds nothing that only a simulator could know but [`Seen::Gone`], which chaos never needs.

use std::sync::Arc;

use crate::jobs::Value;
use crate::protocol::ids::{Identity, Jac, JobKey, Leadership, NodeId};
use crate::protocol::message::Code;
use crate::protocol::time::Time;
use crate::protocol::view::{Admission, JobState, JobView};

/// One observation and when it was made, on the observer's clock.
#[derive(Clone, Debug)]
pub struct Event {
    /// When.
    pub at: Time,
    /// What.
    pub seen: Seen,
}

/// What can be observed.
#[derive(Clone, Debug)]
pub enum Seen {
    /// A process started.
    Started {
        /// Which.
        process: Identity,
        /// Whether it still has what this node id had journalled before.
        memory: bool,
    },
    /// A process ended.
    Ended {
        /// Which.
        process: Identity,
        /// How.
        how: End,
    },
    /// The harness hurt the cluster.
    Hurt(Hurt),
    /// A client is about to hand in a job.
    Submitted {
        /// The job.
        job: JobKey,
        /// What it should come to, by a computation of the client's own.
        right: Right,
    },
    /// What became of one submission, as its client saw it.
    Outcome {
        /// The job.
        job: JobKey,
        /// What.
        outcome: Outcome,
    },
    /// A client is about to ask for a job's end.
    CancelAsked(JobKey),
    /// A node showed a job as its own replica has it (ListJobs). Those of one process come in the order in which it
    /// showed them: ask it one by one.
    Shown {
        /// Which node.
        by: Identity,
        /// The job as shown.
        view: Arc<JobView>,
    },
    /// A node told of a job in words that may be its leader's, and so ahead of its own replica (SubmitJob, CancelJob,
    /// GetJob).
    Relayed {
        /// Which node.
        by: Identity,
        /// The job as told.
        view: Arc<JobView>,
    },
    /// A subscriber got a message, in the order of its stream. Its number stays the same wherever it resumes.
    Told {
        /// Which subscriber.
        subscriber: u64,
        /// Which node sent it.
        by: Identity,
        /// The message.
        view: Arc<JobView>,
    },
    /// A subscriber went away before the last message.
    Left {
        /// Which subscriber.
        subscriber: u64,
    },
    /// A node's event said that a job has ended.
    JobEnded {
        /// Which node.
        by: Identity,
        /// The job.
        job: JobKey,
        /// How.
        state: JobState,
    },
    /// An admission became known.
    Admitted {
        /// The job.
        job: JobKey,
        /// The admission.
        admission: Admission,
    },
    /// A node told its own JAC.
    JacTold {
        /// Whose.
        owner: Identity,
        /// What it said.
        jac: Jac,
    },
    /// A process said whom it follows, itself included.
    Follows {
        /// Which process.
        process: Identity,
        /// Whom.
        leadership: Leadership,
    },
    /// A process began to lead.
    Led {
        /// Which process.
        process: Identity,
        /// As what.
        leadership: Leadership,
    },
    /// The harness sent something malformed, and this came of it.
    Abused {
        /// To whom.
        process: Identity,
        /// What it was.
        what: &'static str,
        /// Whether it was answered with an error.
        refused: bool,
    },
    /// The harness destroyed every copy of a job: nothing is owed for it any more.
    Gone(JobKey),
    /// From here on nothing is hurt any more, and every worker reaches every other.
    Quiet,
    /// The time to settle is over; this is what the workers show.
    Final(Vec<Sight>),
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The harness killed it.
    Killed,
    /// It was asked to.
    Stopped,
    /// A higher incarnation of its node id took its place.
    Superseded,
    /// Neither: it broke.
    Broke,
}

/// How the harness hurt the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hurt {
    /// Some could not reach some others.
    Split,
    /// A process stood still, or its messages were lost or late.
    Silence,
}

/// What a job should come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// This answer.
    Answer(Value),
    /// No answer: its computation fails wherever it runs.
    Fails,
}

/// What became of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// OK.
    Acknowledged,
    /// An error that says that it was not taken.
    Refused(Code),
    /// No answer: it may or may not have been admitted.
    Unknown,
}

/// What one worker shows at the end.
#[derive(Clone, Debug)]
pub struct Sight {
    /// Which process.
    pub process: Identity,
    /// Whom it follows.
    pub following: Option<Leadership>,
    /// All jobs, in the order of their keys.
    pub jobs: Vec<Arc<JobView>>,
}

impl Sight {
    /// The node's id.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.process.node
    }
}

impl Seen {
    /// The job view in it, with the process that showed it, if it is one.
    #[must_use]
    pub fn view(&self) -> Option<(&Identity, &Arc<JobView>)> {
        match self {
            Seen::Shown { by, view } | Seen::Relayed { by, view } | Seen::Told { by, view, .. } => Some((by, view)),
            Seen::Started { .. }
            | Seen::Ended { .. }
            | Seen::Hurt(_)
            | Seen::Submitted { .. }
            | Seen::Outcome { .. }
            | Seen::CancelAsked(_)
            | Seen::Left { .. }
            | Seen::JobEnded { .. }
            | Seen::Admitted { .. }
            | Seen::JacTold { .. }
            | Seen::Follows { .. }
            | Seen::Led { .. }
            | Seen::Abused { .. }
            | Seen::Gone(_)
            | Seen::Quiet
            | Seen::Final(_) => None,
        }
    }
}
