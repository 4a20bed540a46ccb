//! Which ended jobs a cluster may have dropped: section 8 keeps so many of the last ones at least as a line.

use std::collections::BTreeSet;

use crate::protocol::ids::JobKey;
use crate::protocol::view::JobView;

use super::history::Seen;

/// The jobs that were seen to end.
#[derive(Clone, Debug)]
pub(super) struct Retained {
    lines: usize,
    ended: BTreeSet<JobKey>,
}

impl Retained {
    /// Of a cluster that keeps so many ended jobs.
    pub(super) fn new(lines: usize) -> Retained {
        Retained { lines, ended: BTreeSet::new() }
    }

    pub(super) fn see(&mut self, seen: &Seen) {
        let shows_end = |view: &JobView| view.state.is_terminal();
        if let Seen::JobEnded { job, .. } = seen {
            self.ended.insert(job.clone());
        } else if let Some((_, view)) = seen.view().filter(|(_, view)| shows_end(view)) {
            self.ended.insert(view.key.clone());
        }
    }

    /// Whether a job was seen to end, and more ended jobs are known than are kept.
    pub(super) fn may_be_gone(&self, job: &JobKey) -> bool {
        self.ended.len() > self.lines && self.ended.contains(job)
    }
}
