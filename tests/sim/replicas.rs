//! What a replica must be at each moment: nothing on its way is ahead of what is journalled, and a position names one
//! content and one past (sections 1 and 8).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use floodline::protocol::effects::Save;
use floodline::protocol::ids::Term;
use floodline::protocol::ledger::{Past, Record};
use floodline::protocol::message::{Batch, Down, Up};
use floodline::protocol::view::Admission;

use crate::marks::Mark;
use crate::world::World;

impl World {
    pub(crate) fn check_save(&mut self, at: usize, save: &Save) {
        let Some(process) = &self.hosts[at].process else { return };
        let (node, life, leads) = (process.member.node.clone(), process.life, process.leads.clone());
        self.note_numbers(at, save);
        self.check_tasks(at, save);
        self.check_deadlines(at, save);
        for stamped in &save.records {
            let (Record::Job(job), Some(leads)) = (&stamped.record, &leads) else { continue };
            let own = |term: Term, leader| term == leads.term && leader == &leads.leader;
            for admission in job.admissions.iter().filter(|admission| own(admission.term, &admission.leader)) {
                if save.jac < admission.jac {
                    let text =
                        format!("{node} admits {} with JAC {} and writes {}", job.key.id, admission.jac, save.jac);
                    self.break_("G4 same write", text);
                }
            }
        }
        let before = self.truth.positions.insert(life.0, save.position.clone()).unwrap_or_default();
        let falls = before.leadership == save.position.leadership && save.position.number < before.number;
        if falls || save.position.leadership < before.leadership {
            self.break_("G3 position", format!("{node} writes {:?} after {before:?}", save.position));
        }
    }

    /// Remembers the number under which a job came first. As a leader numbers run on; a follower takes over others.
    fn note_numbers(&mut self, at: usize, save: &Save) {
        let Some(process) = &mut self.hosts[at].process else { return };
        let Some(leadership) = &save.position.leadership else { return };
        for stamped in &save.records {
            let Record::Job(job) = &stamped.record else { continue };
            let entry = (leadership.clone(), stamped.stamp.number);
            match process.first_numbers.get_mut(&job.key) {
                Some(first) if process.leads.is_none() && first.0 != *leadership => *first = entry,
                Some(_) => {}
                None => drop(process.first_numbers.insert(job.key.clone(), entry)),
            }
        }
    }

    /// A position names a replica's content exactly (section 1).
    pub(crate) fn check_disk(&mut self, at: usize) {
        let Some(process) = &self.hosts[at].process else { return };
        let disk = &process.disk;
        let Some(leadership) = disk.position().leadership.clone() else { return };
        let (number, hash) = (disk.position().number, disk.content_hash());
        let past = hash_of_past(disk.past());
        let first = *self.truth.contents.entry((leadership.clone(), number)).or_insert(hash);
        if *self.truth.pasts.entry(leadership.clone()).or_insert(past) != past {
            let text = format!("{}'s disk has another past of {leadership} than its leader told", process.member.node);
            self.break_("past (section 8)", text);
        } else if first != hash {
            let same = |other: &&crate::process::Process| {
                other.disk.position() == disk.position() && other.disk.content_hash() != hash
            };
            let differences = self.running().map(|(_, other)| other).find(same).map(|other| {
                format!("{} has {}", other.member.node, crate::compact::compact(&other.disk.difference(disk)))
            });
            let node = &process.member.node;
            let text =
                format!("{node}'s content at {leadership} {number} is not that of the first there: {differences:?}");
            self.break_("position (section 1)", text);
        }
    }

    pub(crate) fn check_up(&mut self, at: usize, frame: &Up) {
        match frame {
            Up::Join { .. } => {}
            Up::Hashes(_) => self.marks.hit(Mark::JoinedByHashes),
            Up::Upload(records) => {
                if !records.is_empty() {
                    self.marks.hit(Mark::JoinedByUpload);
                }
            }
            Up::Ack { number, jac, .. } => {
                self.jac_told(at, *jac);
                let Some(process) = &self.hosts[at].process else { return };
                let journalled = process.disk.position().number;
                if number.is_some_and(|number| number > journalled) {
                    let node = process.member.node.clone();
                    self.break_(
                        "acknowledged (section 3)",
                        format!("{node} acknowledges {number:?}, has {journalled}"),
                    );
                }
            }
        }
    }

    pub(crate) fn check_down(&mut self, at: usize, frame: &Down) {
        let (held, leadership) = match frame {
            Down::Batch(batch) => {
                self.check_admissions_journalled(at, batch);
                self.note_past(batch);
                (batch.held, &batch.leadership)
            }
            Down::Heartbeat(heartbeat) => (heartbeat.held, &heartbeat.leadership),
            Down::NotLeader(_)
            | Down::Superseded(_)
            | Down::Rejoin(_)
            | Down::WantRecords(_)
            | Down::WantHashes
            | Down::WantJobs(_)
            | Down::Roster(_) => {
                return;
            }
        };
        let Some(process) = &self.hosts[at].process else { return };
        let node = process.member.node.clone();
        let led = [&process.leads, &process.led_before, &process.ended_now];
        if !led.iter().any(|led| led.as_ref() == Some(leadership)) {
            let text = format!("{node} sends as {leadership}, leads {:?}", process.leads);
            self.break_("G3 sender", text);
        } else if let Some((of, known)) = &process.held
            && of == leadership
            && held > *known
        {
            let heard = &process.heard;
            let text = format!("{node} says that {held} is held; by its followers' word {known} is: {heard:?}");
            self.break_("held (section 1)", text);
        }
    }

    /// The leaderships before a leadership are the same for all that follow it.
    fn note_past(&mut self, batch: &Batch) {
        let Some(past) = batch.past.as_ref().map(hash_of_past) else { return };
        if *self.truth.pasts.entry(batch.leadership.clone()).or_insert(past) != past {
            self.break_("past (section 8)", format!("{} has two pasts", batch.leadership));
        }
    }

    /// An admission is journalled by the leader before it is sent (section 8).
    fn check_admissions_journalled(&mut self, at: usize, batch: &Batch) {
        let Some(process) = &self.hosts[at].process else { return };
        for stamped in &batch.records {
            let Record::Job(job) = &stamped.record else { continue };
            let own = |term, leader| (term, leader) == (batch.leadership.term, &batch.leadership.leader);
            let is_journalled =
                |admission: &Admission| self.truth.admitted.contains(&(job.key.clone(), admission.clone()));
            let missing = job
                .admissions
                .iter()
                .find(|admission| own(admission.term, &admission.leader) && !is_journalled(admission));
            if let Some(missing) = missing {
                let text =
                    format!("{} sends {missing:?} of {} before it is journalled", process.member.node, job.key.id);
                self.break_("admission (section 8)", text);
                return;
            }
        }
    }
}

fn hash_of_past(past: &Past) -> u64 {
    let mut hasher = DefaultHasher::new();
    past.parts().for_each(|part| part.hash(&mut hasher));
    hasher.finish()
}
