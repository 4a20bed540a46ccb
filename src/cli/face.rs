//! What every command shares: which nodes to ask, and in which form to answer.
//!
//! Owns `--node` and `--output`, and the writing to standard output and standard error. Section 11 of the contract.

use std::io::{self, Write};

use clap::ValueEnum;

use super::exit::{Exit, Failure};
use crate::config::{Allowed, address};
use crate::protocol::ids::Address;

/// Where `floodline up` and the compose file publish the gRPC ports of their workers.
const LOCAL_PORTS: std::ops::RangeInclusive<u16> = 7400..=7415;

const VARIABLE: &str = "FLOODLINE_NODE";

/// The form of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Text,
    /// One JSON object a line, for programs
    Json,
}

/// The options that are taken everywhere, before and after the command.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Face {
    /// Nodes to ask, comma-separated; the first that answers serves [default: $FLOODLINE_NODE, else 127.0.0.1, ports 7400 to 7415]
    #[arg(long, global = true, value_name = "HOST:PORT", value_delimiter = ',', value_parser = node_address)]
    node: Vec<Address>,

    /// Form of the output
    #[arg(long, global = true, value_name = "FORM", value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

impl Face {
    /// The nodes to ask, in the order in which to try them: never empty.
    ///
    /// # Errors
    /// A [`Failure`] that names the bad address in the environment; those of the flag were checked before.
    pub(crate) fn nodes(&self) -> Result<Vec<Address>, Failure> {
        let variable = std::env::var_os(VARIABLE).map(|text| text.to_string_lossy().into_owned());
        nodes(&self.node, variable.as_deref())
    }

    /// Writes one line to standard output, at once, so that a reader of a pipe sees it when it is said.
    ///
    /// # Errors
    /// A [`Failure`] to hand on: nobody reads any more.
    pub(crate) fn say(&self, line: &str) -> Result<(), Failure> {
        say(line)
    }
}

pub(super) fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| Failure::of_output(&error))
}

/// Writes one line to standard error, under the program's name.
pub(super) fn complain(line: &str) {
    // If that can't be written either there is nobody left to tell.
    drop(writeln!(io::stderr().lock(), "floodline: {line}"));
}

fn node_address(text: &str) -> Result<Address, String> {
    address(text).ok_or_else(|| format!("give {}", Allowed::Address))
}

fn nodes(flag: &[Address], variable: Option<&str>) -> Result<Vec<Address>, Failure> {
    if !flag.is_empty() {
        return Ok(flag.to_vec());
    }
    if let Some(text) = variable.filter(|text| !text.is_empty()) {
        let listed: Option<Vec<Address>> = text.split(',').map(|part| address(part.trim())).collect();
        return listed.ok_or_else(|| {
            Exit::Refused.because(format!("{VARIABLE}={text:?} is not allowed: give {}", Allowed::Addresses))
        });
    }
    Ok(LOCAL_PORTS.filter_map(|port| address(&format!("127.0.0.1:{port}"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(nodes: &[Address]) -> Vec<String> {
        nodes.iter().map(Address::to_string).collect()
    }

    #[test]
    fn the_flag_comes_before_the_variable_and_that_before_the_local_ports() {
        let flag = [address("a:1").expect("an address")];
        assert_eq!(nodes(&flag, Some("b:2")).map(|nodes| shown(&nodes)), Ok(vec!["a:1".to_owned()]));
        assert_eq!(
            nodes(&[], Some("b:2, c:3")).map(|nodes| shown(&nodes)),
            Ok(vec!["b:2".to_owned(), "c:3".to_owned()])
        );
        for none in [None, Some("")] {
            let local = nodes(&[], none).map(|nodes| shown(&nodes)).expect("always allowed");
            assert_eq!((local.len(), local[0].as_str(), local[15].as_str()), (16, "127.0.0.1:7400", "127.0.0.1:7415"));
        }
    }

    #[test]
    fn a_bad_variable_is_named_with_what_is_allowed() {
        let line = "FLOODLINE_NODE=\"b\" is not allowed: give hosts and ports, comma-separated, such as node-1:7400,node-2:7400";
        assert_eq!(nodes(&[], Some("b")), Err(Exit::Refused.because(line)));
    }
}
