//! SIGTERM (section 2): a leader steps down once its live followers have its last number and a next one is known,
//! what runs is handed back, the directories are told, and the worker ends. Each wait has a bound.

use std::time::Duration;

use super::Worker;
use super::calls::Errand;
use super::effects::{Effects, Ending};
use super::leadership::Role;
use super::limits;
use super::message::{CallFailure, Code, DirectoryAnswer, DirectoryId, DirectoryRequest, Peer, Refusal, Request};
use super::notice::Notice;
use super::time::Time;

/// How far an ending worker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopping {
    /// A leader waits for its followers to have everything.
    Replicating { until: Time },
    /// It has stepped down and looks for the next leader.
    Handing { until: Time },
    /// It waits for the directories' answers.
    Leaving { until: Time, asked: Vec<DirectoryId> },
    /// Done.
    Ended,
}

impl Worker {
    /// Asked to stop.
    pub(crate) fn on_stop(&mut self, out: &mut Effects) {
        if self.stopping.is_some() {
            return;
        }
        out.notices.push(Notice::Stopping);
        let until = self.now.time + self.share_of_grace();
        self.stopping =
            Some(if self.is_leading() { Stopping::Replicating { until } } else { Stopping::Handing { until } });
        self.hasten_heartbeat();
    }

    /// A quarter of the grace for each stage, so that the shell keeps one for its own.
    fn share_of_grace(&self) -> Duration {
        self.settings.stop_grace / 4
    }

    /// Goes on to the next stage of stopping, if this one is done or has taken its time.
    pub(crate) fn stop_further(&mut self, out: &mut Effects) {
        let now = self.now.time;
        match &self.stopping {
            Some(Stopping::Replicating { until }) => {
                if *until <= now || self.is_all_held() {
                    self.stopping = Some(Stopping::Handing { until: now + self.share_of_grace() });
                    self.step_down("it stops", out);
                    if !self.members.alive(now).is_empty() {
                        self.start_election("the leader stops", out);
                    }
                }
            }
            Some(Stopping::Handing { until }) => {
                let alone = self.members.alive(now).is_empty() && self.elections.campaign.is_none();
                if *until <= now || alone || self.has_handed_over() {
                    self.leave(out);
                }
            }
            Some(Stopping::Leaving { until, asked }) => {
                if *until <= now || (asked.is_empty() && !self.takes_leave()) {
                    self.stopping = Some(Stopping::Ended);
                    out.ended = Some(Ending::Stopped);
                }
            }
            Some(Stopping::Ended) | None => {}
        }
    }

    /// Nobody else can lead, as when all stop together: there is nothing to wait for.
    pub(crate) fn hand_to_nobody(&mut self) {
        if let Some(Stopping::Handing { until }) = &mut self.stopping {
            *until = self.now.time;
        }
    }

    fn is_all_held(&self) -> bool {
        match &self.role {
            Role::Leading(leading) => leading.held >= self.ledger.number(),
            Role::Starting | Role::Seeking(_) | Role::Following(_) => true,
        }
    }

    /// Whether the next leader has everything that this worker holds: it may be the only one that holds a job.
    fn has_handed_over(&self) -> bool {
        match &self.role {
            Role::Following(following) => following.joined,
            Role::Starting | Role::Seeking(_) | Role::Leading(_) => false,
        }
    }

    /// Hands back what runs and waits here, and takes leave of links and directories.
    fn leave(&mut self, out: &mut Effects) {
        self.hand_back(out);
        for token in self.queue.clear() {
            let refusal = Refusal::new(Code::Unavailable, "this worker stops: send the same id to another one");
            out.replies.push((token, Err(refusal.retry_in(Duration::ZERO))));
        }
        for member in self.overlay.members() {
            let request = Request::RemoveNeighbor(self.me.identity());
            self.call(Peer::from(&member), request, limits::LINK_CALL, Errand::Unlink, out);
            self.overlay.unlink(&member.identity());
        }
        let asked = self.leases.held();
        for directory in &asked {
            out.directories.push((*directory, DirectoryRequest::Deregister(self.me.identity())));
        }
        let until = self.now.time + self.share_of_grace();
        self.stopping = Some(Stopping::Leaving { until, asked });
    }

    /// A directory answered while this worker leaves.
    pub(crate) fn on_left(&mut self, directory: DirectoryId, result: &Result<DirectoryAnswer, CallFailure>) {
        if let Some(Stopping::Leaving { asked, .. }) = &mut self.stopping
            && matches!(result, Ok(DirectoryAnswer::Left | DirectoryAnswer::UnknownLease) | Err(_))
        {
            asked.retain(|other| *other != directory);
        }
    }

    /// Whether a neighbour has not answered yet that it took down the link.
    fn takes_leave(&self) -> bool {
        self.calls.any(|open| open.errand == Errand::Unlink)
    }

    /// When a stage of stopping has taken its time.
    pub(crate) fn stop_deadline(&self) -> Option<Time> {
        match &self.stopping {
            Some(Stopping::Leaving { asked, .. }) if asked.is_empty() && !self.takes_leave() => Some(self.now.time),
            Some(Stopping::Replicating { until } | Stopping::Handing { until } | Stopping::Leaving { until, .. }) => {
                Some(*until)
            }
            Some(Stopping::Ended) | None => None,
        }
    }

    /// Whether this worker may begin elections: a stopping one does so only to hand over.
    pub(crate) fn may_elect(&self) -> bool {
        matches!(self.stopping, None | Some(Stopping::Handing { .. }))
    }
}
