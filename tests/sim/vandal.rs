//! Malformed input of every kind: what is plainly wrong must be refused, the rest must change nothing.
//!
//! Lies that are well formed are left out: the cluster trusts its members.

use std::sync::Arc;
use std::time::Duration;

use floodline::jobs::{Payload, Value};
use floodline::protocol::Input;
use floodline::protocol::ids::{
    CallId, Candidate, ComputeId, Digest, ElectionId, Incarnation, Jac, JobId, JobKey, Leadership, NodeId, Number,
    ReplyToken, SaveId, StreamId, TaskKey, Term,
};
use floodline::protocol::message::{
    Announce, CallFailure, Down, Elect, ExecuteTask, Heartbeat, JobQuery, Leader, ListJobs, Purpose, Request, Response,
    SubmitJob, Up,
};

use crate::calls::Caller;
use crate::work;
use crate::world::{Happening, World};

const WITHIN: Duration = Duration::from_secs(2);

impl World {
    /// Somebody out there sends garbage to a worker.
    pub(crate) fn throw_garbage(&mut self) {
        if self.quiet_since.is_some() {
            return;
        }
        let up: Vec<usize> = self.running().map(|(at, _)| at).collect();
        if let Some(at) = self.dice.pick(&up).copied() {
            if self.dice.below(2) == 0 {
                self.malformed_call(at);
            } else {
                self.stray_input(at);
            }
        }
        let next = self.dice.span(Duration::from_millis(20), Duration::from_secs(1));
        self.after(next, Happening::Garbage);
    }

    fn malformed_call(&mut self, at: usize) {
        let Some(member) = self.hosts[at].process.as_ref().map(|process| process.member.clone()) else { return };
        let leadership =
            |term| Leadership { term, leader: member.node.clone(), incarnation: Incarnation(1), jac: Jac(0) };
        let nobody = NodeId::new("nobody").expect("a good name");
        let stranger =
            floodline::protocol::ids::Member { node: nobody.clone(), incarnation: Incarnation(1), ..member.clone() };
        let submit = |payload: Payload| {
            Request::SubmitJob(SubmitJob {
                key: work::key("garbage", &payload),
                payload,
                deadline: None,
                forwarded: false,
                trace: None,
            })
        };
        let elect = |term| {
            let election = ElectionId { initiator: nobody.clone(), incarnation: Incarnation(1), serial: 1 };
            let budget = Duration::from_millis(100);
            Request::Elect(Elect {
                election,
                term,
                from: stranger.clone(),
                replaces: None,
                around: vec![],
                excluded: vec![],
                budget,
            })
        };
        let announce = |purpose, term| {
            let leader = Leader { leadership: leadership(term), member: stranger.clone() };
            Request::Announce(Announce {
                purpose,
                from: stranger.clone(),
                leader,
                election: None,
                replaces: None,
                workers: u32::MAX,
            })
        };
        let task = |slices, slice| {
            let job = JobKey { id: JobId::new("garbage").expect("a good name"), digest: Digest::default() };
            let task = TaskKey { job, slices, slice };
            let leadership = leadership(Term(u64::MAX));
            Request::ExecuteTask(ExecuteTask { leadership, task, attempt: 0, slice: Payload::Max(Arc::from([])) })
        };
        let query = JobQuery { id: JobId::new("no-such-job").expect("a good name"), digest: None, forwarded: true };
        let calls = [
            ("an empty list", true, submit(Payload::Max(Arc::from([])))),
            ("a range that ends before it starts", true, submit(Payload::PrimeSum { start: 9, end: 8 })),
            ("a range beyond 2^63", true, submit(Payload::PrimeSum { start: 9, end: u64::MAX })),
            ("too many numbers", true, submit(Payload::PrimeCount(vec![7; 5_001].into()))),
            ("a term near the largest", false, elect(Term(u64::MAX))),
            ("an announcement of a term near the largest", false, announce(Purpose::Flood, Term(u64::MAX))),
            ("a winner told in a term near the largest", false, announce(Purpose::Won, Term(u64::MAX - 1))),
            ("a leader met in a term near the largest", false, announce(Purpose::Met, Term(u64::MAX))),
            ("a leader calling in a term near the largest", false, announce(Purpose::Settle, Term(u64::MAX))),
            ("slice 5 of 0", true, task(0, 5)),
            ("an unknown job", true, Request::GetJob(query.clone())),
            ("a cancel of an unknown job", true, Request::CancelJob(query)),
            ("a page of no jobs", false, Request::ListJobs(ListJobs { after: None, limit: 0 })),
            ("a page of all jobs", false, Request::ListJobs(ListJobs { after: None, limit: u32::MAX })),
            ("a ping without status", false, Request::Ping(None)),
            ("a question for the cluster", false, Request::GetCluster),
        ];
        let Some((what, refused, request)) = self.dice.pick(&calls).cloned() else { return };
        self.tell(|world| format!("garbage for {}: {what}", world.hosts[at].node));
        self.send(Caller::Vandal { what, refused }, Some(at), request, WITHIN);
    }

    /// Events for names that the worker does not know, and frames that nobody asked for.
    fn stray_input(&mut self, at: usize) {
        let Some(process) = &self.hosts[at].process else { return };
        let (life, identity) = (process.life, process.identity());
        let (call, stream, token) = (CallId(u64::MAX - 1), StreamId(u64::MAX - 1), ReplyToken(u64::MAX - 1));
        let leadership = Leadership {
            term: Term(u64::MAX),
            leader: identity.node.clone(),
            incarnation: Incarnation(1),
            jac: Jac(0),
        };
        let member = process.member.clone();
        let best = Some(Candidate { jac: Jac(0), member });
        let answer = Response::Elect(floodline::protocol::message::ElectAnswer { best, ..Default::default() });
        let ack = Up::Ack { number: Some(Number(u64::MAX)), jac: Jac(u64::MAX), running: 9, links: Vec::new() };
        let heartbeat = Heartbeat { leadership, held: Number(u64::MAX), room: 1, admitted: 9 };
        let inputs = [
            vec![Input::TimerFired, Input::TimerFired],
            vec![Input::CallerGone { token }],
            vec![Input::Answered { call, result: Ok(answer) }],
            vec![Input::Answered { call, result: Err(CallFailure::TimedOut) }],
            vec![Input::Computed { compute: ComputeId(u64::MAX), value: Some(Value(1)), took: WITHIN }],
            vec![Input::Saved { save: SaveId(0) }],
            vec![Input::LeaderEnded { stream }, Input::FollowerEnded { stream }],
            vec![Input::LeaderSent { stream, frame: Down::WantHashes }, Input::LeaderStirred { stream }],
            vec![Input::LeaderSent { stream, frame: Down::Heartbeat(heartbeat) }],
            vec![
                Input::FollowerOpened { stream },
                Input::FollowerSent { stream, frame: ack },
                Input::FollowerSent { stream, frame: Up::Hashes(Vec::new()) },
                Input::FollowerSent { stream, frame: Up::Upload(Vec::new()) },
                Input::FollowerEnded { stream },
            ],
        ];
        let Some(chosen) = self.dice.pick(&inputs).cloned() else { return };
        self.tell(|world| format!("stray input for {}", world.hosts[at].node));
        for input in chosen {
            self.deliver(at, life, input);
        }
    }
}
