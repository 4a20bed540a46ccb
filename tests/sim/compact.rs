//! Makes the debug form of protocol values short enough to be read a thousand times.

/// `Term(3)` becomes `3`.
const WRAPPERS: &[&str] = &[
    "NodeId",
    "JobId",
    "Address",
    "Term",
    "Jac",
    "Number",
    "Incarnation",
    "CallId",
    "ReplyToken",
    "StreamId",
    "SaveId",
    "ComputeId",
    "Value",
    "Some",
    "Time",
    "Wall",
    "DirectoryId",
    "Ok",
    "Call",
    "Stream",
    "Reply",
];
/// Structs that are known by some of their fields.
const SHORT: &[(&str, &[&str])] = &[
    ("Member", &["node"]),
    ("Peer", &["address"]),
    ("Identity", &["node"]),
    ("Leadership", &["term", "leader", "jac"]),
    ("Leader", &["leadership"]),
    ("JobKey", &["id", "digest"]),
    ("TaskKey", &["job", "slice", "slices"]),
    ("Stamp", &["term", "number", "leader"]),
    ("Stamped", &["stamp", "record"]),
    ("Admission", &["term", "leader", "place", "jac", "slices"]),
    ("AttemptName", &["number", "term", "leader"]),
    ("Attempt", &["name", "worker", "ended"]),
    ("Completion", &["attempt", "worker", "value"]),
    ("Status", &["member", "following", "jac", "links"]),
    ("Position", &["leadership", "number"]),
    ("ElectionId", &["initiator", "serial"]),
    ("JobView", &["key", "state", "stamp", "completed", "total", "answer"]),
    ("Refusal", &["code", "message"]),
    ("JobQuery", &["id", "forwarded"]),
    ("Job", &["key", "admissions", "ended"]),
];
const LONGEST: usize = 1_500;

/// A value in few words.
pub(crate) fn compact(value: &dyn std::fmt::Debug) -> String {
    let mut out = shorten(&format!("{value:?}"));
    if let Some((at, _)) = out.char_indices().nth(LONGEST) {
        out.truncate(at);
        out.push_str(" ...");
    }
    out
}

fn shorten(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if !c.is_alphabetic() {
            if c != '"' {
                out.push(c);
            }
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let word = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(rest);
        rest = &rest[word.len()..];
        if rest.starts_with('(') && (WRAPPERS.contains(&word) || word == "Digest") {
            let inner = inside(rest);
            rest = &rest[inner.len() + 2..];
            if word == "Digest" {
                out.push('#');
                out.push_str(inner.trim_start_matches('[').split(',').next().unwrap_or(""));
            } else {
                out.push_str(&shorten(inner));
            }
        } else if let (Some((_, wanted)), true) = (SHORT.iter().find(|(name, _)| *name == word), rest.starts_with(" {"))
        {
            let inner = inside(&rest[1..]);
            rest = &rest[inner.len() + 3..];
            let values: Vec<String> = wanted.iter().filter_map(|name| field(inner, name)).map(shorten).collect();
            let text = values.join(" ");
            out.push_str(&if wanted.len() == 1 { text } else { format!("<{text}>") });
        } else {
            out.push_str(word);
        }
    }
    out
}

/// What stands between the bracket that `text` begins with and its counterpart.
fn inside(text: &str) -> &str {
    let (mut depth, mut quoted) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' | '{' | '[' if !quoted => depth += 1,
            ')' | '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[1..at];
        }
    }
    &text[1..]
}

/// A field's value among `name: value, name: value`.
fn field<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    let (mut depth, mut quoted, mut from) = (0, false, 0);
    for (at, c) in fields.char_indices().chain([(fields.len(), ',')]) {
        match c {
            '"' => quoted = !quoted,
            '(' | '{' | '[' if !quoted => depth += 1,
            ')' | '}' | ']' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                let (key, value) = fields[from..at].trim().split_once(": ")?;
                if key == name {
                    return Some(value);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

#[test]
fn wrappers_go_and_words_stay() {
    use floodline::protocol::ids::{Incarnation, Jac, Leadership, NodeId, Term};
    let leader = NodeId::new("w1").expect("a good name");
    let leadership = Leadership { term: Term(3), leader, incarnation: Incarnation(7), jac: Jac(2) };
    assert_eq!(compact(&(Term(3), Some(leadership))), "(3, <3 w1 2>)");
}
