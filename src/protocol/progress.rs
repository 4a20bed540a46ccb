//! What a subscriber may be shown, so that nothing that it sees goes back (section 9).
//!
//! Owns the cursor rule. A bare number is no cursor: a replica that is behind, or belongs to another part of a
//! split, has other numbers. What is compared is the content.

use std::sync::Arc;

use super::ids::{Number, Term};
use super::view::{JobState, JobView};

/// Where a subscriber is: the last message that it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Term of the last message.
    pub term: Term,
    /// Number of the last message.
    pub number: Number,
    /// State of the last message.
    pub state: JobState,
    /// Tasks completed in the last message.
    pub completed: u32,
    /// Tasks in all in the last message.
    pub total: u32,
}

impl Cursor {
    /// The cursor of a message.
    #[must_use]
    pub fn of(view: &JobView) -> Cursor {
        let (term, number) = view.stamp.as_ref().map_or((Term(0), Number(0)), |stamp| (stamp.term, stamp.number));
        Cursor { term, number, state: view.state, completed: view.completed, total: view.total }
    }
}

/// The message that follows `after`, if `view` is one.
///
/// Held back while the replica's share of completed tasks is smaller or its state lower than what was seen, and
/// while nothing moved. A terminal state always goes out. Neither (term, number) nor share is below the cursor's: of
/// a job that ended with a cut that was less far, the share last seen stays.
#[must_use]
pub fn next_message(view: Arc<JobView>, after: Option<&Cursor>) -> Option<Arc<JobView>> {
    let Some(after) = after else { return Some(view) };
    let own = Cursor::of(&view);
    let share = u64::from(own.completed) * u64::from(after.total);
    let seen = u64::from(after.completed) * u64::from(own.total);
    let less = share < seen;
    if !own.state.is_terminal() {
        let behind = own.state < after.state || less;
        let moved = (own.term, own.number) > (after.term, after.number) || share > seen;
        if behind || !moved {
            return None;
        }
    } else if own.state < after.state {
        // A higher outcome was shown elsewhere; this replica will learn of it.
        return None;
    }
    let older = (own.term, own.number) < (after.term, after.number);
    if !older && !less {
        return Some(view);
    }
    let mut raised = JobView::clone(&view);
    if let Some(stamp) = raised.stamp.as_mut().filter(|_| older) {
        (stamp.term, stamp.number) = (after.term, after.number);
    }
    if less {
        (raised.completed, raised.total) = (after.completed, after.total);
    }
    Some(Arc::new(raised))
}
