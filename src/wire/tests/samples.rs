//! Messages made up from a seed, for tests.
//!
//! Owns what a well-formed message may hold: every variant, every option set and unset, lists empty and full.

use std::sync::Arc;
use std::time::Duration;

use crate::jobs::{Kind, Payload, Value};
use crate::protocol::dice::Dice;
use crate::protocol::ids::*;
use crate::protocol::ledger::{Attempt, Completion, Ended, Floors, Job, Outcome, Past, Record, Stamped, Task, Turn};
use crate::protocol::limits;
use crate::protocol::message::*;
use crate::protocol::progress::Cursor;
use crate::protocol::time::Wall;
use crate::protocol::trace::{Trace, TraceId};
use crate::protocol::view::*;
use crate::wire::NamedCluster;

/// A source of messages.
pub(crate) struct Samples {
    dice: Dice,
}

impl Samples {
    pub(crate) fn new(seed: u64) -> Samples {
        Samples { dice: Dice::new(seed) }
    }

    fn chance(&mut self) -> bool {
        self.dice.below(2) == 0
    }

    fn up_to(&mut self, most: u32) -> u32 {
        self.dice.below(u64::from(most) + 1) as u32
    }

    /// Small, large and extreme numbers alike.
    pub(crate) fn number(&mut self) -> u64 {
        match self.dice.below(4) {
            0 => 0,
            1 => u64::MAX,
            2 => self.dice.below(1_000),
            _ => self.dice.roll(),
        }
    }

    fn small(&mut self) -> u32 {
        let number = self.number();
        number as u32
    }

    fn option<T>(&mut self, make: impl FnOnce(&mut Samples) -> T) -> Option<T> {
        if self.chance() { Some(make(self)) } else { None }
    }

    fn list<T>(&mut self, most: u64, mut make: impl FnMut(&mut Samples) -> T) -> Vec<T> {
        let many = if self.dice.below(8) == 0 { most } else { self.dice.below(4).min(most) };
        (0..many).map(|_| make(self)).collect()
    }

    fn name(&mut self, most: u64, extra: &[u8]) -> String {
        let letters: Vec<u8> =
            (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'0'..=b'9').chain(extra.iter().copied()).collect();
        let long = if self.dice.below(8) == 0 { most } else { 1 + self.dice.below(8.min(most)) };
        (0..long).map(|_| char::from(*self.dice.pick(&letters).expect("letters"))).collect()
    }

    fn sentence(&mut self) -> Arc<str> {
        let words = ["", "worker lost", "übergelaufen", "\"quoted\"\n", "no room"];
        Arc::from(*self.dice.pick(&words).expect("words"))
    }

    fn micros(&mut self) -> Duration {
        Duration::from_micros(self.number())
    }

    pub(crate) fn node(&mut self) -> NodeId {
        NodeId::new(&self.name(253, b"-_.")).expect("a good name")
    }

    fn address(&mut self) -> Address {
        Address::new(&format!("{}:{}", self.name(200, b"-."), self.dice.below(65_536))).expect("a good address")
    }

    pub(crate) fn value(&mut self) -> Value {
        match self.dice.below(4) {
            0 => Value(i128::MIN),
            1 => Value(i128::MAX),
            2 => Value(-1),
            _ => Value(i128::from(self.dice.roll())),
        }
    }

    pub(crate) fn identity(&mut self) -> Identity {
        Identity { node: self.node(), incarnation: Incarnation(self.number()) }
    }

    pub(crate) fn member(&mut self) -> Member {
        Member {
            node: self.node(),
            incarnation: Incarnation(self.number()),
            address: self.address(),
            http: self.address(),
            version: Arc::from(if self.chance() { "" } else { "0.1.0" }),
            concurrency: 1 + self.up_to(63),
        }
    }

    pub(crate) fn leadership(&mut self) -> Leadership {
        Leadership {
            term: Term(self.number()),
            leader: self.node(),
            incarnation: Incarnation(self.number()),
            jac: Jac(self.number()),
        }
    }

    pub(crate) fn leader(&mut self) -> Leader {
        let member = self.member();
        let leadership =
            Leadership { leader: member.node.clone(), incarnation: member.incarnation, ..self.leadership() };
        Leader { leadership, member }
    }

    pub(crate) fn position(&mut self) -> Position {
        Position { leadership: self.option(Samples::leadership), number: Number(self.number()) }
    }

    pub(crate) fn status(&mut self) -> Status {
        Status {
            member: self.member(),
            following: self.option(Samples::leader),
            jac: Jac(self.number()),
            links: self.links(),
            running: self.small(),
            remembers: Jac(self.number()),
        }
    }

    fn links(&mut self) -> Vec<NodeId> {
        self.list(limits::LINKS as u64, Samples::node)
    }

    fn election(&mut self) -> ElectionId {
        ElectionId { initiator: self.node(), incarnation: Incarnation(self.number()), serial: self.number() }
    }

    fn edge(&mut self) -> Edge {
        Edge { from: self.node(), to: self.node() }
    }

    pub(crate) fn elect(&mut self) -> Elect {
        Elect {
            election: self.election(),
            term: Term(self.number()),
            from: self.member(),
            replaces: self.option(Samples::leadership),
            around: self.list(limits::EDGES as u64, Samples::edge),
            excluded: self.list(limits::EXCLUDED as u64, Samples::identity),
            budget: Duration::from_micros(self.dice.below(10_000_001)),
        }
    }

    pub(crate) fn elect_answer(&mut self) -> ElectAnswer {
        ElectAnswer {
            duplicate: self.chance(),
            best: self.option(|it| Candidate { jac: Jac(it.number()), member: it.member() }),
            nodes: self.small(),
            failed: self.list(limits::EDGES as u64, Samples::edge),
            refusals: self.list(limits::REFUSALS as u64, Samples::leader),
            highest_term: Term(self.number()),
        }
    }

    pub(crate) fn announce(&mut self) -> Announce {
        let purposes = [Purpose::Won, Purpose::Flood, Purpose::Met, Purpose::Settle];
        Announce {
            purpose: *self.dice.pick(&purposes).expect("purposes"),
            from: self.member(),
            leader: self.leader(),
            election: self.option(Samples::election),
            replaces: self.option(Samples::leadership),
            workers: self.small(),
        }
    }

    pub(crate) fn announce_answer(&mut self) -> AnnounceAnswer {
        AnnounceAnswer { accepted: self.chance(), following: self.option(Samples::leader), reaches: self.small() }
    }

    pub(crate) fn job_key(&mut self) -> JobKey {
        let digest = std::array::from_fn(|_| self.dice.roll() as u8);
        JobKey { id: JobId::new(&self.name(64, b"-_")).expect("a good name"), digest: Digest(digest) }
    }

    fn task_key(&mut self) -> TaskKey {
        let slices = 1 + self.up_to(limits::SLICES - 1);
        TaskKey { job: self.job_key(), slices, slice: self.up_to(slices - 1) }
    }

    fn attempt_name(&mut self) -> AttemptName {
        AttemptName { number: 1 + self.up_to(9), term: Term(self.number()), leader: self.node() }
    }

    pub(crate) fn stamp(&mut self) -> Stamp {
        Stamp { term: Term(self.number()), number: Number(self.number()), leader: self.node() }
    }

    fn admission(&mut self) -> Admission {
        Admission {
            term: Term(self.number()),
            leader: self.node(),
            place: 1 + self.up_to(4),
            jac: Jac(self.number()),
            slices: 1 + self.up_to(limits::SLICES - 1),
        }
    }

    fn kind(&mut self) -> Kind {
        *self.dice.pick(&[Kind::Max, Kind::PrimeCount, Kind::PrimeSum]).expect("kinds")
    }

    pub(crate) fn payload(&mut self) -> Payload {
        match self.kind() {
            Kind::Max => Payload::Max(self.list(500, |it| it.number() as i64).into()),
            Kind::PrimeCount => Payload::PrimeCount(self.list(500, Samples::number).into()),
            Kind::PrimeSum => Payload::PrimeSum { start: self.number(), end: self.number() },
        }
    }

    pub(crate) fn record(&mut self) -> Stamped {
        let record = match self.dice.below(4) {
            0 => Record::Job(self.job_record()),
            1 => Record::Payload(self.job_key(), self.payload()),
            2 => {
                let (breakdown, line) = (self.option(Samples::floor), self.option(Samples::floor));
                Record::Floors(Floors { breakdown, line, gone: Number(self.number()) })
            }
            _ => Record::Task(self.task_key(), self.task_record()),
        };
        Stamped { stamp: self.stamp(), record }
    }

    fn floor(&mut self) -> (Turn, JobKey) {
        (self.turn(), self.job_key())
    }

    fn turn(&mut self) -> Turn {
        Turn(self.number()).min(Turn::LAST)
    }

    fn job_record(&mut self) -> Job {
        let outcome = match self.dice.below(4) {
            0 => None,
            1 => Some(Outcome::Cancelled),
            2 => Some(Outcome::Failed(self.sentence())),
            _ => Some(Outcome::Succeeded(self.value())),
        };
        let admissions = [self.admission()].into_iter().chain(self.list(3, Samples::admission)).collect();
        Job {
            key: self.job_key(),
            kind: self.kind(),
            submitted_at: Wall(self.number()),
            admissions,
            deadline: self.option(|it| Wall(it.number())),
            trace: self.option(Samples::trace),
            ended: outcome.map(|outcome| {
                let (at, turn, completed, total) = (Wall(self.number()), self.turn(), self.small(), self.small());
                Ended { outcome, at, turn, completed, total }
            }),
        }
    }

    fn task_record(&mut self) -> Task {
        let completion = |it: &mut Samples| Completion {
            attempt: it.attempt_name(),
            worker: it.node(),
            value: it.value(),
            took: it.micros(),
        };
        let attempt = |it: &mut Samples| Attempt { name: it.attempt_name(), worker: it.node(), ended: it.chance() };
        Task { completion: self.option(completion), attempt: self.option(attempt), charged: self.small() }
    }

    fn past(&mut self) -> Past {
        Past::from_parts(self.list(limits::PAST as u64, |it| (it.leadership(), Number(it.number()))))
    }

    pub(crate) fn submission(&mut self) -> SubmitJob {
        let payload = self.payload();
        let key = JobKey { digest: crate::wire::digest_of(&payload), ..self.job_key() };
        SubmitJob { key, payload, deadline: self.option(|it| Wall(it.number())), forwarded: self.chance(), trace: None }
    }

    pub(crate) fn query(&mut self) -> JobQuery {
        let key = self.job_key();
        JobQuery { id: key.id, digest: self.option(|_| key.digest), forwarded: self.chance() }
    }

    pub(crate) fn listing(&mut self) -> ListJobs {
        ListJobs { after: self.option(Samples::job_key), limit: 1 + self.up_to(limits::PAGE - 1) }
    }

    pub(crate) fn execute(&mut self) -> ExecuteTask {
        ExecuteTask {
            leadership: self.leadership(),
            task: self.task_key(),
            attempt: 1 + self.up_to(9),
            slice: self.payload(),
        }
    }

    pub(crate) fn cancel_task(&mut self) -> CancelTask {
        CancelTask { leadership: self.leadership(), task: self.task_key(), attempt: 1 + self.up_to(9) }
    }

    pub(crate) fn task_answer(&mut self) -> TaskAnswer {
        let failure =
            |it: &mut Samples| TaskFailure { retryable: it.chance(), charged: it.chance(), reason: it.sentence() };
        let result = if self.chance() { Ok(self.value()) } else { Err(failure(self)) };
        TaskAnswer { result, took: self.micros() }
    }

    fn state(&mut self) -> JobState {
        let states = [JobState::Queued, JobState::Running, JobState::Cancelled, JobState::Failed, JobState::Succeeded];
        *self.dice.pick(&states).expect("states")
    }

    pub(crate) fn cursor(&mut self) -> Cursor {
        let total = self.up_to(limits::SLICES);
        Cursor {
            term: Term(self.number()),
            number: Number(self.number()),
            state: self.state(),
            completed: self.up_to(total),
            total,
        }
    }

    pub(crate) fn job(&mut self) -> JobView {
        let total = self.up_to(limits::SLICES);
        JobView {
            key: self.job_key(),
            kind: self.kind(),
            state: self.state(),
            answer: self.option(Samples::value),
            error: self.option(Samples::sentence),
            stamp: self.option(Samples::stamp),
            completed: self.up_to(total),
            total,
            submitted_at: Wall(self.number()),
            finished_at: self.option(|it| Wall(it.number())),
            admissions: self.list(3, Samples::admission),
            workers: self.list(5, |it| WorkerShare {
                node: it.node(),
                completed: it.small(),
                running: it.small(),
                busy: it.micros(),
            }),
            tasks: self.list(32, |it| TaskView {
                slice: it.up_to(31),
                state: *it.dice.pick(&[TaskState::Pending, TaskState::Running, TaskState::Completed]).expect("states"),
                attempt: it.small(),
                worker: it.option(Samples::node),
                took: it.option(Samples::micros),
                partial: it.option(Samples::value),
            }),
            trace: self.option(Samples::trace),
        }
    }

    pub(crate) fn named_cluster(&mut self) -> NamedCluster {
        let node = |it: &mut Samples| NodeView {
            member: it.member(),
            alive: it.chance(),
            jac: Jac(it.number()),
            links: it.links(),
            running: it.small(),
        };
        let view = ClusterView {
            leadership: self.option(Samples::leadership),
            admitted: self.small(),
            cap: self.small(),
            queued: self.small(),
            nodes: self.list(20, node),
        };
        NamedCluster { cluster: self.name(20, b"-"), view }
    }

    pub(crate) fn happening(&mut self) -> Event {
        Event {
            seq: self.number(),
            at: Wall(self.number()),
            node: self.node(),
            kind: Arc::from(self.name(64, b"-")),
            term: self.option(|it| Term(it.number())),
            job: self.option(|it| it.job_key().id),
            task: self.option(Samples::small),
            attempt: self.option(Samples::small),
            text: self.sentence(),
            trace: self.option(|it| it.trace().id),
        }
    }

    fn trace(&mut self) -> Trace {
        let id = TraceId(u128::from(self.number()) + 1);
        Trace { id, span: self.number().max(1), sampled: self.chance() }
    }

    pub(crate) fn up(&mut self) -> Up {
        match self.dice.below(4) {
            0 => Up::Join { status: self.status(), position: self.position(), jobs: self.number() },
            1 => Up::Hashes(self.list(50, |it| (it.job_key(), it.number()))),
            2 => Up::Upload(self.list(50, Samples::record)),
            _ => Up::Ack {
                number: self.option(|it| Number(it.number())),
                jac: Jac(self.number()),
                running: self.small(),
                links: self.links(),
            },
        }
    }

    pub(crate) fn down(&mut self) -> Down {
        match self.dice.below(8) {
            0 if self.chance() => Down::Superseded(Incarnation(self.number())),
            0 => Down::NotLeader(self.option(Samples::leader)),
            1 => Down::Rejoin(self.leader()),
            2 => Down::WantRecords(Number(self.number())),
            3 => Down::WantHashes,
            4 => Down::WantJobs(self.list(50, Samples::job_key)),
            5 => Down::Batch(Batch {
                leadership: self.leadership(),
                records: self.list(50, Samples::record),
                number: Number(self.number()),
                past: self.option(Samples::past),
                held: Number(self.number()),
                remembers: Jac(self.number()),
            }),
            6 => Down::Heartbeat(Heartbeat {
                leadership: self.leadership(),
                held: Number(self.number()),
                room: self.small(),
                admitted: self.small(),
            }),
            _ => Down::Roster(self.list(20, Samples::status)),
        }
    }

    pub(crate) fn revision(&mut self) -> Revision {
        Revision { incarnation: Incarnation(self.number()), number: self.number() }
    }

    pub(crate) fn membership(&mut self) -> MembershipEvent {
        match self.dice.below(4) {
            0 => MembershipEvent::Snapshot(self.revision(), self.list(50, Samples::member)),
            1 => MembershipEvent::Joined(self.revision(), self.member()),
            2 => MembershipEvent::Left(self.revision(), self.identity()),
            _ => MembershipEvent::Resync,
        }
    }

    pub(crate) fn lease(&mut self) -> DirectoryAnswer {
        if self.chance() {
            DirectoryAnswer::Leased(Duration::from_millis(self.dice.below(86_400_001)))
        } else {
            DirectoryAnswer::Superseded(Incarnation(self.number()))
        }
    }
}

fn node(text: &str) -> NodeId {
    NodeId::new(text).expect("a good name")
}

fn key(id: &str) -> JobKey {
    JobKey { id: JobId::new(id).expect("a good name"), digest: Digest([7; 32]) }
}

/// A job that waits for admission: nothing is known of it yet.
pub(crate) fn queued_job() -> JobView {
    JobView {
        key: key("first"),
        kind: Kind::Max,
        state: JobState::Queued,
        answer: None,
        error: None,
        stamp: None,
        completed: 0,
        total: 0,
        submitted_at: Wall(1_767_323_045_067),
        finished_at: None,
        admissions: Vec::new(),
        workers: Vec::new(),
        tasks: Vec::new(),
        trace: None,
    }
}

/// A place in a trace.
fn trace() -> Trace {
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().expect("well-formed")
}

/// A job with its answer, with every key filled.
pub(crate) fn finished_job() -> JobView {
    let task = |slice, state, attempt, worker: Option<&str>, took, partial| TaskView {
        slice,
        state,
        attempt,
        worker: worker.map(node),
        took,
        partial,
    };
    let took = Some(Duration::from_micros(12_999));
    JobView {
        key: key("sum-1"),
        kind: Kind::PrimeSum,
        state: JobState::Succeeded,
        answer: Some(Value(201_467_077_743_744_681_014)),
        stamp: Some(Stamp { term: Term(3), number: Number(41), leader: node("worker-2") }),
        completed: 1,
        total: 3,
        finished_at: Some(Wall(1_767_323_046_000)),
        admissions: vec![Admission { term: Term(3), leader: node("worker-2"), place: 5, jac: Jac(12), slices: 3 }],
        workers: vec![WorkerShare {
            node: node("worker-1"),
            completed: 1,
            running: 1,
            busy: Duration::from_millis(12),
        }],
        tasks: vec![
            task(0, TaskState::Completed, 2, Some("worker-1"), took, Some(Value(-17))),
            task(1, TaskState::Running, 1, Some("worker-1"), None, None),
            task(2, TaskState::Pending, 0, None, None, None),
        ],
        trace: Some(trace()),
        ..queued_job()
    }
}

/// A job that failed.
pub(crate) fn failed_job() -> JobView {
    JobView {
        kind: Kind::PrimeCount,
        state: JobState::Failed,
        answer: None,
        error: Some(Arc::from("task 0 failed 5 times: \"out of memory\"")),
        ..finished_job()
    }
}

/// A cluster of one worker that leads.
pub(crate) fn cluster() -> NamedCluster {
    let member = Member {
        node: node("worker-1"),
        incarnation: Incarnation(1_767_323_000_000),
        address: Address::new("worker-1:7400").expect("a good address"),
        http: Address::new("worker-1:8080").expect("a good address"),
        version: Arc::from("0.1.0"),
        concurrency: 4,
    };
    let leadership =
        Leadership { term: Term(2), leader: member.node.clone(), incarnation: member.incarnation, jac: Jac(3) };
    let links = vec![node("worker-2"), node("worker-3")];
    let view = ClusterView {
        leadership: Some(leadership),
        admitted: 3,
        cap: 5,
        queued: 1,
        nodes: vec![NodeView { member, alive: true, jac: Jac(6), links, running: 2 }],
    };
    NamedCluster { cluster: "floodline".to_owned(), view }
}

/// A cluster of which its node knows nothing.
pub(crate) fn lost_cluster() -> NamedCluster {
    let view = ClusterView { leadership: None, admitted: 0, cap: 5, queued: 0, nodes: Vec::new() };
    NamedCluster { cluster: "floodline".to_owned(), view }
}

/// An event with every key filled.
pub(crate) fn event() -> Event {
    Event {
        seq: 17,
        at: Wall(1_767_323_045_067),
        node: node("worker-1"),
        kind: Arc::from("task-handed-out"),
        term: Some(Term(2)),
        job: Some(JobId::new("sum-1").expect("a good name")),
        task: Some(0),
        attempt: Some(2),
        text: Arc::from("task 0 of sum-1 went to worker-3"),
        trace: Some(trace().id),
    }
}

/// An event about nothing but its node.
pub(crate) fn bare_event() -> Event {
    let text = Arc::from("linked to worker-2");
    Event { kind: Arc::from("link-up"), term: None, job: None, task: None, attempt: None, trace: None, text, ..event() }
}
