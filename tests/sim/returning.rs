//! Workers that come back: what others tell one of its own JAC it does not undercut, least of all when it has lost
//! its disk (section 6).

use floodline::protocol::Input;
use floodline::protocol::ids::{JobKey, Leadership};
use floodline::protocol::message::{Batch, Down, Request};

use crate::marks::Mark;
use crate::world::World;

impl World {
    /// Others say what they remember.
    pub(crate) fn note_reminder(&mut self, at: usize, input: &Input) {
        let Some(process) = &mut self.hosts[at].process else { return };
        let remembered = match input {
            Input::Called { request: Request::Ping(Some(status)) | Request::AddNeighbor(status), .. } => {
                status.remembers
            }
            Input::LeaderSent { stream, frame: Down::Batch(Batch { leadership, past: Some(_), remembers, .. }) }
                if process.ups.contains_key(stream) && process.newest.as_ref() == Some(leadership) =>
            {
                *remembers
            }
            _ => return,
        };
        if remembered > process.reminded {
            process.reminded = remembered;
            if process.lost_disk {
                self.marks.hit(Mark::WipedReminded);
            }
        }
    }

    /// A worker that was told its JAC follows somebody who has coordinated no more often.
    pub(crate) fn note_prevented(&mut self, at: usize, leadership: &Leadership) {
        let Some(process) = &self.hosts[at].process else { return };
        if process.lost_disk && process.reminded >= leadership.jac && process.reminded.0 > 0 {
            self.marks.hit(Mark::WipedWinnerPrevented);
        }
    }

    /// A worker begins to lead after a flood that counted so many.
    pub(crate) fn check_reminded(&mut self, at: usize, leadership: &Leadership, workers: u32) {
        let Some(process) = &self.hosts[at].process else { return };
        if leadership.jac < process.reminded {
            let text = format!("{leadership} wins with JAC {}, was told {}", leadership.jac, process.reminded);
            return self.break_("memory of JACs (section 6)", text);
        }
        let born = process.born;
        let undisturbed = self.net.weather.is_fair() && self.whole_since.is_some_and(|since| since <= born);
        if !process.lost_disk || !undisturbed || workers as usize != self.running().count() {
            return;
        }
        let knows = |other: &crate::process::Process| {
            let was_there = other.born < born && other.free_at <= born;
            was_there && other.disk.jac_stated(&leadership.leader) > leadership.jac
        };
        let better = self.running().find(|(_, other)| knows(other)).map(|(_, other)| other.member.node.clone());
        if let Some(better) = better {
            let text = format!("{leadership} wins with JAC {}, {better} knows better", leadership.jac);
            self.break_("memory of JACs (section 6)", text);
        }
    }

    /// A disk comes back: perhaps with jobs that nobody else has any more.
    pub(crate) fn note_brought_back(&mut self, at: usize) {
        if self.running().next().is_some() {
            let lost = |job: &JobKey| !self.running().any(|(_, process)| process.disk.job(job).is_some());
            let here = self.hosts[at].disk.jobs().map(|job| job.key.clone());
            let lost: Vec<JobKey> = here.filter(lost).collect();
            self.truth.brought_back.extend(lost);
        }
    }
}
