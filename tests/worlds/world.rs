//! A world: workers, what is on its way between them, clients, and one clock. It is copied at each turn of a search,
//! and shares with its copies all that did not change since.

use std::collections::BTreeMap;

use floodline::guarantees::Judge;
use floodline::guarantees::history::{Event, Seen};
use floodline::protocol::Input;
use floodline::protocol::effects::Effects;
use floodline::protocol::ids::Address;
use floodline::protocol::time::{Now, Time, Wall};

use crate::bounds::{Bounds, Trouble};
use crate::clients::Client;
use crate::host::{At, Host, Shared, name};
use crate::network::{Lane, Line, Way};
use crate::trouble::Phase;

/// Steps at one moment, at most: more mean that the workers talk without end.
const AT_ONCE: u32 = 20_000;
/// The clock when all begins.
const BEGIN: Time = Time::from_millis(1_000);

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) bounds: Bounds,
    pub(crate) now: Time,
    pub(crate) hosts: Vec<Shared<Host>>,
    pub(crate) lanes: BTreeMap<Lane, Line>,
    pub(crate) clients: Vec<Client>,
    pub(crate) judge: Shared<Judge>,
    pub(crate) phase: Phase,
    /// Turns that may still be taken.
    pub(crate) turns_left: u8,
    /// Whose step came last, if it had any effect.
    pub(crate) acted: Option<At>,
    /// How far what is handed on now is from what began it.
    pub(crate) depth: u32,
    pub(crate) steps: u32,
    at_once: u32,
    pub(crate) broken: Option<String>,
    /// What happens, in words; none while nobody reads it.
    pub(crate) story: Option<Vec<String>>,
}

impl World {
    /// All workers have just been started, and clients are about to come.
    pub(crate) fn new(bounds: Bounds) -> World {
        let phase = if bounds.trouble == Trouble::None { Phase::Over { since: BEGIN } } else { Phase::Before };
        let mut world = World {
            bounds,
            now: BEGIN,
            hosts: (0..bounds.nodes).map(|at| Shared::new(Host::new(at))).collect(),
            lanes: BTreeMap::new(),
            clients: Client::all(BEGIN),
            judge: Shared::new(Judge::new(bounds.cap)),
            phase,
            turns_left: bounds.turns,
            acted: None,
            depth: 0,
            steps: 0,
            at_once: 0,
            broken: None,
            story: None,
        };
        (0..bounds.nodes).for_each(|at| world.start(at));
        world
    }

    /// A process starts, from its disk.
    pub(crate) fn start(&mut self, at: At) {
        let others = self.hosts.iter().enumerate().filter(|(other, _)| *other != at);
        let peers: Vec<Address> = others.map(|(_, host)| host.member.address.clone()).collect();
        let bounds = self.bounds;
        self.hosts[at].change().start(&bounds, peers);
        let process = self.hosts[at].process();
        self.tell(|| format!("{process} starts"));
        self.see(Seen::Started { process: process.clone(), memory: true });
        if let Some(leadership) = self.hosts[at].disk.position().leadership.clone() {
            // What it knows from its disk to have followed binds it, too.
            self.see(Seen::Follows { process, leadership });
        }
        self.post(Lane { to: at, way: Way::Clock }, Input::Started);
    }

    pub(crate) fn see(&mut self, seen: Seen) {
        let at = self.now;
        let judge = self.judge.change();
        judge.see(&Event { at, seen });
        if let Some(violation) = judge.violations().first() {
            self.broken.get_or_insert(violation.to_string());
        }
    }

    pub(crate) fn break_(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    pub(crate) fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!("{} {}", self.now, what()));
        }
    }

    /// What happens if no other turn is taken: the next message, or time moves on.
    pub(crate) fn go_on(&mut self) {
        self.let_rest_pass();
        match self.next_lane() {
            Some(lane) => self.deliver(lane),
            None => self.tick(),
        }
    }

    /// Whether nothing is on its way at this moment.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.next_lane().is_none()
    }

    /// The clock moves to the next thing that is due.
    fn tick(&mut self) {
        self.at_once = 0;
        self.acted = None;
        self.make_up_for_lies();
        let deadline = |host: &Shared<Host>| host.worker.as_ref().and_then(|worker| worker.next_deadline());
        let deadlines: Vec<Option<Time>> = self.hosts.iter().map(deadline).collect();
        let late = self.lanes.values().filter(|line| !line.mail.is_empty()).map(|line| line.until);
        let clients = self.clients.iter().filter_map(Client::due);
        let later = late.filter(|until| *until > self.now);
        let Some(next) = deadlines.iter().flatten().copied().chain(later).chain(clients).min() else {
            self.break_("nothing is due any more".to_owned());
            return;
        };
        self.now = self.now.max(next);
        self.depth = 0;
        for (at, due) in deadlines.into_iter().enumerate() {
            if due.is_some_and(|due| due <= self.now) {
                self.post(Lane { to: at, way: Way::Clock }, Input::TimerFired);
            }
        }
        self.wake_clients();
    }

    /// A worker takes an input, and what follows is carried out.
    pub(crate) fn step(&mut self, at: At, input: Input) {
        self.steps += 1;
        self.at_once += 1;
        if self.at_once > AT_ONCE {
            self.break_("the workers talk without end".to_owned());
            return;
        }
        self.tell(|| {
            let text: String = format!("{input:?}").chars().take(400).collect();
            format!("{} <- {text}", name(at))
        });
        let now = Now { time: self.now, wall: Wall(self.now.0 / 1_000) };
        let mut out = Effects::default();
        let Some(worker) = self.hosts[at].change().worker.as_mut() else { return };
        worker.step(now, input, &mut out);
        self.acted = (!is_nothing(&out)).then_some(at);
        self.perform(at, out);
    }
}

fn is_nothing(out: &Effects) -> bool {
    let Effects { saves, replies, abandoned, calls, streams, computations, notices, .. } = out;
    let quiet = saves.is_empty() && replies.is_empty() && abandoned.is_empty() && calls.is_empty();
    quiet && streams.is_empty() && computations.is_empty() && notices.is_empty()
}
