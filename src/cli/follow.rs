//! A job on the screen, from its first message to its end: what `submit` and `watch` share.
//!
//! Owns what is written for each message. Never which messages there are: that is the client's.

use super::bar::Bar;
use super::exit::{Exit, Failure, Outcome};
use super::face::{Face, Output};
use super::summary::summary;
use crate::client::{Follow, News};
use crate::protocol::view::{DEADLINE_PASSED, JobState, JobView};
use crate::wire::json;

/// When to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The cluster answers for the job.
    Acknowledged,
    /// The job has ended.
    Ended,
}

/// Shows what becomes of a job. `title` says what was asked for; without one it is named by its kind.
pub(super) async fn show(follow: &mut Follow, until: Until, title: Option<&str>, bar: &Bar, face: &Face) -> Outcome {
    while let Some(news) = follow.next().await? {
        let (view, is_acknowledgement) = match news {
            News::Moved(text) => {
                bar.note(&text);
                continue;
            }
            News::Acknowledged(view) => (view, true),
            News::Progress(view) => (view, false),
        };
        bar.show(&view);
        if face.output == Output::Json {
            face.say(&line(&view)?)?;
        }
        if is_acknowledgement && until == Until::Acknowledged {
            if face.output == Output::Text {
                face.say(view.key.id.as_str())?;
                bar.hint(&format!("the cluster has it; `floodline watch {}` follows it", view.key.id));
            }
            return Ok(Exit::Done);
        }
        if view.state.is_terminal() {
            bar.clear();
            if face.output == Output::Text {
                face.say(&summary(title.unwrap_or(&view.kind.to_string()), &view))?;
            }
            return Ok(exit_of(&view));
        }
    }
    Ok(Exit::Done)
}

/// The JSON of a job, one line.
pub(super) fn line(view: &JobView) -> Result<String, Failure> {
    json_line(&json::Job::from(view))
}

/// One line of JSON.
pub(super) fn json_line(object: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(object).map_err(|error| Exit::Refused.because(format!("cannot be written as JSON: {error}")))
}

fn exit_of(view: &JobView) -> Exit {
    match view.state {
        JobState::Failed if view.error.as_deref() == Some(DEADLINE_PASSED) => Exit::DeadlinePassed,
        JobState::Queued | JobState::Running | JobState::Succeeded => Exit::Done,
        JobState::Failed | JobState::Cancelled => Exit::JobFailed,
    }
}
