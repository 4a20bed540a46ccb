//! What gets hurt: kills at a moment or at a situation, splits, pauses, slowness, joins, orderly stops.

use std::time::Duration;

use floodline::guarantees::history::{Hurt, Seen};
use floodline::protocol::Input;
use floodline::protocol::effects::Call;
use floodline::protocol::message::{Purpose, Request};
use floodline::protocol::notice::Notice;
use floodline::protocol::time::{Time, Wall};

use crate::marks::Mark;
use crate::network::Weather;
use crate::process::Life;
use crate::registry::LEASE_TTL;
use crate::world::{Happening, World};

/// What pauses and slowness may add to the bound of an orderly stop.
const LATEST_PAUSE: Duration = Duration::from_secs(7);

/// Who.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pick {
    Leader,
    Follower,
    Anyone,
}

/// The step at which whoever takes it dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    AnyStep,
    ElectionStarted,
    ElectionReached,
    Won,
    Announces,
    Active,
    MovedUp,
    Settles,
    JobAdmitted,
    HandsOut,
    TaskEnded,
    JobEnded,
    FollowerJoined,
}

impl Trigger {
    pub(crate) const ALL: &'static [Trigger] = &[
        Trigger::AnyStep,
        Trigger::ElectionStarted,
        Trigger::ElectionReached,
        Trigger::Won,
        Trigger::Announces,
        Trigger::Active,
        Trigger::MovedUp,
        Trigger::Settles,
        Trigger::JobAdmitted,
        Trigger::HandsOut,
        Trigger::TaskEnded,
        Trigger::JobEnded,
        Trigger::FollowerJoined,
    ];

    fn fits(self, notices: &[Notice], calls: &[Call]) -> bool {
        let noticed = |test: fn(&Notice) -> bool| notices.iter().any(test);
        let announces = |purpose: Purpose| {
            calls.iter().any(|call| matches!(&call.request, Request::Announce(sent) if sent.purpose == purpose))
        };
        match self {
            Trigger::AnyStep => true,
            Trigger::ElectionStarted => noticed(|notice| matches!(notice, Notice::ElectionStarted { .. })),
            Trigger::ElectionReached => noticed(|notice| matches!(notice, Notice::ElectionReached { .. })),
            Trigger::Won => noticed(|notice| matches!(notice, Notice::LeadershipBegan { .. })),
            Trigger::Announces => announces(Purpose::Flood) || announces(Purpose::Won),
            Trigger::Active => noticed(|notice| matches!(notice, Notice::LeadershipActive(..))),
            Trigger::MovedUp => noticed(|notice| matches!(notice, Notice::LeadershipMovedUp(..))),
            Trigger::Settles => announces(Purpose::Settle) || announces(Purpose::Met),
            Trigger::JobAdmitted => noticed(|notice| matches!(notice, Notice::JobAdmitted { .. })),
            Trigger::HandsOut => noticed(|notice| matches!(notice, Notice::TaskHandedOut { .. })),
            Trigger::TaskEnded => noticed(|notice| matches!(notice, Notice::TaskEnded { .. })),
            Trigger::JobEnded => noticed(|notice| matches!(notice, Notice::JobEnded(..))),
            Trigger::FollowerJoined => noticed(|notice| matches!(notice, Notice::FollowerJoined(..))),
        }
    }
}

/// Something that hurts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Kill(Pick),
    KillAll,
    /// A leader is killed, loses its disk, and comes back where it reaches nobody for a time.
    Strand(Duration),
    Doom(Trigger),
    Split {
        one_way: bool,
        alone: bool,
        for_: Duration,
    },
    Pause(Pick, Duration),
    Slow(Pick, Duration),
    Stop(Pick),
    DirectoryDown(Duration),
    /// A wall clock is put forward or back by so many milliseconds.
    WallClock(Pick, i64),
}

/// A split that has not healed: its sides, and the admissions seen on each since.
#[derive(Debug)]
pub(crate) struct Split {
    id: u64,
    since: Time,
    pub(crate) sides: Vec<bool>,
    pub(crate) admitted: [u32; 2],
}

impl World {
    pub(crate) fn hurt(&mut self, fault: Fault) {
        if self.quiet_since.is_some() {
            return;
        }
        self.tell(|_| format!("fault {fault:?}"));
        match fault {
            Fault::Kill(pick) => {
                if let Some(at) = self.pick(pick).filter(|at| self.may_die(*at)) {
                    self.kill(at);
                }
            }
            Fault::KillAll => self.kill_all(),
            Fault::Strand(span) => self.strand(span),
            Fault::Doom(trigger) => self.dooms.push(trigger),
            Fault::Split { one_way, alone, for_ } => self.split(one_way, alone, for_),
            Fault::Pause(pick, span) => self.pause(pick, span),
            Fault::Slow(pick, service) => {
                if let Some(at) = self.pick(pick) {
                    self.see(Seen::Hurt(Hurt::Silence));
                    self.hosts[at].service = service;
                }
            }
            Fault::Stop(pick) => self.stop(pick),
            Fault::DirectoryDown(span) => {
                if !self.registries.is_empty() {
                    let at = self.dice.below(self.registries.len() as u64) as usize;
                    self.directory_down(at, span);
                }
            }
            Fault::WallClock(pick, by) => self.step_clock(pick, by),
        }
    }

    fn pick(&mut self, pick: Pick) -> Option<usize> {
        let fits = |leads: bool| match pick {
            Pick::Leader => leads,
            Pick::Follower => !leads,
            Pick::Anyone => true,
        };
        let fitting: Vec<usize> =
            self.running().filter(|(_, process)| fits(process.leads.is_some())).map(|(at, _)| at).collect();
        self.dice.pick(&fitting).copied()
    }

    /// Whether this step is one at which somebody has to die.
    pub(crate) fn is_doomed(&mut self, at: usize, notices: &[Notice], calls: &[Call]) -> bool {
        let Some(doom) = self.dooms.iter().position(|trigger| trigger.fits(notices, calls)) else { return false };
        if !self.may_die(at) {
            return false;
        }
        self.dooms.remove(doom);
        true
    }

    fn split(&mut self, one_way: bool, alone: bool, span: Duration) {
        if self.split.is_some() {
            return;
        }
        let lonely = if alone { self.pick(Pick::Anyone) } else { None };
        self.cut_off(lonely, one_way, span);
    }

    fn strand(&mut self, span: Duration) {
        let Some(at) = self.pick(Pick::Leader).filter(|at| self.split.is_none() && self.may_lose(*at)) else { return };
        self.cut_off(Some(at), false, span);
        self.kill_and_wipe(at);
        self.after(Duration::from_millis(40), Happening::Start(at));
    }

    /// Splits the cluster: one place from the others, or each place to a side at random.
    fn cut_off(&mut self, lonely: Option<usize>, one_way: bool, span: Duration) {
        let places = self.hosts.len() + self.registries.len();
        let dice = &mut self.dice;
        let sides: Vec<bool> = match lonely {
            Some(lonely) => (0..places).map(|place| place == lonely).collect(),
            None => (0..places).map(|_| dice.below(2) == 0).collect(),
        };
        for (from, here) in sides.iter().enumerate() {
            for (to, there) in sides.iter().enumerate() {
                if here != there && (!one_way || *here) {
                    self.net.cut(from, to);
                }
            }
        }
        if !self.net.is_cut() {
            return;
        }
        self.see(Seen::Hurt(Hurt::Split));
        self.whole_since = None;
        let side: Vec<&str> =
            self.hosts.iter().zip(&sides).filter(|(_, side)| **side).map(|(host, _)| host.node.as_str()).collect();
        let text = format!("split off: {side:?}{}", if one_way { ", one way" } else { "" });
        self.tell(|_| text);
        let id = self.fresh();
        self.split = Some(Split { id, since: self.now, sides, admitted: [0, 0] });
        self.strain_streams();
        self.strain_watches();
        self.after(span, Happening::Heal(id));
        self.cancel_some();
    }

    pub(crate) fn heal(&mut self, id: u64) {
        let Some(split) = self.split.take_if(|split| split.id == id) else { return };
        self.tell(|_| "healed".to_owned());
        if split.admitted.iter().all(|admitted| *admitted > 0) {
            self.marks.hit(Mark::SplitHealedJobsInBoth);
            if self.now.since(split.since) > LEASE_TTL {
                self.marks.hit(Mark::LongSplitHealed);
            }
        }
        self.net.heal();
        self.whole_since = Some(self.now);
        self.release_streams();
    }

    fn pause(&mut self, pick: Pick, span: Duration) {
        let Some(at) = self.pick(pick) else { return };
        let until = self.now + span;
        self.see(Seen::Hurt(Hurt::Silence));
        self.tell(|world| format!("{} stands still until {until}", world.hosts[at].node));
        self.busy_until(at, until);
        let Some(process) = &mut self.hosts[at].process else { return };
        if process.leads.is_some() && span > self.plan.settings.election_timeout_max {
            self.marks.hit(Mark::LeaderFrozen);
        }
        let life = process.life;
        self.after(span, Happening::Thaw(at, life));
    }

    fn step_clock(&mut self, pick: Pick, by: i64) {
        let Some(at) = self.pick(pick) else { return };
        let host = &mut self.hosts[at];
        host.wall = Wall(host.wall.0.saturating_add_signed(by));
        self.marks.hit(Mark::ClockStepped);
    }

    pub(crate) fn thaw(&mut self, at: usize, life: Life) {
        if self.process(at, life).is_some() {
            self.serve(at);
        }
    }

    fn stop(&mut self, pick: Pick) {
        let Some(at) = self.pick(pick).filter(|at| self.may_die(*at)) else { return };
        let now = self.now;
        let Some(process) = self.hosts[at].process.as_mut().filter(|process| !process.stopping) else { return };
        (process.stopping, process.stopped_at) = (true, Some(now));
        let (life, leads) = (process.life, process.leads.is_some());
        if leads {
            self.marks.hit(Mark::LeaderStopped);
        }
        self.deliver(at, life, Input::Stop);
        let grace = self.plan.settings.stop_grace + LATEST_PAUSE;
        self.after(grace, Happening::Overdue(at, life));
    }

    pub(crate) fn overdue(&mut self, at: usize, life: Life) {
        if self.process(at, life).is_some() {
            let text = format!(
                "{} has not ended {:?} after it was asked to",
                self.hosts[at].node, self.plan.settings.stop_grace
            );
            self.break_("SIGTERM (section 2)", text);
        }
    }

    /// Nothing is hurt any more.
    pub(crate) fn quiet(&mut self) {
        self.quiet_since = Some(self.now);
        self.tell(|_| "quiet".to_owned());
        self.see(Seen::Quiet);
        self.dooms.clear();
        self.net.weather =
            Weather { latency: self.net.weather.latency.min(Duration::from_millis(2)), ..Weather::fair() };
        if let Some(id) = self.split.as_ref().map(|split| split.id) {
            self.heal(id);
        }
        for at in 0..self.registries.len() {
            self.directory_back(at);
        }
        for at in 0..self.hosts.len() {
            self.hosts[at].service = Duration::ZERO;
            let now = self.now;
            if let Some(process) = &mut self.hosts[at].process {
                process.free_at = process.free_at.min(now);
                self.serve(at);
            }
        }
        self.all_come_back();
    }
}
