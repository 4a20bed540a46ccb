//! `floodline watch`: follows a job to its end, also one that has ended.

use super::bar::Bar;
use super::exit::Outcome;
use super::face::Face;
use super::follow::{Until, show};
use crate::client::{Client, job_named};
use crate::protocol::message::JobQuery;

/// Arguments of `floodline watch`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the job, or ID:DIGEST where one id has two inputs
    #[arg(value_parser = job)]
    job: JobQuery,
}

/// Runs the command.
pub(crate) async fn run(args: Args, face: &Face) -> Outcome {
    let bar = Bar::new(args.job.id.as_str(), face);
    bar.wait("looks for a node");
    let mut follow = Client::connect(face.nodes()?).await?.follow(args.job);
    show(&mut follow, Until::Ended, None, &bar, face).await
}

/// Reads a job's name on the command line.
pub(super) fn job(text: &str) -> Result<JobQuery, String> {
    job_named(text).map_err(|allowed| format!("give {allowed}"))
}
