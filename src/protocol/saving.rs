//! What goes to the journal, and what may be told once it is there (section 8).
//!
//! Owns the saves under way. An admission is journalled before anybody hears of it: so nothing that was told of a
//! job, or of a JAC, is taken back by the end of this process. All else is sent at once.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::Worker;
use super::effects::{Effects, Save};
use super::ids::{Jac, JobKey, Number, SaveId};
use super::leadership::Role;
use super::ledger::Unsaved;
use super::message::JobQuery;
use super::view::JobView;

/// A write on its way to the journal.
#[derive(Clone, Debug)]
struct Write {
    id: SaveId,
    axis: u64,
    number: Number,
    jac: Jac,
    admitted: BTreeSet<JobKey>,
}

/// How far the journal is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Saving {
    last: SaveId,
    under_way: VecDeque<Write>,
    /// Counts the ledgers taken over: numbers of one axis compare, those of two do not.
    axis: u64,
    /// Journalled: in which axis, up to which number.
    journalled: (u64, Number),
    jac: Jac,
    /// Something other than records has to be written.
    demanded: bool,
    /// Jobs admitted in this step.
    admitted: BTreeSet<JobKey>,
}

impl Saving {
    /// A journal that holds all there is.
    pub(crate) fn new(number: Number, jac: Jac) -> Saving {
        Saving { journalled: (0, number), jac, ..Saving::default() }
    }

    /// Writes also where no record has changed.
    pub(crate) fn demand(&mut self) {
        self.demanded = true;
    }

    /// The ledger was taken over from a leader: its numbers are others from now on.
    pub(crate) fn begin_axis(&mut self) {
        self.axis = self.axis.saturating_add(1);
        self.demanded = true;
    }

    /// A job was admitted in this step.
    pub(crate) fn admitted(&mut self, job: JobKey) {
        self.admitted.insert(job);
    }

    /// Up to which number the ledger is journalled, in its present axis.
    pub(crate) fn number(&self) -> Option<Number> {
        (self.journalled.0 == self.axis).then_some(self.journalled.1)
    }

    /// The JAC as far as it is journalled: one that others were told does not fall with the process.
    pub(crate) fn jac(&self) -> Jac {
        self.jac
    }

    /// Whether an admission is on its way: nothing is replicated so long, since positions name content.
    pub(crate) fn holds_admission(&self) -> bool {
        !self.admitted.is_empty() || self.under_way.iter().any(|write| !write.admitted.is_empty())
    }

    fn is_admitting(&self, job: &JobKey) -> bool {
        self.admitted.contains(job) || self.under_way.iter().any(|write| write.admitted.contains(job))
    }
}

impl Worker {
    /// Writes what changed; several steps' changes may become one flush in the journal.
    pub(crate) fn save(&mut self, out: &mut Effects) {
        if !self.ledger.has_unsaved() && !self.saving.demanded {
            return;
        }
        let Unsaved { records, removed, past, jacs: remembered, told } = self.ledger.take_unsaved();
        // A joining that brought no record has a past of its own all the same, and it belongs to the position.
        let past = past.or_else(|| self.ledger.take_unsaved_past());
        let saving = &mut self.saving;
        saving.demanded = false;
        saving.last = saving.last.next();
        let (id, axis, number, jac) = (saving.last, saving.axis, self.ledger.number(), self.jac);
        let admitted = std::mem::take(&mut saving.admitted);
        saving.under_way.push_back(Write { id, axis, number, jac, admitted });
        let (position, term) = (self.ledger.position().clone(), self.elections.highest);
        let incarnation = self.me.incarnation;
        out.saves.push(Save { id, records, removed, position, past, term, jac, incarnation, remembered, told });
    }

    /// The journal has a save and all before it: what rests on it may be told.
    pub(crate) fn on_saved(&mut self, save: SaveId, out: &mut Effects) {
        let admitting = self.saving.holds_admission();
        while let Some(write) = self.saving.under_way.pop_front_if(|write| write.id <= save) {
            self.saving.journalled = (write.axis, write.number);
            self.saving.jac = write.jac;
            out.moved.extend(write.admitted);
        }
        if admitting && !self.saving.holds_admission() {
            self.send_join(out);
        }
        self.acknowledge(out);
    }

    /// Up to which number this replica is journalled; 0 while the ledger that it took over last is not.
    pub(crate) fn journalled(&self) -> Number {
        self.saving.number().unwrap_or_default()
    }

    /// Up to which number a follower that has joined says that it is journalled.
    pub(crate) fn acknowledged(&self) -> Option<Number> {
        match &self.role {
            Role::Following(following) if following.joined => self.saving.number(),
            Role::Starting | Role::Seeking(_) | Role::Following(_) | Role::Leading(_) => None,
        }
    }

    /// A job as it may be told: one whose admission is not journalled yet still waits to be admitted.
    pub(crate) fn told(&self, query: &JobQuery) -> Option<Arc<JobView>> {
        let known = self.ledger.find(query).filter(|key| !self.saving.is_admitting(key));
        known.and_then(|key| self.ledger.view(&key)).or_else(|| self.queue.view(query).map(Arc::new))
    }

    /// At most `limit` jobs after a key, as they may be told.
    pub(crate) fn told_after(&self, after: Option<&JobKey>, limit: usize) -> Vec<Arc<JobView>> {
        let told = self.ledger.after(after).filter(|key| !self.saving.is_admitting(key));
        told.take(limit).filter_map(|key| self.ledger.view(key)).collect()
    }
}
