//! Who waits for an answer of the worker.
//!
//! Owns the ends of the waiting callers, by token. Never knows what was asked. The lock is held for one look-up at
//! a time, and guards no state of the protocol.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::protocol::ids::ReplyToken;
use crate::protocol::message::{Refusal, Response};
use crate::protocol::trace::Trace;

pub(super) type Answer = Result<Response, Refusal>;

/// The waiting callers. Each holds a place in the queue, which bounds them.
#[derive(Debug, Default)]
pub(super) struct Callers {
    last: AtomicU64,
    waiting: Mutex<BTreeMap<ReplyToken, Caller>>,
}

/// One who waits.
#[derive(Debug)]
struct Caller {
    answer: oneshot::Sender<Answer>,
    trace: Option<Trace>,
}

impl Callers {
    /// One more, under a fresh token; its call stands there in a trace.
    pub(super) fn enter(&self, trace: Option<Trace>) -> (ReplyToken, oneshot::Receiver<Answer>) {
        let token = ReplyToken(self.last.fetch_add(1, Ordering::Relaxed).saturating_add(1));
        let (sender, answer) = oneshot::channel();
        self.waiting().insert(token, Caller { answer: sender, trace });
        (token, answer)
    }

    /// Gives one its answer; nothing happens if it is gone.
    pub(super) fn answer(&self, token: ReplyToken, answer: Answer) {
        let caller = self.waiting().remove(&token);
        if let Some(caller) = caller {
            // It fails if the caller goes at this moment, which is as good as having gone before.
            caller.answer.send(answer).ok();
        }
    }

    /// Where a call stands in a trace, while its caller waits.
    pub(super) fn trace_of(&self, token: ReplyToken) -> Option<Trace> {
        self.waiting().get(&token)?.trace
    }

    /// One goes. Says whether it had no answer yet.
    pub(super) fn leave(&self, token: ReplyToken) -> bool {
        self.waiting().remove(&token).is_some()
    }

    /// All go: each learns that no answer will come.
    pub(super) fn close(&self) {
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<ReplyToken, Caller>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
