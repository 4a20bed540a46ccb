//! A few workers on a network that delivers each thing at once and in order, with a clock that jumps to the next
//! deadline. Rules drop, hold or break what a situation wants to go wrong; hosts are killed, frozen and restarted.
//!
//! Owns time, mail and disks. Every piece of mail has a text, `from > to WHAT`, which rules and the log go by; what a
//! host does to itself reads `n1 saves 3` and `n1 computes`.

mod perform;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::protocol::effects::{Effects, Save};
use crate::protocol::ids::{CallId, Incarnation, Leadership, Member, ReplyToken, StreamId};
use crate::protocol::input::Input;
use crate::protocol::leadership::{Role, Seeking};
use crate::protocol::ledger::{RecordName, Stamped};
use crate::protocol::limits::Settings;
use crate::protocol::message::{DirectoryId, Request};
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
    /// What it is, in words.
    text: String,
    to: String,
    /// To which start of the host.
    life: Incarnation,
    input: Input,
}

#[derive(Debug)]
enum Caller {
    Host(String, Incarnation, CallId),
    /// A client, or somebody else who is none of the hosts.
    Outside(String),
}

/// One host: a process at most, and a disk.
struct Host {
    member: Member,
    worker: Option<Worker>,
    frozen: bool,
    disk: BTreeMap<RecordName, Stamped>,
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
    /// When each line of the log was written, and what it says to people, where that differs.
    pub(crate) notes: Vec<(Time, Option<String>)>,
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
            notes: Vec::new(),
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

    /// What was held and contains this goes on; the rule stays.
    pub(crate) fn release_only(&mut self, what: &str) {
        let (going, staying) = std::mem::take(&mut self.held).into_iter().partition(|mail| mail.text.contains(what));
        self.held = staying;
        let going: Vec<Mail> = going;
        self.mail.extend(going);
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

    /// What its disk held is lost.
    pub(crate) fn wipe(&mut self, name: &str) {
        let host = self.hosts.get_mut(name).expect("a host");
        (host.disk, host.stored) = (BTreeMap::new(), Stored::default());
    }

    /// The records on a disk, in the order of their changes.
    pub(crate) fn on_disk(&self, name: &str) -> String {
        let mut records: Vec<&Stamped> = self.hosts[name].disk.values().collect();
        records.sort_by_key(|stamped| stamped.stamp.number);
        records.into_iter().map(render::record).collect::<Vec<_>>().join(", ")
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
        self.worker_mut(name).role = Role::Seeking(Seeking { start_at, cause: "it is told to" });
        self.step(name, Input::TimerFired);
        self.settle();
    }

    /// A client calls; gives the token of its call.
    pub(crate) fn ask(&mut self, name: &str, request: Request) -> ReplyToken {
        self.ask_as("client", name, request)
    }

    /// Somebody calls who is none of the hosts.
    pub(crate) fn ask_as(&mut self, caller: &str, name: &str, request: Request) -> ReplyToken {
        let token = self.fresh_token();
        self.hosts.get_mut(name).expect("a host").callers.insert(token, Caller::Outside(caller.to_owned()));
        self.post(name, format!("{caller} > {name} {}", render::request(&request)), Input::Called { token, request });
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

    /// All hosts, up or not.
    pub(crate) fn names(&self) -> Vec<String> {
        self.hosts.keys().cloned().collect()
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

    fn write_down(&mut self, line: String, to_people: Option<String>) {
        self.log.push(line);
        self.notes.push((self.now, to_people));
    }

    fn fresh_token(&mut self) -> ReplyToken {
        self.last += 1;
        ReplyToken(self.last)
    }

    /// Sends an input to a host, by the rule.
    fn post(&mut self, to: &str, text: String, input: Input) -> Fate {
        let Some(host) = self.hosts.get(to) else { return Fate::Break };
        let fate = (self.rule)(&text);
        let marked = if fate == Fate::Deliver { text.clone() } else { format!("{text} [{fate:?}]") };
        let mail = Mail { text, to: to.to_owned(), life: host.member.incarnation, input };
        self.write_down(marked, None);
        match fate {
            Fate::Deliver => self.mail.push_back(mail),
            Fate::Hold => self.held.push(mail),
            Fate::Drop | Fate::Break => {}
        }
        fate
    }

    pub(crate) fn step(&mut self, name: &str, input: Input) {
        if let Input::Saved { save } = &input {
            self.write(name, *save);
        }
        let now = Now { time: self.now, wall: Wall(self.now.0 / 1_000) };
        let mut out = Effects::default();
        let Some(worker) = self.hosts.get_mut(name).and_then(|host| host.worker.as_mut()) else { return };
        worker.step(now, input, &mut out);
        self.perform(name, out);
    }
}
