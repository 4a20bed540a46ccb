//! The pool that computes slices: threads of the system, apart from those of the network and at a lower priority, so
//! that a busy worker never looks dead.
//!
//! Owns the threads and the flags that cancel. Never knows tasks or attempts. Invariants: what was started comes
//! back as one `Computed`, also after a cancel or a panic; what waits is bounded by what the worker starts, which
//! is one computation per thread.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::jobs::{Payload, Value};
use crate::protocol::Input;
use crate::protocol::ids::ComputeId;
use crate::protocol::limits;

/// How much nicer than the rest of the process a computing thread is. At 10 it gets about a tenth of a contended
/// core, and all of an idle one.
const NICER: i32 = 10;

/// The pool.
#[derive(Debug)]
pub(super) struct Pool {
    work: Arc<Work>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Work {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(ComputeId, Payload)>,
    /// Of all that waits or runs: raised to cancel it.
    flags: BTreeMap<ComputeId, Arc<AtomicBool>>,
    ended: bool,
}

impl Pool {
    /// A pool of so many threads. What they compute goes into `queue`.
    ///
    /// # Errors
    /// When the system gives no thread more.
    pub(super) fn start(threads: u32, queue: &mpsc::Sender<Input>) -> io::Result<Pool> {
        let mut pool = Pool { work: Arc::default(), threads: Vec::new() };
        for number in 1..=threads {
            let (work, queue) = (Arc::clone(&pool.work), queue.clone());
            let thread = std::thread::Builder::new().name(format!("compute-{number}"));
            pool.threads.push(thread.spawn(move || work.run(&queue))?);
        }
        Ok(pool)
    }

    /// Starts a computation, as soon as a thread is free.
    pub(super) fn compute(&self, compute: ComputeId, slice: Payload) {
        let mut state = self.work.state();
        // The worker starts no more than it has threads; a bug there must not grow this without bound.
        if state.waiting.len() >= limits::TASK_QUEUE {
            tracing::error!(%compute, "the compute pool is full, which is a bug: the computation is left out");
            return;
        }
        state.flags.insert(compute, Arc::default());
        state.waiting.push_back((compute, slice));
        drop(state);
        self.work.changed.notify_one();
    }

    /// Ends a computation, within 50 ms.
    pub(super) fn cancel(&self, compute: ComputeId) {
        if let Some(flag) = self.work.state().flags.get(&compute) {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Cancels everything and waits for the threads.
    pub(super) fn end(self) {
        {
            let mut state = self.work.state();
            state.ended = true;
            state.flags.values().for_each(|flag| flag.store(true, Ordering::Relaxed));
        }
        self.work.changed.notify_all();
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a compute thread had ended by a panic, which is a bug");
            }
        }
    }
}

impl Work {
    /// A thread's life.
    fn run(&self, queue: &mpsc::Sender<Input>) {
        // On Linux the call means the calling thread alone. Without it the pool competes with the network's threads.
        if let Err(error) = rustix::process::setpriority_process(None, NICER) {
            tracing::warn!(%error, "computations run at the priority of the whole process");
        }
        while let Some((compute, slice, cancelled)) = self.next() {
            let begun = Instant::now();
            let value = value_of(compute, &slice, &cancelled);
            let took = begun.elapsed();
            self.state().flags.remove(&compute);
            if !came_to(queue, compute, value, took) {
                return;
            }
        }
    }

    fn next(&self) -> Option<(ComputeId, Payload, Arc<AtomicBool>)> {
        let mut state = self.state();
        loop {
            if state.ended {
                return None;
            }
            if let Some((compute, slice)) = state.waiting.pop_front() {
                let cancelled = state.flags.get(&compute).map(Arc::clone).unwrap_or_default();
                return Some((compute, slice, cancelled));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn value_of(compute: ComputeId, slice: &Payload, cancelled: &AtomicBool) -> Option<Value> {
    // A payload is plain data and the flag is only ever raised: nothing is left half changed by a panic.
    let ended = catch_unwind(AssertUnwindSafe(|| slice.run(&|| cancelled.load(Ordering::Relaxed))));
    if ended.is_err() {
        tracing::error!(%compute, "a computation ended by a panic, which is a bug");
    }
    ended.ok()?.ok()
}

/// Says whether the loop took it. Waits for a place in the queue if it has to: the loop empties that without ever
/// waiting for this pool, so the wait is short, and it fails only when the loop has ended.
fn came_to(queue: &mpsc::Sender<Input>, compute: ComputeId, value: Option<Value>, took: Duration) -> bool {
    queue.blocking_send(Input::Computed { compute, value, took }).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(30);

    async fn computed(inbox: &mut mpsc::Receiver<Input>) -> (ComputeId, Option<Value>, Duration) {
        let input = tokio::time::timeout(WITHIN, inbox.recv()).await.expect("it comes back in time");
        match input {
            Some(Input::Computed { compute, value, took }) => (compute, value, took),
            other => panic!("not a computation: {other:?}"),
        }
    }

    /// Minutes of work.
    fn endless() -> Payload {
        Payload::PrimeSum { start: 1, end: 1 << 50 }
    }

    #[tokio::test]
    async fn what_is_started_comes_back_with_its_value() {
        let (queue, mut inbox) = mpsc::channel(4);
        let pool = Pool::start(2, &queue).expect("there are threads");
        pool.compute(ComputeId(1), Payload::PrimeSum { start: 1, end: 10 });
        let (compute, value, _) = computed(&mut inbox).await;
        assert_eq!((compute, value), (ComputeId(1), Some(Value(17))));
        assert!(pool.work.state().flags.is_empty());
        pool.end();
    }

    #[tokio::test]
    async fn a_cancel_ends_a_computation_within_50_ms_and_one_that_waits_at_once() {
        let (queue, mut inbox) = mpsc::channel(4);
        let pool = Pool::start(1, &queue).expect("there are threads");
        pool.compute(ComputeId(1), endless());
        pool.compute(ComputeId(2), endless());
        while pool.work.state().waiting.len() == 2 {
            tokio::task::yield_now().await;
        }
        pool.cancel(ComputeId(2));
        let told = Instant::now();
        pool.cancel(ComputeId(1));
        let (first, value, _) = computed(&mut inbox).await;
        // Ten times what is promised: the machine that runs the tests may be busy.
        assert!(told.elapsed() < Duration::from_millis(500), "{:?}", told.elapsed());
        assert_eq!((first, value), (ComputeId(1), None));
        let (second, value, took) = computed(&mut inbox).await;
        assert_eq!((second, value), (ComputeId(2), None));
        assert!(took < Duration::from_millis(500), "{took:?}");
        pool.end();
    }

    #[tokio::test]
    async fn a_pool_that_ends_cancels_what_runs_and_waits_for_its_threads() {
        let (queue, mut inbox) = mpsc::channel(4);
        let pool = Pool::start(2, &queue).expect("there are threads");
        (1..=3).for_each(|compute| pool.compute(ComputeId(compute), endless()));
        tokio::task::spawn_blocking(move || pool.end()).await.expect("it ends");
        drop(queue);
        let mut without_value = 0;
        while let Some(Input::Computed { value: None, .. }) = inbox.recv().await {
            without_value += 1;
        }
        assert!(without_value <= 2, "{without_value}");
    }
}
