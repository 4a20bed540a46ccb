//! A source file as the checks see it: which module it belongs to, and its code without comments and literals.
//!
//! Owns the reading of Rust's surface, line by line, and no more of it than the checks need. Never parses: the
//! compiler does.

use std::fs;
use std::ops::Range;
use std::path::Path;

/// One file of the repository.
pub(crate) struct Source {
    /// Its path from the root of the repository, with `/`.
    pub(crate) path: String,
    /// Its text as it stands.
    pub(crate) text: String,
    /// The text without comments; same lines, same columns.
    pub(crate) uncommented: String,
    /// The text without comments and literals; same lines, same columns.
    pub(crate) code: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let is_rust = path.ends_with(".rs");
        let blank = |literals| if is_rust { blanked(text, literals) } else { text.to_owned() };
        Source { path: path.to_owned(), text: text.to_owned(), uncommented: blank(false), code: blank(true) }
    }

    /// The module of the crate that the file belongs to: `protocol` for `src/protocol/election/flood.rs`, `lib` for
    /// `src/lib.rs`; none outside `src`.
    pub(crate) fn module(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?;
        inside.split('/').next().map(|first| first.strip_suffix(".rs").unwrap_or(first))
    }

    /// How many `super` lead from the file to the root of the crate.
    pub(crate) fn depth(&self) -> usize {
        let parts = self.path.matches('/').count();
        if self.path.ends_with("/mod.rs") { parts - 1 } else { parts }
    }

    /// Whether all of it is tests.
    pub(crate) fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// The lines, counted from 0, of the module of tests at its end; empty if it has none.
    pub(crate) fn tests(&self) -> Range<usize> {
        let lines: Vec<&str> = self.code.lines().collect();
        let starts_tests = |at: &usize| {
            let opens = |line: &&str| line.starts_with("mod ") && line.ends_with('{');
            lines[*at] == "#[cfg(test)]"
                && lines[at + 1..].iter().find(|line| !line.starts_with("#[")).is_some_and(opens)
        };
        let Some(start) = (0..lines.len()).find(starts_tests) else { return 0..0 };
        let end = lines[start..].iter().position(|line| *line == "}").map_or(lines.len(), |length| start + length + 1);
        start..end
    }

    /// The code of its own, without that of its tests: line numbers, counted from 1, with the lines.
    pub(crate) fn own_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = if self.is_test() { 0..usize::MAX } else { self.tests() };
        self.code.lines().enumerate().filter(move |(at, _)| !tests.contains(at)).map(|(at, line)| (at + 1, line))
    }

    /// The code of its tests, in the same form.
    pub(crate) fn test_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = if self.is_test() { 0..usize::MAX } else { self.tests() };
        self.code.lines().enumerate().filter(move |(at, _)| tests.contains(at)).map(|(at, line)| (at + 1, line))
    }
}

/// Every file of the repository that people write, sorted by path.
pub(crate) fn repository(root: &Path) -> Vec<Source> {
    let mut sources = Vec::new();
    for start in ["src", "tests", "examples", "benches", "proto"] {
        let folder = root.join(start);
        if folder.is_dir() {
            collect(root, &folder, &mut sources);
        }
    }
    for file in ["build.rs", "Makefile", ".ci/run", "Cargo.toml"] {
        sources.push(read(root, &root.join(file)));
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn collect(root: &Path, folder: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder that can be read") {
        let path = entry.expect("an entry that can be read").path();
        if path.is_dir() {
            collect(root, &path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "proto") {
            sources.push(read(root, &path));
        }
    }
}

fn read(root: &Path, path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let inside = path.strip_prefix(root).expect("a path below the root");
    Source::new(&inside.to_string_lossy().replace('\\', "/"), &text)
}

/// Puts blanks in place of comments, and of what stands in literals if `literals`, keeping every line break.
fn blanked(text: &str, literals: bool) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, blank) = match comment(rest) {
            Some(length) => (length, true),
            None => match literal(rest, kept.chars().next_back()) {
                Some(length) => (length, literals),
                None => (first.len_utf8(), false),
            },
        };
        let (taken, after) = rest.split_at(length);
        kept.extend(taken.chars().map(|c| if blank && c != '\n' { ' ' } else { c }));
        rest = after;
    }
    kept
}

/// The length of the comment that `text` starts with; block comments nest.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0, 0);
    loop {
        let (opens, closes) = (text[at..].find("/*"), text[at..].find("*/"));
        match (opens, closes) {
            (Some(opens), Some(closes)) if opens < closes => (depth, at) = (depth + 1, at + opens + 2),
            (_, Some(closes)) => (depth, at) = (depth - 1, at + closes + 2),
            (_, None) => return Some(text.len()),
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The length of the literal of text or of a character that `text` starts with. What stands before it tells a raw
/// string from a name that ends in `r`.
fn literal(text: &str, before: Option<char>) -> Option<usize> {
    let inside_a_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let raw = text.strip_prefix("br").or_else(|| text.strip_prefix('r')).filter(|_| !inside_a_name);
    if let Some(raw) = raw {
        let hashes = raw.bytes().take_while(|byte| *byte == b'#').count();
        if let Some(body) = raw[hashes..].strip_prefix('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let end = body.find(&close).map_or(body.len(), |end| end + close.len());
            return Some(text.len() - body.len() + end);
        }
    }
    if let Some(body) = text.strip_prefix('"') {
        return Some(1 + until(body, '"'));
    }
    let body = text.strip_prefix('\'')?;
    // A lifetime has no closing quote after its first character.
    let mut chars = body.chars();
    let is_character = chars.next()? == '\\' || chars.next()? == '\'';
    is_character.then(|| 1 + until(body, '\''))
}

/// The length up to and with the first `close` that no backslash stands before.
fn until(body: &str, close: char) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        if c == close && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_and_columns_stay() {
        let text = "a /* b /* c */ \n d */ e // f\nlet s = \"g \\\" h\"; let r = r#\"i \" j\"#; 'k'; '\\''; <'l>(m)\n";
        let code = Source::new("src/x.rs", text).code;
        assert_eq!(code.split_whitespace().collect::<String>(), "aelets=;letr=;;;<'l>(m)");
        assert_eq!(code.len(), text.len());
        assert_eq!(code.find("'l"), text.find("'l"));
    }

    #[test]
    fn own_lines_end_where_the_tests_begin() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let source = Source::new("src/jobs/max.rs", text);
        assert_eq!(source.own_lines().map(|(line, _)| line).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(source.test_lines().map(|(line, _)| line).collect::<Vec<_>>(), [3, 4, 5, 6]);
        assert_eq!((source.module(), source.depth()), (Some("jobs"), 2));
    }
}
