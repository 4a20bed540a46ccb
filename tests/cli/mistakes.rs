//! Mistakes: what is said of each, in one line, and the exit code.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::Path;

use crate::program::{Program, run};

/// A transcript: commands with what they printed below them. Written anew with `REWRITE=1`, and read as a diff then.
#[test]
fn every_mistake_is_told_in_one_line_with_its_exit_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/testdata/mistakes.txt");
    let before = std::fs::read_to_string(&path).expect("the transcript");
    let folder = tempfile::tempdir().expect("a folder");
    let mut after = String::new();
    for command in before.lines().filter_map(|line| line.strip_prefix("$ floodline ")) {
        let arguments: Vec<String> = command.split(' ').map(|word| placed(word, folder.path())).collect();
        let ended = run(&arguments.iter().map(String::as_str).collect::<Vec<&str>>());
        assert_eq!((ended.out.as_str(), ended.err.lines().count()), ("", 1), "{command}: {ended:?}");
        let told = ended.err.replace(&folder.path().display().to_string(), "FOLDER");
        let code = ended.code.expect("an exit code");
        writeln!(after, "$ floodline {command}\n{told}[{code}]\n").expect("text takes text");
    }
    reviewed("mistakes.txt", after.trim_end());
}

/// The text is the one in the file, which `REWRITE=1` writes anew.
fn reviewed(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/testdata").join(name);
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, format!("{text}\n")).expect("it can be written");
    }
    let before = std::fs::read_to_string(&path).expect(name);
    assert_eq!(before, format!("{text}\n"), "REWRITE=1 writes {name} anew");
}

/// `FOLDER/name` names a file that the transcript's reader knows by its name.
fn placed(word: &str, folder: &Path) -> String {
    let Some(name) = word.strip_prefix("FOLDER/") else { return word.to_owned() };
    let path = folder.join(name);
    match name {
        "line-17" => std::fs::write(&path, "1 2 3\n".repeat(16) + "4 twelve 6\n"),
        "words" => std::fs::write(&path, "# a comment\n"),
        "empty" => std::fs::write(&path, " \n\n"),
        _ => Ok(()),
    }
    .expect("a file");
    path.display().to_string()
}

#[test]
fn numbers_of_standard_input_are_told_by_line_too() {
    let ended = Program::start(&["submit", "primecount"], "7\n8 -9\n").end();
    assert_eq!(ended.code, Some(2));
    let allowed = "whole numbers from 0 to 18446744073709551615";
    assert_eq!(ended.err, format!("floodline: standard input, line 2: \"-9\" is not allowed; give {allowed}\n"));
}

#[test]
fn without_a_node_every_command_ends_with_3_and_says_what_to_do() {
    // A port that was free a moment ago, and that nobody listens to.
    let address = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").to_string();
    for command in ["submit max 1", "watch a", "cancel a", "jobs", "cluster", "events", "health"] {
        let arguments: Vec<&str> = command.split(' ').chain(["--node", &address]).collect();
        let ended = run(&arguments);
        let start = format!("floodline: no node answers at {address} (");
        let advice = "; start a cluster with `floodline up`, or name a node with --node\n";
        assert!(ended.err.starts_with(&start) && ended.err.ends_with(advice), "{command}: {}", ended.err);
        assert_eq!((ended.code, ended.out.as_str(), ended.err.lines().count()), (Some(3), "", 1), "{command}");
    }
}

#[test]
fn a_silent_port_counts_as_no_node_within_seconds() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let ended = run(&["cluster", "--node", &silent.local_addr().expect("an address").to_string()]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.err.contains("no answer in time"), "{}", ended.err);
}

#[test]
fn the_help_is_as_it_was_reviewed() {
    for (name, arguments) in [("help.txt", vec!["--help"]), ("help_submit.txt", vec!["submit", "max", "--help"])] {
        let ended = run(&arguments);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        reviewed(name, ended.out.trim_end());
    }
}
