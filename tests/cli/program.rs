//! A run of the binary: its arguments, its lines, its exit code, and a bound on all of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than anything here takes on a slow and busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

const BINARY: &str = env!("CARGO_BIN_EXE_floodline");

/// A run that may still go on.
pub(crate) struct Program {
    child: Child,
    lines: Receiver<String>,
    errors: Receiver<String>,
}

impl Program {
    /// Starts it, with an environment that nothing outside of the test decides.
    pub(crate) fn start(arguments: &[&str], input: &str) -> Program {
        Program::started(Command::new(BINARY), arguments, input)
    }

    /// Starts it with files of so many blocks of 512 bytes at most: beyond that its disk is full.
    pub(crate) fn start_with_small_files(blocks: u32, arguments: &[&str]) -> Program {
        let mut shell = Command::new("sh");
        // Ignored, the signal turns into an error of the write.
        shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""), BINARY]);
        Program::started(shell, arguments, "")
    }

    fn started(mut command: Command, arguments: &[&str], input: &str) -> Program {
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FLOODLINE_")) {
            command.env_remove(name);
        }
        command.args(arguments).env("COLUMNS", "100").env("NO_COLOR", "1");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stdin = child.stdin.take().expect("piped");
        // Whoever refuses its arguments does not read.
        stdin.write_all(input.as_bytes()).ok();
        drop(stdin);
        let lines = lines_of(child.stdout.take().expect("piped"));
        let errors = lines_of(child.stderr.take().expect("piped"));
        Program { child, lines, errors }
    }

    /// The next line of standard output.
    pub(crate) fn line(&self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no line within {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                panic!("no line any more; standard error: {:?}", self.errors.iter().collect::<Vec<String>>())
            }
        }
    }

    /// The next line, which is JSON.
    pub(crate) fn json(&self) -> Value {
        json(&self.line())
    }

    /// Waits for a line of standard error that says so.
    pub(crate) fn told(&self, what: &str) {
        while !self.errors.recv_timeout(PATIENCE).expect("it says so in time").contains(what) {}
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("the process is there");
    }

    /// Waits for its end; what was read by [`line`](Program::line) is not told again.
    pub(crate) fn end(mut self) -> Ended {
        let out = rest(&self.lines);
        let err = rest(&self.errors);
        let status = self.child.wait().expect("its outputs are closed, so it ends");
        Ended { code: status.code(), out, err }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // After its end there is nothing left to kill; a failed test leaves nothing behind.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A thread per output: whoever reads only one of them stops the program once the other is full.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
    });
    receiver
}

fn rest(lines: &Receiver<String>) -> String {
    let until = Instant::now() + PATIENCE;
    let mut text = String::new();
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => text += &(line + "\n"),
            Err(RecvTimeoutError::Disconnected) => return text,
            Err(RecvTimeoutError::Timeout) => panic!("did not end within {PATIENCE:?}; until then: {text}"),
        }
    }
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Ended {
    Program::start(arguments, "").end()
}

/// A line of JSON.
pub(crate) fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))
}
