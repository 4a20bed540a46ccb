//! Reading single fields: each function yields the protocol's type or a [`Malformed`] that names the field.
//!
//! Owns how a missing, unknown or too large field is told.

use std::sync::Arc;
use std::time::Duration;

use super::Malformed;
use crate::jobs::Value;
use crate::protocol::ids::{Address, BadName, JobId, NodeId};
use crate::protocol::limits;
use crate::protocol::trace::{NotATrace, Trace, TraceId};

/// The longest sentence for people that is taken.
pub(super) const LONGEST_TEXT: usize = 4_096;

/// A message that must be set.
pub(super) fn need<P, C>(field: Option<P>, name: &str) -> Result<C, Malformed>
where
    C: TryFrom<P, Error = Malformed>,
{
    maybe(field, name)?.ok_or_else(|| missing(name))
}

/// A message that may be unset.
pub(super) fn maybe<P, C>(field: Option<P>, name: &str) -> Result<Option<C>, Malformed>
where
    C: TryFrom<P, Error = Malformed>,
{
    field.map(|inner| C::try_from(inner).map_err(|error| error.inside(name))).transpose()
}

/// A list of at most `most` messages.
pub(super) fn list<P, C>(items: Vec<P>, name: &str, most: usize) -> Result<Vec<C>, Malformed>
where
    C: TryFrom<P, Error = Malformed>,
{
    bounded(items.len(), name, most)?;
    let convert = |(at, item)| C::try_from(item).map_err(|error| error.inside(&format!("{name}[{at}]")));
    items.into_iter().enumerate().map(convert).collect()
}

/// What is said of a field that must be set and is not.
pub(super) fn missing(name: &str) -> Malformed {
    Malformed::new(name, "not set", "a value")
}

/// Refuses a list of more than `most`.
pub(super) fn bounded(len: usize, name: &str, most: usize) -> Result<(), Malformed> {
    if len > most {
        return Err(Malformed::new(name, format_args!("a list of {len}"), format!("at most {most}")));
    }
    Ok(())
}

/// A number from `least` to `most`.
pub(super) fn number<N>(given: N, name: &str, least: N, most: N) -> Result<N, Malformed>
where
    N: PartialOrd + std::fmt::Display,
{
    if given < least || given > most {
        return Err(Malformed::new(name, given, format!("{least} to {most}")));
    }
    Ok(given)
}

fn bad_name(name: &str) -> impl FnOnce(BadName) -> Malformed {
    move |bad| {
        let shown: String = bad.given.chars().take(80).collect();
        Malformed::new(name, format_args!("{shown:?}"), bad.allowed)
    }
}

/// A node id.
pub(super) fn node(text: &str, name: &str) -> Result<NodeId, Malformed> {
    NodeId::new(text).map_err(bad_name(name))
}

/// A place in a trace.
pub(super) fn trace(text: &str, name: &str) -> Result<Trace, Malformed> {
    let shown = || format!("{:?}", text.chars().take(80).collect::<String>());
    text.parse().map_err(|NotATrace| Malformed::new(name, shown(), "a traceparent of W3C Trace Context"))
}

/// A trace.
pub(super) fn trace_id(text: &str, name: &str) -> Result<TraceId, Malformed> {
    let shown = || format!("{:?}", text.chars().take(80).collect::<String>());
    text.parse().map_err(|NotATrace| Malformed::new(name, shown(), "32 hexadecimal digits, not all 0"))
}

/// The links of a worker.
pub(super) fn links(items: &[String]) -> Result<Vec<NodeId>, Malformed> {
    bounded(items.len(), "links", limits::LINKS)?;
    items.iter().enumerate().map(|(at, text)| node(text, &format!("links[{at}]"))).collect()
}

/// Node ids as text.
pub(super) fn texts(nodes: &[NodeId]) -> Vec<String> {
    nodes.iter().map(NodeId::to_string).collect()
}

/// A job id.
pub(super) fn job_id(text: &str, name: &str) -> Result<JobId, Malformed> {
    JobId::new(text).map_err(bad_name(name))
}

/// An address to dial.
pub(super) fn address(text: &str, name: &str) -> Result<Address, Malformed> {
    Address::new(text).map_err(bad_name(name))
}

/// A sentence for people.
pub(super) fn sentence(text: String, name: &str) -> Result<Arc<str>, Malformed> {
    short(text, name, LONGEST_TEXT)
}

/// A text of at most `most` bytes.
pub(super) fn short(text: String, name: &str, most: usize) -> Result<Arc<str>, Malformed> {
    if text.len() > most {
        let given = format!("a text of {} bytes", text.len());
        return Err(Malformed::new(name, given, format!("at most {most} bytes")));
    }
    Ok(text.into())
}

/// The start of a sentence that is longer than the other side would take.
pub(super) fn cropped(text: &str) -> String {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// An answer or partial result.
pub(super) fn value(text: &str, name: &str) -> Result<Value, Malformed> {
    text.parse().map(Value).map_err(|_| {
        let shown: String = text.chars().take(80).collect();
        Malformed::new(name, format_args!("{shown:?}"), "a decimal number from -2^127 to 2^127 - 1")
    })
}

/// A span in microseconds, the longest that fits if it is longer.
pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
