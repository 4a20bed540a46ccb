//! Who gets which slot of a folder that several share.

use std::collections::BTreeSet;

use super::*;
use crate::journal::tests::{NOON, wanted};

fn take(folder: &Path, given: Option<&str>, host: &str) -> Result<Slot, CannotOpen> {
    let mut slot = Slot::take(&wanted(folder, given, host), NOON)?;
    slot.start(Incarnation(1)).expect("there is space");
    Ok(slot)
}

fn taken(folder: &Path, given: Option<&str>, host: &str) -> (String, Slot) {
    let slot = take(folder, given, host).expect("a slot");
    let number = slot.path.file_name().expect("a name").to_string_lossy().into_owned();
    (format!("{number} {}", slot.identity.node), slot)
}

#[test]
fn replicas_that_share_a_folder_have_a_slot_each_and_find_it_again_in_any_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let first: Vec<(String, Slot)> = ["x", "y", "z"].map(|host| taken(path, None, host)).into();
    assert_eq!(first.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), ["slot-0 x", "slot-1 y", "slot-2 z"]);
    drop(first);
    let again: Vec<(String, Slot)> = ["z", "x", "y"].map(|host| taken(path, None, host)).into();
    assert_eq!(again.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), ["slot-2 z", "slot-0 x", "slot-1 y"]);
}

#[test]
fn a_container_made_anew_goes_on_as_the_one_that_it_replaces() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let (_, x) = taken(path, None, "x");
    drop(taken(path, None, "y"));
    let (what, _new) = taken(path, None, "new");
    assert_eq!(what, "slot-1 y");
    // Its host name is free again, but not its slot.
    let (what, _y) = taken(path, None, "y");
    assert_eq!(what, "slot-2 y-2", "two nodes of one id must never be");
    drop(x);
}

#[test]
fn a_given_id_takes_its_own_slot_or_a_fresh_one_and_never_another_s() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    drop(taken(path, Some("one"), "host"));
    let (what, two) = taken(path, Some("two"), "host");
    assert_eq!(what, "slot-1 two");
    let (what, _one) = taken(path, Some("one"), "host");
    assert_eq!(what, "slot-0 one");
    let refused = take(path, Some("two"), "host").expect_err("it lives");
    assert!(refused.is_passing());
    let slot = path.join("slot-1");
    assert_eq!(
        refused.to_string(),
        format!(
            "another process runs as two on {}; end it, or give this node another FLOODLINE_NODE_ID or FLOODLINE_DATA_DIR",
            slot.display()
        )
    );
    drop(two);
    assert_eq!(taken(path, Some("two"), "host").0, "slot-1 two");
}

#[test]
fn many_that_start_at_once_all_have_slots_and_ids_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let path = folder.path().to_owned();
        std::thread::spawn(move || {
            // As a node does: again, while another one chooses.
            let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
            loop {
                match take(&path, None, "host") {
                    Err(CannotOpen::Busy { .. }) if std::time::Instant::now() < until => std::thread::yield_now(),
                    slot => return slot.expect("a slot"),
                }
            }
        })
    };
    let threads: Vec<_> = (0..12).map(|_| start()).collect();
    let slots: Vec<Slot> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    let ids: BTreeSet<&str> = slots.iter().map(|slot| slot.identity.node.as_str()).collect();
    let paths: BTreeSet<&Path> = slots.iter().map(|slot| slot.path.as_path()).collect();
    assert_eq!((ids.len(), paths.len()), (12, 12), "{ids:?}");
}

#[test]
fn a_folder_without_a_slot_left_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let held: Vec<Slot> = (0..MOST).map(|_| take(folder.path(), None, "host").expect("a slot")).collect();
    for given in [None, Some("given")] {
        let refused = take(folder.path(), given, "host").expect_err("it is full");
        assert!(refused.to_string().starts_with("the data directory has 64 slots, which is the most"), "{refused}");
    }
    drop(held);
}

#[test]
fn a_folder_that_cannot_be_made_is_named_with_what_to_do() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let folder = file.path().join("below-a-file");
    let refused = take(&folder, None, "host").expect_err("a file is no folder");
    assert!(!refused.is_passing());
    let told = refused.to_string();
    assert!(told.starts_with(&format!("cannot make {}: ", folder.display())), "{told}");
    assert!(told.ends_with("mend that, or give another folder in FLOODLINE_DATA_DIR"), "{told}");
}

#[test]
fn a_newer_program_s_slot_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    drop(taken(path, None, "host"));
    fs::write(path.join("slot-0/node"), identity::newer()).expect("it is written");
    let refused = take(path, None, "host").expect_err("it is newer").to_string();
    assert!(refused.contains("node is of version 2, and this program knows 1 at most"), "{refused}");
    assert_eq!(fs::read_to_string(path.join("slot-0/node")).expect("it is there"), identity::newer());
}
