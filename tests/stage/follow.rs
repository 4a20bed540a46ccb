//! Jobs followed to their middle and to their end.

use std::sync::Arc;

use floodline::client::{Follow, News};
use floodline::protocol::view::{JobState, JobView};

use crate::nodes::within;

/// The next view of a job; none after the last.
pub(crate) async fn next_view(job: &mut Follow) -> Option<Arc<JobView>> {
    loop {
        match within("progress", job.next()).await.expect("the cluster answers") {
            Some(News::Acknowledged(view) | News::Progress(view)) => return Some(view),
            Some(News::Moved(_)) => {}
            None => return None,
        }
    }
}

/// How a job ends.
pub(crate) async fn result(mut job: Follow) -> Arc<JobView> {
    let mut last = None;
    while let Some(view) = next_view(&mut job).await {
        last = Some(view);
    }
    last.expect("a job has a last message")
}

/// Waits until a job has completed tasks, and tasks that still run.
pub(crate) async fn in_its_middle(job: &mut Follow) -> Arc<JobView> {
    loop {
        let view = next_view(job).await.expect("the job is long");
        assert_eq!(view.state, JobState::Running, "the job is long enough: {} of {}", view.completed, view.total);
        if view.completed > 0 && view.workers.iter().filter(|worker| worker.running > 0).count() > 1 {
            return view;
        }
    }
}
