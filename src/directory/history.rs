//! The last changes of the members, so that a watcher can go on where it stood.
//!
//! Owns the numbering of changes. Never holds more than [`KEPT`] of them; who is further behind takes a snapshot.

use std::collections::VecDeque;

use crate::protocol::ids::{Identity, Incarnation, Member};
use crate::protocol::message::{MembershipEvent, Revision};

/// Changes kept: a whole cluster of the largest size may come back while a watcher is away.
pub(super) const KEPT: usize = crate::protocol::limits::MEMBERS;

/// What changed.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// A member came, in a higher incarnation, or with another address.
    Joined(Member),
    /// A member left, or its lease ran out.
    Left(Identity),
}

impl Change {
    pub(super) fn event((revision, change): (Revision, &Change)) -> MembershipEvent {
        match change {
            Change::Joined(member) => MembershipEvent::Joined(revision, member.clone()),
            Change::Left(who) => MembershipEvent::Left(revision, who.clone()),
        }
    }
}

/// The changes of one start of a directory.
#[derive(Debug)]
pub(super) struct History {
    last: Revision,
    /// The newest is the one of `last`; the numbers have no gaps.
    changes: VecDeque<Change>,
}

impl History {
    pub(super) fn new(incarnation: Incarnation) -> History {
        History { last: Revision { incarnation, number: 0 }, changes: VecDeque::new() }
    }

    pub(super) fn revision(&self) -> Revision {
        self.last
    }

    pub(super) fn push(&mut self, change: Change) {
        if self.changes.len() >= KEPT {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
        self.last.number = self.last.number.saturating_add(1);
    }

    /// The changes after a revision, oldest first; none if it is of another start, lies ahead, or too far back.
    pub(super) fn after(&self, after: Revision) -> Option<impl Iterator<Item = (Revision, &Change)>> {
        if after.incarnation != self.last.incarnation {
            return None;
        }
        let missing = usize::try_from(self.last.number.checked_sub(after.number)?).ok()?;
        let skipped = self.changes.len().checked_sub(missing)?;
        let numbers = after.number.saturating_add(1)..;
        let revisions = numbers.map(|number| Revision { number, ..self.last });
        Some(revisions.zip(self.changes.iter().skip(skipped)))
    }
}
