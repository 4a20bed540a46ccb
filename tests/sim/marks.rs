//! Situations worth reaching: a run of many seeds that missed one has tested less than it says, and fails.

use std::fmt::Write as _;

macro_rules! marks {
    ($($(#[$rare:ident])? $name:ident = $text:literal,)*) => {
        /// A situation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Mark { $($name,)* }

        impl Mark {
            pub(crate) const ALL: &'static [(Mark, &'static str)] = &[$((Mark::$name, $text),)*];
        }
    };
}

marks! {
    InitiatorKilledMidFlood = "initiator killed in its flood",
    RelayKilledMidFlood = "relay killed before it answered the flood",
    WinnerKilledBeforeAnnouncing = "winner killed before it announced",
    LeaderKilledMidJob = "leader killed in mid-job",
    WorkerKilledMidTask = "worker killed in mid-task",
    KilledBetweenEffects = "killed between two effects of one step",
    UnsavedLost = "killed with a save on its way",
    LeaderFrozen = "leader frozen past the timeout, then thawed",
    DirectoryDownElection = "election with every directory down",
    FloodRepeated = "flood repeated around failed edges",
    WinnerExcluded = "election without an unreachable winner",
    FloodRefused = "flood refused by a living leader",
    StaleElection = "election in a stale term",
    Rotation = "leader stepped down after its last admission",
    MovedUp = "leader moved up over a term that it met",
    LeadersSettled = "two living leaders settled it",
    SplitHealedJobsInBoth = "split healed with jobs admitted in both parts",
    TwoCuts = "one job with two cuts",
    TwoPayloads = "one id with two payloads in one ledger",
    OutcomeRaised = "outcome raised by a join",
    JoinedByUpload = "replica joined with records of its own",
    JoinedByHashes = "replica joined by hashes",
    TakeoverKeptWork = "job finished with completions of two leaderships",
    ResultKept = "task asked for again, answered from what was computed",
    SecondCopy = "second copy of a slow task",
    SecondCopyWon = "second copy answered first",
    TaskFailed = "task failed and was tried again",
    JobFailed = "job failed for good",
    Fenced = "completion or hand-out refused by its fence",
    WorkedAfterJoining = "worker that joined got a task of a running job",
    RetriedAfterUnknown = "submission acknowledged after an unknown outcome",
    WaitedForLeader = "submission waited at a worker without a leader",
    QueueFull = "submission refused by a full queue",
    Twins = "one job handed in by two clients",
    Rivals = "second payload under one id refused",
    CancelTold = "cancel told",
    Roamed = "subscriber resumed elsewhere and got the last message",
    WaitedForReplica = "subscriber waited for a replica behind its cursor",
    CallDoubled = "call delivered twice",
    AnswerLate = "answer delivered after its call was given up",
    StreamStalled = "frames of a stream stalled by a split, then delivered",
    LeaderStopped = "leader stopped in order",
    MalformedRefused = "malformed call refused",
    TailLost = "unflushed tail of a journal lost",
    ResumedAfterAllDied = "job finished after everybody was killed at once",
    BroughtBack = "holder came back with a job that nobody live had",
    WipedReminded = "wiped worker took its JAC from others",
    WipedWinnerPrevented = "wiped worker did not win by the JAC that it lost",
    FenceRestored = "fence restored from the disk",
    BreakdownDropped = "ended job cut down to a line",
    DeadlinePassed = "deadline passed",
    HandedOver = "handover with an unfinished job",
    QuorumMissing = "submission met a leader with too few live workers",
    ClockStepped = "wall clock stepped",
    LongSplitHealed = "split longer than any lease healed with jobs of both parts",
    Alone = "job done by a cluster of one",
}

/// Fewer seeds than this can't be expected to reach every mark.
const ENOUGH_FOR_MARKS: u64 = 2_000;
/// A rare mark is reached about twice in 1,000 seeds, so that 2,000 may miss it.
const ENOUGH_FOR_RARE_MARKS: u64 = 10_000;

impl Mark {
    /// Whether several things have to come together for it.
    fn is_rare(self) -> bool {
        matches!(self, Mark::OutcomeRaised | Mark::Fenced)
    }
}

/// How often each was reached.
#[derive(Clone, Debug)]
pub(crate) struct Marks(Vec<u64>);

impl Marks {
    pub(crate) fn new() -> Marks {
        Marks(vec![0; Mark::ALL.len()])
    }

    pub(crate) fn hit(&mut self, mark: Mark) {
        self.0[mark as usize] += 1;
    }

    pub(crate) fn has(&self, mark: Mark) -> bool {
        self.0[mark as usize] > 0
    }

    /// How many of all were reached.
    pub(crate) fn reached(&self) -> usize {
        self.0.iter().filter(|hits| **hits > 0).count()
    }

    /// Adds a run: each mark counts once a run.
    pub(crate) fn add_run(&mut self, run: &Marks) {
        self.0.iter_mut().zip(&run.0).for_each(|(sum, hits)| *sum += u64::from(*hits > 0));
    }

    /// The marks that so many seeds should have reached and did not.
    pub(crate) fn missed(&self, seeds: u64) -> Vec<&'static str> {
        let expected = |mark: &Mark| seeds >= if mark.is_rare() { ENOUGH_FOR_RARE_MARKS } else { ENOUGH_FOR_MARKS };
        let missed = Mark::ALL.iter().filter(|(mark, _)| expected(mark) && !self.has(*mark));
        missed.map(|(_, text)| *text).collect()
    }

    pub(crate) fn table(&self, seeds: u64) -> String {
        let mut table = format!("reached in so many of {seeds} seeds:\n");
        for (mark, text) in Mark::ALL {
            writeln!(table, "{:>8}  {text}", self.0[*mark as usize]).expect("a string takes all");
        }
        table
    }
}
