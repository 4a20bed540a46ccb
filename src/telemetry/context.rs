//! A span that is open, and the way between its place in a trace and the core's [`Trace`].
//!
//! Owns how a span is made. Where spans are not recorded, what caused them is passed on as it came.

use std::time::{Duration, Instant};

use opentelemetry::trace::{SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceState};
use opentelemetry::{Context, Value};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::names::attribute;
use crate::protocol::trace::{Trace, TraceId};

/// Everything under this target is a span for the collector, and nothing else is.
pub(super) const TARGET: &str = concat!(env!("CARGO_CRATE_NAME"), "::spans");

/// The metadata key of W3C Trace Context.
pub const TRACE_PARENT: &str = "traceparent";

/// A span that ends when this is dropped.
#[derive(Debug)]
pub struct Open {
    span: Span,
    trace: Option<Trace>,
    since: Instant,
}

impl Open {
    /// Begins a span below `parent`, or a trace of its own.
    #[must_use]
    pub fn new(name: &'static str, node: &str, parent: Option<Trace>) -> Open {
        let span = tracing::info_span!(target: TARGET, parent: None, "span", otel.name = name);
        if let Some(parent) = parent
            && !span.is_disabled()
            && let Err(error) = span.set_parent(Context::new().with_remote_span_context(remote(parent)))
        {
            tracing::debug!(%error, "a span stands apart from what caused it");
        }
        let own = span.context();
        let open = Open { trace: trace(own.span().span_context()).or(parent), span, since: Instant::now() };
        open.set(attribute::NODE, node.to_owned());
        open
    }

    /// Where it stands: what it causes goes below it.
    #[must_use]
    pub fn trace(&self) -> Option<Trace> {
        self.trace
    }

    /// How long it is open.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Adds an attribute.
    pub fn set(&self, key: &'static str, value: impl Into<Value>) {
        if !self.span.is_disabled() {
            self.span.set_attribute(key, value);
        }
    }

    /// Marks it as failed, and why.
    pub fn fail(&self, why: impl Into<std::borrow::Cow<'static, str>>) {
        if !self.span.is_disabled() {
            self.span.set_status(Status::error(why));
        }
    }

    /// Points at something in another trace that belongs to it.
    pub fn link(&self, other: Trace) {
        if !self.span.is_disabled() {
            self.span.add_link(remote(other));
        }
    }
}

fn remote(trace: Trace) -> SpanContext {
    let flags = if trace.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (id, span) = (opentelemetry::TraceId::from(trace.id.0), SpanId::from(trace.span));
    SpanContext::new(id, span, flags, true, TraceState::default())
}

fn trace(context: &SpanContext) -> Option<Trace> {
    let id = TraceId(u128::from_be_bytes(context.trace_id().to_bytes()));
    let span = u64::from_be_bytes(context.span_id().to_bytes());
    context.is_valid().then_some(Trace { id, span, sampled: context.is_sampled() })
}
