//! The nodes' logs, on standard error, each line under its node's name.
//!
//! Owns the one thread that writes them. Never holds a node up: when nobody reads, lines are left out and counted,
//! since a node that can't write its log stands still.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Lines that may wait for a reader.
const AHEAD: usize = 4_096;

/// What is left unwritten after so long stays so.
const FLUSH: Duration = Duration::from_secs(1);

/// The way to standard error.
#[derive(Clone, Debug)]
pub(super) struct Logs {
    lines: SyncSender<Line>,
}

#[derive(Debug)]
enum Line {
    Text(String),
    /// Tells whoever waits that all before it is written.
    Mark(oneshot::Sender<()>),
}

impl Logs {
    /// The thread ends with the last of its nodes.
    pub(super) fn start() -> io::Result<Logs> {
        let (lines, written) = sync_channel(AHEAD);
        std::thread::Builder::new().name("logs".to_owned()).spawn(move || write(&written))?;
        Ok(Logs { lines })
    }

    /// Waits until what came so far is written, if anybody reads it.
    pub(super) async fn flush(&self) {
        let (mark, written) = oneshot::channel();
        if self.lines.try_send(Line::Mark(mark)).is_ok() {
            timeout(FLUSH, written).await.ok();
        }
    }

    /// Passes a node's log on until it ends.
    pub(super) async fn pass_on(self, node: String, log: impl AsyncRead + Unpin) {
        let mut lines = BufReader::new(log).split(b'\n');
        let mut left_out = 0_u64;
        while let Ok(Some(line)) = lines.next_segment().await {
            let mut line = format!("{node} | {}\n", String::from_utf8_lossy(&line));
            if left_out > 0 {
                line.insert_str(0, &format!("{node} | ({left_out} lines are left out here, since nobody read them)\n"));
            }
            left_out = if self.lines.try_send(Line::Text(line)).is_ok() { 0 } else { left_out.saturating_add(1) };
        }
    }
}

fn write(lines: &Receiver<Line>) {
    for line in lines {
        match line {
            // Standard error may be closed; the nodes are read on, so that they can write.
            Line::Text(text) => drop(io::stderr().lock().write_all(text.as_bytes())),
            Line::Mark(mark) => drop(mark.send(())),
        }
    }
}
