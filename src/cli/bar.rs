//! The live bar of a job: on a terminal only, on standard error, gone when the job has ended.
//!
//! Owns what a bar looks like. Never decides what is shown: it gets one message after the other. Section 11 of the
//! contract.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::face::{Face, Output};
use crate::protocol::view::{JobState, JobView};

/// Often enough for a clock that shows seconds.
const TICK: Duration = Duration::from_millis(100);

/// A bar, or nothing where nobody would see one.
#[derive(Debug)]
pub(super) struct Bar {
    drawn: Option<ProgressBar>,
    told: bool,
}

impl Bar {
    /// A bar that waits for its first message.
    pub(super) fn new(title: &str, face: &Face) -> Bar {
        let told = face.output == Output::Text;
        let drawn = (told && stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0).with_prefix(title.to_owned()).with_style(style(WAITING));
            bar.enable_steady_tick(TICK);
            bar
        });
        Bar { drawn, told }
    }

    /// Says what is being waited for, while there are no tasks yet.
    pub(super) fn wait(&self, what: &str) {
        if let Some(bar) = &self.drawn {
            bar.set_style(style(WAITING));
            bar.set_message(what.to_owned());
        }
    }

    /// Shows a message.
    pub(super) fn show(&self, view: &JobView) {
        let Some(bar) = &self.drawn else { return };
        match view.state {
            JobState::Queued => self.wait("waits for a coordinator with room"),
            JobState::Running | JobState::Cancelled | JobState::Failed | JobState::Succeeded => {
                bar.set_style(style(RUNNING));
                bar.set_length(u64::from(view.total));
                bar.set_position(u64::from(view.completed));
                bar.set_message(who(view));
            }
        }
    }

    /// Takes the bar away, so that what is written next stands in its place.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.drawn {
            bar.finish_and_clear();
        }
    }

    /// Says what a person may want to do next; a script knows.
    pub(super) fn hint(&self, line: &str) {
        if let Some(bar) = &self.drawn {
            bar.suspend(|| super::face::complain(line));
        }
    }

    /// Says something that should stay to be read, above the bar. Not with JSON: its reader has no use for it.
    pub(super) fn note(&self, line: &str) {
        match &self.drawn {
            Some(bar) => bar.suspend(|| super::face::complain(line)),
            None if self.told => super::face::complain(line),
            None => {}
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn who(view: &JobView) -> String {
    let running: u32 = view.workers.iter().map(|share| share.running).sum();
    match &view.stamp {
        Some(stamp) => format!("term {} led by {}, {running} running", stamp.term, stamp.leader),
        None => format!("{running} running"),
    }
}

/// See <https://no-color.org>: any text but an empty one.
fn is_plain() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty())
}

/// Plain ones first.
const WAITING: [&str; 2] = ["{prefix}  {elapsed}  {msg}", "{prefix:.bold}  {elapsed}  {msg:.dim}"];
const RUNNING: [&str; 2] = [
    "{prefix}  {bar:30} {pos}/{len}  {elapsed}  {msg}",
    "{prefix:.bold}  {bar:30.cyan/dim} {pos}/{len}  {elapsed}  {msg:.dim}",
];

fn style([plain, coloured]: [&str; 2]) -> ProgressStyle {
    let template = if is_plain() { plain } else { coloured };
    // Were a template wrong, another bar is better than none.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━╸─")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indicatif_takes_every_template() {
        for template in [WAITING, RUNNING].as_flattened() {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
