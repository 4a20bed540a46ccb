//! The worker's side of a hand-out (section 7): compute each task once, whoever asks for it and how often.
//!
//! Owns what is computed here, who waits for it, and the last results. A leader that takes over asks again and
//! joins the computation, so a failover costs no finished work. Bounds: [`limits::TASK_QUEUE`], [`limits::RESULTS`].

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::jobs::{Payload, Value};

use super::effects::{ComputeEffect, Effects};
use super::ids::{AttemptName, ComputeId, JobKey, ReplyToken, TaskKey};
use super::limits;
use super::message::{CancelTask, Code, ExecuteTask, Refusal, Response, TaskAnswer, TaskFailure};
use super::notice::Notice;
use super::{Local, Worker};

/// Attempts of one task that may wait for one computation.
const WAITERS: usize = 16;

/// Who waits for a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// A leader elsewhere.
    Caller(ReplyToken),
    /// This worker's own leadership.
    Own(AttemptName),
}

/// A task here.
#[derive(Clone, Debug)]
struct Computing {
    slice: Payload,
    /// None while it waits for a place in the pool.
    compute: Option<ComputeId>,
    waiters: Vec<Waiter>,
    cancelled: bool,
}

/// All tasks here.
#[derive(Clone, Debug)]
pub(crate) struct Executor {
    places: u32,
    last: ComputeId,
    tasks: BTreeMap<TaskKey, Computing>,
    running: BTreeMap<ComputeId, TaskKey>,
    queue: VecDeque<TaskKey>,
    results: BTreeMap<TaskKey, TaskAnswer>,
    oldest: VecDeque<TaskKey>,
}

impl Executor {
    pub(crate) fn new(places: u32) -> Executor {
        Executor {
            places: places.max(1),
            last: ComputeId(0),
            tasks: BTreeMap::new(),
            running: BTreeMap::new(),
            queue: VecDeque::new(),
            results: BTreeMap::new(),
            oldest: VecDeque::new(),
        }
    }

    /// Tasks that are computed now.
    pub(crate) fn running(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap_or(u32::MAX)
    }

    /// Takes a hand-out. Gives the result if it is known, or why it can't be taken.
    fn take(&mut self, task: &TaskKey, slice: Payload, waiter: Waiter) -> Option<TaskAnswer> {
        if let Some(known) = self.results.get(task) {
            return Some(known.clone());
        }
        if let Some(computing) = self.tasks.get_mut(task).filter(|computing| !computing.cancelled) {
            if computing.waiters.len() >= WAITERS {
                return Some(not_now("too many wait for this task here"));
            }
            computing.waiters.push(waiter);
            return None;
        }
        if self.tasks.contains_key(task) {
            return Some(not_now("its cancelled computation has not ended yet"));
        }
        if self.queue.len() >= limits::TASK_QUEUE {
            return Some(not_now("the queue is full"));
        }
        let computing = Computing { slice, compute: None, waiters: vec![waiter], cancelled: false };
        self.tasks.insert(task.clone(), computing);
        self.queue.push_back(task.clone());
        None
    }

    /// Starts what waits, as far as there are places.
    fn start(&mut self, out: &mut Effects) {
        while self.running() < self.places {
            let Some(task) = self.queue.pop_front() else { return };
            let Some(computing) = self.tasks.get_mut(&task) else { continue };
            self.last = self.last.next();
            computing.compute = Some(self.last);
            self.running.insert(self.last, task.clone());
            out.computations.push(ComputeEffect::Start(self.last, task, computing.slice.clone()));
        }
    }

    /// Cancels a task; gives those who waited for it.
    fn cancel(&mut self, task: &TaskKey, out: &mut Effects) -> Vec<Waiter> {
        let Some(computing) = self.tasks.get_mut(task) else { return Vec::new() };
        let waiters = std::mem::take(&mut computing.waiters);
        match computing.compute {
            Some(compute) if !computing.cancelled => {
                computing.cancelled = true;
                out.computations.push(ComputeEffect::Cancel(compute));
            }
            Some(_) => {}
            None => {
                self.tasks.remove(task);
                self.queue.retain(|waiting| waiting != task);
            }
        }
        waiters
    }

    /// This worker's own leadership does not wait for a task any more.
    pub(crate) fn forget_own(&mut self, task: &TaskKey) {
        if let Some(computing) = self.tasks.get_mut(task) {
            computing.waiters.retain(|waiter| matches!(waiter, Waiter::Caller(_)));
        }
    }

    /// A computation ended. Gives its task, its outcome and those who waited.
    fn finish(
        &mut self,
        compute: ComputeId,
        value: Option<Value>,
        took: Duration,
    ) -> Option<(TaskKey, TaskAnswer, Vec<Waiter>)> {
        let task = self.running.remove(&compute)?;
        let computing = self.tasks.remove(&task)?;
        let answer = match value {
            Some(value) => TaskAnswer { result: Ok(value), took },
            None if computing.cancelled => not_now("cancelled"),
            None => failure(true, "the computation broke off"),
        };
        if answer.result.is_ok() {
            self.remember(&task, answer.clone());
        }
        Some((task, answer, computing.waiters))
    }

    fn remember(&mut self, task: &TaskKey, answer: TaskAnswer) {
        if self.oldest.len() >= limits::RESULTS
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.results.remove(&oldest);
        }
        self.oldest.push_back(task.clone());
        self.results.insert(task.clone(), answer);
    }

    fn tasks_of(&self, job: &JobKey) -> Vec<TaskKey> {
        self.tasks.keys().filter(|task| task.job == *job).cloned().collect()
    }
}

fn not_now(reason: &str) -> TaskAnswer {
    failure(false, reason)
}

fn failure(charged: bool, reason: &str) -> TaskAnswer {
    let failure = TaskFailure { retryable: true, charged, reason: Arc::from(reason) };
    TaskAnswer { result: Err(failure), took: Duration::ZERO }
}

impl Worker {
    /// Tasks that this worker computes now.
    pub(crate) fn running(&self) -> u32 {
        self.executor.running()
    }

    /// A hand-out from a leader elsewhere.
    pub(crate) fn on_execute(&mut self, token: ReplyToken, hand_out: ExecuteTask, out: &mut Effects) {
        if let Some(refusal) = self.refuse_hand_out(&hand_out) {
            out.replies.push((token, Err(refusal)));
            return;
        }
        let ExecuteTask { leadership, task, attempt, .. } = &hand_out;
        let (task, attempt, from) = (task.clone(), *attempt, leadership.clone());
        out.notices.push(Notice::TaskTaken { task, attempt, from });
        let waiter = Waiter::Caller(token);
        self.execute(&hand_out.task, hand_out.slice, waiter, out);
    }

    fn refuse_hand_out(&self, hand_out: &ExecuteTask) -> Option<Refusal> {
        let older = self.followed.as_ref().filter(|leader| hand_out.leadership < leader.leadership);
        if let Some(newer) = older {
            let text = format!("leadership {} is older than {}", hand_out.leadership, newer.leadership);
            return Some(Refusal::new(Code::FailedPrecondition, text));
        }
        if self.stopping.is_some() {
            return Some(Refusal::new(Code::Unavailable, "this worker is stopping"));
        }
        let bad = hand_out.slice.check(self.settings.max_numbers).err();
        bad.map(|refused| Refusal::new(Code::InvalidArgument, refused.to_string()))
    }

    /// Computes a task for whoever waits, or answers at once from what is known.
    pub(crate) fn execute(&mut self, task: &TaskKey, slice: Payload, waiter: Waiter, out: &mut Effects) {
        if let Some(known) = self.executor.take(task, slice, waiter.clone()) {
            self.answer_waiters(task, &known, vec![waiter], out);
        }
        self.executor.start(out);
    }

    /// A leader does not want an attempt any more.
    pub(crate) fn on_cancel_task(&mut self, token: ReplyToken, cancel: &CancelTask, out: &mut Effects) {
        let older = self.followed.as_ref().is_some_and(|leader| cancel.leadership < leader.leadership);
        if older {
            out.replies.push((token, Err(Refusal::new(Code::FailedPrecondition, "the leadership is an older one"))));
            return;
        }
        self.cancel_computation(&cancel.task, out);
        out.replies.push((token, Ok(Response::Done)));
    }

    /// Stops computing a task.
    pub(crate) fn cancel_computation(&mut self, task: &TaskKey, out: &mut Effects) {
        let waiters = self.executor.cancel(task, out);
        self.answer_waiters(task, &not_now("cancelled"), waiters, out);
        self.executor.start(out);
    }

    /// Stops computing tasks of a job that has ended.
    pub(crate) fn cancel_computations_of(&mut self, job: &JobKey, out: &mut Effects) {
        for task in self.executor.tasks_of(job) {
            self.cancel_computation(&task, out);
        }
    }

    /// Hands everything back: this worker stops.
    pub(crate) fn hand_back(&mut self, out: &mut Effects) {
        let tasks: Vec<TaskKey> = self.executor.tasks.keys().cloned().collect();
        for task in tasks {
            let waiters = self.executor.cancel(&task, out);
            self.answer_waiters(&task, &not_now("the worker stops"), waiters, out);
        }
    }

    /// A computation ended.
    pub(crate) fn on_computed(&mut self, compute: ComputeId, value: Option<Value>, took: Duration, out: &mut Effects) {
        if let Some((task, answer, waiters)) = self.executor.finish(compute, value, took) {
            self.answer_waiters(&task, &answer, waiters, out);
        }
        self.executor.start(out);
    }

    /// A caller is gone: what it waited for is computed to its end all the same, if it has begun, since the next
    /// leader asks for it.
    pub(crate) fn executor_caller_gone(&mut self, token: ReplyToken) {
        for computing in self.executor.tasks.values_mut() {
            computing.waiters.retain(|waiter| !matches!(waiter, Waiter::Caller(gone) if *gone == token));
        }
        let idle = |computing: &Computing| computing.compute.is_none() && computing.waiters.is_empty();
        self.executor.tasks.retain(|_, computing| !idle(computing));
        let tasks = &self.executor.tasks;
        self.executor.queue.retain(|task| tasks.contains_key(task));
    }

    fn answer_waiters(&mut self, task: &TaskKey, answer: &TaskAnswer, waiters: Vec<Waiter>, out: &mut Effects) {
        for waiter in waiters {
            match waiter {
                Waiter::Caller(token) => out.replies.push((token, Ok(Response::Task(answer.clone())))),
                Waiter::Own(name) => self.local.push_back(Local::OwnTask(task.clone(), name, answer.clone())),
            }
        }
    }
}
