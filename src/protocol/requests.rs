//! What callers ask of this worker, and what it tells of jobs and of the cluster.
//!
//! Any worker answers from its replica. Before it says that there is no such job it asks the leader (section 7).

use std::sync::Arc;

use super::Worker;
use super::calls::Errand;
use super::effects::Effects;
use super::ids::{JobId, Number, ReplyToken};
use super::leadership::Role;
use super::ledger::Outcome;
use super::limits;
use super::message::{Code, JobQuery, ListJobs, Peer, Refusal, Request, Response};
use super::progress::{self, Cursor};
use super::view::{ClusterView, JobView, NodeView};

/// What a subscriber gets now.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// This replica has no such job.
    Unknown,
    /// This replica is behind the cursor, or nothing moved since: wait for the job to move.
    Wait,
    /// The next message.
    Next(Arc<JobView>),
}

/// What a canceller is told of a job that nobody admitted.
pub(super) fn never_admitted(id: &JobId) -> Refusal {
    Refusal::new(Code::Cancelled, format!("job {id} was cancelled before it was admitted"))
}

impl Worker {
    pub(crate) fn on_request(&mut self, token: ReplyToken, request: Request, out: &mut Effects) {
        match request {
            Request::Elect(elect) => self.on_elect(token, elect, out),
            Request::Announce(announce) => self.on_announce(token, &announce, out),
            Request::AddNeighbor(status) => self.on_add_neighbor(token, &status, out),
            Request::RemoveNeighbor(who) => self.on_remove_neighbor(token, &who, out),
            Request::Ping(status) => self.on_ping(token, status.as_ref(), out),
            Request::SubmitJob(job) => self.on_submit(token, job, out),
            Request::CancelJob(query) => self.on_cancel(token, &query, out),
            Request::GetJob(query) => self.on_get(token, &query, out),
            Request::ListJobs(list) => {
                let jobs = self.list(&list);
                out.replies.push((token, Ok(Response::Jobs(jobs))));
            }
            Request::GetCluster => out.replies.push((token, Ok(Response::Cluster(Box::new(self.cluster()))))),
            Request::ExecuteTask(hand_out) => self.on_execute(token, hand_out, out),
            Request::CancelTask(cancel) => self.on_cancel_task(token, &cancel, out),
        }
    }

    fn list(&self, list: &ListJobs) -> Vec<Arc<JobView>> {
        let limit = usize::try_from(list.limit.clamp(1, limits::PAGE)).unwrap_or(1);
        self.told_after(list.after.as_ref(), limit)
    }

    fn on_get(&mut self, token: ReplyToken, query: &JobQuery, out: &mut Effects) {
        match self.told(query) {
            Some(view) => out.replies.push((token, Ok(Response::Job(view)))),
            None => self.pass_on(token, query, Request::GetJob, false, out),
        }
    }

    fn on_cancel(&mut self, token: ReplyToken, query: &JobQuery, out: &mut Effects) {
        // What waits here was never sent: its submitters are told at once. The same job may have come to the leader
        // by another worker, so its canceller is told what the leader says.
        let withdrawn = self.queue.withdraw(query);
        let was_waiting = !withdrawn.is_empty();
        out.replies.extend(withdrawn.into_iter().map(|waiter| (waiter, Err(never_admitted(&query.id)))));
        let key = self.ledger.find(query);
        let ended = key.as_ref().and_then(|key| self.ledger.view(key)).filter(|view| view.state.is_terminal());
        if let Some(view) = ended {
            out.replies.push((token, Ok(Response::Job(view))));
            return;
        }
        match key.filter(|_| self.is_active_leader()) {
            Some(key) => {
                if self.ledger.is_unfinished(&key) {
                    self.end_job(&key, Outcome::Cancelled, out);
                }
                let number = self.ledger.number_of(&key).unwrap_or(Number(0));
                if !self.queue.wait_for(token, key, number) {
                    let text = "too many wait for outcomes here: the job ends all the same";
                    out.replies.push((token, Err(Refusal::new(Code::ResourceExhausted, text))));
                }
            }
            None => self.pass_on(token, query, Request::CancelJob, was_waiting, out),
        }
    }

    fn is_active_leader(&self) -> bool {
        matches!(&self.role, Role::Leading(leading) if leading.active)
    }

    /// Asks the leader in a caller's name, once. `withdrawn`: the job waited here and waits no longer, so where
    /// nobody knows of it it is cancelled.
    fn pass_on(
        &mut self,
        token: ReplyToken,
        query: &JobQuery,
        ask: fn(JobQuery) -> Request,
        withdrawn: bool,
        out: &mut Effects,
    ) {
        let following = match &self.role {
            Role::Following(following) => Some(Peer::from(&following.leader.member)),
            Role::Leading(leading) if leading.active => None,
            Role::Starting | Role::Seeking(_) | Role::Leading(_) => {
                let text = "no leader is known at present: try again in a moment";
                let refusal = Refusal::new(Code::Unavailable, text).retry_in(self.settings.election_timeout_min);
                out.replies.push((token, Err(refusal)));
                return;
            }
        };
        match following.filter(|_| !query.forwarded) {
            Some(leader) => {
                let request = ask(JobQuery { forwarded: true, ..query.clone() });
                let errand = Errand::PassedOn(token, withdrawn.then(|| query.id.clone()));
                self.call(leader, request, limits::FORWARD, errand, out);
            }
            None if query.forwarded && !self.is_leading() => {
                out.replies.push((token, Err(Refusal::new(Code::Unavailable, "this worker does not lead"))));
            }
            None if withdrawn => out.replies.push((token, Err(never_admitted(&query.id)))),
            None => {
                let text = format!("there is no job {}: `floodline jobs` lists those that are", query.id);
                out.replies.push((token, Err(Refusal::new(Code::NotFound, text))));
            }
        }
    }

    /// What a subscriber of a job gets next, `after` being what it got last.
    #[must_use]
    pub fn show(&self, job: &JobQuery, after: Option<&Cursor>) -> Shown {
        match self.told(job) {
            None => Shown::Unknown,
            Some(view) => progress::next_message(view, after).map_or(Shown::Wait, Shown::Next),
        }
    }

    /// The cluster as this worker sees it.
    #[must_use]
    pub fn cluster(&self) -> ClusterView {
        let me = NodeView {
            member: self.me.clone(),
            alive: true,
            jac: self.saving.jac(),
            links: self.overlay.nodes(),
            running: self.running(),
        };
        let mut nodes = self.members.views(self.now.time);
        // A leader's own word on its JAC comes with the next ping; its admissions are here at once. Of this worker
        // itself only what is journalled is told.
        for node in &mut nodes {
            node.jac = node.jac.max(self.ledger.jac_of(&node.member.node));
        }
        nodes.push(me);
        nodes.sort_by(|a, b| a.member.node.cmp(&b.member.node));
        let admitted = match &self.role {
            Role::Starting | Role::Seeking(_) => 0,
            Role::Following(following) => following.admitted,
            Role::Leading(leading) => leading.admitted,
        };
        ClusterView {
            leadership: self.leader_now().map(|leader| leader.leadership.clone()),
            admitted,
            cap: self.settings.max_jobs_per_term,
            queued: u32::try_from(self.queue.waiting()).unwrap_or(u32::MAX),
            nodes,
        }
    }

    /// Whether a load balancer should send work here: it knows a leader and is not stopping.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.stopping.is_none() && self.leader_now().is_some()
    }
}
