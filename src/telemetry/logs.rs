//! The log of a process: where it goes and what a line looks like.
//!
//! Owns the one subscriber of `tracing`. Everything goes to standard error, since standard output belongs to what a
//! command answers.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use super::context::TARGET;
use super::export::Export;

/// What a line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people; in colours on a terminal, unless NO_COLOR says otherwise.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log of this process, and its spans if it exports them. A second start changes nothing.
pub fn start(form: Form, level: LevelFilter, export: Option<&Export>) {
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match form {
        Form::Text => {
            let is_coloured =
                io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|text| text.is_empty());
            // Its reader may be gone; a node goes on without.
            let layer = fmt::layer().with_ansi(is_coloured).with_target(false).log_internal_errors(false);
            Box::new(layer.with_writer(io::stderr))
        }
        Form::Json => {
            let layer = fmt::layer().json().flatten_event(true).with_current_span(false);
            Box::new(layer.with_writer(io::stderr).log_internal_errors(false))
        }
    };
    // Of libraries only what an operator can act on.
    let shown = lines.with_filter(Ours(level));
    // What the exporter's own connection says is no span, or each sending would be the cause of another.
    let spans = export.map(|export| {
        let layer = tracing_opentelemetry::layer().with_tracer(export.tracer());
        let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false);
        layer.with_level(false).with_target(false).with_context_activation(false).with_filter(Spans)
    });
    tracing_subscriber::registry().with(shown).with(spans).try_init().ok();
}

/// Lets through what is a span for the collector, and no line of the log.
struct Spans;

impl<S> tracing_subscriber::layer::Filter<S> for Spans {
    fn enabled(&self, span: &tracing::Metadata<'_>, _: &tracing_subscriber::layer::Context<'_, S>) -> bool {
        span.target() == TARGET
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }
}

/// Lets our own lines through from a level on, and those of libraries from WARN on.
struct Ours(LevelFilter);

impl<S> tracing_subscriber::layer::Filter<S> for Ours {
    fn enabled(&self, line: &tracing::Metadata<'_>, _: &tracing_subscriber::layer::Context<'_, S>) -> bool {
        if line.target() == TARGET {
            return false;
        }
        let level =
            if line.target().starts_with(env!("CARGO_CRATE_NAME")) { self.0 } else { self.0.min(LevelFilter::WARN) };
        *line.level() <= level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0)
    }
}
