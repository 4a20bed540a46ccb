//! Files that are torn, cut, flipped, empty, gone, of somebody else or of a newer program.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use redb::StorageBackend;
use tokio::sync::mpsc;

use super::*;
use crate::journal::tests::{NOON, after, copied, keep, killed, node, saves, wanted};
use crate::journal::{Journal, Opened};
use crate::protocol::dice::Dice;
use crate::protocol::effects::Save;

/// A node that ended in order, and one that was killed.
struct Ended {
    folders: [tempfile::TempDir; 2],
    saves: Vec<Save>,
}

impl Ended {
    fn new(seed: u64) -> Ended {
        let saves = saves(seed, 24);
        let [closed, open] = [(), ()].map(|()| tempfile::tempdir().expect("a folder"));
        keep(closed.path(), &saves);
        // Several transactions, so that there is one before the last.
        keep(open.path(), &saves[..12]);
        let killed = killed(open.path(), &saves[12..]);
        Ended { folders: [closed, killed], saves }
    }
}

fn open(folder: &Path) -> Result<Opened, CannotOpen> {
    let (queue, _inbox) = mpsc::channel(1);
    Journal::open(&wanted(folder, None, "a"), Wall(NOON.0 + 1_000), queue)
}

fn store(folder: &Path) -> PathBuf {
    folder.join("slot-0/journal.redb")
}

/// What is set aside in the first slot.
fn aside(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("slot-0")).expect("a slot");
    let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(".corrupt-")).collect()
}

/// It starts, as itself, with what some save wrote or with nothing, and then the file is set aside. Says which.
fn starts(folder: &Path, saves: &[Save], what: &str) -> bool {
    let opened = open(folder).unwrap_or_else(|cannot| panic!("{what}: {cannot}"));
    assert_eq!(opened.node, node("a"), "{what}");
    assert!(opened.incarnation > Incarnation(NOON.0), "{what}");
    let is_kept = (1..=saves.len()).rev().any(|many| opened.stored == after(&saves[..many]));
    let is_fresh = opened.stored == Stored::default();
    let aside = aside(folder);
    let is_aside = aside.iter().any(|name| name.starts_with("journal.redb"));
    assert!(is_kept != is_fresh && is_fresh == is_aside, "{what}: kept {is_kept}, fresh {is_fresh}, aside {aside:?}");
    opened.journal.end();
    is_kept
}

#[test]
fn whatever_bits_are_flipped_the_node_starts_with_what_a_save_wrote_or_sets_the_file_aside() {
    let ended = Ended::new(1);
    let mut dice = Dice::new(1);
    let mut kept = 0;
    for round in 0..240_u64 {
        let folder = copied(ended.folders[(round % 2) as usize].path());
        let file = File::options().read(true).write(true).open(store(folder.path())).expect("a store");
        let length = file.metadata().expect("a length").len();
        // The head and the end, where the store says where everything is, as often as all the rest.
        let at = match round % 3 {
            0 => dice.below(8_192),
            1 => dice.below(length),
            _ => length - 1 - dice.below(65_536),
        };
        let bytes = 1 + dice.below(64) as usize;
        let mut flipped = vec![0; bytes.min((length - at) as usize)];
        file.read_exact_at(&mut flipped, at).expect("bytes");
        flipped.iter_mut().for_each(|byte| *byte ^= 1 << dice.below(8));
        file.write_all_at(&flipped, at).expect("bytes");
        kept += u32::from(starts(folder.path(), &ended.saves, &format!("{} bytes at {at} of {length}", flipped.len())));
    }
    // How much of the file is in use depends on how the saves fell into transactions.
    assert!((1..240).contains(&kept), "both must happen: {kept} of 240 kept");
}

#[test]
fn wherever_the_file_is_cut_or_zeroed_the_node_starts() {
    let ended = Ended::new(2);
    let mut dice = Dice::new(2);
    for round in 0..80_u64 {
        let folder = copied(ended.folders[(round % 2) as usize].path());
        let file = File::options().write(true).open(store(folder.path())).expect("a store");
        let length = file.metadata().expect("a length").len();
        let at = if round % 4 < 2 { dice.below(length) } else { dice.below(16_384).min(length) };
        file.set_len(at).expect("it is cut");
        if round % 8 > 3 {
            // As a power cut leaves blocks that were never written.
            file.set_len(length).expect("it grows again");
        }
        starts(folder.path(), &ended.saves, &format!("cut at {at} of {length}, round {round}"));
    }
}

/// What a store did to its file.
#[derive(Clone, Debug)]
enum Did {
    Wrote(u64, Vec<u8>),
    SetLength(u64),
    Flushed,
    /// So many saves were answered.
    Answered(usize),
}

/// A disk that remembers what was done to it.
#[derive(Debug)]
struct Recorded(Disk, Arc<Mutex<Vec<Did>>>);

impl Recorded {
    fn did(&self, what: Did) {
        self.1.lock().expect("no panic").push(what);
    }
}

impl StorageBackend for Recorded {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.did(Did::SetLength(len));
        self.0.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.did(Did::Flushed);
        self.0.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.did(Did::Wrote(offset, data.to_vec()));
        self.0.write(offset, data)
    }
}

/// Everything that is done to a file from its making on, a transaction for each save.
fn recorded(saves: &[Save]) -> Vec<Did> {
    let file = tempfile::tempfile().expect("a file");
    let did = Arc::new(Mutex::new(Vec::new()));
    let store = Store::open(Recorded(Disk::new(file, Flush::Always), Arc::clone(&did)), || ()).expect("a new store");
    store.begin(&node("a")).expect("there is space");
    for at in 0..saves.len() {
        store.write(&saves[at..=at]).expect("there is space");
        did.lock().expect("no panic").push(Did::Answered(at + 1));
    }
    // Not closed: the power goes before that.
    did.lock().expect("no panic").clone()
}

/// The file after these steps, of which those after the last flush came as far as chance has it.
fn after_a_power_cut(did: &[Did], dice: &mut Dice) -> Vec<u8> {
    let flushed = did.iter().rposition(|did| matches!(did, Did::Flushed)).unwrap_or(0);
    let mut file = Vec::new();
    for (at, did) in did.iter().enumerate() {
        let (is_whole, is_gone) = (at < flushed || dice.below(3) == 0, dice.below(2) == 0);
        match did {
            Did::SetLength(length) if is_whole || !is_gone => file.resize(*length as usize, 0),
            Did::Wrote(offset, data) if is_whole || !is_gone => {
                // A disk writes sectors of 512 bytes each whole.
                let most = if is_whole { data.len() } else { dice.below(data.len() as u64 + 1) as usize / 512 * 512 };
                let (start, end) = (*offset as usize, *offset as usize + most);
                file.resize(file.len().max(end), 0);
                file[start..end].copy_from_slice(&data[..most]);
            }
            Did::SetLength(_) | Did::Wrote(..) | Did::Flushed | Did::Answered(_) => {}
        }
    }
    file
}

#[test]
fn a_torn_tail_gives_the_last_whole_save() {
    let saves = saves(3, 24);
    let did = recorded(&saves);
    let begun = did.iter().position(|did| matches!(did, Did::Answered(1))).expect("a save");
    let template = tempfile::tempdir().expect("a folder");
    keep(template.path(), &saves);
    let (mut dice, mut torn) = (Dice::new(3), 0);
    for round in 0..300 {
        let cut = begun + 1 + dice.below((did.len() - begun) as u64) as usize;
        let answered = did[..cut].iter().rev().find_map(|did| match did {
            Did::Answered(many) => Some(*many),
            Did::Wrote(..) | Did::SetLength(_) | Did::Flushed => None,
        });
        let answered = answered.expect("begun");
        let folder = copied(template.path());
        fs::write(store(folder.path()), after_a_power_cut(&did[..cut], &mut dice)).expect("it is written");
        torn += u32::from(is_torn(folder.path()));
        let opened = open(folder.path()).expect("it opens");
        let is_next = answered < saves.len() && opened.stored == after(&saves[..=answered]);
        assert!(is_next || opened.stored == after(&saves[..answered]), "round {round}, cut at {cut}");
        assert_eq!(aside(folder.path()), Vec::<String>::new(), "round {round}, cut at {cut}");
        opened.journal.end();
    }
    assert!((10..290).contains(&torn), "both must happen: {torn} of 300 torn");
}

/// Whether opening a copy of its store says so.
fn is_torn(folder: &Path) -> bool {
    let copy = copied(folder);
    let torn = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&torn);
    let disk = Disk::new(File::options().read(true).write(true).open(store(copy.path())).expect("a store"), Flush::Os);
    Store::open(disk, move || told.store(true, Ordering::Relaxed)).expect("it opens");
    torn.load(Ordering::Relaxed)
}

#[test]
fn a_store_that_was_closed_or_killed_is_not_taken_for_torn() {
    for folder in &Ended::new(9).folders {
        assert!(!is_torn(folder.path()));
    }
}

#[test]
fn whichever_byte_of_the_head_is_flipped_the_node_starts() {
    let ended = Ended::new(10);
    let mut dice = Dice::new(10);
    for at in 0..320_u64 {
        let bit = dice.below(8);
        let folder = copied(ended.folders[(at % 2) as usize].path());
        let file = File::options().read(true).write(true).open(store(folder.path())).expect("a store");
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).expect("a byte");
        byte[0] ^= 1 << bit;
        file.write_all_at(&byte, at).expect("a byte");
        starts(folder.path(), &ended.saves, &format!("bit {bit} of byte {at}"));
    }
}

#[test]
fn an_empty_or_missing_file_is_told_and_never_taken_for_a_new_one() {
    let ended = Ended::new(4);
    let empty = copied(ended.folders[0].path());
    File::create(store(empty.path())).expect("it is cut");
    assert!(!starts(empty.path(), &ended.saves, "empty"));
    let gone = copied(ended.folders[0].path());
    fs::remove_file(store(gone.path())).expect("it is gone");
    let opened = open(gone.path()).expect("it opens");
    assert_eq!((opened.node, opened.stored), (node("a"), Stored::default()));
    opened.journal.end();
}

#[test]
fn a_node_that_set_its_journal_aside_keeps_what_it_saves_from_then_on() {
    let ended = Ended::new(5);
    let folder = ended.folders[0].path();
    fs::write(store(folder), vec![7; 100_000]).expect("it is overwritten");
    assert!(!starts(folder, &ended.saves, "overwritten"));
    keep(folder, &ended.saves);
    let opened = open(folder).expect("it opens");
    assert_eq!(opened.stored, after(&ended.saves));
    assert_eq!(aside(folder).len(), 1);
    opened.journal.end();
}

#[test]
fn a_corrupt_node_file_is_set_aside_and_the_store_says_whose_it_is() {
    let ended = Ended::new(6);
    for folder in ended.folders {
        let folder = folder.path();
        let file = folder.join("slot-0/node");
        let mut bytes = fs::read(&file).expect("a file");
        bytes[25] ^= 1;
        fs::write(&file, bytes).expect("it is written");
        let (queue, _inbox) = mpsc::channel(1);
        let opened = Journal::open(&wanted(folder, None, "another-host"), NOON, queue).expect("it opens");
        assert_eq!((opened.node, opened.stored), (node("a"), after(&ended.saves)));
        assert!(aside(folder).iter().all(|name| name.starts_with("node.corrupt-")));
        opened.journal.end();
    }
}

#[test]
fn with_both_files_corrupt_the_node_starts_as_its_host() {
    let ended = Ended::new(7);
    let folder = ended.folders[0].path();
    fs::write(store(folder), b"nothing of the kind").expect("it is overwritten");
    fs::write(folder.join("slot-0/node"), b"nothing of the kind").expect("it is overwritten");
    let opened = open(folder).expect("it opens");
    assert_eq!((opened.node, opened.stored), (node("a"), Stored::default()));
    assert_eq!(aside(folder).len(), 2);
    opened.journal.end();
}

#[test]
fn a_store_whose_making_was_cut_off_is_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("slot-0")).expect("a slot");
    fs::write(store(folder.path()), b"redb").expect("it is begun");
    let opened = open(folder.path()).expect("it opens");
    assert_eq!((opened.node, opened.stored), (node("a"), Stored::default()));
    opened.journal.end();
}

#[test]
fn the_store_of_another_node_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a", "b"] {
        let (queue, _inbox) = mpsc::channel(1);
        Journal::open(&wanted(folder.path(), Some(name), "host"), NOON, queue).expect("it opens").journal.end();
    }
    fs::copy(folder.path().join("slot-1/journal.redb"), store(folder.path())).expect("a mistake");
    let refused = open(folder.path()).expect_err("it is the store of b").to_string();
    assert!(
        refused.ends_with("is the journal of b, but it lies in the slot of a; move it back to where it was"),
        "{refused}"
    );
    assert!(aside(folder.path()).is_empty());
}

#[test]
fn a_newer_program_s_journal_is_refused_and_left_as_it_is() {
    let ended = Ended::new(8);
    let folder = ended.folders[0].path();
    let disk = Disk::new(File::options().read(true).write(true).open(store(folder)).expect("a store"), Flush::Os);
    Store::open(disk, || ()).and_then(|store| store.set_schema(store::SCHEMA + 1)).expect("it works");
    let refused = open(folder).expect_err("it is newer").to_string();
    assert!(refused.contains("journal.redb is of version 2, and this program knows 1 at most"), "{refused}");
    assert!(aside(folder).is_empty());
}
