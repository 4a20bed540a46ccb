//! Rules broken on purpose: each is one text of the core and what it becomes.
//!
//! A text occurs exactly once in its file, which every test run checks, so that the table can't rot. When the core
//! changes, the rule is broken anew in the changed text, not dropped.
//!
//! Two rules are left to situation tests. That a candidacy counts only while its JAC is the same (section 6): in 20,000
//! seeds nothing rested on it alone, since whoever may lead has asked for its JAC before it takes part in a flood. And
//! that it asks before: a worker that wins without having asked breaks nothing by that unless all who remember its JAC
//! are there and undisturbed since before it started, and then they nearly always tell it before its first flood is over.

/// A broken rule.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// What is broken, in words.
    pub(crate) rule: &'static str,
    /// Under `src/protocol/`.
    pub(crate) file: &'static str,
    /// As it stands.
    pub(crate) text: &'static str,
    /// What it becomes.
    pub(crate) broken: &'static str,
}

macro_rules! mutants {
    ($($rule:literal, $file:literal, $text:literal => $broken:literal;)*) => {
        pub(crate) const ALL: &[Mutant] =
            &[$(Mutant { rule: $rule, file: $file, text: $text, broken: $broken },)*];
    };
}

mutants! {
    "a number is acknowledged before it is journalled", "saving.rs",
        "Role::Following(following) if following.joined => self.saving.number(),"
        => "Role::Following(following) if following.joined => Some(self.ledger.number()),";
    "a joining follower brings nothing", "replication.rs",
        "self.ledger.merge(records, above)"
        => "self.ledger.merge({ drop(records); Vec::new() }, above)";
    "a result is known by its task without the slice count", "executor.rs",
        "if let Some(known) = self.results.get(task) {"
        => "let same = |of: &TaskKey| (&of.job, of.slice) == (&task.job, task.slice);
        if let Some((_, known)) = self.results.iter().find(|(of, _)| same(of)) {";
    "a task is stored without its slice count", "ledger/write.rs",
        "entry.cuts.entry(key.slices).or_default().put"
        => "let first = entry.cuts.keys().next().copied().unwrap_or(key.slices);
                    entry.cuts.entry(first).or_default().put";
    "giving a task back does not end its attempt", "ledger/write.rs",
        "attempt.ended = true;" => "attempt.ended = false;";
    "a leadership is named without its incarnation", "ids.rs",
        "#[derive(Clone, Debug, PartialEq, Eq, Hash)]\npub struct Leadership {"
        => "impl PartialEq for Leadership {
    fn eq(&self, other: &Self) -> bool {
        (self.term, &self.leader) == (other.term, &other.leader)
    }
}
impl Eq for Leadership {}
#[derive(Clone, Debug, Hash)]
pub struct Leadership {";
    "a JAC is taken from hearsay", "neighbours.rs",
        "self.recall_jac(status.remembers);" => "self.recall_jac(status.remembers.max(status.jac));";
    "a job whose breakdown is dropped leaves no line", "ledger/retention.rs",
        "Left::Line\n        } else {" => "Left::Nothing\n        } else {";
    "a cancel is told before it is held", "requests.rs",
        "let number = self.ledger.number_of(&key).unwrap_or(Number(0));"
        => "let number = Number(0);
                self.tell_outcomes(self.ledger.number(), out);";
    "a worker that hears a leader takes part all the same", "election/flood.rs",
        "if led.is_none() && !stale {" => "if !stale {";
    "the winner is not told first", "election/campaign.rs",
        "self.call(Peer::from(&best.member), Request::Announce(announce), limits::ANNOUNCE, errand, out);"
        => "drop(errand);
        self.finish_campaign(String::new(), out);
        self.take_announcement(&Announce { purpose: Purpose::Flood, ..announce }, out);";
    "MIN_MEMBERS counts those that it knows of, not those that live", "holding.rs",
        "self.live_workers() >= self.quorum()" => "self.members.alive(self.now.time).len() + 1 >= self.quorum()";
    "what is held is told below MIN_MEMBERS", "replication.rs",
        "{ count / 2 + 1 }.max(min_members)" => "{ count / 2 + 1 }.max(min_members.min(1))";
    "a cursor is a bare number", "progress.rs",
        "let behind = own.state < after.state || less;" => "let behind = false;";
    "a completion counts for whichever attempt is out", "schedule.rs",
        "position(|out| out.name == *name)" => "position(|_| true)";
    "a lost worker keeps its tasks", "replication.rs",
        "self.worker_lost(&node, out);" => "";
    "the past is not written", "saving.rs",
        "past.or_else(|| self.ledger.take_unsaved_past());" => "past.or_else(|| self.ledger.take_unsaved_past()).and(None);";
    "an incarnation does not rise", "ids.rs",
        "stored.next().max(Incarnation(clock.0))" => "stored.max(Incarnation(clock.0))";
    "what a disk says was followed is forgotten", "mod.rs",
        "stored.position.leadership.clone().map(fence)" => "stored.position.leadership.clone().map(fence).filter(|_| false)";
    "an admission is sent before it is journalled", "replication.rs",
        "if self.saving.holds_admission() {" => "if false {";
    "a leader that stood still leads on", "mod.rs",
        "gap > Leading::may_pause(&self.settings)" => "gap > Leading::may_pause(&self.settings) * 1_000";
    "an admission does not raise the JAC", "queue.rs",
        "self.jac = self.jac.next();" => "";
    "one admission more than the cap", "queue.rs",
        "self.settings.max_jobs_per_term.saturating_sub(leading.admitted)"
        => "(self.settings.max_jobs_per_term + 1).saturating_sub(leading.admitted)";
    "an older leadership is followed", "election/announce.rs",
        "|old| leader.leadership > old.leadership" => "|old| leader.leadership != old.leadership";
    "a hand-out of an older leadership is taken", "executor.rs",
        "|leader| hand_out.leadership < leader.leadership);\n        if let" => "|_| false);\n        if let";
    "what followers have is held, whether or not the leader's disk has it", "replication.rs",
        "journalled.min(*held)" => "journalled.max(*held)";
    "a JAC is told before it is journalled", "neighbours.rs",
        "jac: self.saving.jac()," => "jac: self.jac,";
    "others' memory of a JAC is not taken", "neighbours.rs",
        "self.recall_jac(status.remembers);" => "";
    "a new leader leaves its predecessor's attempts", "schedule.rs",
        "self.ledger.give_back(&key, false);" => "";
    "a join prefers the lower outcome", "ledger/job.rs",
        "(std::cmp::Reverse(outcome.state()), outcome" => "(outcome.state(), outcome";
    "a job's deadline is forgotten", "mod.rs",
        "self.end_late_jobs(out);" => "";
}
