//! What a journal holds, made from the saves that a worker asked for.

use std::collections::{BTreeMap, BTreeSet};

use floodline::protocol::Stored;
use floodline::protocol::effects::Save;
use floodline::protocol::ids::{Jac, JobKey, NodeId, Position, Term};
use floodline::protocol::ledger::{Past, Record, RecordName, Stamped};

/// A journal's content.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Disk {
    records: BTreeMap<RecordName, Stamped>,
    position: Position,
    past: Past,
    term: Term,
    jac: Jac,
    remembered: BTreeMap<NodeId, Jac>,
    told: BTreeSet<JobKey>,
}

impl Disk {
    pub(crate) fn write(&mut self, save: &Save) {
        let named = save.records.iter().map(|stamped| (stamped.record.name(), stamped.clone()));
        self.records.extend(named);
        for name in &save.removed {
            self.records.remove(name);
        }
        self.position = save.position.clone();
        self.past = save.past.clone().unwrap_or_else(|| std::mem::take(&mut self.past));
        (self.term, self.jac) = (save.term, save.jac);
        for (job, told) in &save.told {
            if *told {
                self.told.insert(job.clone());
            } else {
                self.told.remove(job);
            }
        }
        for (node, jac) in &save.remembered {
            match jac {
                Some(jac) => self.remembered.insert(node.clone(), *jac),
                None => self.remembered.remove(node),
            };
        }
    }

    pub(crate) fn stored(&self) -> Stored {
        Stored {
            records: self.records.values().cloned().collect(),
            position: self.position.clone(),
            past: self.past.clone(),
            term: self.term,
            jac: self.jac,
            remembered: self.remembered.clone(),
            told: self.told.clone(),
        }
    }

    pub(crate) fn position(&self) -> &Position {
        &self.position
    }

    pub(crate) fn jac(&self) -> Jac {
        self.jac
    }

    /// Who admitted what is here, and with which JAC.
    pub(crate) fn admissions(&self) -> impl Iterator<Item = (NodeId, Jac)> {
        let jobs = self.records.values().filter_map(|stamped| match &stamped.record {
            Record::Job(job) => Some(job),
            Record::Payload(..) | Record::Task(..) | Record::Floors(_) => None,
        });
        jobs.flat_map(|job| job.admissions.iter().map(|admission| (admission.leader.clone(), admission.jac)))
    }

    pub(crate) fn has(&self, job: &JobKey) -> bool {
        self.records.contains_key(&RecordName::Job(job.clone()))
    }

    /// Whether two replicas hold the same records, whatever else their journals keep.
    pub(crate) fn same_records(&self, other: &Disk) -> bool {
        self.records == other.records
    }
}
