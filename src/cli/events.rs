//! `floodline events`: what happens in the cluster, followed until interrupted.

use super::exit::Outcome;
use super::face::{Face, Output, complain};
use super::follow::json_line;
use crate::client::{Client, Heard};
use crate::protocol::view::Event;
use crate::wire::json;

/// Arguments of `floodline events`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The events of all members, not only those of the asked node
    #[arg(long)]
    all: bool,
}

/// Runs the command; it ends when it is interrupted, or when no node answers any more.
pub(crate) async fn run(args: Args, face: &Face) -> Outcome {
    let mut events = Client::connect(face.nodes()?).await?.events(args.all);
    loop {
        match events.next().await? {
            Heard::Event(event) => match face.output {
                Output::Text => face.say(&text(&event))?,
                Output::Json => face.say(&json_line(&json::Event::from(&event))?)?,
            },
            Heard::Moved(why) if face.output == Output::Text => complain(&why),
            Heard::Moved(_) => {}
        }
    }
}

fn text(event: &Event) -> String {
    format!("{}  {:<10}  {:<18}  {}", json::time(event.at), event.node, event.kind, event.text)
}
