//! `floodline health`: whether a node is ready; for people, and for the health check of a container.

use serde::Serialize;

use super::exit::{Exit, Outcome};
use super::face::{Face, Output};
use super::follow::json_line;
use crate::client::health;

/// Arguments of `floodline health`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {}

#[derive(Serialize)]
struct Health<'a> {
    address: &'a str,
    ready: bool,
}

/// Runs the command. A node that answers but is not ready counts as one that cannot be reached.
pub(crate) async fn run(_: Args, face: &Face) -> Outcome {
    let (node, ready) = health(face.nodes()?).await?;
    match face.output {
        Output::Text if ready => face.say(&format!("{node} is ready"))?,
        Output::Text => {}
        Output::Json => face.say(&json_line(&Health { address: node.as_str(), ready })?)?,
    }
    if ready {
        return Ok(Exit::Done);
    }
    Err(Exit::Unreachable
        .because(format!("{node} answers but is not ready: it starts, ends, or knows no coordinator; try again")))
}
