//! A host, which is a place with an address and a clock, and the process that runs there while it lives.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use floodline::protocol::effects::Save;
use floodline::protocol::ids::{
    Address, CallId, ComputeId, Identity, Incarnation, Jac, JobKey, Leadership, Member, NodeId, Number, ReplyToken,
    StreamId, TaskKey, Term,
};
use floodline::protocol::ledger::Record;
use floodline::protocol::time::{Now, Time, Wall};
use floodline::protocol::view::JobState;
use floodline::protocol::{Input, Worker};

use crate::attempts::Attempts;
use crate::disk::{Disk, state_of};
use crate::subscribers::Subscription;

/// Counts all processes of a run, so that nothing meant for one reaches its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Life(pub u64);

/// Where a worker runs.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) node: NodeId,
    pub(crate) address: Address,
    pub(crate) concurrency: u32,
    /// How much faster its clock runs, in millionths.
    pub(crate) drift: i64,
    pub(crate) wall: Wall,
    pub(crate) last: Incarnation,
    pub(crate) process: Option<Process>,
    /// What is left of the last process.
    pub(crate) disk: Disk,
    /// Whether that is more than nothing.
    pub(crate) has_disk: bool,
    /// What each input takes; zero but on a slow host.
    pub(crate) service: Duration,
    /// How slow its computations are.
    pub(crate) compute_factor: u32,
    /// Stopped in order and not to come back, or not to join before its time.
    pub(crate) away: bool,
}

/// What a caller that waits asked for.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) flight: u64,
    pub(crate) what: Question,
}

/// As much of a request as its answer is judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Elect(Term),
    Won,
    Settle,
    /// With whether the worker had no leader when it came.
    Submit(JobKey, bool),
    Cancel,
    /// With whether its leadership was older than one followed, and whether this task had been asked for before.
    Execute {
        task: TaskKey,
        fenced: bool,
        again: bool,
    },
    Other,
}

/// A follower as its leader knows it, by what came in on the stream.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) at: Time,
    pub(crate) number: Option<Number>,
}

/// A running worker with all that its shell would keep.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) life: Life,
    pub(crate) member: Member,
    pub(crate) worker: Worker,
    pub(crate) born: Time,
    pub(crate) inbox: VecDeque<Input>,
    pub(crate) free_at: Time,
    pub(crate) wakes_at: Option<Time>,
    pub(crate) timer: Option<Time>,
    pub(crate) timer_waits: bool,
    pub(crate) spins: u32,
    pub(crate) last_token: u64,
    pub(crate) tokens: BTreeMap<ReplyToken, Asked>,
    pub(crate) answered: BTreeSet<ReplyToken>,
    pub(crate) calls: BTreeMap<CallId, u64>,
    pub(crate) last_stream: u64,
    pub(crate) ups: BTreeMap<StreamId, u64>,
    pub(crate) downs: BTreeMap<StreamId, u64>,
    pub(crate) subscribers: BTreeMap<u64, Subscription>,
    pub(crate) computing: BTreeMap<ComputeId, bool>,
    pub(crate) saving: VecDeque<Save>,
    pub(crate) saved_by: Time,
    pub(crate) disk: Disk,
    pub(crate) stopping: bool,
    pub(crate) stopped_at: Option<Time>,
    // What the simulator knows of it from its notices and frames.
    pub(crate) newest: Option<Leadership>,
    pub(crate) leads: Option<Leadership>,
    pub(crate) announced: bool,
    pub(crate) electing: bool,
    pub(crate) admitted: u32,
    pub(crate) jac: Jac,
    /// The JAC that it told last.
    pub(crate) told: Option<Jac>,
    /// The leadership under which its disk had been written at its start.
    pub(crate) fence: Option<Leadership>,
    pub(crate) heard: BTreeMap<StreamId, Heard>,
    /// What is held by its leader's word, or as leader by its followers' acknowledgements.
    pub(crate) held: Option<(Leadership, Number)>,
    /// What was held in the leadership with which the present step began.
    pub(crate) held_now: Option<Number>,
    /// What it led when the present step began.
    pub(crate) led_before: Option<Leadership>,
    /// The leadership that ended in the present step.
    pub(crate) ended_now: Option<Leadership>,
    /// When it took its last input, and whether the time since then ended its leadership.
    pub(crate) stepped_at: Time,
    pub(crate) was_frozen: bool,
    /// The last frame of the leader that it follows, on the stream that is open.
    pub(crate) leader_heard: Option<(StreamId, Time)>,
    pub(crate) first_numbers: BTreeMap<JobKey, (Leadership, Number)>,
    pub(crate) tasks_asked: BTreeSet<TaskKey>,
    pub(crate) joined_late: bool,
    /// The first process at its place.
    pub(crate) first_life: bool,
    /// Has the place of a process whose disk is lost.
    pub(crate) lost_disk: bool,
    /// The highest JAC that others said to remember for it.
    pub(crate) reminded: Jac,
    /// The wall clock at its last step and at the one before.
    pub(crate) wall_now: Wall,
    pub(crate) wall_before: Wall,
    /// It led, and admitted, when its last step began.
    pub(crate) led_a_step: bool,
    pub(crate) attempts: Attempts,
}

impl Process {
    pub(crate) fn new(life: Life, member: Member, worker: Worker, born: Time, disk: Disk) -> Process {
        Process {
            life,
            member,
            worker,
            born,
            inbox: VecDeque::new(),
            free_at: born,
            wakes_at: None,
            timer: None,
            timer_waits: false,
            spins: 0,
            last_token: 0,
            tokens: BTreeMap::new(),
            answered: BTreeSet::new(),
            calls: BTreeMap::new(),
            last_stream: 0,
            ups: BTreeMap::new(),
            downs: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            computing: BTreeMap::new(),
            saving: VecDeque::new(),
            saved_by: born,
            stopping: false,
            stopped_at: None,
            newest: None,
            leads: None,
            announced: false,
            electing: false,
            admitted: 0,
            jac: Jac(0),
            told: None,
            fence: disk.position().leadership.clone(),
            first_numbers: disk.numbers(),
            disk,
            heard: BTreeMap::new(),
            held: None,
            held_now: None,
            led_before: None,
            ended_now: None,
            stepped_at: born,
            was_frozen: false,
            leader_heard: None,
            tasks_asked: BTreeSet::new(),
            joined_late: false,
            first_life: true,
            lost_disk: false,
            reminded: Jac(0),
            wall_now: Wall(0),
            wall_before: Wall(0),
            led_a_step: false,
            attempts: Attempts::default(),
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        self.member.identity()
    }

    /// The number of a job's record in the last write on its way, if the job has come as far there as `told`.
    pub(crate) fn number_on_its_way(&self, key: &JobKey, told: JobState) -> Option<Number> {
        let records = self.saving.iter().rev().flat_map(|save| &save.records);
        let last = records.filter_map(|stamped| match &stamped.record {
            Record::Job(job) if job.key == *key => Some((state_of(job), stamped.stamp.number)),
            Record::Job(_) | Record::Payload(..) | Record::Task(..) | Record::Floors(_) => None,
        });
        last.take(1).find(|(state, _)| *state >= told).map(|(_, number)| number)
    }

    /// Numbers of one leadership compare; a newer one begins anew.
    pub(crate) fn hear_held(&mut self, leadership: &Leadership, number: Number) {
        match &mut self.held {
            Some((of, held)) if of == leadership => *held = number.max(*held),
            Some((of, _)) if *of > *leadership => {}
            Some(_) | None => self.held = Some((leadership.clone(), number)),
        }
    }
}

impl Host {
    /// The clocks of the process that was born at `born`.
    pub(crate) fn clocks(&self, born: Time, now: Time) -> Now {
        let span = i128::from(now.0.saturating_sub(born.0));
        let local = span + span * i128::from(self.drift) / 1_000_000;
        Now { time: Time(u64::try_from(local).unwrap_or(0)), wall: self.wall_at(now) }
    }

    pub(crate) fn wall_at(&self, now: Time) -> Wall {
        Wall(self.wall.0 + now.0 / 1_000)
    }

    /// The least incarnation that a process without a disk may have.
    pub(crate) fn last_if_wiped(&self) -> Incarnation {
        if self.has_disk { Incarnation(0) } else { self.last.next() }
    }

    /// When its process's clock will show `local`: not earlier, at most a few microseconds later.
    pub(crate) fn when(&self, born: Time, local: Time) -> Time {
        let span = i128::from(local.0) * 1_000_000 / i128::from(1_000_000 + self.drift);
        Time(born.0.saturating_add(u64::try_from(span).unwrap_or(u64::MAX)).saturating_add(2))
    }
}

#[test]
fn a_drifting_clock_shows_a_time_not_before_it_is_said_to() {
    let host = |drift| Host {
        node: NodeId::new("w1").expect("a good name"),
        address: Address::new("w1:1").expect("a good name"),
        concurrency: 1,
        drift,
        wall: Wall(5),
        last: Incarnation(0),
        process: None,
        disk: Disk::default(),
        has_disk: false,
        service: Duration::ZERO,
        compute_factor: 1,
        away: false,
    };
    for drift in [-500, 0, 500] {
        for local in [0, 1, 999_999, 123_456_789] {
            let host = host(drift);
            let at = host.when(Time(77), Time(local));
            let shown = host.clocks(Time(77), at).time.0;
            assert!((local..local + 5).contains(&shown), "{drift} {local} {shown}");
        }
    }
}
