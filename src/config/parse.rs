//! From text to a setting's value: what each kind of value looks like, and how that is said to a person.
//!
//! Owns the kinds ([`Allowed`]) and their sentences. Never knows which setting it parses, nor where the text
//! came from. Section 2 of the contract.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::protocol::ids::{Address, NodeId};

/// What a setting may be. Its `Display` is the half sentence that stands in help and in refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// One of these words.
    AnyOf(&'static [&'static str]),
    /// A time with its unit, both ends included.
    Span(Duration, Duration),
    /// A whole number, both ends included.
    Count(u32, u32),
    /// A name of a cluster.
    Name,
    /// A name of a node.
    NodeId,
    /// A folder; may be left out.
    Folder,
    /// Where to listen: port 0 takes a free one.
    Socket,
    /// Where others dial this node: port 0 stands for the one that it listens on.
    Address,
    /// Where others listen, comma-separated; may be empty.
    Addresses,
}

impl Allowed {
    /// The word that stands for the value in a usage line.
    #[must_use]
    pub const fn placeholder(&self) -> &'static str {
        match self {
            Allowed::AnyOf(_) => "WORD",
            Allowed::Span(..) => "TIME",
            Allowed::Count(..) => "COUNT",
            Allowed::Name | Allowed::NodeId => "NAME",
            Allowed::Folder => "DIR",
            Allowed::Socket => "IP:PORT",
            Allowed::Address => "HOST:PORT",
            Allowed::Addresses => "HOST:PORT[,HOST:PORT]",
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowed::AnyOf([rest @ .., last]) if !rest.is_empty() => write!(f, "{} or {last}", rest.join(", ")),
            Allowed::AnyOf(words) => f.write_str(&words.join("")),
            Allowed::Span(least, most) => {
                write!(f, "a time from {} to {}, such as 150ms, 2s or 1m", show_span(*least), show_span(*most))
            }
            Allowed::Count(least, most) => write!(f, "a whole number from {least} to {most}"),
            Allowed::Name => f.write_str("1 to 63 letters, digits, '-', '_' or '.'"),
            Allowed::NodeId => f.write_str("1 to 253 letters, digits, '-', '_' or '.'"),
            Allowed::Folder => f.write_str("a folder; it is made if there is none"),
            Allowed::Socket => f.write_str("an IP address and a port, such as 0.0.0.0:7400"),
            Allowed::Address => f.write_str("a host and a port, such as node-1:7400"),
            Allowed::Addresses => f.write_str("hosts and ports, comma-separated, such as node-1:7400,node-2:7400"),
        }
    }
}

/// A value that a setting can have.
pub trait Parse: Sized {
    /// The value, or `None` if the text is not what is `allowed`.
    fn parse(text: &str, allowed: &Allowed) -> Option<Self>;
}

impl Parse for Duration {
    fn parse(text: &str, allowed: &Allowed) -> Option<Self> {
        let Allowed::Span(least, most) = allowed else { return None };
        span(text).filter(|span| span >= least && span <= most)
    }
}

impl Parse for u32 {
    fn parse(text: &str, allowed: &Allowed) -> Option<Self> {
        let Allowed::Count(least, most) = allowed else { return None };
        text.parse().ok().filter(|count| count >= least && count <= most)
    }
}

impl Parse for String {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        (!text.is_empty() && text.len() <= 63 && text.chars().all(fits)).then(|| text.to_owned())
    }
}

impl Parse for NodeId {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        NodeId::new(text).ok()
    }
}

impl Parse for Option<PathBuf> {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        Some(if text.is_empty() { None } else { Some(PathBuf::from(text)) })
    }
}

impl Parse for SocketAddr {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        text.parse().ok()
    }
}

impl Parse for Address {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        host_and_port(text).map(|(address, _)| address)
    }
}

impl Parse for Vec<Address> {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        if text.trim().is_empty() {
            return Some(Vec::new());
        }
        text.split(',').map(|part| address(part.trim())).collect()
    }
}

/// An address that can be dialled: a host name, IPv4 address or bracketed IPv6 address, and a port.
#[must_use]
pub fn address(text: &str) -> Option<Address> {
    host_and_port(text).filter(|(_, port)| *port != 0).map(|(address, _)| address)
}

fn host_and_port(text: &str) -> Option<(Address, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let is_host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok()),
        None => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)),
    };
    let port = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    if is_host { Some((Address::new(text).ok()?, port)) } else { None }
}

/// A time written as a whole number and one of `ms`, `s`, `m`, `h`. A number without unit is refused: half of
/// its readers would take it for seconds, the other half for milliseconds.
pub(super) fn span(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let millis_per_unit = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    number.parse::<u64>().ok()?.checked_mul(millis_per_unit).map(Duration::from_millis)
}

const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A time in the largest unit that leaves a whole number, as [`Allowed::Span`] is read.
#[must_use]
pub fn show_span(span: Duration) -> String {
    let millis = span.as_millis();
    let fits = |unit: &&(&str, u64)| millis >= u128::from(unit.1) && millis.is_multiple_of(u128::from(unit.1));
    let (name, millis_per_unit) = UNITS.iter().find(fits).unwrap_or(&("ms", 1));
    format!("{}{name}", millis / u128::from(*millis_per_unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_whole_number_and_a_unit() {
        for (text, millis) in [("150ms", 150), ("2s", 2_000), ("1m", 60_000), ("3h", 10_800_000), ("0s", 0)] {
            assert_eq!(span(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "8", "s", "-1s", "1.5s", "1 s", " 1s", "1sec", "1S", "99999999999999999h", "١s"] {
            assert_eq!(span(text), None, "{text}");
        }
    }

    #[test]
    fn a_shown_time_reads_back_the_same() {
        for (millis, shown) in
            [(0, "0ms"), (150, "150ms"), (1_000, "1s"), (1_500, "1500ms"), (60_000, "1m"), (7_200_000, "2h")]
        {
            assert_eq!(show_span(Duration::from_millis(millis)), shown);
            assert_eq!(span(shown), Some(Duration::from_millis(millis)));
        }
    }

    #[test]
    fn an_address_has_a_host_and_a_port_that_can_be_dialled() {
        for text in ["node-1:7400", "127.0.0.1:1", "[::1]:65535", "a.b_c:80"] {
            assert_eq!(address(text).map(|address| address.to_string()), Some(text.to_owned()));
        }
        for text in [
            "",
            ":",
            "node",
            "node:",
            ":7400",
            "node:0",
            "node:65536",
            "node:+1",
            "::1:80",
            "[::1:80",
            "[x]:80",
            "a b:80",
            "http://a:80",
        ] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn a_list_of_addresses_may_be_empty_but_none_of_its_parts_may() {
        assert_eq!(Vec::<Address>::parse("", &Allowed::Addresses), Some(Vec::new()));
        assert_eq!(Vec::<Address>::parse("a:1, b:2", &Allowed::Addresses).map(|list| list.len()), Some(2));
        assert_eq!(Vec::<Address>::parse("a:1,,b:2", &Allowed::Addresses), None);
        assert_eq!(Vec::<Address>::parse("a:1,", &Allowed::Addresses), None);
    }

    #[test]
    fn both_ends_of_a_range_are_allowed_and_nothing_beyond() {
        let count = Allowed::Count(1, 4);
        assert_eq!(
            ["0", "1", "4", "5", "-1", "2.0", ""].map(|text| u32::parse(text, &count)),
            [None, Some(1), Some(4), None, None, None, None]
        );
        let time = Allowed::Span(Duration::from_millis(10), Duration::from_secs(1));
        assert_eq!(
            ["9ms", "10ms", "1s", "1001ms"].map(|text| Duration::parse(text, &time).is_some()),
            [false, true, true, false]
        );
    }
}
