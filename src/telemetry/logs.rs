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

/// What a line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people; in colours on a terminal, unless NO_COLOR says otherwise.
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log of this process. A second start changes nothing.
pub fn start(form: Form, level: LevelFilter) {
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
    tracing_subscriber::registry().with(shown).try_init().ok();
}

/// Lets our own lines through from a level on, and those of libraries from WARN on.
struct Ours(LevelFilter);

impl<S> tracing_subscriber::layer::Filter<S> for Ours {
    fn enabled(&self, line: &tracing::Metadata<'_>, _: &tracing_subscriber::layer::Context<'_, S>) -> bool {
        let level =
            if line.target().starts_with(env!("CARGO_CRATE_NAME")) { self.0 } else { self.0.min(LevelFilter::WARN) };
        *line.level() <= level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0)
    }
}
