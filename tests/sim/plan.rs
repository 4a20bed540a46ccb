//! What a seed says: the size of the cluster, the weather, what gets hurt when, and what clients do.

use std::time::Duration;

use floodline::protocol::Settings;
use floodline::protocol::dice::Dice;
use floodline::protocol::time::Time;

use crate::faults::{Fault, Pick, Trigger};
use crate::network::Weather;

/// Everything that is decided before the first event.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Workers that start at once, or nearly.
    pub(crate) workers: usize,
    /// Workers that join later.
    pub(crate) joiners: usize,
    pub(crate) directories: usize,
    /// Whether workers know one another's addresses from the start.
    pub(crate) peers: bool,
    /// Within which time the first workers start.
    pub(crate) start_spread: Duration,
    pub(crate) settings: Settings,
    pub(crate) weather: Weather,
    /// How long things get hurt.
    pub(crate) hurt_for: Duration,
    pub(crate) faults: Vec<(Time, Fault)>,
    pub(crate) errands: usize,
    /// How long a save takes at most.
    pub(crate) save: Duration,
    /// Whether malformed input is sent.
    pub(crate) vandal: bool,
    /// Directories stay down at the end.
    pub(crate) no_directory_at_end: bool,
    /// Whether what was journalled outlives the process.
    pub(crate) disks: bool,
    /// Nothing at all is hurt.
    pub(crate) calm: bool,
}

impl Plan {
    pub(crate) fn new(dice: &mut Dice) -> Plan {
        let workers = *dice.pick(&[1, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 7, 9]).expect("not empty");
        let calm = dice.below(12) == 0;
        let hurt_for = dice.span(Duration::from_secs(3), Duration::from_secs(10));
        let directories = *dice.pick(&[0, 1, 1, 1, 1, 1, 2]).expect("not empty");
        let joiners = if workers < 9 && dice.below(3) == 0 { 1 } else { 0 };
        let faults = if calm { Vec::new() } else { faults(dice, workers, joiners, hurt_for) };
        let no_directory_at_end = directories == 0 || dice.below(12) == 0;
        let settings = Settings {
            max_jobs_per_term: *dice.pick(&[5, 5, 5, 2, 1]).expect("not empty"),
            queue: *dice.pick(&[256, 256, 256, 2]).expect("not empty"),
            max_numbers: 5_000,
            ..Settings::default()
        };
        Plan {
            workers,
            joiners,
            directories,
            // Who starts while no directory is there has nothing else to go by.
            peers: no_directory_at_end || dice.below(3) == 0,
            start_spread: *dice
                .pick(&[Duration::ZERO, Duration::from_millis(20), Duration::from_secs(1)])
                .expect("not empty"),
            settings,
            weather: if calm { Weather::fair() } else { weather(dice) },
            hurt_for,
            faults,
            errands: usize::try_from(1 + dice.below(12)).unwrap_or(1),
            save: *dice
                .pick(&[Duration::from_micros(100), Duration::from_millis(3), Duration::from_millis(300)])
                .expect("not empty"),
            vandal: dice.below(4) == 0,
            no_directory_at_end,
            disks: false,
            calm,
        }
    }
}

fn weather(dice: &mut Dice) -> Weather {
    Weather {
        lost: *dice.pick(&[0, 0, 5, 50, 200]).expect("not empty"),
        doubled: *dice.pick(&[0, 0, 20, 200]).expect("not empty"),
        late: *dice.pick(&[0, 0, 20, 200]).expect("not empty"),
        late_by: *dice
            .pick(&[Duration::from_millis(20), Duration::from_millis(300), Duration::from_secs(2)])
            .expect("not empty"),
        latency: *dice
            .pick(&[Duration::from_micros(300), Duration::from_millis(2), Duration::from_millis(10)])
            .expect("not empty"),
    }
}

fn faults(dice: &mut Dice, workers: usize, joiners: usize, hurt_for: Duration) -> Vec<(Time, Fault)> {
    let mut faults = Vec::new();
    // Each kind of fault is there in some seeds only, so that some seeds have a single one of them.
    let add =
        |dice: &mut Dice, chance: u64, most: u64, make: &mut dyn FnMut(&mut Dice) -> Fault, faults: &mut Vec<_>| {
            if dice.below(100) < chance {
                for _ in 0..1 + dice.below(most) {
                    let at = Time::ZERO + dice.span(Duration::from_millis(100), hurt_for);
                    faults.push((at, make(dice)));
                }
            }
        };
    let pick =
        |dice: &mut Dice| *dice.pick(&[Pick::Leader, Pick::Leader, Pick::Follower, Pick::Anyone]).expect("not empty");
    add(dice, 40, 3, &mut |dice| Fault::Kill(pick(dice)), &mut faults);
    add(dice, 55, 4, &mut |dice| Fault::Doom(*dice.pick(Trigger::ALL).expect("not empty")), &mut faults);
    let spans = [Duration::from_millis(300), Duration::from_secs(2), Duration::from_secs(6)];
    add(
        dice,
        35,
        2,
        &mut |dice| {
            let most = *dice.pick(&spans).expect("not empty");
            Fault::Split { one_way: dice.below(4) == 0, alone: dice.below(3) == 0, for_: dice.span(most / 10, most) }
        },
        &mut faults,
    );
    add(
        dice,
        25,
        2,
        &mut |dice| Fault::Pause(pick(dice), dice.span(Duration::from_millis(50), Duration::from_secs(3))),
        &mut faults,
    );
    add(
        dice,
        15,
        1,
        &mut |dice| Fault::Slow(pick(dice), dice.span(Duration::from_micros(500), Duration::from_millis(20))),
        &mut faults,
    );
    add(dice, 15, 2, &mut |dice| Fault::Stop(pick(dice)), &mut faults);
    add(
        dice,
        15,
        1,
        &mut |dice| Fault::DirectoryDown(dice.span(Duration::from_millis(500), Duration::from_secs(12))),
        &mut faults,
    );
    for joiner in workers..workers + joiners {
        faults.push((Time::ZERO + dice.span(Duration::from_millis(500), hurt_for), Fault::Join(joiner)));
    }
    faults.sort_by_key(|(at, _)| *at);
    faults
}
