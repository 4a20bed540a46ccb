//! Commands that are run to their end, within a bound.

use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Longer than any command here takes on a slow and busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Done {
    let shown = format!("{command:?}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait_with_output()));
    let Ok(output) = end.recv_timeout(PATIENCE) else {
        kill_process(pid, Signal::KILL).ok();
        panic!("{shown} takes longer than {PATIENCE:?}");
    };
    let output = output.expect("its output can be read");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
    Done { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs a command that has to succeed, for its output.
pub(crate) fn output(command: &mut Command) -> String {
    let done = run(command);
    assert_eq!(done.code, Some(0), "{command:?}:\n{}\n{}", done.out, done.err);
    done.out
}

/// `docker` with these arguments, which has to succeed.
pub(crate) fn docker(arguments: &[&str]) -> String {
    output(Command::new("docker").args(arguments))
}

/// Waits until there is what is looked for, with a bound. Each look starts a process, which is pause enough.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{what} takes longer than {PATIENCE:?}");
    }
}

/// Tells what was measured.
pub(crate) fn say(figure: std::fmt::Arguments<'_>) {
    println!("    {figure}");
}
