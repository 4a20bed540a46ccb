//! Prints traces as trees, from Jaeger's query API: `make jaeger-show` for the last election and the last job.
//!
//! A span whose parent never came hangs below a line that says so: there a node was killed.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use floodline::protocol::time::Wall;
use serde_json::Value;

/// How far back it looks, in seconds.
const BACK: u64 = 3_600;
/// Traces looked at.
const TRACES: u32 = 200;

struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    begun: u64,
    ended: u64,
    failed: Option<String>,
    links: Vec<String>,
    attributes: BTreeMap<String, String>,
}

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let jaeger = std::env::var("JAEGER").unwrap_or_else(|_| "http://127.0.0.1:16686".to_owned());
    let mut out = std::io::stdout().lock();
    if wanted.is_empty() {
        let spans = recent(&jaeger)?;
        let last = |name: &str| spans.iter().filter(|span| span.name == name).max_by_key(|span| span.begun);
        for name in ["election", "submit"] {
            let Some(root) = last(name) else {
                writeln!(out, "no {name} within the last hour\n")?;
                continue;
            };
            let of: Vec<&Span> = spans.iter().filter(|span| span.trace == root.trace).collect();
            tree(&mut out, &of)?;
        }
        return Ok(());
    }
    for id in wanted {
        let spans = read(&get(&format!("{jaeger}/api/v3/traces/{id}"))?);
        if spans.is_empty() {
            bail!("Jaeger knows no trace {id}");
        }
        tree(&mut out, &spans.iter().collect::<Vec<_>>())?;
    }
    Ok(())
}

/// All spans of this program that Jaeger has had of late.
fn recent(jaeger: &str) -> Result<Vec<Span>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let time = |seconds: u64| floodline::wire::json::time(Wall(seconds * 1_000));
    let (from, to) = (time(now.saturating_sub(BACK)), time(now + 1));
    let service = std::env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| "floodline".to_owned());
    let query = format!(
        "query.service_name={service}&query.start_time_min={from}&query.start_time_max={to}&query.num_traces={TRACES}"
    );
    Ok(read(&get(&format!("{jaeger}/api/v3/traces?{query}"))?))
}

fn get(url: &str) -> Result<Value> {
    let asked =
        ureq::get(url).config().timeout_global(Some(Duration::from_secs(10))).http_status_as_error(false).build();
    let mut answer = asked.call().with_context(|| format!("Jaeger can't be reached at {url}; is it up?"))?;
    if answer.status() == 404 {
        return Ok(Value::Null);
    }
    let text = answer.body_mut().with_config().limit(256 << 20).read_to_string()?;
    serde_json::from_str(&text).with_context(|| format!("{url} answers {text:.200}"))
}

fn read(answer: &Value) -> Vec<Span> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
    let scopes = list(&answer["result"]["resourceSpans"]).into_iter().flat_map(|it| list(&it["scopeSpans"]));
    let spans = scopes.flat_map(|it| list(&it["spans"]));
    let read = |span: Value| Span {
        trace: text(&span["traceId"]),
        id: text(&span["spanId"]),
        parent: text(&span["parentSpanId"]),
        name: text(&span["name"]),
        begun: number(&span["startTimeUnixNano"]),
        ended: number(&span["endTimeUnixNano"]),
        failed: (span["status"]["code"] == 2).then(|| text(&span["status"]["message"])),
        links: list(&span["links"]).iter().map(|link| text(&link["traceId"])).collect(),
        attributes: list(&span["attributes"])
            .into_iter()
            .filter_map(|it| Some((text(&it["key"]).strip_prefix("floodline.")?.to_owned(), plain(&it["value"]))))
            .collect(),
    };
    spans.map(read).collect()
}

fn plain(value: &Value) -> String {
    let inner = value.as_object().and_then(|value| value.values().next()).unwrap_or(&Value::Null);
    inner.as_str().map_or_else(|| inner.to_string(), str::to_owned)
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
