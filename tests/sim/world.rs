//! One seed's world: hosts, directories, clients and the network between them, moved by one event queue.
//!
//! Owns time. Everything that happens is a [`Happening`] of the queue, so that the same seed gives the same run.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

use floodline::guarantees::history::{Event, Hurt, Seen};
use floodline::guarantees::{Judge, Violation};
use floodline::protocol::dice::Dice;
use floodline::protocol::effects::Effects;
use floodline::protocol::ids::{Address, Incarnation, Member, NodeId};
use floodline::protocol::time::Time;
use floodline::protocol::{Input, Setup, Worker};

use crate::calls::{Arrival, Flight};
use crate::clients::{Errand, Step};
use crate::compact::compact;
use crate::disk::Disk;
use crate::faults::{Fault, Trigger};
use crate::marks::{Mark, Marks};
use crate::network::Network;
use crate::plan::{HostPlan, Plan};
use crate::process::{Host, Life, Process};
use crate::queue::Queue;
use crate::registry::{Registry, RegistryEvent};
use crate::streams::{Pipe, PipeEvent};
use crate::truth::Truth;

/// What happens next.
#[derive(Debug)]
pub(crate) enum Happening {
    Start(usize),
    Input(usize, Life, Input),
    Wake(usize, Life),
    Timer(usize, Life, Time),
    Saved(usize, Life),
    Call(Arrival),
    Pipe(u64, PipeEvent),
    Registry(usize, RegistryEvent),
    Errand(usize, Step),
    Fault(Fault),
    Heal(u64),
    Thaw(usize, Life),
    Overdue(usize, Life),
    Garbage,
    Quiet,
    Look,
}

/// Where the transcript goes.
#[derive(Debug)]
pub(crate) enum Talk {
    Off,
    Print,
    Keep(String),
}

/// A run.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) dice: Dice,
    pub(crate) now: Time,
    pub(crate) queue: Queue<Happening>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) registries: Vec<Registry>,
    pub(crate) net: Network,
    pub(crate) flights: BTreeMap<u64, Flight>,
    pub(crate) pipes: BTreeMap<u64, Pipe>,
    pub(crate) errands: Vec<Errand>,
    pub(crate) dooms: Vec<Trigger>,
    pub(crate) split: Option<crate::faults::Split>,
    pub(crate) judge: Judge,
    pub(crate) truth: Truth,
    pub(crate) marks: Marks,
    pub(crate) talk: Talk,
    pub(crate) broken: Option<Violation>,
    pub(crate) quiet_since: Option<Time>,
    pub(crate) settled_looks: u32,
    /// Since when nobody is cut off from anybody; none while somebody is.
    pub(crate) whole_since: Option<Time>,
    /// Something was split, lost or late.
    pub(crate) was_hurt: bool,
    pub(crate) done: bool,
    pub(crate) steps: u64,
    pub(crate) scratch: Effects,
    last: u64,
}

/// How long a cluster that is not hurt any more may take to be whole.
const SETTLE: Duration = Duration::from_secs(60);
/// Without a directory lost members are tried once a minute.
const SETTLE_WITHOUT_DIRECTORY: Duration = Duration::from_secs(150);

/// Who starts later joins a cluster that runs.
const LATE_START: Time = Time(1_200_000);

/// Far more than any cluster here needs.
const MOST_STEPS: u64 = 1_000_000;

impl World {
    pub(crate) fn new(seed: u64, plan: Plan, talk: Talk) -> World {
        let dice = Dice::new(seed ^ 0x0D1C_E0FA_2024);
        let hosts: Vec<Host> = plan.hosts.iter().enumerate().map(|(at, planned)| host(at, planned)).collect();
        let net = Network::new(hosts.len() + plan.directories, plan.weather.clone());
        let (cap, keep) = (plan.settings.max_jobs_per_term, plan.settings.keep);
        let lines = keep.lines.max(keep.breakdowns);
        let mut world = World {
            dice,
            now: Time::ZERO,
            queue: Queue::new(),
            hosts,
            registries: Vec::new(),
            net,
            flights: BTreeMap::new(),
            pipes: BTreeMap::new(),
            errands: Vec::new(),
            dooms: Vec::new(),
            split: None,
            judge: Judge::new(cap).keeping(lines),
            truth: Truth::default(),
            marks: Marks::new(),
            talk,
            broken: None,
            quiet_since: None,
            settled_looks: 0,
            whole_since: Some(Time::ZERO),
            was_hurt: false,
            done: false,
            steps: 0,
            scratch: Effects::default(),
            last: 0,
            plan,
        };
        world.set_up();
        world
    }

    fn set_up(&mut self) {
        self.tell(|world| format!("plan {:?}", world.plan));
        if !self.net.weather.is_fair() {
            self.see(Seen::Hurt(Hurt::Silence));
        }
        for at in 0..self.plan.directories {
            let incarnation = self.fresh();
            self.registries.push(Registry::new(incarnation, &mut self.dice));
            self.tell(|_| format!("directory {at} is up"));
        }
        for (at, host) in self.plan.hosts.iter().enumerate() {
            self.queue.add(host.starts, Happening::Start(at));
        }
        self.set_out_errands();
        for (at, fault) in &self.plan.faults {
            self.queue.add(*at, Happening::Fault(*fault));
        }
        if self.plan.vandal {
            self.after(Duration::from_millis(700), Happening::Garbage);
        }
        self.after(self.plan.hurt_for, Happening::Quiet);
        self.after(Duration::from_millis(50), Happening::Look);
    }

    /// Runs until the cluster is whole again, or something is broken.
    pub(crate) fn run(&mut self) {
        while !self.done && self.broken.is_none() && self.judge.violations().is_empty() {
            let Some((at, happening)) = self.queue.take() else { return };
            if self.steps > MOST_STEPS {
                self.break_("steps", format!("{MOST_STEPS} inputs and no end: somebody talks to himself"));
            }
            self.now = at.max(self.now);
            self.happen(happening);
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Start(host) => self.start(host),
            Happening::Input(host, life, input) => self.deliver(host, life, input),
            Happening::Wake(host, life) => {
                if let Some(process) = self.process(host, life) {
                    process.wakes_at = None;
                    self.serve(host);
                }
            }
            Happening::Timer(host, life, at) => self.timer(host, life, at),
            Happening::Saved(host, life) => self.saved(host, life),
            Happening::Call(arrival) => self.arrive(arrival),
            Happening::Pipe(pipe, event) => self.pipe_event(pipe, event),
            Happening::Registry(at, event) => self.registry_event(at, event),
            Happening::Errand(errand, step) => self.errand_step(errand, step),
            Happening::Fault(fault) => self.hurt(fault),
            Happening::Heal(split) => self.heal(split),
            Happening::Thaw(host, life) => self.thaw(host, life),
            Happening::Overdue(host, life) => self.overdue(host, life),
            Happening::Garbage => self.throw_garbage(),
            Happening::Quiet => self.quiet(),
            Happening::Look => self.look(),
        }
    }

    /// The settle time over which a whole cluster is called broken.
    pub(crate) fn patience(&self) -> Duration {
        if self.plan.no_directory_at_end { SETTLE_WITHOUT_DIRECTORY } else { SETTLE }
    }

    pub(crate) fn fresh(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn after(&mut self, span: Duration, happening: Happening) {
        let at = self.now + span.max(Duration::from_micros(1));
        self.queue.add(at, happening);
    }

    pub(crate) fn tell(&mut self, make: impl FnOnce(&World) -> String) {
        if matches!(self.talk, Talk::Off) {
            return;
        }
        let line = format!("{:>12}  {}\n", self.now.to_string(), make(self));
        match &mut self.talk {
            Talk::Off => {}
            Talk::Print => std::io::stdout().write_all(line.as_bytes()).expect("stdout is open"),
            Talk::Keep(text) => text.push_str(&line),
        }
    }

    pub(crate) fn see(&mut self, seen: Seen) {
        self.was_hurt |= matches!(seen, Seen::Hurt(_));
        self.judge.see(&Event { at: self.now, seen });
    }

    pub(crate) fn break_(&mut self, what: &'static str, text: String) {
        if self.broken.is_none() {
            self.broken = Some(Violation { guarantee: what, at: self.now, text });
        }
    }

    pub(crate) fn process(&mut self, host: usize, life: Life) -> Option<&mut Process> {
        self.hosts[host].process.as_mut().filter(|process| process.life == life)
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = (usize, &Process)> {
        self.hosts.iter().enumerate().filter_map(|(at, host)| host.process.as_ref().map(|process| (at, process)))
    }

    pub(crate) fn host_at(&self, address: &Address) -> Option<usize> {
        self.hosts.iter().position(|host| host.address == *address)
    }

    pub(crate) fn start(&mut self, at: usize) {
        if self.hosts[at].process.is_some() {
            return;
        }
        let (now, late) = (self.now, self.plan.hosts[at].starts > LATE_START);
        let life = Life(self.fresh());
        let seed = self.dice.roll();
        let peers =
            if self.plan.peers { self.hosts.iter().map(|host| host.address.clone()).collect() } else { Vec::new() };
        self.note_brought_back(at);
        let host = &mut self.hosts[at];
        host.away = false;
        let restarted = host.last != Incarnation(0);
        // Who comes back without a disk and with a clock put back would be taken for its own predecessor: it needs an
        // incarnation from its operator.
        let before = host.last;
        host.last = Incarnation::at_start(host.disk.incarnation(), host.wall_at(now)).max(host.last_if_wiped());
        host.disk.opened(host.last);
        let (node, last) = (host.node.clone(), host.last);
        if last <= before {
            self.break_("incarnation (section 1)", format!("{node} starts as {last} after {before}"));
        }
        let host = &mut self.hosts[at];
        let member = Member {
            node: host.node.clone(),
            incarnation: host.last,
            address: host.address.clone(),
            http: host.address.clone(),
            version: "sim".into(),
            concurrency: host.concurrency,
        };
        let setup = Setup {
            member: member.clone(),
            directories: u32::try_from(self.plan.directories).unwrap_or(0),
            peers,
            settings: self.plan.settings.clone(),
            stored: host.disk.stored(),
            seed,
        };
        let memory = host.has_disk;
        host.has_disk = true;
        let disk = std::mem::take(&mut host.disk);
        let mut process = Process::new(life, member.clone(), Worker::new(setup), now, disk);
        process.joined_late = late && !restarted;
        process.first_life = !restarted;
        process.lost_disk = restarted && !memory;
        host.process = Some(process);
        self.tell(|_| format!("{} starts as {}", member.node, member.incarnation));
        self.see(Seen::Started { process: member.identity(), memory });
        self.deliver(at, life, Input::Started);
    }

    pub(crate) fn deliver(&mut self, host: usize, life: Life, input: Input) {
        if let Some(process) = self.process(host, life) {
            process.inbox.push_back(input);
            self.serve(host);
        }
    }

    /// Gives a process what waits for it, as far as it has time for it now.
    pub(crate) fn serve(&mut self, at: usize) {
        loop {
            let (now, host) = (self.now, &mut self.hosts[at]);
            let service = host.service;
            let Some(process) = &mut host.process else { return };
            if process.inbox.is_empty() {
                return;
            }
            let (life, free_at) = (process.life, process.free_at);
            if free_at > now {
                if process.wakes_at.is_none_or(|wakes| wakes > free_at) {
                    process.wakes_at = Some(free_at);
                    self.queue.add(free_at, Happening::Wake(at, life));
                }
                return;
            }
            let Some(input) = process.inbox.pop_front() else { return };
            process.free_at = now + service;
            self.step(at, input);
            if self.broken.is_some() {
                return;
            }
        }
    }

    fn timer(&mut self, at: usize, life: Life, due: Time) {
        let (now, host) = (self.now, &mut self.hosts[at]);
        let Some(process) = host.process.as_ref().filter(|process| process.life == life) else { return };
        if process.timer != Some(due) {
            return;
        }
        let local = host.clocks(process.born, now).time;
        let is_due = process.worker.next_deadline().is_some_and(|deadline| deadline <= local);
        if let Some(process) = &mut host.process {
            process.timer = None;
            process.timer_waits = is_due;
        }
        if is_due {
            self.deliver(at, life, Input::TimerFired);
        } else {
            self.arm(at);
        }
    }

    /// Sets the one timer of a process. An earlier one that is set already looks again when it fires.
    pub(crate) fn arm(&mut self, at: usize) {
        let (now, host) = (self.now, &self.hosts[at]);
        let Some(process) = &host.process else { return };
        let Some(deadline) = process.worker.next_deadline().filter(|_| !process.timer_waits) else { return };
        let due = host.when(process.born, deadline).max(now + Duration::from_micros(1));
        if process.timer.is_some_and(|set| set <= due) {
            return;
        }
        self.queue.add(due, Happening::Timer(at, process.life, due));
        if let Some(process) = &mut self.hosts[at].process {
            process.timer = Some(due);
        }
    }

    /// A worker takes one input.
    fn step(&mut self, at: usize, input: Input) {
        self.steps += 1;
        self.tell(|world| format!("{} <- {}", world.hosts[at].node, compact(&input)));
        self.before_step(at, &input);
        let (now, host) = (self.now, &mut self.hosts[at]);
        let mut effects = std::mem::take(&mut self.scratch);
        let fired = input == Input::TimerFired;
        let born = host.process.as_ref().map_or(now, |process| process.born);
        let clocks = host.clocks(born, now);
        let Some(process) = &mut host.process else { return };
        process.worker.step(clocks, input, &mut effects);
        if fired {
            process.timer_waits = false;
            let late = process.worker.next_deadline().is_some_and(|deadline| deadline <= clocks.time);
            process.spins = if late { process.spins + 1 } else { 0 };
            if process.spins > 20 {
                let text = format!("{} has a deadline in the past that no TimerFired moves", process.member.node);
                self.break_("timer", text);
            }
        }
        self.perform(at, &mut effects);
        self.scratch = effects;
        self.arm(at);
    }

    pub(crate) fn elections_without_directory(&mut self) {
        if self.plan.directories > 0 && self.registries.iter().all(|registry| registry.directory.is_none()) {
            self.marks.hit(Mark::DirectoryDownElection);
        }
    }
}

fn host(at: usize, planned: &HostPlan) -> Host {
    // Names in another order than places, so that nothing depends on both at once.
    let name = format!("w{}", (at * 4 + 3) % 11);
    Host {
        node: NodeId::new(&name).expect("a good name"),
        address: Address::new(&format!("{name}:7400")).expect("a good name"),
        concurrency: planned.concurrency,
        drift: planned.drift,
        wall: planned.wall,
        last: Incarnation(0),
        process: None,
        disk: Disk::default(),
        has_disk: false,
        service: Duration::ZERO,
        compute_factor: planned.slow,
        away: false,
    }
}
