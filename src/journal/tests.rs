//! The journal as its node has it: what it answers, what it keeps, and how it fails.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use redb::StorageBackend;
use tempfile::TempDir;

use super::disk::Disk;
use super::*;
use crate::protocol::dice::Dice;
use crate::protocol::ids::{Jac, JobKey, Number, Position, Term};
use crate::protocol::ledger::{Past, Stamped};
use crate::protocol::view::Stamp;
use crate::wire::tests::samples::Samples;

/// A time on the wall.
pub(super) const NOON: Wall = Wall(1_764_590_400_000);

pub(super) fn node(name: &str) -> NodeId {
    NodeId::new(name).expect("a good name")
}

pub(super) fn wanted(folder: &Path, given: Option<&str>, host: &str) -> Wanted {
    // Nothing here cuts the power.
    Wanted { folder: folder.to_owned(), flush: Flush::Os, node: given.map(node), host: node(host) }
}

fn open(folder: &Path) -> (Opened, mpsc::Receiver<Input>) {
    let (queue, inbox) = mpsc::channel(4);
    (Journal::open(&wanted(folder, None, "a"), NOON, queue).expect("it opens"), inbox)
}

/// Writes saves, one transaction or more, and closes in order.
pub(super) fn keep(folder: &Path, saves: &[Save]) {
    let (Opened { mut journal, .. }, inbox) = open(folder);
    journal.save(saves.to_vec()).expect("it is not behind");
    all_answered(inbox, saves);
    journal.end();
}

fn all_answered(mut inbox: mpsc::Receiver<Input>, saves: &[Save]) {
    let last = saves.last().expect("a save").id;
    while inbox.blocking_recv().expect("an answer") != (Input::Saved { save: last }) {}
}

/// What the journal of that folder holds.
fn held(folder: &Path) -> Stored {
    let (opened, _inbox) = open(folder);
    opened.journal.end();
    opened.stored
}

fn save(id: u64) -> Save {
    Save {
        id: SaveId(id),
        records: Vec::new(),
        removed: Vec::new(),
        position: Position { leadership: None, number: Number(id) },
        past: None,
        term: Term(id / 5),
        jac: Jac(id / 7),
        incarnation: Incarnation(1),
        remembered: Vec::new(),
        told: Vec::new(),
    }
}

/// Saves with records of all kinds, which change, go and come again.
pub(super) fn saves(seed: u64, many: u64) -> Vec<Save> {
    let (mut samples, mut dice) = (Samples::new(seed), Dice::new(seed));
    let mut known: Vec<Stamped> = Vec::new();
    let made = (1..=many).map(|id| {
        let mut records: Vec<Stamped> = (0..dice.below(12)).map(|_| samples.record()).collect();
        let again = known.iter().filter(|_| dice.below(9) == 0);
        let stamp = Stamp { number: Number(id), ..samples.stamp() };
        records.extend(again.map(|record| Stamped { stamp: stamp.clone(), ..record.clone() }));
        let gone = known.iter().rev().take(3).filter(|_| dice.below(3) == 0).map(|stamped| stamped.record.name());
        let removed = gone.filter(|name| records.iter().all(|record| record.record.name() != *name)).collect();
        known.extend(records.iter().cloned());
        let remembered = (0..dice.below(2)).map(|_| (samples.node(), Some(Jac(id)))).collect();
        let past = (id % 4 == 0).then(|| Past::from_parts((0..id).map(|at| (samples.leadership(), Number(at)))));
        let told = (0..dice.below(2)).map(|_| (samples.job_key(), true)).collect();
        Save { records, removed, remembered, told, past, ..save(id) }
    });
    made.collect()
}

/// What there is after these saves.
pub(super) fn after(saves: &[Save]) -> Stored {
    let mut records: BTreeMap<Vec<u8>, Stamped> = BTreeMap::new();
    let mut stored = Stored::default();
    for save in saves.iter().cloned() {
        records.extend(save.records.into_iter().map(|record| (key::of_record(&record), record)));
        save.removed.iter().for_each(|name| drop(records.remove(&key::of_name(name))));
        stored.past = save.past.unwrap_or(stored.past);
        stored.told.extend(save.told.into_iter().map(|(job, _)| job));
        stored.remembered.extend(save.remembered.into_iter().filter_map(|(node, jac)| Some((node, jac?))));
        (stored.position, stored.term, stored.jac) = (save.position, save.term, save.jac);
    }
    Stored { records: records.into_values().collect(), ..stored }
}

#[test]
fn every_save_is_answered_in_order_and_several_may_share_an_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    for on_disk in [false, true] {
        let (queue, mut inbox) = mpsc::channel(1);
        let mut journal = if on_disk {
            Journal::open(&wanted(folder.path(), None, "a"), NOON, queue).expect("it opens").journal
        } else {
            Journal::in_memory(queue).expect("there are threads")
        };
        journal.save((1..=500).map(save).collect()).expect("it is not behind");
        journal.save((501..=1_000).map(save).collect()).expect("it is not behind");
        let mut last = 0;
        while last < 1_000 {
            let Some(Input::Saved { save }) = inbox.blocking_recv() else { panic!("not a save") };
            assert!(save.0 > last);
            last = save.0;
        }
        journal.end();
        assert_eq!(inbox.blocking_recv(), None);
    }
}

#[test]
fn what_was_saved_is_there_at_the_next_start() {
    for seed in 0..8 {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(held(folder.path()), Stored::default());
        let saves = saves(seed, 30);
        let (first, rest) = saves.split_at(10);
        keep(folder.path(), first);
        assert_eq!(held(folder.path()), after(first), "seed {seed}");
        keep(folder.path(), rest);
        assert_eq!(held(folder.path()), after(&saves), "seed {seed}");
    }
}

#[test]
fn what_was_answered_outlives_a_kill() {
    for seed in 0..8 {
        let folder = tempfile::tempdir().expect("a folder");
        let saves = saves(seed, 30);
        let killed = killed(folder.path(), &saves);
        assert_eq!(held(killed.path()), after(&saves), "seed {seed}");
    }
}

/// The folder as a SIGKILL leaves it: what the operating system has of it, while it is still open.
pub(super) fn killed(folder: &Path, saves: &[Save]) -> TempDir {
    let (Opened { mut journal, .. }, inbox) = open(folder);
    journal.save(saves.to_vec()).expect("it is not behind");
    all_answered(inbox, saves);
    let copied = copied(folder);
    journal.end();
    copied
}

/// A copy of all its slots.
pub(super) fn copied(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for slot in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        let to = copy.path().join(slot.file_name());
        if slot.path().is_dir() {
            std::fs::create_dir(&to).expect("a slot");
            for file in std::fs::read_dir(slot.path()).expect("a slot").map(|entry| entry.expect("an entry")) {
                std::fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
            }
        }
    }
    copy
}

#[test]
fn each_start_has_a_higher_incarnation_also_when_the_clock_steps_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut last = Incarnation(0);
    for clock in [NOON, Wall(NOON.0 + 5), Wall(3), Wall(0), NOON] {
        let (queue, _inbox) = mpsc::channel(1);
        let opened = Journal::open(&wanted(folder.path(), None, "a"), clock, queue).expect("it opens");
        assert!(opened.incarnation > last && opened.incarnation >= Incarnation(clock.0));
        last = opened.incarnation;
        opened.journal.end();
    }
    assert_eq!(last, Incarnation(NOON.0 + 8));
}

/// A file that refuses from a moment on.
#[derive(Debug)]
struct Failing {
    disk: Disk,
    on: Arc<AtomicBool>,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Full,
    NoFlush,
}

impl Failing {
    fn refuse(&self, how: How) -> io::Result<()> {
        let os_error = match how {
            How::Full => rustix::io::Errno::NOSPC,
            How::NoFlush => rustix::io::Errno::IO,
        };
        let refuses = self.how == how && self.on.load(Ordering::Acquire);
        if refuses { Err(os_error.into()) } else { Ok(()) }
    }
}

impl StorageBackend for Failing {
    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.refuse(How::Full)?;
        self.disk.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.refuse(How::NoFlush)?;
        self.disk.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.refuse(How::Full)?;
        self.disk.write(offset, data)
    }
}

#[test]
fn a_disk_that_fails_is_told_at_once_and_nothing_more_is_reported_as_saved() {
    for (how, cause) in [(How::Full, "No space left on device"), (How::NoFlush, "Input/output error")] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("journal.redb");
        let on = Arc::new(AtomicBool::new(false));
        let disk = Disk::new(File::create_new(&file).and_then(|_| reopened(&file)).expect("a file"), Flush::Always);
        let store = Store::open(Failing { disk, on: Arc::clone(&on), how }, || ()).expect("a new store");
        store.begin(&node("a")).expect("it works yet");
        let (queue, mut inbox) = mpsc::channel(4);
        let medium = Medium::Disk { store, file: file.clone(), _slot: None };
        let mut journal = Journal::start(medium, queue).expect("there are threads");
        let saves = saves(1, 20);
        journal.save(saves[..10].to_vec()).expect("it is not behind");
        while inbox.blocking_recv() != Some(Input::Saved { save: SaveId(10) }) {}

        on.store(true, Ordering::Release);
        journal.save(vec![saves[10].clone()]).expect("nobody knows yet");
        let waiting = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let failed = waiting.block_on(journal.failed());
        let told = failed.to_string();
        assert!(told.starts_with(&format!("cannot write {}: {cause}", file.display())), "{told}");
        // Mended or not: who failed once says nothing more.
        on.store(false, Ordering::Release);
        let refused = saves[11..].iter().find_map(|save| journal.save(vec![save.clone()]).err());
        journal.end();
        assert!(refused.is_none_or(|refused| refused == JournalFailed::Ended));
        assert_eq!(inbox.blocking_recv(), None, "nothing was saved after it");

        // What was answered is there; what failed may be.
        let disk = Disk::new(reopened(&file).expect("a file"), Flush::Os);
        let kept =
            Store::open(disk, || ()).expect("it opens").load().expect("it is whole").expect("it holds something");
        assert!([after(&saves[..10]), after(&saves[..11])].contains(&kept.stored), "{how:?}");
    }
}

fn reopened(file: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(file)
}

#[test]
fn after_a_failed_write_the_disk_takes_nothing_more_and_flushes_nothing() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let disk = Disk::new(File::open(file.path()).expect("a file"), Flush::Always);
    assert!(disk.sync_data().is_ok());
    assert!(disk.write(0, b"it is open for reading only").is_err());
    for refused in [disk.sync_data(), disk.set_len(0), disk.write(0, b"again")] {
        assert_eq!(refused.expect_err("it failed before").to_string(), "an earlier write failed");
    }
    assert_eq!(disk.len().expect("reading goes on"), 0);
}

#[test]
fn a_journal_that_is_too_many_saves_behind_has_failed() {
    let (queue, inbox) = mpsc::channel(1);
    let mut journal = Journal::in_memory(queue).expect("there are threads");
    // Nobody takes its answers, so that it stands still after the first two.
    let many = (1..=(BACKLOG + 3 * BATCH) as u64).map(save).collect();
    let failed = journal.save(many).expect_err("too many");
    assert!(matches!(failed, JournalFailed::Behind { saves, .. } if saves >= BACKLOG), "{failed}");
    drop(inbox);
    journal.end();
}

#[test]
fn a_journal_that_is_too_many_bytes_behind_has_failed() {
    let (queue, inbox) = mpsc::channel(1);
    let mut journal = Journal::in_memory(queue).expect("there are threads");
    let numbers: Arc<[i64]> = vec![1; BACKLOG_BYTES / 64].into();
    let mut samples = Samples::new(1);
    let key: JobKey = samples.job_key();
    let record = Record::Payload(key, Payload::Max(numbers));
    let large =
        |id| Save { records: vec![Stamped { stamp: Samples::new(2).stamp(), record: record.clone() }], ..save(id) };
    let taken = (1..=20).take_while(|id| journal.save(vec![large(*id)]).is_ok()).count();
    // An eighth of the bound each; the first two are written, and more if the thread is quick.
    assert!((7..=11).contains(&taken), "{taken}");
    drop(inbox);
    journal.end();
}
