//! Deadlines of jobs (section 7): a leader that has seen one pass does not let the job succeed after that.

use floodline::protocol::effects::Save;
use floodline::protocol::ledger::{Outcome, Record};
use floodline::protocol::view::DEADLINE_PASSED;

use crate::marks::Mark;
use crate::world::World;

impl World {
    /// Looks at the ends that a leader writes.
    pub(crate) fn check_deadlines(&mut self, at: usize, save: &Save) {
        let Some(process) = &self.hosts[at].process else { return };
        // What came by a join has been ended elsewhere; and a leader that stands alone below its quorum ends nothing.
        let may_end = process.led_before.is_some() && process.leads == process.led_before;
        let watched = may_end && process.led_a_step && self.plan.settings.min_members == 1;
        let (mut passed, mut missed) = (false, None);
        for stamped in &save.records {
            let Record::Job(job) = &stamped.record else { continue };
            let (Some(ended), Some(deadline)) = (&job.ended, job.deadline) else { continue };
            passed |= matches!(&ended.outcome, Outcome::Failed(reason) if **reason == *DEADLINE_PASSED);
            let was_here = process.disk.job(&job.key).is_some_and(|(known, _)| {
                known.ended.is_none() && known.deadline.is_some_and(|known| known <= process.wall_before)
            });
            let succeeds = matches!(ended.outcome, Outcome::Succeeded(_)) && ended.at >= process.wall_before;
            if watched && was_here && succeeds && deadline <= process.wall_before {
                missed = Some(format!("{} lets {} succeed after its deadline", process.member.node, job.key.id));
            }
        }
        if passed {
            self.marks.hit(Mark::DeadlinePassed);
        }
        if let Some(missed) = missed {
            self.break_("deadline (section 7)", missed);
        }
    }

    /// Remembers what a step began with.
    pub(crate) fn note_clock(&mut self, at: usize) {
        let wall = self.hosts[at].wall_at(self.now);
        if let Some(process) = &mut self.hosts[at].process {
            process.wall_before = std::mem::replace(&mut process.wall_now, wall);
            process.led_a_step = process.leads.is_some() && process.attempts.is_active();
        }
    }
}
