//! What is seen of a world after each step, and judged: by the guarantees of section 10, by what all workers together
//! must keep, and at the end of a course by what it has come to.

use std::collections::BTreeSet;
use std::sync::Arc;

use floodline::guarantees::history::{Seen, Sight};
use floodline::protocol::Shown;
use floodline::protocol::effects::{Effects, Save, StreamEffect};
use floodline::protocol::ids::{Jac, JobKey, NodeId};
use floodline::protocol::ledger::Record;
use floodline::protocol::message::{JobQuery, Request, Up};
use floodline::protocol::notice::Notice;
use floodline::protocol::view::JobView;

use crate::bounds::PATIENCE;
use crate::clients::Stage;
use crate::host::{At, Host, name};
use crate::trouble::Phase;
use crate::world::World;

impl World {
    /// Before the effects of a step are carried out.
    pub(crate) fn look_at(&mut self, at: At, out: &Effects) {
        let process = self.hosts[at].process();
        for notice in &out.notices {
            let told = notice.told();
            self.tell(|| format!("    {} {}: {}", name(at), told.kind, told.text));
            let process = process.clone();
            match notice {
                Notice::LeadershipBegan { leadership, .. } | Notice::LeadershipMovedUp(_, leadership) => {
                    self.see(Seen::Led { process, leadership: leadership.clone() });
                }
                Notice::Following(leadership) => self.see(Seen::Follows { process, leadership: leadership.clone() }),
                Notice::ValuesDiffer(task) => self.break_(format!("two values of task {task:?}")),
                _ => {}
            }
        }
        let told = out.calls.iter().filter_map(|call| match &call.request {
            Request::Ping(Some(status)) | Request::AddNeighbor(status) => Some(status.jac),
            _ => None,
        });
        let acked = out.streams.iter().filter_map(|effect| match effect {
            StreamEffect::Up(_, Up::Ack { jac, .. }) => Some(*jac),
            _ => None,
        });
        let jacs: BTreeSet<Jac> = told.chain(acked).collect();
        for jac in jacs {
            if self.hosts[at].told_jac != Some(jac) {
                self.hosts[at].change().told_jac = Some(jac);
                self.see(Seen::JacTold { owner: process.clone(), jac });
            }
        }
    }

    /// An admission is one when its leader has journalled it: before that it is told to nobody.
    pub(crate) fn look_at_admissions(&mut self, at: At, save: &Save) {
        let node = self.hosts[at].member.node.clone();
        for stamped in &save.records {
            let Record::Job(job) = &stamped.record else { continue };
            for admission in job.admissions.iter().filter(|admission| admission.leader == node) {
                self.see(Seen::Admitted { job: job.key.clone(), admission: admission.clone() });
                if save.jac < admission.jac {
                    self.break_(format!("{node} admits with {} and writes JAC {}", admission.jac, save.jac));
                }
            }
        }
    }

    /// Jobs that moved, as their worker shows them now.
    pub(crate) fn show_moved(&mut self, at: At, moved: &BTreeSet<JobKey>) {
        for job in moved {
            if let Some(view) = shown(&self.hosts[at], job) {
                let by = self.hosts[at].process();
                self.see(Seen::Shown { by, view });
            }
        }
    }

    /// A position names a replica's content exactly (section 1).
    pub(crate) fn check_disk(&mut self, at: At) {
        self.check_admissions(at);
        let disk = &self.hosts[at].disk;
        if disk.position().leadership.is_none() {
            return;
        }
        let same = |other: &&crate::host::Shared<Host>| other.disk.position() == disk.position();
        let differs = self.hosts.iter().filter(same).find(|other| !other.disk.same_records(disk));
        if let Some(other) = differs {
            let (one, other) = (name(at), other.member.node.clone());
            self.break_(format!("{one} and {other} stand at one position and hold different records"));
        }
    }

    /// What a disk says of an admission its leader's own disk says as well: it is journalled there before it is sent.
    fn check_admissions(&mut self, at: At) {
        let unknown = |(leader, jac): &(NodeId, Jac)| {
            let own = self.hosts.iter().find(|host| host.member.node == *leader);
            own.is_some_and(|own| own.disk.jac() < *jac)
        };
        let found = self.hosts[at].disk.admissions().find(unknown);
        if let Some((leader, jac)) = found {
            self.break_(format!("{} holds JAC {jac} of {leader}, whose own disk does not", name(at)));
        }
    }

    /// An acknowledged job is on a disk that is there, or comes back (G1).
    pub(crate) fn check_kept(&mut self) {
        let done = self.clients.iter().filter(|client| client.stage == Stage::Done);
        let lost = done.map(|client| &client.key).find(|key| !self.hosts.iter().any(|host| host.disk.has(key)));
        if let Some(lost) = lost {
            self.break_(format!("{} is acknowledged and on no disk", lost.id));
        }
    }

    /// Whether all is whole: nothing on its way, one leader, all jobs acknowledged and ended, all replicas equal.
    pub(crate) fn is_whole(&self) -> bool {
        let apart = matches!(self.phase, Phase::Apart { .. });
        if apart || !self.lanes.is_empty() || self.clients.iter().any(|client| client.stage != Stage::Done) {
            return false;
        }
        let mut leaderships = BTreeSet::new();
        for host in self.up() {
            let Some(worker) = &host.worker else { continue };
            match worker.cluster().leadership.filter(|_| worker.is_ready() && host.saving.is_empty()) {
                Some(leadership) => leaderships.insert(leadership),
                None => return false,
            };
            let ended = |key: &JobKey| shown(host, key).is_some_and(|view| view.state.is_terminal());
            if !self.clients.iter().all(|client| ended(&client.key)) {
                return false;
            }
        }
        let leads = |host: &Host| leaderships.first().is_some_and(|first| first.identity() == host.process());
        let mut up = self.up();
        let Some(first) = up.next() else { return false };
        let shows = |host: &Host| -> Vec<_> { self.clients.iter().map(|client| shown(host, &client.key)).collect() };
        let one = shows(first);
        let same = |other: &Host| other.disk.same_records(&first.disk) && shows(other) == one;
        leaderships.len() == 1 && self.up().any(leads) && up.all(same)
    }

    /// The end of a course is judged as a whole.
    pub(crate) fn judge_end(&mut self) {
        let sight = |host: &Host| Sight {
            process: host.process(),
            following: host.worker.as_ref().and_then(|worker| worker.cluster().leadership),
            jobs: self.clients.iter().filter_map(|client| shown(host, &client.key)).collect(),
        };
        let sights = self.up().map(sight).collect();
        self.see(Seen::Final(sights));
    }

    /// A world that takes too long to become whole is broken as well.
    pub(crate) fn check_patience(&mut self) {
        let since = match self.phase {
            Phase::Before | Phase::Apart { .. } => return,
            Phase::Down { since, .. } | Phase::Over { since } => since,
        };
        if self.now.since(since) > PATIENCE {
            self.break_(format!("not whole {PATIENCE:?} after the last trouble"));
        }
    }

    fn up(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().map(|host| &**host).filter(|host| host.is_up())
    }
}

fn shown(host: &Host, job: &JobKey) -> Option<Arc<JobView>> {
    let query = JobQuery { id: job.id.clone(), digest: Some(job.digest), forwarded: false };
    match host.worker.as_ref()?.show(&query, None) {
        Shown::Next(view) => Some(view),
        Shown::Unknown | Shown::Wait => None,
    }
}
