//! The one thing that goes wrong in a world: a crash and what may come back, or a split and its end.

use floodline::guarantees::history::{End, Hurt, Seen};
use floodline::protocol::Input;
use floodline::protocol::message::CallFailure;
use floodline::protocol::time::Time;

use crate::host::{At, Caller, name};
use crate::network::{Lane, Way};
use crate::world::World;

/// How a worker dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crash {
    pub(crate) at: At,
    /// What it had sent arrives.
    pub(crate) last_words: bool,
    /// What was on its way to its disk is written.
    pub(crate) written: bool,
    /// Its peers see their connections break.
    pub(crate) noticed: bool,
}

/// Who no longer reaches whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) one: At,
    /// None: all others.
    pub(crate) other: Option<At>,
    /// Connections break at once, and what was on its way is lost. Otherwise nothing comes through until the end.
    pub(crate) breaks: bool,
}

impl Split {
    fn parts(self, a: At, b: At) -> bool {
        let others = |at: At| self.other.is_none_or(|other| other == at);
        a != b && ((a == self.one && others(b)) || (b == self.one && others(a)))
    }
}

/// How far the trouble is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It can begin.
    Before,
    /// A worker is down.
    Down { at: At, since: Time, rests: usize },
    /// Some don't reach others.
    Apart { split: Split, since: Time, rests: usize },
    /// No more comes.
    Over { since: Time },
}

impl World {
    /// Whether what is sent from one to the other is kept until the split is over.
    pub(crate) fn is_cut(&self, a: At, b: At) -> bool {
        matches!(self.phase, Phase::Apart { split, .. } if !split.breaks && split.parts(a, b))
    }

    /// Whether a call fails at once.
    pub(crate) fn is_cut_off(&self, a: At, b: At) -> bool {
        matches!(self.phase, Phase::Apart { split, .. } if split.breaks && split.parts(a, b))
    }

    /// SIGKILL.
    pub(crate) fn crash(&mut self, crash: Crash) {
        let Crash { at, last_words, written, noticed } = crash;
        self.tell(|| format!("*** {crash:?}"));
        self.depth = 0;
        let host = self.hosts[at].change();
        host.worker = None;
        let saving = std::mem::take(&mut host.saving);
        (host.unnoticed, host.lied) = (!noticed, None);
        let process = host.process();
        for save in saving.iter().filter(|_| written) {
            self.hosts[at].change().disk.write(save);
            self.look_at_admissions(at, save);
        }
        self.lanes.retain(|lane, _| lane.to != at && (last_words || lane.from() != Some(at)));
        self.phase = Phase::Down { at, since: self.now, rests: 0 };
        self.see(Seen::Ended { process, how: End::Killed });
        self.leave_clients_without_answer(at, noticed);
        if noticed {
            self.break_connections(|a, b| a == at || b == at);
        }
        self.check_disk(at);
        self.check_kept();
    }

    /// It starts again, from its disk.
    pub(crate) fn restart(&mut self, at: At) {
        self.tell(|| format!("*** {} comes back", name(at)));
        self.depth = 0;
        if self.hosts[at].unnoticed {
            self.break_connections(|a, b| a == at || b == at);
        }
        self.phase = Phase::Over { since: self.now };
        self.start(at);
    }

    pub(crate) fn split(&mut self, split: Split) {
        self.tell(|| format!("*** {split:?}"));
        self.depth = 0;
        self.phase = Phase::Apart { split, since: self.now, rests: 0 };
        self.see(Seen::Hurt(Hurt::Split));
        if split.breaks {
            self.lanes.retain(|lane, _| lane.from().is_none_or(|from| !split.parts(from, lane.to)));
            self.break_connections(|a, b| split.parts(a, b));
        }
    }

    pub(crate) fn heal(&mut self) {
        self.tell(|| "*** the split is over".to_owned());
        self.depth = 0;
        self.phase = Phase::Over { since: self.now };
    }

    /// Streams and calls between these end, and those who live hear of it, after what was sent before.
    fn break_connections(&mut self, broken: impl Fn(At, At) -> bool) {
        for at in 0..self.hosts.len() {
            let host = self.hosts[at].change();
            let ups: Vec<_> = host.ups.extract_if(.., |_, (to, _)| broken(at, *to)).collect();
            let downs: Vec<_> = host.downs.extract_if(.., |_, (to, _)| broken(at, *to)).collect();
            let calls: Vec<_> = host.calls.extract_if(.., |_, (to, _)| broken(at, *to)).collect();
            let from = |caller: &Caller| match caller {
                Caller::Host(from, ..) => Some(*from).filter(|from| broken(at, *from)),
                Caller::Client(_) => None,
            };
            let gone: Vec<_> = host.callers.extract_if(.., |_, caller| from(caller).is_some()).collect();
            if !host.is_up() {
                host.callers.clear();
                continue;
            }
            let stream = |from| Lane { to: at, way: Way::Stream(from) };
            let call = |from| Lane { to: at, way: Way::Calls(from) };
            for (id, (from, _)) in ups {
                self.post(stream(from), Input::LeaderEnded { stream: id });
            }
            for (id, (from, _)) in downs {
                self.post(stream(from), Input::FollowerEnded { stream: id });
            }
            for (id, (from, _)) in calls {
                let result = Err(CallFailure::Unreachable("the connection broke".to_owned()));
                self.post(call(from), Input::Answered { call: id, result });
            }
            for (token, caller) in gone {
                if let Some(from) = from(&caller) {
                    self.post(call(from), Input::CallerGone { token });
                }
            }
        }
    }
}
