//! Endurance: real processes, real sockets and real disks, killed, wiped, frozen, cut apart and counted for minutes.
//!
//! A test each for what only shows in the long run. They run optimised and one after the other: a machine with few
//! cores would hold more nodes, but no timeout of theirs. `make endure` runs them in full, `make test` in short; each
//! prints what it measured in one line.

mod bytes;
mod collector;
mod fleet;
mod flush;
#[path = "../stage/follow.rs"]
mod follow;
mod frozen;
mod killed;
mod links;
mod memory;
#[path = "../stage/metrics.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod metrics;
#[path = "../stage/nodes.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod nodes;
mod sockets;
mod split;
#[path = "../telemetry/collector.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod taker;
mod wiped;
mod work;

use std::io::Write;

use tokio::sync::{Mutex, MutexGuard};

/// One test at a time.
async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// How long or how often something is done: what the variable says, else the short form.
fn scale(variable: &str, short: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(short, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// Prints what was measured.
fn figure(text: &str) {
    writeln!(std::io::stdout().lock(), "endure: {text}").expect("stdout is open");
}
