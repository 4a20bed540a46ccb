//! The leader's hand-outs (section 7): which task goes to whom, what comes of each attempt, second copies of slow
//! last tasks, and the one thing that happens when a worker is lost.
//!
//! Owns the attempts that are out. A completion counts only for one of them. Never decides who is live.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Worker;
use super::calls::Errand;
use super::effects::Effects;
use super::executor::Waiter;
use super::ids::{AttemptName, JobKey, Member, NodeId, TaskKey};
use super::leadership::{Leading, Role};
use super::ledger::{Outcome, Task};
use super::limits;
use super::message::{CallFailure, CancelTask, Code, ExecuteTask, Peer, Request, TaskAnswer, TaskFailure};
use super::notice::Notice;
use super::time::Time;
use super::view::DEADLINE_PASSED;

/// Before a task goes out again after a failure that a repeat at once would only meet again.
const PAUSE: Duration = Duration::from_millis(50);

/// A task that nobody has.
#[derive(Clone, Debug, Default)]
struct Wish {
    /// Who had it under the leadership before: it may have it computed already.
    prefer: Option<NodeId>,
    /// Who failed at it last.
    avoid: Option<NodeId>,
    not_before: Time,
}

/// A job in work.
#[derive(Clone, Debug)]
struct Work {
    slices: u32,
    pending: BTreeMap<u32, Wish>,
}

/// An attempt that is out.
#[derive(Clone, Debug)]
struct Out {
    name: AttemptName,
    worker: NodeId,
    since: Time,
}

/// All work of a leadership.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    jobs: BTreeMap<JobKey, Work>,
    /// Oldest admission first: jobs are worked off in this order.
    order: Vec<JobKey>,
    out: BTreeMap<TaskKey, Vec<Out>>,
    load: BTreeMap<NodeId, u32>,
    takeover: bool,
}

impl Schedule {
    fn start(&mut self, task: &TaskKey, out: Out) {
        let load = self.load.entry(out.worker.clone()).or_default();
        *load = load.saturating_add(1);
        self.out.entry(task.clone()).or_default().push(out);
    }

    /// Takes one attempt out; none if it is not out.
    fn stop(&mut self, task: &TaskKey, name: &AttemptName) -> Option<Out> {
        let copies = self.out.get_mut(task)?;
        let at = copies.iter().position(|out| out.name == *name)?;
        let stopped = copies.swap_remove(at);
        if copies.is_empty() {
            self.out.remove(task);
        }
        self.unload(&stopped.worker);
        Some(stopped)
    }

    fn stop_all(&mut self, task: &TaskKey) -> Vec<Out> {
        let copies = self.out.remove(task).unwrap_or_default();
        copies.iter().for_each(|out| self.unload(&out.worker));
        copies
    }

    fn unload(&mut self, worker: &NodeId) {
        if let Some(load) = self.load.get_mut(worker) {
            *load = load.saturating_sub(1);
            if *load == 0 {
                self.load.remove(worker);
            }
        }
    }

    fn load(&self, worker: &NodeId) -> u32 {
        self.load.get(worker).copied().unwrap_or(0)
    }

    fn at_worker(&self, worker: &NodeId) -> Vec<(TaskKey, AttemptName)> {
        let copies = self.out.iter().flat_map(|(task, copies)| copies.iter().map(move |out| (task, out)));
        copies.filter(|(_, out)| out.worker == *worker).map(|(task, out)| (task.clone(), out.name.clone())).collect()
    }

    fn of_job(&self, job: &JobKey) -> Vec<TaskKey> {
        self.out.keys().filter(|task| task.job == *job).cloned().collect()
    }

    fn is_waiting(&self) -> bool {
        self.jobs.values().any(|work| !work.pending.is_empty())
    }

    fn wish(&mut self, task: &TaskKey, wish: Wish) {
        if let Some(work) = self.jobs.get_mut(&task.job).filter(|work| work.slices == task.slices) {
            work.pending.insert(task.slice, wish);
        }
    }

    fn drop_job(&mut self, job: &JobKey) {
        self.jobs.remove(job);
        self.order.retain(|other| other != job);
    }

    /// When a task that pauses may go out.
    pub(crate) fn next_deadline(&self, now: Time) -> Option<Time> {
        let pauses = self.jobs.values().flat_map(|work| work.pending.values().map(|wish| wish.not_before));
        pauses.filter(|at| *at > now).min()
    }
}

#[cfg(test)]
impl Schedule {
    /// Jobs that it keeps, in work and in their order.
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.jobs.len(), self.order.len())
    }
}

impl Worker {
    /// A leader that has just begun takes up every unfinished job.
    pub(crate) fn take_up_jobs(&mut self, out: &mut Effects) {
        let mut jobs: Vec<JobKey> = self.ledger.unfinished().cloned().collect();
        jobs.sort_by_key(|key| self.ledger.job(key).map(|job| job.submitted_at));
        for job in jobs {
            self.go_on_with(&job, out);
        }
    }

    /// Takes up a job that others may have had in work; tells of it unless it is in work here already.
    pub(crate) fn go_on_with(&mut self, job: &JobKey, out: &mut Effects) {
        let Role::Leading(leading) = &self.role else { return };
        if leading.active && self.ledger.is_unfinished(job) && !leading.schedule.jobs.contains_key(job) {
            let trace = self.ledger.job(job).and_then(|job| job.trace);
            out.notices.push(Notice::JobTakenUp { job: job.clone(), trace });
        }
        self.take_up_job(job, out);
    }

    /// Works from now on by what the ledger says of a job: attempts of other leaderships are ended and their tasks
    /// go first to the workers that had them.
    pub(crate) fn take_up_job(&mut self, job: &JobKey, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        if !leading.active {
            return;
        }
        let slices = self.ledger.leading_cut(job).filter(|_| self.ledger.is_unfinished(job));
        let before = leading.schedule.jobs.get(job).map(|work| work.slices);
        if before.is_some() && before != slices {
            self.drop_work(job, out);
        }
        let Some(slices) = slices else { return };
        let Role::Leading(leading) = &mut self.role else { return };
        let mut pending: BTreeMap<u32, Wish> = (0..slices).map(|slice| (slice, Wish::default())).collect();
        let records: Vec<(u32, Task)> =
            self.ledger.tasks(job, slices).map(|(slice, task)| (slice, task.clone())).collect();
        let mut finished = Vec::new();
        for (slice, task) in records {
            let key = TaskKey { job: job.clone(), slices, slice };
            if task.completion.is_some() {
                pending.remove(&slice);
                finished.push(key);
            } else if leading.schedule.out.contains_key(&key) {
                pending.remove(&slice);
            } else if let Some(attempt) = task.attempt.as_ref().filter(|attempt| !attempt.ended) {
                pending.insert(slice, Wish { prefer: Some(attempt.worker.clone()), ..Wish::default() });
                leading.schedule.takeover = true;
                self.ledger.give_back(&key, false);
            }
        }
        leading.schedule.jobs.insert(job.clone(), Work { slices, pending });
        if !leading.schedule.order.contains(job) {
            leading.schedule.order.push(job.clone());
        }
        for task in finished {
            self.call_off(&task, out);
        }
        out.moved.insert(job.clone());
        self.finish_if_complete(job, out);
    }

    /// Stops all work on a job.
    fn drop_work(&mut self, job: &JobKey, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        leading.schedule.drop_job(job);
        for task in leading.schedule.of_job(job) {
            self.call_off(&task, out);
        }
    }

    /// Takes back every attempt of a task that is out.
    fn call_off(&mut self, task: &TaskKey, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        let leadership = leading.leadership.clone();
        for copy in leading.schedule.stop_all(task) {
            let (attempt, worker) = (copy.name.number, copy.worker.clone());
            out.notices.push(Notice::TaskCalledOff { task: task.clone(), attempt, worker });
            if copy.worker == self.me.node {
                // Nobody waits for its end any more, so that it is no completion to refuse.
                self.executor.forget_own(task);
                self.cancel_computation(task, out);
                continue;
            }
            let attempt = Errand::Attempt(task.clone(), copy.name.clone());
            let calls = self.calls.give_up(|open| open.errand == attempt);
            let to = calls.first().map(|(_, open)| open.to.clone());
            out.abandoned.extend(calls.into_iter().map(|(id, _)| id));
            let (leadership, task, attempt) = (leadership.clone(), task.clone(), copy.name.number);
            if let Some(to) = to {
                let request = Request::CancelTask(CancelTask { leadership, task, attempt });
                self.call(to, request, limits::LINK_CALL, Errand::CancelAttempt, out);
            }
        }
    }

    /// Hands out what waits, as far as workers have places: oldest job first, least loaded worker first.
    pub(crate) fn dispatch(&mut self, out: &mut Effects) {
        let Role::Leading(leading) = &self.role else { return };
        if !leading.active || !leading.schedule.is_waiting() {
            return;
        }
        let workers = self.workers(leading);
        if leading.schedule.takeover {
            self.dispatch_takeover(&workers, out);
        }
        while let Some((task, worker)) = self.next_hand_out(&workers) {
            self.hand_out(&task, &worker, false, out);
        }
    }

    /// Those that get tasks: the leader itself and every follower that has joined.
    fn workers(&self, leading: &Leading) -> Vec<Member> {
        let own = self.stopping.is_none().then(|| self.me.clone());
        own.into_iter().chain(leading.followers.workers()).collect()
    }

    /// Tasks go back to the workers that had them, whatever their load: they compute them already.
    fn dispatch_takeover(&mut self, workers: &[Member], out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        leading.schedule.takeover = false;
        let mut going = Vec::new();
        for (job, work) in &mut leading.schedule.jobs {
            for (slice, wish) in &mut work.pending {
                let Some(node) = wish.prefer.take() else { continue };
                let task = TaskKey { job: job.clone(), slices: work.slices, slice: *slice };
                going.extend(workers.iter().find(|member| member.node == node).map(|member| (task, member.clone())));
            }
        }
        for (task, worker) in going {
            self.hand_out(&task, &worker, false, out);
        }
    }

    fn next_hand_out(&self, workers: &[Member]) -> Option<(TaskKey, Member)> {
        let Role::Leading(leading) = &self.role else { return None };
        let schedule = &leading.schedule;
        let free: Vec<&Member> =
            workers.iter().filter(|member| schedule.load(&member.node) < member.concurrency.max(1)).collect();
        if free.is_empty() {
            return None;
        }
        for job in &schedule.order {
            let Some(work) = schedule.jobs.get(job) else { continue };
            for (slice, wish) in work.pending.iter().filter(|(_, wish)| wish.not_before <= self.now.time) {
                // Who failed at it gets it again only where nobody else is.
                let others = |member: &&&Member| Some(&member.node) != wish.avoid.as_ref() || workers.len() == 1;
                let least = free.iter().filter(others).min_by_key(|member| self.share_of_load(schedule, member));
                if let Some(worker) = least {
                    let task = TaskKey { job: job.clone(), slices: work.slices, slice: *slice };
                    return Some((task, (**worker).clone()));
                }
            }
        }
        None
    }

    /// Load per place in thousandths; among equals the leader comes last, since it has other work as well.
    fn share_of_load(&self, schedule: &Schedule, member: &Member) -> (u64, bool) {
        let load = u64::from(schedule.load(&member.node)).saturating_mul(1_000);
        (load / u64::from(member.concurrency.max(1)), member.node == self.me.node)
    }

    fn hand_out(&mut self, task: &TaskKey, worker: &Member, second: bool, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        if let Some(work) = leading.schedule.jobs.get_mut(&task.job) {
            work.pending.remove(&task.slice);
        }
        let slice = self.ledger.payload(&task.job).and_then(|payload| payload.slice(task.slices, task.slice));
        let Some(slice) = slice else { return };
        let number = self.ledger.task(task).map_or(0, Task::last_attempt).saturating_add(1);
        let leadership = leading.leadership.clone();
        let name = AttemptName { number, term: leadership.term, leader: leadership.leader.clone() };
        let since = self.now.time;
        leading.schedule.start(task, Out { name: name.clone(), worker: worker.node.clone(), since });
        self.ledger.hand_out(task, name.clone(), worker.node.clone());
        let node = worker.node.clone();
        out.notices.push(Notice::TaskHandedOut { task: task.clone(), attempt: number, worker: node, second });
        out.moved.insert(task.job.clone());
        if worker.node == self.me.node {
            self.execute(task, slice, Waiter::Own(name), out);
            return;
        }
        let request = Request::ExecuteTask(ExecuteTask { leadership, task: task.clone(), attempt: number, slice });
        let errand = Errand::Attempt(task.clone(), name);
        self.call(Peer::from(worker), request, limits::TASK_CALL, errand, out);
    }

    /// A call for an attempt came to something.
    pub(crate) fn on_attempt_answered(
        &mut self,
        task: &TaskKey,
        name: &AttemptName,
        result: Result<TaskAnswer, CallFailure>,
        out: &mut Effects,
    ) {
        let answer = result.unwrap_or_else(|failure| {
            let reason: Arc<str> = match failure {
                CallFailure::Refused(refusal) if refusal.code == Code::InvalidArgument => {
                    let failed = TaskFailure { retryable: false, charged: true, reason: Arc::from(refusal.message) };
                    return TaskAnswer { result: Err(failed), took: Duration::ZERO };
                }
                CallFailure::Refused(refusal) => Arc::from(refusal.message),
                CallFailure::Unreachable(reason) => Arc::from(reason),
                CallFailure::TimedOut => Arc::from("it took longer than an attempt may"),
            };
            TaskAnswer { result: Err(TaskFailure { retryable: true, charged: false, reason }), took: Duration::ZERO }
        });
        self.end_attempt(task, name, answer, out);
    }

    /// An attempt ended. Only one that is out counts: the fence of completions.
    pub(crate) fn end_attempt(&mut self, task: &TaskKey, name: &AttemptName, answer: TaskAnswer, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        let Some(ended) = leading.schedule.stop(task, name) else {
            let reason = "the attempt is not out any more";
            out.notices.push(Notice::Fenced { task: task.clone(), attempt: name.number, reason });
            return;
        };
        let failure = answer.result.as_ref().err().map(|failure| failure.reason.clone());
        let (attempt, worker) = (name.number, ended.worker.clone());
        out.notices.push(Notice::TaskEnded { task: task.clone(), attempt, worker: worker.clone(), failure });
        out.moved.insert(task.job.clone());
        match answer.result {
            Ok(value) => {
                if self.ledger.complete(task, name.clone(), worker, value, answer.took) {
                    out.notices.push(Notice::ValuesDiffer(task.clone()));
                }
                self.call_off(task, out);
                self.finish_if_complete(&task.job, out);
            }
            Err(failure) => self.fail_attempt(task, &ended, &failure, out),
        }
    }

    fn fail_attempt(&mut self, task: &TaskKey, ended: &Out, failure: &TaskFailure, out: &mut Effects) {
        let Role::Leading(leading) = &mut self.role else { return };
        let another_is_out = leading.schedule.out.contains_key(task);
        if another_is_out && !failure.charged && failure.retryable {
            return;
        }
        self.ledger.give_back(task, failure.charged);
        let charged = self.ledger.task(task).map_or(0, |task| task.charged);
        if !failure.retryable || charged >= self.settings.max_attempts {
            let reason = format!("task {} failed at {}: {}", task.slice, ended.worker, failure.reason);
            self.end_job(&task.job, Outcome::Failed(Arc::from(reason)), out);
            return;
        }
        if !another_is_out {
            let not_before = self.now.time + PAUSE;
            leading.schedule.wish(task, Wish { prefer: None, avoid: Some(ended.worker.clone()), not_before });
        }
    }

    /// The answer, when all tasks of the leading cut are in.
    fn finish_if_complete(&mut self, job: &JobKey, out: &mut Effects) {
        let Some(slices) = self.ledger.leading_cut(job).filter(|_| self.ledger.is_unfinished(job)) else { return };
        if !self.ledger.is_complete(job, slices) {
            return;
        }
        let Some(kind) = self.ledger.job(job).map(|job| job.kind) else { return };
        let parts = self.ledger.completions(job, slices).map(|(_, done)| done.value);
        if let Some(answer) = kind.fold(parts) {
            self.end_job(job, Outcome::Succeeded(answer), out);
        }
    }

    /// Ends a job: nobody computes for it any more, and it is told when it is held. With too few live workers it
    /// ends when there are enough again.
    pub(crate) fn end_job(&mut self, job: &JobKey, outcome: Outcome, out: &mut Effects) {
        if !self.has_quorum() {
            let Role::Leading(leading) = &mut self.role else { return };
            leading.short = true;
            leading.postponed.entry(job.clone()).or_insert(outcome);
            return;
        }
        self.ledger.end(job, outcome, self.now.wall);
        self.drop_work(job, out);
        self.cancel_computations_of(job, out);
        out.moved.insert(job.clone());
    }

    /// Ends what had to wait for more live workers.
    pub(crate) fn end_postponed(&mut self, out: &mut Effects) {
        let enough = self.has_quorum();
        let Role::Leading(leading) = &mut self.role else { return };
        if !leading.short || !enough {
            return;
        }
        leading.short = false;
        for (job, outcome) in std::mem::take(&mut leading.postponed) {
            self.end_job(&job, outcome, out);
        }
    }

    /// Fails the jobs whose deadline has passed.
    pub(crate) fn end_late_jobs(&mut self, out: &mut Effects) {
        if matches!(&self.role, Role::Leading(leading) if leading.active) {
            for job in self.ledger.late(self.now.wall) {
                self.end_job(&job, Outcome::Failed(Arc::from(DEADLINE_PASSED)), out);
            }
        }
    }

    /// When the next deadline of a job passes.
    pub(crate) fn job_deadline(&self) -> Option<Time> {
        let active = matches!(&self.role, Role::Leading(leading) if leading.active && !leading.short);
        let next = self.ledger.next_deadline().filter(|_| active)?;
        Some(self.now.time + Duration::from_millis(next.0.saturating_sub(self.now.wall.0)))
    }

    /// A worker is no longer live: its attempts end, uncharged, and its tasks go to others.
    pub(crate) fn worker_lost(&mut self, node: &NodeId, out: &mut Effects) {
        let attempts = |open: &super::calls::Open| matches!(open.errand, Errand::Attempt(..)) && open.went_to(node);
        out.abandoned.extend(self.calls.give_up(attempts).into_iter().map(|(id, _)| id));
        let Role::Leading(leading) = &self.role else { return };
        for (task, name) in leading.schedule.at_worker(node) {
            let failed = TaskFailure { retryable: true, charged: false, reason: Arc::from("the worker is lost") };
            self.end_attempt(&task, &name, TaskAnswer { result: Err(failed), took: Duration::ZERO }, out);
        }
    }

    /// Hands slow last tasks out a second time, to workers with nothing else to do; the first answer wins.
    pub(crate) fn copy_slow_tasks(&mut self, out: &mut Effects) {
        let Role::Leading(leading) = &self.role else { return };
        let schedule = &leading.schedule;
        if !leading.active || schedule.is_waiting() || schedule.out.is_empty() {
            return;
        }
        let mut idle: Vec<Member> =
            self.workers(leading).into_iter().filter(|member| schedule.load(&member.node) == 0).collect();
        let mut copies = Vec::new();
        let mut medians: BTreeMap<(JobKey, u32), Option<Duration>> = BTreeMap::new();
        for (task, out) in schedule.out.iter().filter(|(_, copies)| copies.len() == 1) {
            let cut = (task.job.clone(), task.slices);
            let median = *medians.entry(cut).or_insert_with(|| self.median_time(task));
            let slow = median.map(|median| limits::SLOW_TASK.max(median * 2));
            let Some(first) =
                out.first().filter(|first| slow.is_some_and(|slow| self.now.time.since(first.since) > slow))
            else {
                continue;
            };
            if let Some(at) = idle.iter().position(|member| member.node != first.worker) {
                copies.push((task.clone(), idle.swap_remove(at)));
            }
        }
        for (task, worker) in copies {
            self.hand_out(&task, &worker, true, out);
        }
    }

    /// The median time of the completed tasks of a cut; none before the first.
    fn median_time(&self, of: &TaskKey) -> Option<Duration> {
        let mut times: Vec<Duration> = self.ledger.completions(&of.job, of.slices).map(|(_, done)| done.took).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }
}
