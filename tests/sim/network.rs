//! The network between hosts: who is cut off from whom, how long a message takes, which get lost or doubled.
//!
//! Hosts are numbered: the workers first, then the directories. Clients reach everybody.

use std::time::Duration;

use floodline::protocol::dice::Dice;

/// How bad the network is.
#[derive(Clone, Debug)]
pub(crate) struct Weather {
    /// Of 1,000 unary messages, so many get lost.
    pub(crate) lost: u64,
    /// Of 1,000 calls, so many are delivered twice.
    pub(crate) doubled: u64,
    /// Of 1,000 messages, so many take up to `late_by`.
    pub(crate) late: u64,
    pub(crate) late_by: Duration,
    /// The usual time on the way.
    pub(crate) latency: Duration,
}

impl Weather {
    /// What is left when nothing is hurt any more.
    pub(crate) fn fair() -> Weather {
        Weather { lost: 0, doubled: 0, late: 0, late_by: Duration::ZERO, latency: Duration::from_millis(1) }
    }

    pub(crate) fn is_fair(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.late == 0
    }
}

/// The links of all hosts, in each direction.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) weather: Weather,
    cut: Vec<Vec<bool>>,
}

impl Network {
    pub(crate) fn new(hosts: usize, weather: Weather) -> Network {
        Network { weather, cut: vec![vec![false; hosts]; hosts] }
    }

    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        if from != to {
            self.cut[from][to] = true;
        }
    }

    pub(crate) fn heal(&mut self) {
        self.cut.iter_mut().for_each(|row| row.fill(false));
    }

    pub(crate) fn passes(&self, from: usize, to: usize) -> bool {
        !self.cut[from][to]
    }

    /// A call needs both directions.
    pub(crate) fn connects(&self, one: usize, other: usize) -> bool {
        self.passes(one, other) && self.passes(other, one)
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.iter().flatten().any(|cut| *cut)
    }

    pub(crate) fn is_lost(&self, dice: &mut Dice) -> bool {
        self.weather.lost > 0 && dice.below(1_000) < self.weather.lost
    }

    pub(crate) fn is_doubled(&self, dice: &mut Dice) -> bool {
        self.weather.doubled > 0 && dice.below(1_000) < self.weather.doubled
    }

    pub(crate) fn delay(&self, dice: &mut Dice) -> Duration {
        let weather = &self.weather;
        let usual = dice.span(Duration::from_micros(50), weather.latency);
        if weather.late > 0 && dice.below(1_000) < weather.late {
            return usual + dice.span(Duration::ZERO, weather.late_by);
        }
        usual
    }
}

#[test]
fn a_cut_is_one_way_until_the_other_way_is_cut_too() {
    let mut network = Network::new(3, Weather::fair());
    network.cut(0, 1);
    assert!(!network.passes(0, 1) && network.passes(1, 0) && !network.connects(1, 0));
    assert!(network.connects(0, 2) && network.is_cut());
    network.heal();
    assert!(network.connects(0, 1) && !network.is_cut());
}

#[test]
fn loss_and_doubling_come_about_as_often_as_asked() {
    let weather = Weather { lost: 100, doubled: 500, late: 0, ..Weather::fair() };
    let (network, mut dice) = (Network::new(1, weather), Dice::new(1));
    let lost = (0..10_000).filter(|_| network.is_lost(&mut dice)).count();
    let doubled = (0..10_000).filter(|_| network.is_doubled(&mut dice)).count();
    assert!((900..1_100).contains(&lost) && (4_800..5_200).contains(&doubled), "{lost} {doubled}");
}
