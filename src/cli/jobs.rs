//! `floodline jobs`: the jobs that the asked node knows, in the order of their ids.

use super::exit::{Exit, Outcome};
use super::face::{Face, Output};
use super::follow::line;
use super::table::{Side, aligned};
use crate::client::Client;
use crate::protocol::view::{JobView, full_name};
use crate::wire::json;

/// Arguments of `floodline jobs`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command. JSON is written page by page, so that its reader need not wait for all.
pub(crate) async fn run(_: Args, face: &Face) -> Outcome {
    let mut client = Client::connect(face.nodes()?).await?;
    let mut all: Vec<JobView> = Vec::new();
    let mut after = None;
    loop {
        let page = client.jobs(after.as_ref()).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        match face.output {
            Output::Text => all.extend(page),
            Output::Json => page.iter().try_for_each(|job| face.say(&line(job)?))?,
        }
    }
    if face.output == Output::Text {
        face.say(&table(&all))?;
    }
    Ok(Exit::Done)
}

fn table(jobs: &[JobView]) -> String {
    if jobs.is_empty() {
        return "no jobs; `floodline submit` hands one in".to_owned();
    }
    let header = ["JOB", "KIND", "STATE", "DONE", "TERM", "LEADER", "SUBMITTED", "ANSWER"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(jobs.iter().map(|job| row(job, jobs))).collect();
    let (left, right) = (Side::Left, Side::Right);
    aligned(&[left, left, left, right, right, left, left, left], &rows)
}

fn row(job: &JobView, jobs: &[JobView]) -> Vec<String> {
    let shares_id = jobs.iter().filter(|other| other.key.id == job.key.id).count() > 1;
    let name = if shares_id { full_name(job.key.id.as_str(), &job.key.digest) } else { job.key.id.to_string() };
    let outcome = job.answer.map(|answer| answer.to_string()).or_else(|| job.error.as_deref().map(str::to_owned));
    let stamp = job.stamp.as_ref();
    vec![
        name,
        job.kind.to_string(),
        json::job_state(job.state).to_owned(),
        format!("{}/{}", job.completed, job.total),
        stamp.map(|stamp| stamp.term.to_string()).unwrap_or_default(),
        stamp.map(|stamp| stamp.leader.to_string()).unwrap_or_default(),
        json::time(job.submitted_at),
        outcome.unwrap_or_default(),
    ]
}
