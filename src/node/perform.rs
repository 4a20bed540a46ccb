//! Carries out what the worker decided, in the order of the fields of [`Effects`].
//!
//! Owns the ways out of the loop. Never waits and never decides: what can't be done comes back as an input.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::clock::Clock;
use super::compute::Pool;
use super::handle::Shared;
use super::subscribers::Audience;
use crate::journal::{Journal, JournalFailed};
use crate::protocol::effects::{ComputeEffect, Ending, StreamEffect};
use crate::protocol::notice::Notice;
use crate::protocol::time::Time;
use crate::protocol::trace::Trace;
use crate::protocol::{Effects, Input, Worker};
use crate::telemetry::observe::Observer;
use crate::transport::Transport;

/// All that effects go out to.
#[derive(Debug)]
pub(super) struct Performer {
    journal: Journal,
    transport: Transport,
    pool: Pool,
    audience: Audience,
    observer: Observer,
    shared: Arc<Shared>,
}

impl Performer {
    /// # Errors
    /// When the system gives no thread for the pool.
    pub(super) fn new(journal: Journal, transport: Transport, shared: Arc<Shared>) -> io::Result<Performer> {
        let observer = Observer::new(&shared.member.node, Arc::clone(&shared.metrics));
        let pool = Pool::start(shared.member.concurrency, &shared.queue)?;
        Ok(Performer { journal, transport, pool, audience: Audience::default(), observer, shared })
    }

    /// What comes in, before the worker sees it. Gives where it stands in a trace, if it is a call.
    pub(super) fn comes(&mut self, input: &Input) -> Option<Trace> {
        match input {
            Input::Called { token, .. } => return self.shared.callers.trace_of(*token),
            Input::Saved { save } => self.observer.saved(*save),
            Input::Computed { compute, value, took } => {
                self.observer.spans.computed(*compute, value.is_some());
                self.observer.computed(*took);
            }
            _ => {}
        }
        None
    }

    /// Tells of what has happened in a step that `cause` set off.
    pub(super) fn tell(&mut self, cause: Option<Trace>, notices: Vec<Notice>, clock: &Clock) {
        let told = self.observer.stepped(cause, notices);
        self.shared.events.push(clock.now().wall, told);
    }

    /// The loop's timer was so late.
    pub(super) fn late(&self, by: Duration) {
        self.observer.late(by);
    }

    /// Carries out everything. Says whether the worker has ended with it.
    pub(super) fn perform(
        &mut self,
        effects: Effects,
        worker: &Worker,
        clock: &Clock,
    ) -> Result<Option<Ending>, JournalFailed> {
        // Every field by name, so that a new one is not left out.
        let Effects {
            saves,
            replies,
            abandoned,
            calls,
            directories,
            watches,
            streams,
            computations,
            // Told step by step, as each may have another cause.
            notices: _,
            moved,
            ended,
        } = effects;
        saves.iter().for_each(|save| self.observer.saves(save.id));
        self.journal.save(saves)?;
        for (token, answer) in replies {
            self.shared.callers.answer(token, answer);
        }
        abandoned.into_iter().for_each(|call| self.transport.abandon(call));
        for call in calls {
            let trace = self.observer.spans.cause_of(&call.request);
            self.transport.call(call, trace);
        }
        for (directory, request) in directories {
            self.transport.directory(directory, request);
        }
        for (directory, after) in watches {
            self.transport.watch(directory, after);
        }
        streams.into_iter().for_each(|effect| self.stream(effect));
        computations.into_iter().for_each(|effect| self.compute(effect));
        self.audience.show(&self.shared.subscriptions, &moved, worker, clock);
        self.shared.tell_ready(worker.is_ready() && ended.is_none());
        Ok(ended)
    }

    /// Waits until the journal fails.
    pub(super) async fn journal_failed(&mut self) -> JournalFailed {
        self.journal.failed().await
    }

    /// When a subscriber is due that had to wait.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.audience.next_deadline()
    }

    /// Ends what is under way to others, and the threads.
    pub(super) async fn end(self) {
        self.transport.shutdown();
        self.transport.ended().await;
        let (pool, journal) = (self.pool, self.journal);
        let threads = tokio::task::spawn_blocking(move || {
            pool.end();
            journal.end();
        });
        if let Err(panic) = threads.await {
            tracing::error!(%panic, "the threads of this node did not end well, which is a bug");
        }
    }

    fn stream(&mut self, effect: StreamEffect) {
        match effect {
            StreamEffect::Open { stream, to } => self.transport.open_up(stream, to),
            StreamEffect::Up(stream, frame) => self.transport.up(stream, frame),
            StreamEffect::Down(stream, frame) => self.shared.followers.send(stream, frame),
            StreamEffect::CloseUp(stream) => self.transport.close_up(stream),
            StreamEffect::CloseDown(stream) => self.shared.followers.forget(stream),
        }
    }

    fn compute(&mut self, effect: ComputeEffect) {
        match effect {
            ComputeEffect::Start(compute, task, slice) => {
                self.observer.spans.computes(compute, &task);
                self.pool.compute(compute, slice);
            }
            ComputeEffect::Cancel(compute) => self.pool.cancel(compute),
        }
    }
}
