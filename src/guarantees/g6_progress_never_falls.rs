//! G6: for a subscriber, wherever it resumes, neither number nor completed / total falls, no state goes back, and the
//! last message is the terminal one.

use std::collections::BTreeMap;

use crate::protocol::ids::JobKey;
use crate::protocol::progress::Cursor;
use crate::protocol::view::JobView;

use super::Verdict;
use super::history::Seen;

/// The last message of each subscriber.
#[derive(Clone, Debug, Default)]
pub(super) struct G6 {
    last: BTreeMap<u64, (JobKey, Cursor)>,
}

impl G6 {
    pub(super) fn see(&mut self, seen: &Seen, verdict: &mut Verdict) {
        match seen {
            Seen::Told { subscriber, view, .. } => self.judge(*subscriber, view, verdict),
            Seen::Left { subscriber } => {
                self.last.remove(subscriber);
            }
            Seen::Gone(job) => self.last.retain(|_, (of, _)| of != job),
            Seen::Final(_) => {
                for (subscriber, (job, cursor)) in &self.last {
                    if !cursor.state.is_terminal() {
                        let text = format!("subscriber {subscriber} of {} waits for its last message", job.id);
                        verdict.breach("G6", text);
                    }
                }
            }
            Seen::Started { .. }
            | Seen::Ended { .. }
            | Seen::Hurt(_)
            | Seen::Submitted { .. }
            | Seen::Outcome { .. }
            | Seen::CancelAsked(_)
            | Seen::JobEnded { .. }
            | Seen::Shown { .. }
            | Seen::Relayed { .. }
            | Seen::Admitted { .. }
            | Seen::JacTold { .. }
            | Seen::Follows { .. }
            | Seen::Led { .. }
            | Seen::Abused { .. }
            | Seen::Quiet => {}
        }
    }

    fn judge(&mut self, subscriber: u64, view: &JobView, verdict: &mut Verdict) {
        let now = Cursor::of(view);
        let Some((_, before)) = self.last.insert(subscriber, (view.key.clone(), now)) else { return };
        let what = if (now.term, now.number) < (before.term, before.number) {
            "the number falls"
        } else if share_falls(&before, &now) {
            "the share falls"
        } else if now.state < before.state {
            "the state goes back"
        } else {
            return;
        };
        verdict.breach("G6", format!("subscriber {subscriber} of {}: {what}, {before:?} then {now:?}", view.key.id));
    }
}

/// Whether completed / total is smaller than before, without dividing. Nothing of nothing is 0.
fn share_falls(before: &Cursor, now: &Cursor) -> bool {
    let total = |cursor: &Cursor| u64::from(cursor.total.max(1));
    u64::from(now.completed) * total(before) < u64::from(before.completed) * total(now)
}

#[cfg(test)]
mod tests {
    use super::super::stories::*;
    use super::*;

    fn story(messages: Vec<JobView>) -> Vec<&'static str> {
        let told = messages.into_iter().map(|view| told(1, "a", view));
        broken(&[submitted("j", 7), Seen::CancelAsked(key("j"))].into_iter().chain(told).collect::<Vec<_>>())
    }

    #[test]
    fn progress_that_rises_is_fine() {
        assert_eq!(story(vec![running("j", 0, 2, 1), running("j", 1, 2, 2), done("j", 7)]), Vec::<&str>::new());
    }

    #[test]
    fn a_number_or_share_that_falls_is_broken() {
        assert_eq!(story(vec![running("j", 1, 2, 3), running("j", 1, 2, 2)]), ["G6"]);
        assert_eq!(story(vec![running("j", 1, 2, 3), running("j", 1, 3, 4)]), ["G6"]);
    }

    #[test]
    fn a_subscriber_that_gets_no_last_message_is_broken_unless_it_left() {
        let begun = || vec![submitted("j", 7), told(1, "a", running("j", 1, 2, 3))];
        let end = || last(vec![("a", vec![done("j", 7)])]);
        let mut story = begun();
        story.push(end());
        assert_eq!(broken(&story), ["G6"]);
        let mut story = begun();
        story.extend([Seen::Left { subscriber: 1 }, end()]);
        assert_eq!(broken(&story), Vec::<&str>::new());
    }
}
