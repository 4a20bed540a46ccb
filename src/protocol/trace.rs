//! Where something belongs in a trace, as the core carries it: a job brings it along, and nothing is decided by it.
//!
//! Owns the text form of the header `traceparent` (W3C Trace Context, level 1). Which spans there are is telemetry's.

use std::fmt;
use std::str::FromStr;

/// Names a trace; not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub u128);

impl fmt::Display for TraceId {
    /// 32 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A place in a trace: whatever is caused by it becomes its child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Trace {
    /// The trace.
    pub id: TraceId,
    /// Names the span in it; not 0.
    pub span: u64,
    /// Whether the trace is recorded.
    pub sampled: bool,
}

/// A text that is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotATrace;

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Trace { id, span, sampled } = self;
        write!(f, "00-{id}-{span:016x}-{:02x}", u8::from(*sampled))
    }
}

impl FromStr for TraceId {
    type Err = NotATrace;

    fn from_str(text: &str) -> Result<TraceId, NotATrace> {
        hex(text, 32).filter(|id| *id != 0).map(TraceId).ok_or(NotATrace)
    }
}

impl FromStr for Trace {
    type Err = NotATrace;

    /// Of a version above 00 the four fields of 00 count, as the recommendation demands.
    fn from_str(text: &str) -> Result<Trace, NotATrace> {
        let mut fields = text.split('-');
        let mut next = || fields.next().ok_or(NotATrace);
        let (version, id, span, flags) = (next()?, next()?, next()?, next()?);
        let version = hex(version, 2).filter(|version| *version != 0xff).ok_or(NotATrace)?;
        let span = hex(span, 16).filter(|span| *span != 0).ok_or(NotATrace)?;
        let flags = hex(flags, 2).ok_or(NotATrace)?;
        if version == 0 && fields.next().is_some() {
            return Err(NotATrace);
        }
        let span = u64::try_from(span).map_err(|_| NotATrace)?;
        Ok(Trace { id: id.parse()?, span, sampled: flags & 1 == 1 })
    }
}

/// So many lower-case hexadecimal digits, and nothing else.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_reads_as_it_is_written() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let trace: Trace = text.parse().expect("well-formed");
        assert_eq!((trace.span, trace.sampled), (0xb7ad_6b71_6920_3331, true));
        assert_eq!(trace.to_string(), text);
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-what-is-new";
        assert_eq!(later.parse(), Ok(Trace { sampled: false, ..trace }));
    }

    #[test]
    fn what_the_recommendation_forbids_is_no_trace() {
        let bad = [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ];
        for text in bad {
            assert_eq!(text.parse::<Trace>(), Err(NotATrace), "{text}");
        }
    }
}
