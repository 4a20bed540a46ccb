//! One worker, its disk, and what it has open to others.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use floodline::protocol::effects::Save;
use floodline::protocol::ids::{
    Address, CallId, Identity, Incarnation, Jac, Member, NodeId, ReplyToken, SaveId, StreamId,
};
use floodline::protocol::{Rotation, Settings, Setup, Worker};

use crate::bounds::Bounds;
use crate::disk::Disk;

/// The place of a worker among all.
pub(crate) type At = usize;

/// Who waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller {
    Host(At, Incarnation, CallId),
    Client(usize),
}

/// One worker's place: a process at most, and a disk.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) worker: Option<Worker>,
    pub(crate) member: Member,
    /// It died without a sign: peers find their connections open and get no answer.
    pub(crate) unnoticed: bool,
    /// The JAC that it told last.
    pub(crate) told_jac: Option<Jac>,
    pub(crate) disk: Disk,
    /// On their way to the disk, oldest first.
    pub(crate) saving: VecDeque<Save>,
    /// Up to which save its disk has lied.
    pub(crate) lied: Option<SaveId>,
    pub(crate) calls: BTreeMap<CallId, (At, ReplyToken)>,
    pub(crate) callers: BTreeMap<ReplyToken, Caller>,
    /// Its stream as a follower: to whom, and what it is called there.
    pub(crate) ups: BTreeMap<StreamId, (At, StreamId)>,
    /// Its streams as a leader.
    pub(crate) downs: BTreeMap<StreamId, (At, StreamId)>,
}

impl Host {
    pub(crate) fn new(at: At) -> Host {
        let address = |port| Address::new(&format!("{}:{port}", name(at))).expect("a good address");
        let member = Member {
            node: NodeId::new(&name(at)).expect("a good name"),
            incarnation: Incarnation(0),
            address: address(7400),
            http: address(8080),
            version: Arc::from("1"),
            concurrency: 1,
        };
        Host {
            worker: None,
            member,
            unnoticed: false,
            told_jac: None,
            disk: Disk::default(),
            saving: VecDeque::new(),
            lied: None,
            calls: BTreeMap::new(),
            callers: BTreeMap::new(),
            ups: BTreeMap::new(),
            downs: BTreeMap::new(),
        }
    }

    /// A new process, from what the disk holds, which knows the others' addresses.
    pub(crate) fn start(&mut self, bounds: &Bounds, peers: Vec<Address>) {
        self.member.incarnation = self.member.incarnation.next();
        (self.unnoticed, self.told_jac) = (false, None);
        let rotation = if bounds.hands_over { Rotation::Handover } else { Rotation::Drain };
        let (max_jobs_per_term, min_members) = (bounds.cap, bounds.min_members);
        let settings =
            Settings { max_jobs_per_term, rotation, min_members, tasks_per_worker: 1, ..Settings::default() };
        let seed = self.member.address.as_str().bytes().map(u64::from).sum();
        let (member, stored) = (self.member.clone(), self.disk.stored());
        self.worker = Some(Worker::new(Setup { member, directories: 0, peers, settings, stored, seed }));
    }

    pub(crate) fn is_up(&self) -> bool {
        self.worker.is_some()
    }

    pub(crate) fn process(&self) -> Identity {
        self.member.identity()
    }
}

pub(crate) fn name(at: At) -> String {
    format!("n{}", at + 1)
}

/// Something shared between worlds until one of them changes it, with the hash of its text once it is known.
#[derive(Clone, Debug)]
pub(crate) struct Shared<T> {
    value: Arc<T>,
    hash: Option<u64>,
}

impl<T: Clone + fmt::Debug> Shared<T> {
    pub(crate) fn new(value: T) -> Shared<T> {
        Shared { value: Arc::new(value), hash: None }
    }

    pub(crate) fn change(&mut self) -> &mut T {
        self.hash = None;
        Arc::make_mut(&mut self.value)
    }

    pub(crate) fn hash(&mut self) -> u64 {
        *self.hash.get_or_insert_with(|| crate::print::hash(&self.value))
    }
}

impl<T> std::ops::Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
