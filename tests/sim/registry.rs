//! The directories: real ones, asked and watched over the simulated network; they crash and come back empty.

use std::time::Duration;

use floodline::directory::Directory;
use floodline::protocol::Input;
use floodline::protocol::dice::Dice;
use floodline::protocol::ids::Incarnation;
use floodline::protocol::message::{CallFailure, DirectoryId, DirectoryRequest, Revision};
use floodline::protocol::time::{Now, Time, Wall};

use crate::process::Life;
use crate::world::{Happening, World};

pub(crate) const LEASE_TTL: Duration = Duration::from_secs(8);

/// One open membership stream.
#[derive(Debug)]
struct Watcher {
    host: usize,
    life: Life,
    after: Revision,
    clear: Time,
}

/// A directory's host.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) directory: Option<Directory>,
    incarnation: u64,
    watchers: Vec<Watcher>,
    expires: Option<Time>,
}

/// What happens at a directory.
#[derive(Debug)]
pub(crate) enum RegistryEvent {
    Asked(usize, Life, DirectoryRequest),
    Watched(usize, Life, Revision),
    Expires(Time),
    Back,
}

impl Registry {
    pub(crate) fn new(incarnation: u64, dice: &mut Dice) -> Registry {
        let directory = Directory::new(Incarnation(incarnation), LEASE_TTL, dice.roll());
        Registry { directory: Some(directory), incarnation, watchers: Vec::new(), expires: None }
    }

    pub(crate) fn forget(&mut self, life: Life) {
        self.watchers.retain(|watcher| watcher.life != life);
    }
}

impl World {
    fn directory_clock(&self) -> Now {
        Now { time: self.now, wall: Wall(self.now.0 / 1_000) }
    }

    pub(crate) fn registry_event(&mut self, at: usize, event: RegistryEvent) {
        match event {
            RegistryEvent::Asked(host, life, request) => self.directory_asked(at, host, life, request),
            RegistryEvent::Watched(host, life, after) => self.directory_watched(at, host, life, after),
            RegistryEvent::Expires(due) => {
                if self.registries[at].expires == Some(due) {
                    self.registries[at].expires = None;
                    let now = self.directory_clock();
                    if let Some(directory) = &mut self.registries[at].directory {
                        directory.expire(now);
                    }
                    self.tell_watchers(at);
                }
            }
            RegistryEvent::Back => self.directory_back(at),
        }
    }

    fn directory_asked(&mut self, at: usize, host: usize, life: Life, request: DirectoryRequest) {
        let now = self.directory_clock();
        let place = self.hosts.len() + at;
        let lost = !self.net.connects(host, place) || self.net.is_lost(&mut self.dice);
        let heard = !lost || self.dice.below(2) == 0;
        let answer = match &mut self.registries[at].directory {
            Some(directory) if heard && self.net.passes(host, place) => Some(directory.request(now, request)),
            Some(_) | None => None,
        };
        let (result, delay) = match answer {
            Some(answer) if !lost => (answer.map_err(CallFailure::Refused), self.net.delay(&mut self.dice)),
            Some(_) | None => {
                let most = if self.dice.below(2) == 0 { Duration::from_millis(10) } else { Duration::from_secs(2) };
                (Err(CallFailure::Unreachable("no directory".to_owned())), self.dice.span(most / 4, most))
            }
        };
        let input = Input::DirectoryAnswered { directory: directory_id(at), result };
        self.after(delay, Happening::Input(host, life, input));
        self.tell_watchers(at);
    }

    fn directory_watched(&mut self, at: usize, host: usize, life: Life, after: Revision) {
        self.registries[at].forget(life);
        let reached = self.net.connects(host, self.hosts.len() + at) && self.registries[at].directory.is_some();
        if !reached {
            let after = self.dice.span(Duration::from_millis(1), Duration::from_secs(1));
            self.after(after, Happening::Input(host, life, Input::WatchEnded { directory: directory_id(at) }));
            return;
        }
        let clear = self.now;
        self.registries[at].watchers.push(Watcher { host, life, after, clear });
        self.tell_watchers(at);
    }

    /// Sends each watcher what it lacks, and sets the time at which the next lease runs out.
    fn tell_watchers(&mut self, at: usize) {
        let place = self.hosts.len() + at;
        let registry = &mut self.registries[at];
        let Some(directory) = &registry.directory else { return };
        for watcher in &mut registry.watchers {
            if watcher.after == directory.revision() && watcher.after != Revision::default() {
                continue;
            }
            let events = directory.watch(watcher.after);
            watcher.after = directory.revision();
            for event in events {
                watcher.clear =
                    (watcher.clear + Duration::from_micros(1)).max(self.now + self.net.delay(&mut self.dice));
                if self.net.passes(place, watcher.host) {
                    let input = Input::Membership { directory: directory_id(at), event };
                    self.queue.add(watcher.clear, Happening::Input(watcher.host, watcher.life, input));
                }
            }
        }
        let Some(due) = directory.next_deadline() else { return };
        let due = due.max(self.now + Duration::from_micros(1));
        if registry.expires.is_none_or(|set| set > due) {
            registry.expires = Some(due);
            self.queue.add(due, Happening::Registry(at, RegistryEvent::Expires(due)));
        }
    }

    pub(crate) fn directory_down(&mut self, at: usize, span: Duration) {
        let registry = &mut self.registries[at];
        registry.directory = None;
        registry.expires = None;
        self.tell(|_| format!("directory {at} is killed"));
        self.end_watches(at, |_| true);
        self.after(span, Happening::Registry(at, RegistryEvent::Back));
    }

    pub(crate) fn directory_back(&mut self, at: usize) {
        if self.registries[at].directory.is_some() || (self.quiet_since.is_some() && self.plan.no_directory_at_end) {
            return;
        }
        let fresh = self.fresh();
        let incarnation = self.registries[at].incarnation.max(fresh) + 1;
        self.registries[at] = Registry::new(incarnation, &mut self.dice);
        self.tell(|_| format!("directory {at} is back, empty"));
    }

    /// Membership streams that lead over a cut link break.
    pub(crate) fn strain_watches(&mut self) {
        for at in 0..self.registries.len() {
            let place = self.hosts.len() + at;
            let cut: Vec<usize> = (0..self.hosts.len()).filter(|host| !self.net.connects(*host, place)).collect();
            self.end_watches(at, |host| cut.contains(&host));
        }
    }

    fn end_watches(&mut self, at: usize, of: impl Fn(usize) -> bool) {
        let (ended, kept) = std::mem::take(&mut self.registries[at].watchers).into_iter().partition(|w| of(w.host));
        self.registries[at].watchers = kept;
        let ended: Vec<Watcher> = ended;
        for watcher in ended {
            let after = self.dice.span(Duration::from_millis(1), Duration::from_secs(3));
            let due = watcher.clear.max(self.now) + after;
            let input = Input::WatchEnded { directory: directory_id(at) };
            self.queue.add(due, Happening::Input(watcher.host, watcher.life, input));
        }
    }
}

fn directory_id(at: usize) -> DirectoryId {
    DirectoryId(u32::try_from(at).unwrap_or(u32::MAX))
}
