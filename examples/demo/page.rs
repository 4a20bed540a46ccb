//! What the demo prints: chapters, lines, and a bar that becomes plain lines where there is no terminal.

use std::io::{IsTerminal, stdout};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A heading, with what is to be seen under it.
pub(crate) fn chapter(title: &str, text: &str) {
    let bold = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|text| text.is_empty());
    match bold {
        true => println!("\n\x1b[1m{title}\x1b[0m"),
        false => println!("\n{title}"),
    }
    text.lines().for_each(|line| println!("  {}", line.trim()));
    println!();
}

/// A line of the story.
pub(crate) fn line(text: impl std::fmt::Display) {
    println!("    {text}");
}

/// How far a job is.
#[derive(Debug)]
pub(crate) struct Bar {
    drawn: Option<ProgressBar>,
    /// Without a terminal: quarters that were told.
    quarters: u64,
}

impl Bar {
    /// An empty one.
    pub(crate) fn new(title: &str) -> Bar {
        let drawn = stdout().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("    {prefix}  {bar:30} {pos}/{len}  {msg}").expect("a good template");
            let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stdout());
            bar.with_style(style.progress_chars("━╸─")).with_prefix(title.to_owned())
        });
        Bar { drawn, quarters: 0 }
    }

    /// One that is nothing without a terminal, for a job too short to be worth lines.
    pub(crate) fn unless_plain(title: &str) -> Bar {
        let mut bar = Bar::new(title);
        bar.quarters = u64::MAX;
        bar
    }

    /// Shows how far it is.
    pub(crate) fn show(&mut self, completed: u64, total: u64, message: &str) {
        if let Some(bar) = &self.drawn {
            bar.set_length(total);
            bar.set_position(completed);
            bar.set_message(message.to_owned());
        } else if total > 0 && completed * 4 / total > self.quarters {
            self.quarters = completed * 4 / total;
            line(format_args!("{completed:>3}/{total} tasks  {message}"));
        }
    }

    /// A line of the story, above the bar.
    pub(crate) fn tell(&self, text: &str) {
        match &self.drawn {
            Some(bar) => bar.suspend(|| line(text)),
            None => line(text),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.drawn {
            bar.finish_and_clear();
        }
    }
}
