//! A few workers on a network that delivers each thing at once and in order, with a clock that jumps to the next
//! deadline. Rules drop, hold or break what a situation wants to go wrong; hosts are killed, frozen and restarted.
//!
//! Owns time, mail and disks. Every piece of mail has a text, `from > to WHAT`, which rules and the log go by; what a
//! host does to itself reads `n1 saves 3` and `n1 computes`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::jobs::Payload;
use crate::protocol::effects::{ComputeEffect, Effects, Save, StreamEffect};
use crate::protocol::ids::{CallId, ComputeId, Incarnation, Jac, Leadership, Member, ReplyToken, SaveId, StreamId};
use crate::protocol::input::Input;
use crate::protocol::leadership::{Role, Seeking};
use crate::protocol::ledger::{Record, RecordName, Stamped};
use crate::protocol::limits::Settings;
use crate::protocol::message::{CallFailure, DirectoryId, Request};
use crate::protocol::time::{Now, Time, Wall};
use crate::protocol::{Setup, Stored, Worker};

use super::{job, member, query, quiet, render, submission};

/// Deliveries at one instant, at most: more mean that the cluster talks without end.
const AT_ONCE: usize = 100_000;

/// What becomes of a piece of mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Deliver,
    /// Lost without a word: a caller waits for its deadline.
    Drop,
    /// Kept until [`Network::release`].
    Hold,
    /// The caller hears at once that it can't be delivered; a stream breaks.
    Break,
}

/// On its way.
#[derive(Debug)]
struct Mail {
    to: String,
    /// To which start of the host.
    life: Incarnation,
    input: Input,
    text: String,
}

#[derive(Debug)]
enum Caller {
    Host(String, Incarnation, CallId),
    Client,
}

/// One host: a process at most, and a disk.
struct Host {
    member: Member,
    worker: Option<Worker>,
    frozen: bool,
    disk: BTreeMap<String, Stamped>,
    stored: Stored,
    /// On its way to the disk; lost with the process.
    saving: VecDeque<Save>,
    calls: BTreeMap<CallId, (String, ReplyToken)>,
    callers: BTreeMap<ReplyToken, Caller>,
    /// Its stream as a follower: to whom, and what it is called there.
    ups: BTreeMap<StreamId, (String, StreamId)>,
    /// Its streams as a leader.
    downs: BTreeMap<StreamId, (String, StreamId)>,
}

/// The workers and all between them.
pub(crate) struct Network {
    hosts: BTreeMap<String, Host>,
    links: Vec<(String, String)>,
    settings: Settings,
    pub(crate) now: Time,
    last: u64,
    mail: VecDeque<Mail>,
    held: Vec<Mail>,
    cut: BTreeSet<(String, String)>,
    rule: Box<dyn Fn(&str) -> Fate>,
    /// All that was sent, and every notice as `n1: note ...`.
    pub(crate) log: Vec<String>,
    /// What clients were answered, by the token of their call.
    pub(crate) answers: BTreeMap<ReplyToken, String>,
}

impl Network {
    /// These hosts, started, with these links, written `n1-n2`. Nobody begins an election by itself within 500 ms.
    pub(crate) fn new(names: &[&str], links: &[&str]) -> Network {
        Network::with(quiet(), names, links)
    }

    pub(crate) fn with(settings: Settings, names: &[&str], links: &[&str]) -> Network {
        let pair = |link: &&str| link.split_once('-').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a-b");
        let mut net = Network {
            hosts: BTreeMap::new(),
            links: links.iter().map(pair).collect(),
            settings,
            now: Time::from_millis(1_000),
            last: 0,
            mail: VecDeque::new(),
            held: Vec::new(),
            cut: BTreeSet::new(),
            rule: Box::new(|_| Fate::Deliver),
            log: Vec::new(),
            answers: BTreeMap::new(),
        };
        for name in names {
            let (stored, disk) = (Stored::default(), BTreeMap::new());
            let (calls, callers) = (BTreeMap::new(), BTreeMap::new());
            let (ups, downs) = (BTreeMap::new(), BTreeMap::new());
            let saving = VecDeque::new();
            let host = Host {
                member: member(name),
                saving,
                worker: None,
                frozen: false,
                disk,
                stored,
                calls,
                callers,
                ups,
                downs,
            };
            net.hosts.insert((*name).to_owned(), host);
        }
        for name in names {
            net.start(name);
        }
        net
    }

    fn start(&mut self, name: &str) {
        let members: Vec<Member> = self.hosts.values().map(|host| host.member.clone()).collect();
        let settings = self.settings.clone();
        let host = self.hosts.get_mut(name).expect("a host");
        let stored = Stored { records: host.disk.values().cloned().collect(), ..host.stored.clone() };
        let (me, seed) = (host.member.clone(), host.member.node.as_str().bytes().map(u64::from).sum());
        let mut worker = Worker::new(Setup { member: me, directories: 0, peers: Vec::new(), settings, stored, seed });
        members.iter().for_each(|other| {
            worker.members.list(DirectoryId(0), other);
        });
        worker.stranger_due = Time(u64::MAX);
        host.worker = Some(worker);
        for (a, b) in self.links.clone() {
            for (here, there) in [(&a, &b), (&b, &a)] {
                let member = self.hosts[there].member.clone();
                if let Some(worker) = self.hosts.get_mut(here).and_then(|host| host.worker.as_mut()) {
                    worker.overlay.link(self.now, &member);
                    worker.overlay.pings_due(self.now, self.settings.link_ping);
                }
            }
        }
        self.step(name, Input::Started);
        self.worker_mut(name).put_off_own_election();
        self.settle();
    }

    pub(crate) fn worker(&self, name: &str) -> &Worker {
        self.hosts[name].worker.as_ref().expect("it lives")
    }

    pub(crate) fn worker_mut(&mut self, name: &str) -> &mut Worker {
        self.hosts.get_mut(name).and_then(|host| host.worker.as_mut()).expect("it lives")
    }

    pub(crate) fn with_jac(mut self, name: &str, jac: u64) -> Network {
        self.worker_mut(name).jac = Jac(jac);
        self
    }

    /// What happens to mail from now on, by its text.
    pub(crate) fn rule(&mut self, rule: impl Fn(&str) -> Fate + 'static) {
        self.rule = Box::new(rule);
    }

    /// Nothing goes wrong any more; what was held goes on.
    pub(crate) fn release(&mut self) {
        self.rule = Box::new(|_| Fate::Deliver);
        self.mail.extend(std::mem::take(&mut self.held));
        self.settle();
    }

    /// From now on these two don't reach each other.
    pub(crate) fn cut(&mut self, a: &str, b: &str) {
        self.cut.insert((a.to_owned(), b.to_owned()));
        self.cut.insert((b.to_owned(), a.to_owned()));
        self.end_streams(|from, to| (from, to) == (a, b) || (from, to) == (b, a));
        self.settle();
    }

    pub(crate) fn heal(&mut self) {
        self.cut.clear();
    }

    /// SIGKILL: its callers, callees and streams notice at once.
    pub(crate) fn kill(&mut self, name: &str) {
        let host = self.hosts.get_mut(name).expect("a host");
        host.worker = None;
        host.saving.clear();
        let (calls, callers) = (std::mem::take(&mut host.calls), std::mem::take(&mut host.callers));
        self.end_streams(|from, to| from == name || to == name);
        for (to, token) in calls.into_values() {
            self.post(&to, format!("{name} > {to} caller gone"), Input::CallerGone { token });
        }
        for caller in callers.into_values() {
            self.fail_caller(caller);
        }
        self.settle();
    }

    /// It does nothing, and nothing notices, until [`Network::thaw`].
    pub(crate) fn freeze(&mut self, name: &str) {
        self.hosts.get_mut(name).expect("a host").frozen = true;
    }

    pub(crate) fn thaw(&mut self, name: &str) {
        self.hosts.get_mut(name).expect("a host").frozen = false;
        let (mine, others) = std::mem::take(&mut self.held).into_iter().partition(|mail| mail.to == name);
        self.held = others;
        let mine: Vec<Mail> = mine;
        self.mail.extend(mine);
        self.settle();
    }

    /// It starts again, from its disk, in the next incarnation.
    pub(crate) fn restart(&mut self, name: &str) {
        let host = self.hosts.get_mut(name).expect("a host");
        assert!(host.worker.is_none(), "{name} lives");
        host.member.incarnation = host.member.incarnation.next();
        host.frozen = false;
        self.start(name);
    }

    /// `name` begins an election now.
    pub(crate) fn elect(&mut self, name: &str) {
        let start_at = self.now;
        self.worker_mut(name).role = Role::Seeking(Seeking { start_at, cause: "the test says so" });
        self.step(name, Input::TimerFired);
        self.settle();
    }

    /// A client calls; gives the token of its call.
    pub(crate) fn ask(&mut self, name: &str, request: Request) -> ReplyToken {
        let token = self.fresh_token();
        self.hosts.get_mut(name).expect("a host").callers.insert(token, Caller::Client);
        self.post(name, format!("client > {name} {}", render::request(&request)), Input::Called { token, request });
        self.settle();
        token
    }

    pub(crate) fn submit(&mut self, name: &str, id: &str) -> ReplyToken {
        self.ask(name, Request::SubmitJob(submission(id)))
    }

    /// How `name` shows a job to clients.
    pub(crate) fn shown(&self, name: &str, id: &str) -> String {
        let view = self.worker(name).ledger.view(&job(id));
        view.map_or_else(|| format!("{:?}", self.worker(name).show(&query(id), None)), |view| render::job(&view))
    }

    pub(crate) fn answered(&self, token: ReplyToken) -> Option<&str> {
        self.answers.get(&token).map(String::as_str)
    }

    pub(crate) fn is_up(&self, name: &str) -> bool {
        self.hosts[name].worker.is_some()
    }

    /// These two meet again: one pings the other, as it would a stranger.
    pub(crate) fn meet(&mut self, from: &str, to: &str) {
        let status = self.worker(from).status();
        self.ask(to, Request::Ping(Some(status)));
        self.settle();
    }

    /// The leadership that each living host follows, `-` for none.
    pub(crate) fn leaders(&self) -> String {
        let whom = |(name, host): (&String, &Host)| {
            let leader = host.worker.as_ref().and_then(Worker::leader_now).map(|leader| render::of(&leader.leadership));
            host.worker.is_some().then(|| format!("{name}: {}", leader.unwrap_or_else(|| "-".to_owned())))
        };
        self.hosts.iter().filter_map(whom).collect::<Vec<_>>().join(", ")
    }

    /// The leadership that all living hosts follow, if they agree.
    pub(crate) fn one_leader(&self) -> Option<Leadership> {
        let mut all = self.hosts.values().filter_map(|host| host.worker.as_ref());
        let whom = |worker: &Worker| worker.leader_now().map(|leader| leader.leadership.clone());
        let first = whom(all.next()?)?;
        all.all(|worker| whom(worker).as_ref() == Some(&first)).then_some(first)
    }

    /// The lines of the log that contain this.
    pub(crate) fn logged(&self, text: &str) -> Vec<&str> {
        self.log.iter().map(String::as_str).filter(|line| line.contains(text)).collect()
    }

    /// Time goes by, from deadline to deadline.
    pub(crate) fn pass(&mut self, span: Duration) {
        self.until(span, |_| false);
    }

    /// Time goes by until this holds; says whether it came to hold within `span`.
    pub(crate) fn until(&mut self, span: Duration, holds: impl Fn(&Network) -> bool) -> bool {
        let end = self.now + span;
        self.settle();
        loop {
            if holds(self) {
                return true;
            }
            let deadline = |host: &Host| host.worker.as_ref().filter(|_| !host.frozen).and_then(Worker::next_deadline);
            let next = self.hosts.iter().filter_map(|(name, host)| deadline(host).map(|at| (at, name.clone()))).min();
            let Some((at, name)) = next.filter(|(at, _)| *at <= end) else {
                self.now = end;
                return false;
            };
            self.now = self.now.max(at);
            self.step(&name, Input::TimerFired);
            self.settle();
        }
    }

    /// Delivers all that is on its way.
    pub(crate) fn settle(&mut self) {
        for _ in 0..AT_ONCE {
            let Some(mail) = self.mail.pop_front() else { return };
            let Some(host) = self.hosts.get(&mail.to) else { continue };
            if host.frozen {
                self.held.push(mail);
            } else if host.worker.is_some() && host.member.incarnation == mail.life {
                self.step(&mail.to.clone(), mail.input);
            }
        }
        let last = self.log[self.log.len().saturating_sub(20)..].join("\n    ");
        panic!("the cluster talks without end:\n    {last}");
    }

    fn fresh_token(&mut self) -> ReplyToken {
        self.last += 1;
        ReplyToken(self.last)
    }

    /// Sends an input to a host, by the rule.
    fn post(&mut self, to: &str, text: String, input: Input) -> Fate {
        let Some(host) = self.hosts.get(to) else { return Fate::Break };
        let fate = (self.rule)(&text);
        let mail = Mail { to: to.to_owned(), life: host.member.incarnation, input, text: text.clone() };
        let marked = if fate == Fate::Deliver { text } else { format!("{text} [{fate:?}]") };
        self.log.push(marked);
        match fate {
            Fate::Deliver => self.mail.push_back(mail),
            Fate::Hold => self.held.push(mail),
            Fate::Drop | Fate::Break => {}
        }
        fate
    }

    fn step(&mut self, name: &str, input: Input) {
        if let Input::Saved { save } = &input {
            self.write(name, *save);
        }
        let now = Now { time: self.now, wall: Wall(self.now.0 / 1_000) };
        let mut out = Effects::default();
        let Some(worker) = self.hosts.get_mut(name).and_then(|host| host.worker.as_mut()) else { return };
        worker.step(now, input, &mut out);
        self.perform(name, out);
    }

    pub(crate) fn perform(&mut self, name: &str, out: Effects) {
        let notices = render::effects(&Effects { notices: out.notices, ..Effects::default() });
        self.log.extend(notices.into_iter().map(|line| format!("{name}: {line}")));
        for save in out.saves {
            let (text, id) = (format!("{name} saves {}", save.id), save.id);
            self.hosts.get_mut(name).expect("a host").saving.push_back(save);
            self.post(name, text, Input::Saved { save: id });
        }
        for (token, result) in out.replies {
            self.reply(name, token, result);
        }
        for call in out.abandoned {
            if let Some((to, token)) = self.hosts.get_mut(name).and_then(|host| host.calls.remove(&call)) {
                self.post(&to, format!("{name} > {to} caller gone"), Input::CallerGone { token });
            }
        }
        for call in out.calls {
            let to = call.to.node.as_ref().map_or("", |node| node.as_str()).to_owned();
            self.make_call(name, &to, call.id, call.request);
        }
        out.streams.into_iter().for_each(|effect| self.on_stream(name, effect));
        for effect in out.computations {
            match effect {
                ComputeEffect::Start(id, slice) => self.compute(name, id, &slice),
                ComputeEffect::Cancel(id) => self.cancel(name, id),
            }
        }
    }

    /// The saves up to here are on the disk.
    fn write(&mut self, name: &str, up_to: SaveId) {
        let host = self.hosts.get_mut(name).expect("a host");
        while let Some(save) = host.saving.pop_front_if(|save| save.id <= up_to) {
            for stamped in save.records {
                if let Record::Job(job) = &stamped.record
                    && job.ended.is_some()
                {
                    host.disk.remove(&format!("{:?}", RecordName::Payload(job.key.clone())));
                }
                host.disk.insert(record_name(&stamped.record), stamped);
            }
            host.stored.past = save.past.unwrap_or_else(|| std::mem::take(&mut host.stored.past));
            (host.stored.position, host.stored.term, host.stored.jac) = (save.position, save.term, save.jac);
        }
    }

    fn reply(
        &mut self,
        name: &str,
        token: ReplyToken,
        result: Result<crate::protocol::message::Response, crate::protocol::message::Refusal>,
    ) {
        let text = render::answer(&result);
        match self.hosts.get_mut(name).and_then(|host| host.callers.remove(&token)) {
            Some(Caller::Client) => {
                self.log.push(format!("{name} > client {text}"));
                let before = self.answers.insert(token, text);
                assert_eq!(before, None, "a caller is answered once");
            }
            Some(Caller::Host(caller, life, call)) => {
                let result = result.map_err(CallFailure::Refused);
                if self.hosts[&caller].member.incarnation == life && self.hosts[&caller].calls.contains_key(&call) {
                    let fate = self.post(
                        &caller,
                        format!("{name} > {caller} answer: {text}"),
                        Input::Answered { call, result },
                    );
                    if fate == Fate::Deliver {
                        self.hosts.get_mut(&caller).and_then(|host| host.calls.remove(&call));
                    }
                }
            }
            None => {}
        }
    }

    fn make_call(&mut self, name: &str, to: &str, call: CallId, request: Request) {
        let text = format!("{name} > {to} {}", render::request(&request));
        let token = self.fresh_token();
        let life = self.hosts[name].member.incarnation;
        let reached = self.reaches(name, to);
        let fate = if reached { self.post(to, text, Input::Called { token, request }) } else { Fate::Break };
        if fate == Fate::Break {
            let result = Err(CallFailure::Unreachable("the test says so".to_owned()));
            self.post(name, format!("{to} can't be reached by {name}"), Input::Answered { call, result });
            return;
        }
        self.hosts.get_mut(name).expect("a host").calls.insert(call, (to.to_owned(), token));
        self.hosts.get_mut(to).expect("a host").callers.insert(token, Caller::Host(name.to_owned(), life, call));
    }

    fn reaches(&self, from: &str, to: &str) -> bool {
        let lives = self.hosts.get(to).is_some_and(|host| host.worker.is_some());
        lives && !self.cut.contains(&(from.to_owned(), to.to_owned()))
    }

    fn fail_caller(&mut self, caller: Caller) {
        if let Caller::Host(name, life, call) = caller
            && self.hosts[&name].member.incarnation == life
        {
            self.hosts.get_mut(&name).and_then(|host| host.calls.remove(&call));
            let result = Err(CallFailure::Unreachable("the callee died".to_owned()));
            self.post(&name, format!("a call of {name} breaks"), Input::Answered { call, result });
        }
    }

    fn on_stream(&mut self, name: &str, effect: StreamEffect) {
        match effect {
            StreamEffect::Open { stream, to } => {
                let to = to.node.as_str().to_owned();
                if !self.reaches(name, &to) {
                    self.post(name, format!("{to} > {name} stream ends"), Input::LeaderEnded { stream });
                    return;
                }
                let there = StreamId(self.fresh_token().0 + 1_000_000);
                self.hosts.get_mut(name).expect("a host").ups.insert(stream, (to.clone(), there));
                self.hosts.get_mut(&to).expect("a host").downs.insert(there, (name.to_owned(), stream));
                self.post(&to, format!("{name} > {to} opens"), Input::FollowerOpened { stream: there });
            }
            StreamEffect::Up(stream, frame) => {
                let Some((to, there)) = self.hosts[name].ups.get(&stream).cloned() else { return };
                let text = format!("{name} > {to} up {}", render::up(&frame));
                if self.post(&to, text, Input::FollowerSent { stream: there, frame }) == Fate::Break {
                    self.end_streams(|from, at| (from, at) == (name, to.as_str()));
                }
            }
            StreamEffect::Down(stream, frame) => {
                let Some((to, there)) = self.hosts[name].downs.get(&stream).cloned() else { return };
                let text = format!("{name} > {to} down {}", render::down(&frame));
                if self.post(&to, text, Input::LeaderSent { stream: there, frame }) == Fate::Break {
                    self.end_streams(|from, at| (from, at) == (to.as_str(), name));
                }
            }
            StreamEffect::CloseUp(stream) => {
                let Some((to, there)) = self.hosts.get_mut(name).and_then(|host| host.ups.remove(&stream)) else {
                    return;
                };
                self.hosts.get_mut(&to).and_then(|host| host.downs.remove(&there));
                self.post(&to, format!("{name} > {to} closes"), Input::FollowerEnded { stream: there });
            }
            StreamEffect::CloseDown(stream) => {
                let Some((to, there)) = self.hosts.get_mut(name).and_then(|host| host.downs.remove(&stream)) else {
                    return;
                };
                self.hosts.get_mut(&to).and_then(|host| host.ups.remove(&there));
                self.post(&to, format!("{name} > {to} stream ends"), Input::LeaderEnded { stream: there });
            }
        }
    }

    /// Breaks streams, by follower and leader.
    pub(crate) fn end_streams(&mut self, broken: impl Fn(&str, &str) -> bool) {
        let mut ended = Vec::new();
        for (name, host) in &mut self.hosts {
            let gone = host.ups.extract_if(.., |_, (to, _)| broken(name, to));
            ended.extend(gone.map(|(stream, (to, there))| (name.clone(), stream, to, there)));
        }
        for (follower, stream, leader, there) in ended {
            self.hosts.get_mut(&leader).and_then(|host| host.downs.remove(&there));
            self.post(&leader, format!("{follower} > {leader} stream breaks"), Input::FollowerEnded { stream: there });
            self.post(&follower, format!("{leader} > {follower} stream breaks"), Input::LeaderEnded { stream });
        }
    }

    fn compute(&mut self, name: &str, compute: ComputeId, slice: &Payload) {
        let value = slice.run(&|| false).ok();
        let took = Duration::from_millis(1);
        self.post(name, format!("{name} computes"), Input::Computed { compute, value, took });
    }

    fn cancel(&mut self, name: &str, cancelled: ComputeId) {
        let of_it = |mail: &Mail| {
            mail.to == name && matches!(&mail.input, Input::Computed { compute, .. } if *compute == cancelled)
        };
        let before = self.held.len();
        self.held.retain(|mail| !of_it(mail));
        if self.held.len() < before {
            let (compute, value, took) = (cancelled, None, Duration::ZERO);
            self.post(name, format!("{name} stops"), Input::Computed { compute, value, took });
        }
    }
}

fn record_name(record: &Record) -> String {
    let name = match record {
        Record::Job(job) => RecordName::Job(job.key.clone()),
        Record::Payload(key, _) => RecordName::Payload(key.clone()),
        Record::Task(key, _) => RecordName::Task(key.clone()),
    };
    format!("{name:?}")
}
