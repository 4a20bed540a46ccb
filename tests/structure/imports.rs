//! Who may import whom: the table of the crate doc, and the paths by which code names another module.

use std::collections::BTreeSet;

use crate::Fault;
use crate::source::Source;

/// Modules that depend on `std`, and on each other, alone.
pub(crate) const PURE: [&str; 4] = ["jobs", "protocol", "directory", "guarantees"];

/// What a module may import besides itself; none for a module that the table lacks.
fn allowed(module: &str) -> Option<Vec<&'static str>> {
    let pure_and = |more: &[&'static str]| [PURE.as_slice(), more].concat();
    Some(match module {
        "lib" | "pure" | "jobs" => Vec::new(),
        "main" => vec!["cli"],
        "protocol" => vec!["jobs"],
        "directory" => vec!["protocol"],
        "guarantees" => vec!["protocol", "jobs"],
        "config" | "telemetry" | "wire" => pure_and(&[]),
        "journal" => pure_and(&["wire"]),
        "transport" => pure_and(&["wire", "config", "telemetry"]),
        "node" => pure_and(&["config", "telemetry", "wire", "journal", "transport"]),
        "grpc" | "http" => pure_and(&["node", "wire", "telemetry", "config"]),
        "client" => pure_and(&["wire", "telemetry"]),
        "app" => pure_and(&["config", "telemetry", "wire", "journal", "transport", "node", "grpc", "http"]),
        "cli" => pure_and(&["app", "client", "wire", "config", "telemetry"]),
        _ => return None,
    })
}

/// Where only a part of a module may be imported.
fn allowed_part(module: &str, imported: &str) -> Option<&'static str> {
    match (module, imported) {
        ("grpc" | "http", "node") => Some("Handle"),
        ("cli", "wire") => Some("json"),
        _ => None,
    }
}

/// Every import that the table lacks.
pub(crate) fn check(source: &Source) -> Vec<Fault> {
    let Some(module) = source.module() else { return Vec::new() };
    let Some(allowed) = allowed(module) else {
        return vec![Fault::new(source, 1, format!("the table of imports lacks the module `{module}`"))];
    };
    let mut faults = Vec::new();
    for Path { line, parts } in paths(source) {
        let Some(imported) = parts.first().filter(|imported| *imported != module) else { continue };
        if !allowed.contains(&imported.as_str()) {
            faults.push(Fault::new(source, line, format!("`{module}` may not import `{imported}`")));
        } else if let Some(part) =
            allowed_part(module, imported).filter(|part| parts.get(1).is_none_or(|given| !given.ends_with(part)))
        {
            faults.push(Fault::new(source, line, format!("`{module}` may import of `{imported}` its `{part}` only")));
        }
    }
    faults.dedup();
    faults
}

/// A path from the root of the crate, as far as its second part.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Path {
    line: usize,
    parts: Vec<String>,
}

/// All paths that lead to the root of the crate and down again, each once a line.
fn paths(source: &Source) -> BTreeSet<Path> {
    let tests = source.tests();
    let mut found = BTreeSet::new();
    let mut line = 1;
    let mut rest = source.code.as_str();
    while let Some(first) = rest.chars().next() {
        let (name, after) = word(rest);
        if name.is_empty() {
            line += usize::from(first == '\n');
            rest = &rest[first.len_utf8()..];
            continue;
        }
        // Each `super` leads one module up; a module of tests inside the file is one further down.
        let depth = source.depth() + usize::from(tests.contains(&(line - 1)));
        let at_root = match name {
            "crate" | "floodline" => after.strip_prefix("::"),
            "super" => up(after, depth.saturating_sub(1)),
            _ => None,
        };
        if let Some(tree) = at_root {
            found.extend(branches(tree, 2).into_iter().map(|parts| Path { line, parts }));
        }
        rest = after;
    }
    found
}

/// What follows `::super` so many times and `::`.
fn up(mut rest: &str, times: usize) -> Option<&str> {
    for _ in 0..times {
        rest = rest.strip_prefix("::super")?;
    }
    rest.strip_prefix("::").filter(|rest| !rest.starts_with("super"))
}

/// The branches of a use tree, as far down as `levels`.
fn branches(tree: &str, levels: usize) -> Vec<Vec<String>> {
    if levels == 0 {
        return vec![Vec::new()];
    }
    let Some(inside) = tree.strip_prefix('{') else {
        let (name, after) = word(tree);
        if name.is_empty() {
            return vec![Vec::new()];
        }
        let below = after.strip_prefix("::").map_or_else(|| vec![Vec::new()], |below| branches(below, levels - 1));
        return below.into_iter().map(|parts| [vec![name.to_owned()], parts].concat()).collect();
    };
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let part = inside[start..at].trim();
                if !part.is_empty() {
                    found.extend(branches(part, levels));
                }
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

/// The name that `text` starts with, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_the_table_allows_passes() {
        for (path, text) in [
            (
                "src/protocol/mod.rs",
                "use std::fmt;\nuse crate::jobs::{Kind, Value};\nuse crate::protocol::ids::NodeId;\n",
            ),
            ("src/protocol/election/flood.rs", "use super::super::ids::NodeId;\nuse super::memory;\nuse self::x::y;\n"),
            ("src/jobs/mod.rs", "mod max;\npub(crate) fn a() {}\n#[cfg(test)]\nmod tests {\n    use super::max;\n}\n"),
            ("src/grpc/mod.rs", "use crate::node::Handle;\nuse crate::{config, wire::v1, node::{Handle}};\n"),
            ("src/cli/jobs.rs", "use crate::wire::json;\nfn a() { crate::wire::json::job() }\n"),
            ("src/main.rs", "fn main() { floodline::cli::main() }\n"),
            ("src/config/mod.rs", "//! As crate::node says.\nconst A: &str = \"crate::node\";\n"),
            ("tests/sim/main.rs", "use floodline::node;\n"),
        ] {
            assert_eq!(faults(path, text), Vec::<String>::new(), "{path}");
        }
    }

    #[test]
    fn what_the_table_lacks_is_found_however_it_is_written() {
        for (path, text, fault) in [
            ("src/jobs/max.rs", "\nuse crate::protocol::ids;\n", "src/jobs/max.rs:2: `jobs` may not import `protocol`"),
            ("src/jobs/max.rs", "fn a() { crate::config::b() }", "src/jobs/max.rs:1: `jobs` may not import `config`"),
            ("src/jobs/mod.rs", "use super::config;", "src/jobs/mod.rs:1: `jobs` may not import `config`"),
            ("src/jobs/max.rs", "use super::super::config;", "src/jobs/max.rs:1: `jobs` may not import `config`"),
            (
                "src/wire/mod.rs",
                "use crate::{\n    jobs,\n    node::{a, b},\n};",
                "src/wire/mod.rs:1: `wire` may not import `node`",
            ),
            (
                "src/client/mod.rs",
                "use crate::{jobs::{A, B}, app};",
                "src/client/mod.rs:1: `client` may not import `app`",
            ),
            (
                "src/grpc/mod.rs",
                "use crate::node::actor;",
                "src/grpc/mod.rs:1: `grpc` may import of `node` its `Handle` only",
            ),
            (
                "src/cli/jobs.rs",
                "use crate::wire::{json, v1};",
                "src/cli/jobs.rs:1: `cli` may import of `wire` its `json` only",
            ),
            ("src/helpers.rs", "", "src/helpers.rs:1: the table of imports lacks the module `helpers`"),
            ("src/main.rs", "use floodline::app;", "src/main.rs:1: `main` may not import `app`"),
        ] {
            assert_eq!(faults(path, text), [fault]);
        }
    }
}
