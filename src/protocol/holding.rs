//! What a leader counts as held, and whether it has a quorum (sections 1 and 2): who is live decides both.
//!
//! Owns when an outcome may be told. Never sends records: that is [`replication`](super::replication).

use super::Worker;
use super::effects::Effects;
use super::ids::Number;
use super::leadership::Role;
use super::notice::Notice;

impl Worker {
    /// Live workers whose ledgers are merged, this leader counted.
    fn live_workers(&self) -> usize {
        match &self.role {
            Role::Leading(leading) => {
                leading.followers.live_joined(self.now.time - self.settings.election_timeout_max) + 1
            }
            Role::Starting | Role::Seeking(_) | Role::Following(_) => 0,
        }
    }

    /// Whether enough workers are live to admit and to end jobs (section 2, FLOODLINE_MIN_MEMBERS).
    pub(crate) fn has_quorum(&self) -> bool {
        self.live_workers() >= self.quorum()
    }

    /// Live workers without which nothing is admitted or ended (section 2, FLOODLINE_MIN_MEMBERS).
    pub(crate) fn quorum(&self) -> usize {
        usize::try_from(self.settings.min_members).unwrap_or(usize::MAX)
    }

    /// What is held now; outcomes up to there are told, and those who wait for it are answered.
    pub(crate) fn advance_held(&mut self, out: &mut Effects) {
        let (journalled, now) = (self.journalled(), self.now.time);
        let quorum = self.quorum();
        let Role::Leading(leading) = &mut self.role else { return };
        let held = leading.followers.held(journalled, now - self.settings.election_timeout_max, quorum);
        // Before those that the flood counted have joined, the leader alone is live: what it says then, nobody else holds.
        if held <= leading.held || !leading.active {
            return;
        }
        leading.held = held;
        if self.tell_outcomes(held, out) {
            // Followers tell it to their subscribers with the next frame: at once.
            self.hasten_heartbeat();
        }
    }

    /// Outcomes up to `held` are shown from now on. Says whether there were any.
    pub(crate) fn tell_outcomes(&mut self, held: Number, out: &mut Effects) -> bool {
        let told = self.ledger.tell(held);
        let any = !told.is_empty();
        for (job, before, state) in told {
            out.notices.extend(before.map(|before| Notice::OutcomeRaised(job.clone(), before, state)));
            let trace = self.ledger.job(&job).and_then(|job| job.trace);
            out.notices.push(Notice::JobEnded(job.clone(), state, trace));
            out.moved.insert(job);
        }
        any
    }

    /// The next heartbeat goes out at the end of this step.
    pub(crate) fn hasten_heartbeat(&mut self) {
        let now = self.now.time;
        if let Role::Leading(leading) = &mut self.role {
            leading.heartbeat_due = now;
        }
    }
}
