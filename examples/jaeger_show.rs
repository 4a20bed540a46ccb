//! Prints traces as trees, from Jaeger's query API: `make jaeger-show` for the last election and the last job.
//!
//! A span whose parent never came hangs below a line that says so: there a node was killed.

#[path = "../tests/stage/jaeger.rs"]
mod jaeger;

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Result, bail};

use jaeger::{Span, recent};

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let jaeger = std::env::var("JAEGER").unwrap_or_else(|_| "http://127.0.0.1:16686".to_owned());
    let mut out = std::io::stdout().lock();
    if wanted.is_empty() {
        let spans = recent(&jaeger)?;
        for (what, names) in
            [("election that made a leader", &["leadership begins"][..]), ("job", &["admission", "failover"])]
        {
            let of_these = spans.iter().filter(|span| names.contains(&span.name.as_str()));
            let Some(root) = of_these.max_by_key(|span| span.begun) else {
                writeln!(out, "no {what} within the last hour\n")?;
                continue;
            };
            let of: Vec<&Span> = spans.iter().filter(|span| span.trace == root.trace).collect();
            tree(&mut out, &of)?;
        }
        return Ok(());
    }
    for id in wanted {
        let spans = jaeger::trace(&jaeger, &id)?;
        if spans.is_empty() {
            bail!("Jaeger knows no trace {id}");
        }
        tree(&mut out, &spans.iter().collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Prints one trace.
fn tree(out: &mut impl Write, spans: &[&Span]) -> Result<()> {
    let Some(begun) = spans.iter().map(|span| span.begun).min() else { return Ok(()) };
    let trace = &spans[0].trace;
    writeln!(out, "trace {trace}, {} spans", spans.len())?;
    let mut below: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        below.entry(&span.parent).or_default().push(span);
    }
    below.values_mut().for_each(|children| children.sort_by_key(|span| span.begun));
    let known = |id: &str| spans.iter().any(|span| span.id == id);
    for (parent, roots) in below.iter().filter(|(parent, _)| !known(parent)) {
        let mut depth = 0;
        if !parent.is_empty() {
            writeln!(out, "  ✗ span {parent} never came: its node was killed before it had told of it")?;
            depth = 1;
        }
        for root in roots {
            print(out, root, &below, begun, depth)?;
        }
    }
    writeln!(out)?;
    Ok(())
}

fn print(
    out: &mut impl Write,
    span: &Span,
    below: &BTreeMap<&str, Vec<&Span>>,
    begun: u64,
    depth: usize,
) -> Result<()> {
    #[allow(clippy::cast_precision_loss)]
    let millis = |nanos: u64| nanos as f64 / 1e6;
    let (at, took) = (millis(span.begun - begun), millis(span.ended.saturating_sub(span.begun)));
    let indent = "  ".repeat(depth + 1);
    let mut attributes = span.attributes.clone();
    let node = attributes.remove("node").unwrap_or_default();
    let rest = attributes.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ");
    let mark = if span.failed.is_some() { "✗ " } else { "" };
    write!(out, "{at:9.1} {took:8.1} ms{indent}{mark}{} @ {node}  {rest}", span.name)?;
    if let Some(why) = span.failed.as_ref().filter(|why| !why.is_empty()) {
        write!(out, "  [{why}]")?;
    }
    for link in &span.links {
        write!(out, "  → trace {link}")?;
    }
    writeln!(out)?;
    for child in below.get(span.id.as_str()).into_iter().flatten() {
        print(out, child, below, begun, depth + 1)?;
    }
    Ok(())
}
