//! `floodline cancel`: ends a job.

use super::exit::{Exit, Outcome};
use super::face::{Face, Output};
use super::follow::line;
use super::watch::job;
use crate::client::Client;
use crate::protocol::message::JobQuery;
use crate::protocol::view::{JobState, JobView};
use crate::wire::json;

/// Arguments of `floodline cancel`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the job, or ID:DIGEST where one id has two inputs
    #[arg(value_parser = job)]
    job: JobQuery,
}

/// Runs the command.
pub(crate) async fn run(args: Args, face: &Face) -> Outcome {
    let ended = Client::connect(face.nodes()?).await?.cancel(&args.job).await?;
    match face.output {
        Output::Text => face.say(&told(&ended))?,
        Output::Json => face.say(&line(&ended)?)?,
    }
    Ok(Exit::Done)
}

fn told(ended: &JobView) -> String {
    let id = &ended.key.id;
    match ended.state {
        JobState::Cancelled => format!("job {id} is cancelled"),
        JobState::Queued | JobState::Running | JobState::Failed | JobState::Succeeded => {
            format!("job {id} was not cancelled, it is {} already", json::job_state(ended.state))
        }
    }
}
