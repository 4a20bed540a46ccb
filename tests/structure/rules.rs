//! The habits that a machine can see, one function each.

use crate::Fault;
use crate::imports::PURE;
use crate::source::Source;

const LONGEST_FUNCTION: usize = 70;
const LONGEST_FILE: usize = 500;

/// Every Rust file begins with what it owns.
pub(crate) fn module_doc(source: &Source) -> Vec<Fault> {
    let bare = source.path.ends_with(".rs") && !source.text.starts_with("//! ");
    if bare { vec![Fault::new(source, 1, "begins without a module doc".to_owned())] } else { Vec::new() }
}

/// A file is named after the one thing in it.
pub(crate) fn file_name(source: &Source) -> Vec<Fault> {
    const SAY_NOTHING: [&str; 8] = ["manager", "util", "utils", "helper", "helpers", "common", "misc", "shared"];
    let parts = source.path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let vague = parts.filter(|part| SAY_NOTHING.contains(part));
    vague.map(|part| Fault::new(source, 1, format!("the name `{part}` says nothing of what is in it"))).collect()
}

/// A file can be read in one sitting.
pub(crate) fn file_length(source: &Source) -> Vec<Fault> {
    let lines = source.own_lines().count();
    if !source.path.ends_with(".rs") || lines <= LONGEST_FILE {
        return Vec::new();
    }
    vec![Fault::new(source, 1, format!("{lines} lines without tests; {LONGEST_FILE} is the most"))]
}

/// A function can be seen at once.
pub(crate) fn function_length(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut start = 0;
    for (at, line) in source.code.lines().enumerate().filter(|_| source.path.ends_with(".rs")) {
        let length = if declares_function(line) { body_end(&source.code[start..]) } else { None };
        if let Some(length) = length.filter(|length| *length > LONGEST_FUNCTION) {
            let text = format!("a function of {length} lines; {LONGEST_FUNCTION} is the most");
            faults.push(Fault::new(source, at + 1, text));
        }
        start += line.len() + 1;
    }
    faults
}

fn declares_function(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let before = ["pub", "crate", "super", "in", "self", "const", "async", "unsafe", "extern"];
    words.find(|word| !before.contains(word)).is_some_and(|word| word == "fn") && !line.trim_start().starts_with("fn(")
}

/// How many lines there are to the end of the body that begins after here; none for a declaration without one.
fn body_end(code: &str) -> Option<usize> {
    let (mut braces, mut brackets) = (0_u32, 0_u32);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        if c == '}' && braces == 0 {
            return Some(code[..at].matches('\n').count() + 1);
        }
    }
    None
}

/// The pure modules have no clock, no I/O, no threads, no randomness, no log, no async, and no map without order.
pub(crate) fn purity(source: &Source) -> Vec<Fault> {
    const BANNED: [&str; 34] = [
        "async",
        "await",
        "Instant",
        "SystemTime",
        "UNIX_EPOCH",
        "HashMap",
        "HashSet",
        "RandomState",
        "rand",
        "std::env",
        "std::fs",
        "std::io",
        "std::net",
        "std::os",
        "std::process",
        "std::thread",
        "thread_local",
        "Mutex",
        "RwLock",
        "Condvar",
        "mpsc",
        "println",
        "eprintln",
        "print",
        "eprint",
        "dbg",
        "tokio",
        "tracing",
        "log",
        "include_bytes",
        "include_str",
        "option_env",
        "static mut",
        "unsafe",
    ];
    if !source.module().is_some_and(|module| PURE.contains(&module)) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (line, code) in source.own_lines() {
        for banned in BANNED.iter().filter(|banned| holds_path(code, banned)) {
            faults.push(Fault::new(source, line, format!("`{banned}` in a pure module")));
        }
    }
    faults
}

/// Whether `code` holds `path` as whole words, and not as the name of a method, such as `x.log`.
fn holds_path(code: &str, path: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(path).any(|(at, _)| {
        let (before, after) = (code[..at].chars().next_back(), code[at + path.len()..].chars().next());
        let starts = before.is_none_or(|c| !is_name(c) && (c != '.' || path == "await"));
        // These words are names of values too: they are meant only as a macro or as a crate.
        let ambiguous = ["log", "rand", "print", "dbg"].contains(&path);
        let ends = if ambiguous {
            code[at + path.len()..].starts_with("::") || after == Some('!')
        } else {
            !after.is_some_and(is_name)
        };
        starts && ends
    })
}

/// The head of each pure module denies what `.clippy.toml` bans.
pub(crate) fn denials(source: &Source) -> Vec<Fault> {
    const DENIED: [&str; 3] =
        ["clippy::disallowed_methods", "clippy::disallowed_types", "clippy::wildcard_enum_match_arm"];
    let is_head = PURE.iter().any(|module| source.path == format!("src/{module}/mod.rs"));
    let dense: String = source.code.split_whitespace().collect();
    let denied = dense.split("#![").filter_map(|rest| rest.split(']').next()).filter(|rest| rest.contains("deny("));
    let denied: Vec<&str> = denied.collect();
    let lacks = |name: &&&str| !denied.iter().any(|attribute| attribute.contains(**name));
    let missing = DENIED.iter().filter(|_| is_head).filter(lacks);
    missing.map(|name| Fault::new(source, 1, format!("the head of a pure module does not deny {name}"))).collect()
}

/// Nothing is left for later.
pub(crate) fn nothing_open(source: &Source) -> Vec<Fault> {
    // In two parts, so that this file passes.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let mut faults = Vec::new();
    for (at, line) in source.text.lines().enumerate() {
        let words = line.split(|c: char| !c.is_alphanumeric());
        for word in words.filter(|word| marks.contains(word)) {
            faults.push(Fault::new(source, at + 1, format!("{word}: do it, or leave it out")));
        }
    }
    faults
}

/// Tests wait for an event, with a bound, and all of them run.
pub(crate) fn honest_tests(source: &Source) -> Vec<Fault> {
    const PAUSES: [&str; 3] = ["sleep", "sleep_until", "sleep_ms"];
    let mut faults = Vec::new();
    for (line, code) in source.test_lines().filter(|_| source.path.ends_with(".rs")) {
        if PAUSES.iter().any(|pause| holds_path(code, pause)) {
            faults.push(Fault::new(source, line, "a test sleeps: wait for an event, with a bound".to_owned()));
        }
        if code.contains("#[ignore") {
            faults.push(Fault::new(source, line, "a test is ignored: make it run, or leave it out".to_owned()));
        }
    }
    faults
}

/// Metrics are named in one file.
pub(crate) fn metric_names(source: &Source) -> Vec<Fault> {
    let elsewhere = source.path.starts_with("src/") && source.path != "src/telemetry/names.rs";
    let spells = |line: &str| line.split("\"floodline_").skip(1).any(|rest| !rest.starts_with("v1\""));
    let lines = source.uncommented.lines().enumerate().filter(|(_, line)| elsewhere && spells(line));
    lines.map(|(at, _)| Fault::new(source, at + 1, "only telemetry/names.rs spells a metric".to_owned())).collect()
}

/// Generated types stay in `wire`, and every channel has a bound.
pub(crate) fn owners(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (line, code) in source.own_lines().filter(|_| source.path.starts_with("src/")) {
        if code.contains("include_proto!") && source.module() != Some("wire") {
            faults.push(Fault::new(source, line, "only `wire` knows generated types".to_owned()));
        }
        if ["unbounded_channel", "UnboundedSender", "UnboundedReceiver"].iter().any(|name| holds_path(code, name)) {
            faults.push(Fault::new(source, line, "a channel without a bound".to_owned()));
        }
    }
    faults
}

#[cfg(test)]
mod tests;
