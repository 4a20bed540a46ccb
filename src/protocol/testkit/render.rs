//! Effects as text, one line each, in the order in which they are carried out.
//!
//! Owns the form alone. Call ids, times and what a notice says in words are left out: a test names what is decided.

use std::time::Duration;

use crate::jobs::Payload;
use crate::protocol::Worker;
use crate::protocol::effects::{ComputeEffect, Effects, Save, StreamEffect};
use crate::protocol::ids::{Candidate, JobKey, Leadership, Number, Position, TaskKey};
use crate::protocol::leadership::Role;
use crate::protocol::ledger::{Record, RecordName, Stamped, Turn};
use crate::protocol::message::{
    Announce, AnnounceAnswer, DirectoryRequest, Down, Elect, ElectAnswer, Heartbeat, JobQuery, Leader, Purpose,
    Refusal, Request, Response, Status, Submitted, TaskAnswer, Up,
};
use crate::protocol::notice::Notice;
use crate::protocol::view::JobView;

/// All effects of a step.
pub(crate) fn effects(out: &Effects) -> Vec<String> {
    let mut lines: Vec<String> = out.saves.iter().map(save).collect();
    lines.extend(out.replies.iter().map(|(token, result)| format!("reply {token}: {}", answer(result))));
    lines.extend(out.abandoned.iter().map(|_| "abandon a call".to_owned()));
    lines.extend(out.calls.iter().map(|call| {
        let to = call.to.node.as_ref().map_or(call.to.address.as_str(), |node| node.as_str());
        format!("call {to} {} within {}", request(&call.request), span(call.within))
    }));
    lines.extend(out.directories.iter().map(|(id, request)| format!("directory {} {}", id.0, directory(request))));
    lines.extend(out.watches.iter().map(|(id, after)| format!("watch directory {} after {}", id.0, after.number)));
    lines.extend(out.streams.iter().map(stream));
    lines.extend(out.computations.iter().map(|compute| match compute {
        ComputeEffect::Start(id, _, slice) => format!("compute {id}: {slice:?}"),
        ComputeEffect::Cancel(id) => format!("stop computing {id}"),
    }));
    lines.extend(out.notices.iter().map(notice));
    lines.extend(out.moved.iter().map(|job| format!("moved {}", job.id)));
    lines.extend(out.ended.iter().map(|ending| format!("ended {ending:?}")));
    lines
}

/// What a worker is, in one line.
pub(crate) fn state(worker: &Worker) -> String {
    let role = match &worker.role {
        Role::Starting => "starting".to_owned(),
        Role::Seeking(_) if worker.elections.campaign.is_some() => "electing".to_owned(),
        Role::Seeking(_) => "seeking".to_owned(),
        Role::Following(following) => {
            let joined = if following.joined { "" } else { ", not joined" };
            format!("following {}{joined}", of(&following.leader.leadership))
        }
        Role::Leading(leading) => {
            let active = if leading.active { "" } else { ", not active" };
            let (admitted, held) = (leading.admitted, leading.held);
            format!("leading {}{active}, admitted {admitted}, held {held}", of(&leading.leadership))
        }
    };
    let waiting = worker.queue.waiting();
    let queued = if waiting == 0 { String::new() } else { format!(", {waiting} queued") };
    format!("= {role}, jac {}, at {}{queued}", worker.jac, position(worker.ledger.position()))
}

/// `term-leader`, with the JAC where it is not 0.
pub(crate) fn of(leadership: &Leadership) -> String {
    let jac = if leadership.jac.0 == 0 { String::new() } else { format!("/jac {}", leadership.jac) };
    format!("{}-{}{jac}", leadership.term, leadership.leader)
}

fn position(at: &Position) -> String {
    match &at.leadership {
        None => format!("#{}", at.number),
        Some(leadership) => format!("{}#{}", of(leadership), at.number),
    }
}

pub(crate) fn span(within: Duration) -> String {
    let micros = within.as_micros();
    if micros.is_multiple_of(1_000) { format!("{}ms", micros / 1_000) } else { format!("{micros}us") }
}

fn joined(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join(", ")
}

fn save(save: &Save) -> String {
    let past = save.past.as_ref().map_or(String::new(), |past| {
        let left = past.parts().map(|(leadership, at)| format!("{}#{at}", of(leadership)));
        format!(", past [{}]", joined(left))
    });
    let records = joined(save.records.iter().map(record));
    let gone = joined(save.removed.iter().map(record_name));
    let without = if gone.is_empty() { String::new() } else { format!(" without [{gone}]") };
    format!(
        "save {} [{records}]{without} at {}, term {}, jac {}{past}",
        save.id,
        position(&save.position),
        save.term,
        save.jac
    )
}

/// A record's name.
fn record_name(name: &RecordName) -> String {
    match name {
        RecordName::Job(key) => format!("job {}", key.id),
        RecordName::Payload(key) => format!("payload {}", key.id),
        RecordName::Task(key) => format!("task {}", slice(key)),
        RecordName::Floors => "floors".to_owned(),
    }
}

/// A record by its name and what it says, without its number.
pub(crate) fn record(stamped: &Stamped) -> String {
    match &stamped.record {
        Record::Job(job) => match &job.ended {
            None => format!("job {}", job.key.id),
            Some(ended) => format!("job {} {:?}", job.key.id, ended.outcome.state()),
        },
        Record::Payload(key, _) => format!("payload {}", key.id),
        Record::Task(key, record) => {
            let charged = if record.charged == 0 { String::new() } else { format!(" charged {}", record.charged) };
            let what = match (&record.completion, &record.attempt) {
                (Some(done), _) => format!("done by {}", done.worker),
                (None, Some(last)) if last.ended => format!("pending after {}", last.name.number),
                (None, Some(last)) => format!("attempt {} at {}", last.name.number, last.worker),
                (None, None) => "pending".to_owned(),
            };
            format!("task {} {what}{charged}", slice(key))
        }
        Record::Floors(floors) => {
            let upto =
                |floor: &Option<(Turn, JobKey)>| floor.as_ref().map_or("-".to_owned(), |(_, key)| key.id.to_string());
            format!("floors {} {}", upto(&floors.breakdown), upto(&floors.line))
        }
    }
}

/// `job/slice of slices`.
fn slice(key: &TaskKey) -> String {
    format!("{}/{} of {}", key.job.id, key.slice, key.slices)
}

fn named(query: &JobQuery) -> String {
    let forwarded = if query.forwarded { " passed on" } else { "" };
    format!("{}{forwarded}", query.id)
}

fn whom(following: Option<&Leader>) -> String {
    following.map_or("nobody".to_owned(), |leader| of(&leader.leadership))
}

fn told(status: &Status) -> String {
    format!("{} follows {}", status.member.node, whom(status.following.as_ref()))
}

/// A call, without where it goes.
pub(crate) fn request(request: &Request) -> String {
    match request {
        Request::Elect(elect) => hop(elect),
        Request::Announce(announce) => announcement(announce),
        Request::AddNeighbor(status) => format!("ADD {}", told(status)),
        Request::RemoveNeighbor(who) => format!("REMOVE {}", who.node),
        Request::Ping(None) => "PING".to_owned(),
        Request::Ping(Some(status)) => format!("PING {}", told(status)),
        Request::SubmitJob(job) => {
            format!("SUBMIT {}{}", job.key.id, if job.forwarded { " passed on" } else { "" })
        }
        Request::CancelJob(query) => format!("CANCEL {}", named(query)),
        Request::GetJob(query) => format!("GET {}", named(query)),
        Request::ListJobs(list) => format!("LIST {}", list.limit),
        Request::GetCluster => "CLUSTER".to_owned(),
        Request::ExecuteTask(run) => {
            format!("RUN {} attempt {} in {}", slice(&run.task), run.attempt, of(&run.leadership))
        }
        Request::CancelTask(stop) => format!("STOP {} attempt {}", slice(&stop.task), stop.attempt),
    }
}

fn hop(elect: &Elect) -> String {
    let mut text = format!("ELECT {} term {} budget {}", elect.election, elect.term, span(elect.budget));
    if let Some(replaced) = &elect.replaces {
        text += &format!(" replaces {}", of(replaced));
    }
    if !elect.around.is_empty() {
        text += &format!(" around {}", joined(elect.around.iter().map(|edge| format!("{}>{}", edge.from, edge.to))));
    }
    if !elect.excluded.is_empty() {
        text += &format!(" without {}", joined(elect.excluded.iter().map(|who| who.node.to_string())));
    }
    text
}

fn announcement(announce: &Announce) -> String {
    let name = match announce.purpose {
        Purpose::Won => "WON",
        Purpose::Flood => "COORDINATOR",
        Purpose::Met => "MET",
        Purpose::Settle => "SETTLE",
    };
    let replaced = announce.replaces.as_ref().map_or(String::new(), |old| format!(" replaces {}", of(old)));
    format!("{name} {} workers {}{replaced}", of(&announce.leader.leadership), announce.workers)
}

/// An answer to a caller.
pub(crate) fn answer(result: &Result<Response, Refusal>) -> String {
    match result {
        Ok(response) => self::response(response),
        Err(refusal) => refused(refusal),
    }
}

fn refused(refusal: &Refusal) -> String {
    let later = if refusal.retry_after.is_some() { ", later" } else { "" };
    format!("{:?}{later}", refusal.code)
}

fn response(response: &Response) -> String {
    match response {
        Response::Elect(branch) => found(branch),
        Response::Announce(AnnounceAnswer { accepted, following, reaches }) => {
            let taken = if *accepted { "taken" } else { "not taken" };
            format!("{taken}, follows {}, reaches {reaches}", whom(following.as_ref()))
        }
        Response::AddNeighbor { accepted, status } => {
            format!("{}, {}", if *accepted { "linked" } else { "not linked" }, told(status))
        }
        Response::Done => "done".to_owned(),
        Response::Ping(status) => told(status),
        Response::Submitted(Submitted::Held(view)) => format!("held, {}", job(view)),
        Response::Submitted(Submitted::NoRoom) => "no room".to_owned(),
        Response::Job(view) => job(view),
        Response::Jobs(views) => format!("jobs [{}]", joined(views.iter().map(|view| job(view)))),
        Response::Cluster(view) => {
            let leader = view.leadership.as_ref().map_or("nobody".to_owned(), of);
            format!("cluster of {}, {leader} leads, admitted {}", view.nodes.len(), view.admitted)
        }
        Response::Task(answer) => computed(answer),
    }
}

fn computed(answer: &TaskAnswer) -> String {
    match &answer.result {
        Ok(value) => format!("value {value}"),
        Err(failed) => {
            let (again, whose) = (
                if failed.retryable { "again" } else { "never" },
                if failed.charged { "charged" } else { "not charged" },
            );
            format!("no value: {} ({again}, {whose})", failed.reason)
        }
    }
}

fn found(branch: &ElectAnswer) -> String {
    if branch.duplicate {
        return "duplicate".to_owned();
    }
    let best = |best: &Candidate| format!("{}/jac {}", best.member.node, best.jac);
    let mut text = format!("best {}, nodes {}", branch.best.as_ref().map_or("nobody".to_owned(), best), branch.nodes);
    if !branch.failed.is_empty() {
        text += &format!(", failed {}", joined(branch.failed.iter().map(|edge| format!("{}>{}", edge.from, edge.to))));
    }
    if !branch.refusals.is_empty() {
        text += &format!(", refused for {}", joined(branch.refusals.iter().map(|leader| of(&leader.leadership))));
    }
    text + &format!(", term {}", branch.highest_term)
}

/// A job as it is shown.
pub(crate) fn job(view: &JobView) -> String {
    let answer = view.answer.map_or(String::new(), |answer| format!(" = {answer}"));
    let error = view.error.as_ref().map_or(String::new(), |error| format!(" ({error})"));
    format!("{} {:?}{answer}{error} {}/{}", view.key.id, view.state, view.completed, view.total)
}

/// What is computed.
pub(crate) fn payload(payload: &Payload) -> String {
    match payload {
        Payload::Max(numbers) => format!("MAX {numbers:?}"),
        Payload::PrimeCount(numbers) => format!("PRIMECOUNT {numbers:?}"),
        Payload::PrimeSum { start, end } => format!("PRIMESUM {start}..{end}"),
    }
}

fn directory(request: &DirectoryRequest) -> String {
    match request {
        DirectoryRequest::Register(member) => format!("REGISTER {}", member.node),
        DirectoryRequest::Heartbeat(who) => format!("RENEW {}", who.node),
        DirectoryRequest::Deregister(who) => format!("DEREGISTER {}", who.node),
    }
}

fn stream(effect: &StreamEffect) -> String {
    match effect {
        StreamEffect::Open { stream, to } => format!("open {stream} to {}", to.node),
        StreamEffect::Up(stream, frame) => format!("up {stream} {}", up(frame)),
        StreamEffect::Down(stream, frame) => format!("down {stream} {}", down(frame)),
        StreamEffect::CloseUp(stream) => format!("close up {stream}"),
        StreamEffect::CloseDown(stream) => format!("close down {stream}"),
    }
}

/// A follower's frame.
pub(crate) fn up(frame: &Up) -> String {
    let number = |number: &Option<Number>| number.map_or("-".to_owned(), |number| number.to_string());
    match frame {
        Up::Join { status, position: at, jobs } => format!("JOIN {} at {}, jobs {jobs}", told(status), position(at)),
        Up::Hashes(hashes) => format!("HASHES {}", joined(hashes.iter().map(|(key, _)| key.id.to_string()))),
        Up::Upload(records) => format!("UPLOAD [{}]", joined(records.iter().map(record))),
        Up::Ack { number: at, .. } => format!("ACK {}", number(at)),
    }
}

/// A leader's frame.
pub(crate) fn down(frame: &Down) -> String {
    let ids = |keys: &[JobKey]| joined(keys.iter().map(|key| key.id.to_string()));
    match frame {
        Down::Superseded(by) => format!("SUPERSEDED by {by}"),
        Down::NotLeader(next) => format!("NOT LEADER but {}", whom(next.as_ref())),
        Down::Rejoin(leader) => format!("REJOIN {}", of(&leader.leadership)),
        Down::WantRecords(above) => format!("WANT RECORDS above {above}"),
        Down::WantHashes => "WANT HASHES".to_owned(),
        Down::WantJobs(keys) if keys.is_empty() => "WANT JOBS".to_owned(),
        Down::WantJobs(keys) => format!("WANT JOBS {}", ids(keys)),
        Down::Batch(batch) => {
            let joins = if batch.past.is_some() { " joins" } else { "" };
            let records = joined(batch.records.iter().map(record));
            format!("BATCH{joins} {}#{} [{records}] held {}", of(&batch.leadership), batch.number, batch.held)
        }
        Down::Heartbeat(Heartbeat { leadership, held, room, admitted }) => {
            format!("HEARTBEAT {} held {held}, room {room}, admitted {admitted}", of(leadership))
        }
        Down::Roster(statuses) => {
            format!("ROSTER {}", joined(statuses.iter().map(|status| status.member.node.to_string())))
        }
    }
}

/// A notice, without what it says in words.
pub(crate) fn notice(notice: &Notice) -> String {
    let told = notice.told();
    let mut text = format!("note {}", told.kind);
    text += &told.term.map_or(String::new(), |term| format!(" term {term}"));
    text += &told.job.map_or(String::new(), |job| format!(" {job}"));
    text += &told.task.map_or(String::new(), |task| format!("/{task}"));
    text += &told.attempt.map_or(String::new(), |attempt| format!(" attempt {attempt}"));
    text
}
