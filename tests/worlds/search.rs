//! The search itself: depth first, the usual course first, each state once.
//!
//! A state that was reached before with as many turns left is not entered again: all that can come of it was seen.
//! What counts as the same state includes what the judges know of its history, so that no violation is missed.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::bounds::Bounds;
use crate::print;
use crate::turns::Turn;
use crate::world::World;

/// What a search came to.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Different states at which there was something to choose, or nothing on its way.
    pub(crate) states: u64,
    /// Courses that came to their end, and ended well.
    pub(crate) courses: u64,
    /// Inputs that workers took.
    pub(crate) steps: u64,
    /// Inputs in the longest course.
    pub(crate) deepest: u32,
    pub(crate) failure: Option<Failure>,
}

/// A course that broke something.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    /// All that happens in it.
    pub(crate) story: String,
}

/// The turns that a course has taken, last first, each after so many steps.
#[derive(Debug)]
struct Trail {
    before: Option<Rc<Trail>>,
    at: u64,
    turn: Turn,
}

/// A state from which turns are still to be taken.
struct Fork {
    world: Rc<World>,
    at: u64,
    turn: Turn,
    trail: Option<Rc<Trail>>,
}

struct Search {
    /// With how many turns left each state was entered.
    seen: BTreeMap<u64, u8>,
    forks: Vec<Fork>,
    found: Found,
}

/// Searches all that the bounds allow, or until something breaks.
pub(crate) fn search(bounds: Bounds) -> Found {
    let mut search = Search { seen: BTreeMap::new(), forks: Vec::new(), found: Found::default() };
    search.follow(World::new(bounds), 0, None);
    while let Some(Fork { world, at, turn, trail }) = search.forks.pop() {
        if search.found.failure.is_some() {
            break;
        }
        let mut next = World::clone(&world);
        drop(world);
        let steps = next.steps;
        next.take(turn);
        search.found.steps += u64::from(next.steps - steps);
        let trail = Rc::new(Trail { before: trail, at, turn });
        search.follow(next, at + 1, Some(trail));
    }
    search.found
}

impl Search {
    /// A course as usual from here, to its end or to a state that was met before; the turns on its way are left for later.
    fn follow(&mut self, mut world: World, mut at: u64, trail: Option<Rc<Trail>>) {
        loop {
            if world.must_heal() {
                world.heal();
            }
            let (rest, turns) = (world.is_at_rest(), world.turns());
            if rest {
                world.check_patience();
            }
            let whole = rest && world.is_whole();
            if whole {
                world.judge_end();
            }
            if let Some(what) = world.broken.take() {
                let story = replay(world.bounds, trail.as_deref(), at);
                self.found.failure = Some(Failure { what, story });
                return;
            }
            if (rest || !turns.is_empty()) && !self.is_new(&mut world) {
                return;
            }
            if !turns.is_empty() {
                let shared = Rc::new(world.clone());
                let fork = |turn| Fork { world: shared.clone(), at, turn, trail: trail.clone() };
                self.forks.extend(turns.into_iter().map(fork));
            }
            self.found.deepest = self.found.deepest.max(world.steps);
            if whole {
                self.found.courses += 1;
                return;
            }
            let steps = world.steps;
            world.go_on();
            self.found.steps += u64::from(world.steps - steps);
            at += 1;
        }
    }

    fn is_new(&mut self, world: &mut World) -> bool {
        let left = world.turns_left;
        let before = self.seen.entry(world.hash()).or_insert_with(|| {
            self.found.states += 1;
            u8::MAX
        });
        let new = *before == u8::MAX || *before < left;
        if new {
            *before = left;
        }
        new
    }
}

impl World {
    /// Of all that what comes next depends on, the turns left apart.
    fn hash(&mut self) -> u64 {
        let hosts: Vec<u64> = self.hosts.iter_mut().map(crate::host::Shared::hash).collect();
        let judge = self.judge.hash();
        let lanes = self.lanes.iter().flat_map(|(lane, line)| {
            let head = print::hash(&(lane, line.until.max(self.now), line.last));
            [head].into_iter().chain(line.mail.iter().map(|mail| mail.hash))
        });
        let rest = print::hash(&(self.now, &self.phase, self.acted));
        print::together(hosts.into_iter().chain([judge, rest, print::hash(&self.clients)]).chain(lanes))
    }
}

/// The same course once more, in words.
fn replay(bounds: Bounds, trail: Option<&Trail>, end: u64) -> String {
    let mut turns = Vec::new();
    let mut next = trail;
    while let Some(trail) = next {
        turns.push((trail.at, trail.turn));
        next = trail.before.as_deref();
    }
    let mut world = World::new(bounds);
    world.story = Some(Vec::new());
    for at in 0..end {
        if world.must_heal() {
            world.heal();
        }
        match turns.pop_if(|(when, _)| *when == at) {
            Some((_, turn)) => world.take(turn),
            None => world.go_on(),
        }
    }
    world.story.unwrap_or_default().join("\n")
}
