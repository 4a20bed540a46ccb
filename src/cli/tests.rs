//! The root of the command line: options in every place, and mistakes in one line.

use clap::CommandFactory;

use super::face::Output;
use super::*;

fn parse(line: &str) -> Result<Cli, String> {
    Cli::try_parse_from(line.split(' ')).map_err(|error| in_one_line(&error.to_string()))
}

#[test]
fn clap_finds_no_fault_with_the_commands() {
    Cli::command().debug_assert();
}

#[test]
fn output_and_node_are_taken_before_and_after_the_command() {
    for line in ["floodline --output json --node a:1,b:2 config", "floodline config --output json --node a:1,b:2"] {
        let face = parse(line).expect(line).face;
        assert_eq!(face.output, Output::Json, "{line}");
        let nodes: Vec<String> = face.nodes().expect(line).iter().map(ToString::to_string).collect();
        assert_eq!(nodes, ["a:1", "b:2"], "{line}");
    }
}

#[test]
fn every_setting_is_a_flag_of_config() {
    for row in crate::config::TABLE {
        let line = format!("floodline config --{} x", row.flag());
        assert!(parse(&line).is_ok(), "{line}");
    }
}

#[test]
fn a_mistake_is_told_in_one_line() {
    let told = |line: &str| parse(line).map(|_| ()).expect_err(line);
    assert_eq!(
        told("floodline confg"),
        "unrecognized subcommand 'confg'; tip: a similar subcommand exists: 'config'; `--help` tells more"
    );
    assert_eq!(
        told("floodline config --lease-tt 8s"),
        "unexpected argument '--lease-tt' found; tip: a similar argument exists: '--lease-ttl'; `--help` tells more"
    );
    assert_eq!(
        told("floodline --node a config"),
        "invalid value 'a' for '--node <HOST:PORT>': give a host and a port, such as node-1:7400; `--help` tells more"
    );
    assert_eq!(
        told("floodline completions"),
        "the following required arguments were not provided: <SHELL>; `--help` tells more"
    );
}
