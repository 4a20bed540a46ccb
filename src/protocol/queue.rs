//! Submissions at the worker that took them (section 7): they wait through drains and elections, the oldest goes
//! to the leader when it has room, and each is answered when its job is held.
//!
//! Owns the order and the bound of what waits. A submission that was sent stays even when its caller is gone: it
//! may have been admitted. Never passes on what was passed on.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Worker;
use super::calls::Errand;
use super::effects::Effects;
use super::ids::{CallId, JobKey, Number, ReplyToken};
use super::leadership::Role;
use super::limits;
use super::message::{CallFailure, Code, JobQuery, Peer, Refusal, Request, Response, SubmitJob, Submitted};
use super::notice::Notice;
use super::time::{Time, Wall};
use super::view::{Admission, JobState, JobView};

/// After a try that came to nothing.
const RETRY: Duration = Duration::from_millis(20);

/// Where a submission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Here, until the leader has room; not before this time.
    Waiting(Time),
    /// On its way to the leader.
    Sent(CallId),
    /// Admitted by this leader; answered when this number is held.
    Holding(Number),
}

/// One submission.
#[derive(Clone, Debug)]
struct Submission {
    job: SubmitJob,
    token: Option<ReplyToken>,
    stage: Stage,
    /// A try ended without a clear answer: it may have been admitted somewhere.
    unsure: bool,
    taken_at: Wall,
}

impl Submission {
    fn is_late(&self, wall: Wall) -> bool {
        self.job.deadline.is_some_and(|deadline| deadline <= wall)
    }

    fn may_be_admitted(&self) -> bool {
        self.unsure || matches!(self.stage, Stage::Sent(_) | Stage::Holding(_))
    }
}

/// All submissions here, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    last: u64,
    held_back: BTreeMap<u64, Submission>,
    /// Cancellers that wait for an outcome to be held at this leader. Bound: [`limits::CALLERS`].
    outcomes: Vec<(Number, ReplyToken, JobKey)>,
}

impl Queue {
    /// How many wait for a leader with room.
    pub(crate) fn waiting(&self) -> usize {
        self.held_back.values().filter(|submission| !matches!(submission.stage, Stage::Holding(_))).count()
    }

    /// A submission that waits here, as people see it.
    pub(crate) fn view(&self, query: &JobQuery) -> Option<JobView> {
        let wanted = |submission: &&Submission| {
            let key = &submission.job.key;
            key.id == query.id && query.digest.is_none_or(|digest| digest == key.digest)
        };
        let submission = self.held_back.values().find(wanted)?;
        Some(JobView {
            key: submission.job.key.clone(),
            kind: submission.job.payload.kind(),
            state: JobState::Queued,
            answer: None,
            error: None,
            stamp: None,
            completed: 0,
            total: 0,
            submitted_at: submission.taken_at,
            finished_at: None,
            admissions: Vec::new(),
            workers: Vec::new(),
            tasks: Vec::new(),
            trace: submission.job.trace,
        })
    }

    /// Takes out what waits here under a name and was surely not admitted.
    pub(crate) fn withdraw(&mut self, query: &JobQuery) -> Vec<ReplyToken> {
        let hit = |submission: &Submission| {
            let key = &submission.job.key;
            let named = key.id == query.id && query.digest.is_none_or(|digest| digest == key.digest);
            named && !submission.may_be_admitted()
        };
        let withdrawn = self.held_back.extract_if(.., |_, submission| hit(submission));
        withdrawn.filter_map(|(_, submission)| submission.token).collect()
    }

    /// A canceller waits for its job's outcome to be held. False if too many do.
    pub(crate) fn wait_for(&mut self, token: ReplyToken, key: JobKey, number: Number) -> bool {
        let room = self.outcomes.len() < limits::CALLERS;
        if room {
            self.outcomes.push((number, token, key));
        }
        room
    }

    /// A caller is gone: what was surely not admitted goes with it.
    pub(crate) fn caller_gone(&mut self, token: ReplyToken) {
        self.outcomes.retain(|(_, waiting, _)| *waiting != token);
        self.held_back.retain(|_, submission| {
            let mine = submission.token == Some(token);
            if mine {
                submission.token = None;
            }
            !mine || submission.may_be_admitted()
        });
    }

    /// Everything goes; gives those who waited.
    pub(crate) fn clear(&mut self) -> Vec<ReplyToken> {
        std::mem::take(&mut self.held_back).into_values().filter_map(|submission| submission.token).collect()
    }

    /// When a submission that pauses may go out; one whose pause is over waits for room, and hides no other.
    pub(crate) fn next_deadline(&self, now: Time) -> Option<Time> {
        let pauses = self.held_back.values().filter_map(|submission| match submission.stage {
            Stage::Waiting(at) => Some(at),
            Stage::Sent(_) | Stage::Holding(_) => None,
        });
        pauses.filter(|at| *at > now).min()
    }
}

fn too_late(key: &JobKey) -> Refusal {
    let text = format!("the deadline of job {} passed before it was admitted: submit it with a later one", key.id);
    Refusal::new(Code::DeadlineExceeded, text)
}

/// What a leader makes of a submission.
enum Verdict {
    Hold(Number),
    Refuse(Refusal),
    NoRoom,
}

impl Worker {
    /// How many submissions this leader would admit now.
    pub(crate) fn room(&self) -> u32 {
        match &self.role {
            Role::Leading(leading) if leading.active && self.stopping.is_none() && self.has_quorum() => {
                let left = limits::UNFINISHED.saturating_sub(self.ledger.unfinished().len());
                let left = u32::try_from(left).unwrap_or(u32::MAX);
                self.settings.max_jobs_per_term.saturating_sub(leading.admitted).min(left)
            }
            Role::Starting | Role::Seeking(_) | Role::Following(_) | Role::Leading(_) => 0,
        }
    }

    /// A client, or a worker for its client, submits a job.
    pub(crate) fn on_submit(&mut self, token: ReplyToken, job: SubmitJob, out: &mut Effects) {
        if let Some(refusal) = self.refuse_submission(&job) {
            out.replies.push((token, Err(refusal)));
            return;
        }
        if let Some(view) = self.known_as_held(&job.key) {
            out.replies.push((token, Ok(Response::Submitted(Submitted::Held(view)))));
            return;
        }
        self.queue.last = self.queue.last.saturating_add(1);
        if !job.forwarded {
            out.notices.push(Notice::SubmissionWaits { job: job.key.clone(), trace: job.trace });
        }
        let stage = Stage::Waiting(Time::ZERO);
        let submission = Submission { job, token: Some(token), stage, unsure: false, taken_at: self.now.wall };
        self.queue.held_back.insert(self.queue.last, submission);
    }

    fn refuse_submission(&self, job: &SubmitJob) -> Option<Refusal> {
        if let Err(refused) = job.payload.check(self.settings.max_numbers) {
            return Some(Refusal::new(Code::InvalidArgument, refused.to_string()));
        }
        if self.stopping.is_some() {
            return Some(
                Refusal::new(Code::Unavailable, "this worker is stopping: send the job to another one").retry_in(RETRY),
            );
        }
        if job.forwarded && !self.is_leading() {
            return Some(Refusal::new(Code::FailedPrecondition, "this worker does not lead"));
        }
        let full = if job.forwarded { limits::CALLERS } else { self.settings.queue };
        // Those that are admitted and wait to be held are many only where one id comes again and again.
        if self.queue.waiting() >= full || self.queue.held_back.len() >= limits::CALLERS {
            let text = format!("{full} submissions wait here already: send it to another worker, or later");
            return Some(Refusal::new(Code::ResourceExhausted, text).retry_in(Duration::from_secs(1)));
        }
        None
    }

    /// A job that this replica knows to be held: the same submission again is answered from it.
    fn known_as_held(&self, key: &JobKey) -> Option<std::sync::Arc<JobView>> {
        let number = self.ledger.number_of(key)?;
        let held = match &self.role {
            Role::Following(following) if following.joined => following.held,
            Role::Leading(leading) => leading.held,
            Role::Starting | Role::Seeking(_) | Role::Following(_) => return None,
        };
        if number <= held { self.ledger.view(key) } else { None }
    }

    /// Sends on, or admits, what waits here: oldest first.
    pub(crate) fn pump_queue(&mut self, out: &mut Effects) {
        let now = self.now.time;
        self.drop_late_submissions(out);
        let due = |submission: &Submission| matches!(submission.stage, Stage::Waiting(at) if at <= now);
        let due: Vec<u64> =
            self.queue.held_back.iter().filter(|(_, waiting)| due(waiting)).map(|(id, _)| *id).collect();
        for id in due {
            match &self.role {
                Role::Leading(_) => self.consider(id, out),
                Role::Following(following) if following.joined && following.stream.is_some() => self.send_on(id, out),
                Role::Starting | Role::Seeking(_) | Role::Following(_) => return,
            }
        }
    }

    /// What waits here past its deadline was surely not admitted, or the leader says what became of it.
    fn drop_late_submissions(&mut self, out: &mut Effects) {
        let wall = self.now.wall;
        let late = |submission: &Submission| submission.is_late(wall) && !submission.may_be_admitted();
        let late: Vec<u64> = self.queue.held_back.iter().filter(|(_, s)| late(s)).map(|(id, _)| *id).collect();
        for id in late {
            let Some(key) = self.queue.held_back.get(&id).map(|submission| submission.job.key.clone()) else {
                continue;
            };
            self.answer_submission(id, Err(too_late(&key)), out);
        }
    }

    /// The leader decides on a submission.
    fn consider(&mut self, id: u64, out: &mut Effects) {
        let Some(submission) = self.queue.held_back.get(&id) else { return };
        let job = submission.job.clone();
        match self.judge(&job, out) {
            Verdict::Hold(number) => {
                if let Some(submission) = self.queue.held_back.get_mut(&id) {
                    submission.stage = Stage::Holding(number);
                }
            }
            Verdict::Refuse(refusal) => self.answer_submission(id, Err(refusal), out),
            Verdict::NoRoom if job.forwarded => self.answer_submission(id, Ok(Submitted::NoRoom), out),
            Verdict::NoRoom => {}
        }
    }

    /// The check and the count of the cap are one step: no two submissions can both be the last one (section 7).
    fn judge(&mut self, job: &SubmitJob, out: &mut Effects) -> Verdict {
        let Role::Leading(leading) = &self.role else { return Verdict::NoRoom };
        if !leading.active {
            return Verdict::NoRoom;
        }
        if let Some(number) = self.ledger.number_of(&job.key) {
            return Verdict::Hold(number);
        }
        let by_id = JobQuery { id: job.key.id.clone(), digest: None, forwarded: false };
        if let Some(other) = self.ledger.find(&by_id) {
            let text = format!("job id {} is taken by another payload ({}): choose another id", other.id, other.digest);
            return Verdict::Refuse(Refusal::new(Code::AlreadyExists, text));
        }
        if job.deadline.is_some_and(|deadline| deadline <= self.now.wall) {
            return Verdict::Refuse(too_late(&job.key));
        }
        if self.room() == 0 {
            return Verdict::NoRoom;
        }
        Verdict::Hold(self.admit(job, out))
    }

    fn admit(&mut self, job: &SubmitJob, out: &mut Effects) -> Number {
        let (live, cap, now) = (self.reaches(), self.settings.max_jobs_per_term, self.now.time);
        let Role::Leading(leading) = &mut self.role else { return Number(0) };
        leading.admitted = leading.admitted.saturating_add(1);
        leading.full_since = (leading.admitted >= cap).then_some(now);
        self.jac = self.jac.next();
        let cut = crate::jobs::Cut {
            live_workers: live,
            tasks_per_worker: self.settings.tasks_per_worker,
            max_tasks: self.settings.max_tasks.min(limits::SLICES),
        };
        let (term, leader, place) = (leading.leadership.term, self.me.node.clone(), leading.admitted);
        let admission = Admission { term, leader, place, jac: self.jac, slices: job.payload.slices(cut) };
        self.ledger.admit(&job.key, job.payload.clone(), admission, job.deadline, job.trace, self.now.wall);
        self.saving.admitted(job.key.clone());
        let (job_key, trace) = (job.key.clone(), job.trace);
        out.notices.push(Notice::JobAdmitted { job: job_key, term, place, jac: self.jac, trace });
        out.moved.insert(job.key.clone());
        self.take_up_job(&job.key, out);
        self.ledger.number()
    }

    /// A follower sends a submission to its leader, if that has room or knows the id already.
    fn send_on(&mut self, id: u64, out: &mut Effects) {
        let Some(submission) = self.queue.held_back.get_mut(&id) else { return };
        let Role::Following(following) = &mut self.role else { return };
        let by_id = JobQuery { id: submission.job.key.id.clone(), digest: None, forwarded: false };
        if self.ledger.find(&by_id).is_none() {
            if following.room == 0 {
                return;
            }
            following.room -= 1;
        }
        let request = Request::SubmitJob(SubmitJob { forwarded: true, ..submission.job.clone() });
        let (to, leader) = (Peer::from(&following.leader.member), following.leader.member.node.clone());
        if let Some(call) = self.call(to, request, limits::FORWARD, Errand::Submission(id), out)
            && let Some(submission) = self.queue.held_back.get_mut(&id)
        {
            submission.stage = Stage::Sent(call);
            out.notices.push(Notice::SubmissionSent(submission.job.key.clone(), leader));
        }
    }

    /// The leader answered a submission that was passed on to it, or did not.
    pub(crate) fn on_submission_answered(
        &mut self,
        id: u64,
        result: Result<Submitted, CallFailure>,
        out: &mut Effects,
    ) {
        let again = Stage::Waiting(self.now.time + RETRY);
        let Some(submission) = self.queue.held_back.get_mut(&id) else { return };
        let by_id = JobQuery { id: submission.job.key.id.clone(), digest: None, forwarded: false };
        match result {
            Ok(Submitted::Held(view)) => self.answer_submission(id, Ok(Submitted::Held(view)), out),
            Ok(Submitted::NoRoom) => {
                let (job, trace) = (submission.job.key.clone(), submission.job.trace);
                out.notices.push(Notice::SubmissionWaits { job, trace });
                // It was not admitted: without a caller it may go.
                // What is known here goes out whatever room there is, so it has to pause by itself.
                submission.stage = if self.ledger.find(&by_id).is_some() { again } else { Stage::Waiting(Time::ZERO) };
                if submission.token.is_none() {
                    self.queue.held_back.remove(&id);
                }
                if let Role::Following(following) = &mut self.role {
                    following.room = 0;
                }
            }
            Err(CallFailure::Refused(refusal))
                if matches!(refusal.code, Code::InvalidArgument | Code::AlreadyExists)
                    // By the leader's clock, whatever this one says: it knows whether the job was admitted.
                    || (refusal.code == Code::DeadlineExceeded && submission.job.deadline.is_some()) =>
            {
                self.answer_submission(id, Err(refusal), out);
            }
            Err(_) => (submission.stage, submission.unsure) = (again, true),
        }
    }

    /// Whom this worker follows has changed: what was on its way to another leader waits here again.
    pub(crate) fn recall_submissions(&mut self, out: &mut Effects) {
        let submissions = |open: &super::calls::Open| matches!(open.errand, Errand::Submission(_));
        out.abandoned.extend(self.calls.give_up(submissions).into_iter().map(|(id, _)| id));
        for submission in self.queue.held_back.values_mut() {
            if matches!(submission.stage, Stage::Sent(_)) {
                (submission.stage, submission.unsure) = (Stage::Waiting(Time::ZERO), true);
            }
        }
    }

    /// Leads no longer: what is not held yet waits for the next leader, here or where it came from.
    pub(crate) fn requeue_unheld(&mut self, out: &mut Effects) {
        let mut gone = Vec::new();
        for (id, submission) in &mut self.queue.held_back {
            submission.unsure |= submission.may_be_admitted();
            submission.stage = Stage::Waiting(Time::ZERO);
            if submission.job.forwarded {
                gone.push(*id);
            }
        }
        for (_, token, _) in std::mem::take(&mut self.queue.outcomes) {
            let refusal = Refusal::new(Code::Unavailable, "the leadership ended: ask again").retry_in(RETRY);
            out.replies.push((token, Err(refusal)));
        }
        for id in gone {
            let refusal =
                Refusal::new(Code::Unavailable, "the leadership ended: send the same id again").retry_in(RETRY);
            self.answer_submission(id, Err(refusal), out);
        }
    }

    /// Answers those whose job is held now.
    pub(crate) fn answer_held(&mut self, out: &mut Effects) {
        let Role::Leading(leading) = &self.role else { return };
        let held = leading.held;
        let ready = |submission: &Submission| matches!(submission.stage, Stage::Holding(number) if number <= held);
        let ready: Vec<(u64, JobKey)> =
            self.queue.held_back.iter().filter(|(_, s)| ready(s)).map(|(id, s)| (*id, s.job.key.clone())).collect();
        for (id, key) in ready {
            if let Some(view) = self.ledger.view(&key) {
                self.answer_submission(id, Ok(Submitted::Held(view)), out);
            }
        }
        // A join may have given the outcome a new number since, which is not held yet.
        let ready = |(number, _, key): &mut (Number, ReplyToken, JobKey)| *number <= held && self.ledger.is_told(key);
        let told: Vec<_> = self.queue.outcomes.extract_if(.., ready).collect();
        for (_, token, key) in told {
            let gone = || Refusal::new(Code::NotFound, "the job is not here any more");
            out.replies.push((token, self.ledger.view(&key).map(Response::Job).ok_or_else(gone)));
        }
    }

    /// Whether anyone still waits here for a job to be held.
    pub(crate) fn holds_submissions(&self) -> bool {
        let holding = |submission: &Submission| matches!(submission.stage, Stage::Holding(_));
        !self.queue.outcomes.is_empty() || self.queue.held_back.values().any(holding)
    }

    fn answer_submission(&mut self, id: u64, result: Result<Submitted, Refusal>, out: &mut Effects) {
        let Some(submission) = self.queue.held_back.remove(&id) else { return };
        if !submission.job.forwarded {
            let refused = result.as_ref().err().map(|refusal| refusal.message.clone());
            out.notices.push(Notice::SubmissionAnswered { job: submission.job.key, refused });
        }
        if let Some(token) = submission.token {
            out.replies.push((token, result.map(Response::Submitted)));
        }
    }
}
