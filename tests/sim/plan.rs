//! What a seed says: the size of the cluster, the weather, what gets hurt when, and what clients do.
//!
//! A plan is data: the same seed with a smaller plan is another run, which is how a failing one is shrunk.

use std::time::Duration;

use floodline::jobs::Payload;
use floodline::protocol::dice::Dice;
use floodline::protocol::ledger::Keep;
use floodline::protocol::time::{Time, Wall};
use floodline::protocol::{Rotation, Settings};

use crate::faults::{Fault, Pick, Trigger};
use crate::network::Weather;
use crate::work;

/// Everything that is decided before the first event.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) hosts: Vec<HostPlan>,
    pub(crate) directories: usize,
    /// Whether workers know one another's addresses from the start.
    pub(crate) peers: bool,
    pub(crate) settings: Settings,
    pub(crate) weather: Weather,
    /// How long things get hurt.
    pub(crate) hurt_for: Duration,
    pub(crate) faults: Vec<(Time, Fault)>,
    pub(crate) errands: Vec<ErrandPlan>,
    pub(crate) disks: Disks,
    /// Whether malformed input is sent.
    pub(crate) vandal: bool,
    /// Directories stay down at the end.
    pub(crate) no_directory_at_end: bool,
    /// Nothing at all is hurt.
    pub(crate) calm: bool,
}

/// A place where a worker runs.
#[derive(Clone, Debug)]
pub(crate) struct HostPlan {
    pub(crate) starts: Time,
    pub(crate) concurrency: u32,
    /// How much faster its clock runs, in millionths.
    pub(crate) drift: i64,
    pub(crate) wall: Wall,
    /// How slow its computations are.
    pub(crate) slow: u32,
}

/// What is left of a process that ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disks {
    /// Whether what was journalled outlives the process.
    pub(crate) kept: bool,
    /// Of 100 kills, so many take the disk with them.
    pub(crate) wiped: u64,
    /// How long a save takes at most.
    pub(crate) save: Duration,
}

/// One client with one job.
#[derive(Clone, Debug)]
pub(crate) struct ErrandPlan {
    pub(crate) id: String,
    pub(crate) payload: Payload,
    pub(crate) at: Time,
    pub(crate) cancels: bool,
    /// By a clock that is right.
    pub(crate) deadline: Option<Wall>,
    pub(crate) subscribes: bool,
    /// Another payload may be there under its id.
    pub(crate) rival: bool,
    /// It names its job by the bare id.
    pub(crate) bare: bool,
}

fn pick<T: Copy>(dice: &mut Dice, of: &[T]) -> T {
    *dice.pick(of).expect("not empty")
}

/// The wall clock at the beginning, about.
const WALL: u64 = 1_700_000_000_000;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

impl Plan {
    pub(crate) fn new(seed: u64) -> Plan {
        let dice = &mut Dice::new(seed ^ 0x5EED_F100_D11E);
        let workers = pick(dice, &[1, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7, 9]);
        let calm = dice.below(12) == 0;
        let long = !calm && dice.below(25) == 0;
        let hurt_for = if long { dice.span(SECS(12), SECS(45)) } else { dice.span(SECS(3), SECS(10)) };
        let directories = pick(dice, &[0, 1, 1, 1, 1, 1, 2]);
        let hosts = hosts(dice, workers, calm, hurt_for);
        let faults = if calm { Vec::new() } else { faults(dice, hurt_for, long) };
        let no_directory_at_end = directories == 0 || dice.below(12) == 0;
        Plan {
            hosts,
            directories,
            // Who starts while no directory is there has nothing else to go by.
            peers: no_directory_at_end || dice.below(3) == 0,
            settings: settings(dice, workers),
            weather: if calm { Weather::fair() } else { weather(dice) },
            hurt_for,
            faults,
            errands: errands(dice, hurt_for),
            disks: disks(dice),
            vandal: dice.below(4) == 0,
            no_directory_at_end,
            calm,
        }
    }
}

fn settings(dice: &mut Dice, workers: u64) -> Settings {
    let majority = u32::try_from(workers / 2 + 1).unwrap_or(1);
    let (breakdowns, lines) = pick(dice, &[(1_000, 20_000), (1_000, 20_000), (2, 20_000), (0, 20_000)]);
    Settings {
        max_jobs_per_term: pick(dice, &[5, 5, 5, 2, 1]),
        queue: pick(dice, &[256, 256, 256, 2]),
        max_numbers: 5_000,
        rotation: pick(dice, &[Rotation::Drain, Rotation::Drain, Rotation::Handover]),
        drain_limit: pick(dice, &[SECS(10), SECS(10), MS(50)]),
        min_members: pick(dice, &[1, 1, 1, 1, majority, majority.min(2)]),
        keep: Keep { breakdowns, lines },
        ..Settings::default()
    }
}

fn hosts(dice: &mut Dice, workers: u64, calm: bool, hurt_for: Duration) -> Vec<HostPlan> {
    let spread = pick(dice, &[Duration::ZERO, MS(20), SECS(1)]);
    let joiners = if workers < 9 && dice.below(3) == 0 { 1 + dice.below((9 - workers).min(2)) } else { 0 };
    // Clocks are nearly right in most clusters, and some percent wrong in some.
    let drift = if calm { 0 } else { pick(dice, &[200, 200, 200, 30_000]) };
    let host = |at| HostPlan {
        starts: Time::ZERO
            + if at < workers { dice.span(Duration::ZERO, spread) } else { dice.span(MS(1_500), hurt_for) },
        concurrency: 1 + u32::try_from(dice.below(3)).unwrap_or(0),
        drift: i64::try_from(dice.below(2 * drift + 1)).unwrap_or(0) - drift.cast_signed(),
        wall: Wall(WALL + dice.below(2_000)),
        slow: if dice.below(8) == 0 { 30 } else { 1 },
    };
    (0..workers + joiners).map(host).collect()
}

fn disks(dice: &mut Dice) -> Disks {
    let save = pick(dice, &[Duration::from_micros(100), MS(3), MS(300)]);
    let (kept, wiped) = pick(dice, &[(false, 100), (true, 0), (true, 0), (true, 25), (true, 60)]);
    Disks { kept, wiped, save }
}

fn errands(dice: &mut Dice, hurt_for: Duration) -> Vec<ErrandPlan> {
    let mut errands: Vec<ErrandPlan> = Vec::new();
    let mut add = |dice: &mut Dice, id: &str, payload: Payload, rival: bool| {
        errands.push(ErrandPlan {
            id: id.to_owned(),
            payload,
            at: Time::ZERO + dice.span(MS(20), hurt_for),
            cancels: dice.below(8) == 0,
            deadline: (dice.below(12) == 0).then(|| Wall(WALL + dice.below(12_000))),
            subscribes: dice.below(4) > 0,
            rival,
            bare: !rival && dice.below(2) == 0,
        });
    };
    for at in 0..1 + dice.below(12) {
        let id = format!("job-{at}");
        let payload = if dice.below(25) == 0 { work::poisoned(dice) } else { work::any(dice) };
        match dice.below(12) {
            0 => {
                add(dice, &id, payload.clone(), false);
                add(dice, &id, payload, false);
            }
            1 => {
                let other = work::any(dice);
                let rival = other != payload;
                add(dice, &id, payload, rival);
                add(dice, &id, other, rival);
            }
            _ => add(dice, &id, payload, false),
        }
    }
    errands
}

fn weather(dice: &mut Dice) -> Weather {
    Weather {
        lost: pick(dice, &[0, 0, 5, 50, 200]),
        doubled: pick(dice, &[0, 0, 20, 200]),
        late: pick(dice, &[0, 0, 20, 200]),
        late_by: pick(dice, &[MS(20), MS(300), SECS(2)]),
        latency: pick(dice, &[Duration::from_micros(300), MS(2), MS(10)]),
    }
}

/// Gathers faults. Each kind is there in some seeds only, so that some seeds have a single one of them.
struct Faults<'a> {
    dice: &'a mut Dice,
    hurt_for: Duration,
    faults: Vec<(Time, Fault)>,
}

impl Faults<'_> {
    fn add(&mut self, chance: u64, most: u64, make: impl Fn(&mut Dice) -> Fault) {
        if self.dice.below(100) < chance {
            for _ in 0..1 + self.dice.below(most) {
                let at = Time::ZERO + self.dice.span(MS(100), self.hurt_for);
                self.faults.push((at, make(self.dice)));
            }
        }
    }
}

fn faults(dice: &mut Dice, hurt_for: Duration, long: bool) -> Vec<(Time, Fault)> {
    let who = |dice: &mut Dice| pick(dice, &[Pick::Leader, Pick::Leader, Pick::Follower, Pick::Anyone]);
    let mut all = Faults { dice, hurt_for, faults: Vec::new() };
    if long {
        // Longer than any lease, so that each part forgets the other one.
        let begins = all.dice.span(MS(200), hurt_for / 3);
        let fault =
            Fault::Split { one_way: false, alone: all.dice.below(4) == 0, for_: all.dice.span(SECS(8), SECS(40)) };
        all.faults.push((Time::ZERO + begins, fault));
    }
    all.add(40, 3, |dice| Fault::Kill(who(dice)));
    all.add(15, 2, |dice| Fault::Strand(dice.span(MS(700), SECS(5))));
    // In some clusters nearly everybody dies again and again.
    all.add(8, 10, |_| Fault::Kill(Pick::Anyone));
    all.add(55, 4, |dice| Fault::Doom(*dice.pick(Trigger::ALL).expect("not empty")));
    all.add(15, 2, |_| Fault::KillAll);
    all.add(35, 2, |dice| {
        let most = pick(dice, &[MS(300), SECS(2), SECS(6)]);
        Fault::Split { one_way: dice.below(4) == 0, alone: dice.below(3) == 0, for_: dice.span(most / 10, most) }
    });
    all.add(25, 2, |dice| Fault::Pause(who(dice), dice.span(MS(50), SECS(3))));
    all.add(15, 1, |dice| Fault::Slow(who(dice), dice.span(Duration::from_micros(500), MS(20))));
    all.add(15, 2, |dice| Fault::Stop(who(dice)));
    all.add(15, 1, |dice| Fault::DirectoryDown(dice.span(MS(500), SECS(12))));
    all.add(20, 3, |dice| {
        let most = pick(dice, &[1_000, 60_000, 5 * 3_600_000]);
        Fault::WallClock(who(dice), i64::try_from(dice.below(2 * most)).unwrap_or(0) - most.cast_signed())
    });
    all.faults.sort_by_key(|(at, _)| *at);
    all.faults
}
