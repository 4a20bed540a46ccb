//! Traces as Jaeger's query API has them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use floodline::protocol::time::Wall;
use serde_json::Value;

/// How far back it looks, in seconds.
const BACK: u64 = 3_600;
/// Traces looked at.
const TRACES: u32 = 200;

/// A span.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    /// In ns since 1970-01-01 UTC.
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    /// Why it failed, if it did.
    pub(crate) failed: Option<String>,
    /// Traces that it is linked to.
    pub(crate) links: Vec<String>,
    /// Of this program, without what all of them begin with.
    pub(crate) attributes: BTreeMap<String, String>,
}

/// All spans of this program that Jaeger has had of late.
pub(crate) fn recent(jaeger: &str) -> Result<Vec<Span>> {
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

/// One trace; empty if Jaeger does not know it.
pub(crate) fn trace(jaeger: &str, id: &str) -> Result<Vec<Span>> {
    Ok(read(&get(&format!("{jaeger}/api/v3/traces/{id}"))?))
}
