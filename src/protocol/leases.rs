//! This worker's leases at its directories, and its watch of each one's members (section 4).
//!
//! Owns when to register, renew and watch again. A directory that is down or forgetful costs nothing but its
//! members: an unknown lease is registered anew.

use std::time::Duration;

use super::ids::Incarnation;
use super::message::{CallFailure, DirectoryAnswer, DirectoryId, MembershipEvent, Revision};
use super::time::Time;

/// After a failed call or a broken watch.
const RETRY: Duration = Duration::from_millis(250);

/// One directory.
#[derive(Clone, Debug)]
struct Lease {
    held: bool,
    /// A call is under way; its answer always comes.
    asking: bool,
    due: Time,
    watching: bool,
    watch_due: Time,
    revision: Revision,
    /// It has sent its members, or was tried and did not answer: a starting worker waits for it no longer.
    settled: bool,
}

/// What is due at a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Register(DirectoryId),
    Renew(DirectoryId),
    Watch(DirectoryId, Revision),
}

/// All directories.
#[derive(Clone, Debug)]
pub(crate) struct Leases {
    each: Vec<Lease>,
}

impl Leases {
    pub(crate) fn new(directories: u32) -> Leases {
        let lease = |_| Lease {
            held: false,
            asking: false,
            due: Time::ZERO,
            watching: false,
            watch_due: Time::ZERO,
            revision: Revision::default(),
            settled: false,
        };
        Leases { each: (0..directories).map(lease).collect() }
    }

    /// What to do now; the same is not said again until its answer has come.
    pub(crate) fn due(&mut self, now: Time) -> Vec<Due> {
        let mut due = Vec::new();
        for (id, lease) in (0..).map(DirectoryId).zip(&mut self.each) {
            if !lease.asking && lease.due <= now {
                lease.asking = true;
                due.push(if lease.held { Due::Renew(id) } else { Due::Register(id) });
            }
            if lease.held && !lease.watching && lease.watch_due <= now {
                lease.watching = true;
                due.push(Due::Watch(id, lease.revision));
            }
        }
        due
    }

    /// A directory's answer. Gives the incarnation that replaced this worker, if one did.
    pub(crate) fn answered(
        &mut self,
        now: Time,
        id: DirectoryId,
        renew: Duration,
        result: &Result<DirectoryAnswer, CallFailure>,
    ) -> Option<Incarnation> {
        let lease = self.find(id)?;
        lease.asking = false;
        match result {
            Ok(DirectoryAnswer::Leased(ttl)) => {
                lease.held = true;
                lease.due = now + renew.min(*ttl / 2);
            }
            Ok(DirectoryAnswer::UnknownLease) => {
                lease.held = false;
                lease.due = now;
            }
            Ok(DirectoryAnswer::Superseded(by)) => {
                lease.due = now + RETRY.min(renew);
                return Some(*by);
            }
            Ok(DirectoryAnswer::Left) => lease.held = false,
            Err(_) => {
                lease.settled = true;
                lease.due = now + RETRY.min(renew);
            }
        }
        None
    }

    /// A directory's member stream says something: remembers where to resume.
    pub(crate) fn watched(&mut self, id: DirectoryId, event: &MembershipEvent) {
        let Some(lease) = self.find(id) else { return };
        match event {
            MembershipEvent::Snapshot(revision, _) => {
                lease.revision = *revision;
                lease.settled = true;
            }
            MembershipEvent::Joined(revision, _) | MembershipEvent::Left(revision, _) => lease.revision = *revision,
            MembershipEvent::Resync => lease.revision = Revision::default(),
        }
    }

    /// A directory's member stream ended.
    pub(crate) fn watch_ended(&mut self, now: Time, id: DirectoryId) {
        if let Some(lease) = self.find(id) {
            lease.watching = false;
            lease.watch_due = now + RETRY;
        }
    }

    /// Whether every directory has sent its members or could not be reached.
    pub(crate) fn are_settled(&self) -> bool {
        self.each.iter().all(|lease| lease.settled)
    }

    /// Directories at which this worker has a lease.
    pub(crate) fn held(&self) -> Vec<DirectoryId> {
        (0..).map(DirectoryId).zip(&self.each).filter(|(_, lease)| lease.held).map(|(id, _)| id).collect()
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let calls = self.each.iter().filter(|lease| !lease.asking).map(|lease| lease.due);
        let watches = self.each.iter().filter(|lease| lease.held && !lease.watching).map(|lease| lease.watch_due);
        calls.chain(watches).min()
    }

    fn find(&mut self, id: DirectoryId) -> Option<&mut Lease> {
        self.each.get_mut(usize::try_from(id.0).ok()?)
    }
}
