//! `floodline node`: one node, in the foreground, until it is told to stop.

use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::exit::{Exit, Outcome};
use super::face::Face;
use super::setting_flags::SettingFlags;
use crate::app::{Ended, Node, start_telemetry};

/// Arguments of `floodline node`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: SettingFlags,

    /// End in order when standard input closes: `floodline up` holds the other end, so that its nodes end with it,
    /// however it ends
    #[arg(long, hide = true)]
    until_stdin_closes: bool,
}

/// Runs it. Its log goes to standard error; nothing goes to standard output.
pub(crate) async fn run(args: Args, _: &Face) -> Outcome {
    let settings = args.flags.load()?.settings;
    let mut signals = Signals::listen().map_err(|error| {
        Exit::Refused.because(format!("cannot listen to signals: {error}; raise the limit of open files"))
    })?;
    let export = start_telemetry(&settings);
    let node = Node::start(&settings, export).await.map_err(|error| Exit::Refused.because(error))?;
    let name = node.member().node.clone();
    let (first, told) = tokio::sync::oneshot::channel();
    let life = node.live(async {
        told.await.ok();
    });
    let watch = async {
        tokio::select! {
            _ = signals.next() => {}
            () = closed_stdin(), if args.until_stdin_closes => {}
        }
        first.send(()).ok();
        signals.next().await;
    };
    let ended = tokio::select! {
        ended = life => ended,
        () = watch => {
            tracing::warn!("told to stop a second time: ends at once");
            return Ok(Exit::Interrupted);
        }
    };
    match ended {
        Ended::Stopped => Ok(Exit::Done),
        Ended::Superseded(by) => Err(Exit::Superseded.because(format!(
            "another node started as {name} (incarnation {by}) and owns that id now, so this one ended; give each node a FLOODLINE_NODE_ID of its own"
        ))),
        Ended::Broken(broken) => Err(Exit::Broken.because(broken)),
    }
}

/// What asks a process to end.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    last: Option<Instant>,
}

/// Signals that follow each other so closely are one: a terminal, `make` and `timeout` each send their own.
const ONE_SIGNAL: Duration = Duration::from_millis(200);

impl Signals {
    /// From now on they are told here, and no longer end the process by themselves.
    pub(super) fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            last: None,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Told {
        loop {
            let told = tokio::select! {
                _ = self.terminate.recv() => Told::End,
                _ = self.interrupt.recv() => Told::Interrupt,
                _ = self.hang_up.recv() => Told::End,
            };
            if self.last.is_none_or(|last| last.elapsed() > ONE_SIGNAL) {
                self.last = Some(Instant::now());
                return told;
            }
        }
    }
}

/// What a process is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// SIGTERM, or its terminal is closed.
    End,
    /// Ctrl-C.
    Interrupt,
}

/// Whoever started this process has closed its end, or is gone. What it writes before that means nothing.
async fn closed_stdin() {
    let mut stdin = tokio::io::stdin();
    let mut ignored = [0; 64];
    while stdin.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
}
