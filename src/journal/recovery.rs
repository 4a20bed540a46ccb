//! What becomes of a store at a start: it opens, or it is set aside and the node starts with an empty one.
//!
//! Owns that choice. Never deletes anything. Invariant: whatever the bytes of the file are, the node starts, and what
//! it then knows is what some save wrote, whole; only a refusal of the system, or a newer program's store, stops it.
//!
//! What a crash or a power cut leaves behind opens at the last whole transaction. Anything else that the checksums
//! find is corruption: a disk that lies, a copy that was cut short, a hand in the file.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::disk::{Disk, Flush};
use super::identity::Identity;
use super::slot::Slot;
use super::store::{Fault, Kept, Store};
use super::{CannotOpen, store};
use crate::protocol::Stored;
use crate::protocol::ids::Incarnation;
use crate::protocol::time::Wall;

/// Opens the store of a slot.
///
/// # Errors
/// [`CannotOpen`], never for what the file holds unless a newer program wrote it, or another node.
pub(super) fn open(slot: &Slot, flush: Flush, wall: Wall) -> Result<(Store, Kept), CannotOpen> {
    let (file, identity) = (slot.store(), &slot.identity);
    // Before that a store may be one whose making was cut off.
    let must_hold = identity.incarnation > Incarnation(0);
    let length = fs::metadata(&file).map_or(0, |metadata| metadata.len());
    if must_hold && length == 0 {
        tracing::error!(node = %identity.node, file = %file.display(), "{GONE}");
        if file.exists() {
            set_aside(&file, wall, "it is empty")?;
        }
    }
    let opened = match read(&file, flush) {
        Ok((store, None)) if length == 0 || !must_hold => return begin(store, &file, identity),
        Ok((_, None)) => Err("it holds nothing".to_owned()),
        Ok((store, Some(kept))) => Ok((store, kept)),
        Err(Fault::Corrupt(why)) => Err(why),
        Err(Fault::Newer(version)) => return Err(CannotOpen::Newer { file, version }),
        Err(Fault::Io(cause)) => return Err(CannotOpen::io("open", &file, cause)),
    };
    match opened {
        Ok((_, kept)) if kept.node != identity.node => {
            Err(CannotOpen::OtherNode { file, stored: kept.node, expected: identity.node.clone() })
        }
        Ok(opened) => Ok(opened),
        Err(why) => {
            set_aside(&file, wall, &why)?;
            if must_hold {
                tracing::error!(node = %identity.node, "{LOST}");
            }
            let (store, _) = read(&file, flush).map_err(|fault| refused("make", &file, fault))?;
            begin(store, &file, identity)
        }
    }
}

const GONE: &str = "the journal of this node is gone: it starts with its id and without its jobs and its JAC; other \
                    workers bring back what they hold, what it held alone is lost unless the file is put back";
const LOST: &str = "this node starts with its id and without the jobs and the JAC of that journal; other workers \
                    bring back what they hold, what it held alone is lost unless somebody mends the file";

/// Makes an empty store.
fn begin(store: Store, file: &Path, identity: &Identity) -> Result<(Store, Kept), CannotOpen> {
    store.begin(&identity.node).map_err(|fault| refused("make", file, fault))?;
    let kept = Kept { node: identity.node.clone(), incarnation: Incarnation(0), stored: Stored::default() };
    Ok((store, kept))
}

/// Whose store a file is, as far as it says so.
pub(super) fn owner(file: &Path, flush: Flush) -> Option<Identity> {
    if fs::metadata(file).map_or(0, |metadata| metadata.len()) == 0 {
        return None;
    }
    match read(file, flush) {
        Ok((_, Some(Kept { node, incarnation, .. }))) => Some(Identity { node, incarnation }),
        Ok((_, None)) | Err(_) => None,
    }
}

/// Opens a file and loads all of it.
fn read(file: &Path, flush: Flush) -> Result<(Store, Option<Kept>), Fault> {
    let open = || {
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(file);
        let name = file.display().to_string();
        let torn = move || {
            tracing::warn!(
                file = name,
                "the journal's last write was not whole; it stands at the one before, which is no loss unless the disk lied"
            );
        };
        let store = Store::open(Disk::new(opened.map_err(Fault::Io)?, flush), torn)?;
        let kept = store.load()?;
        Ok((store, kept))
    };
    // The store has checked every page by then, so that nothing should be left that it could stumble over; if it does
    // so nevertheless, that must not happen again at each start.
    catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| Err(Fault::Corrupt("reading it panicked".to_owned())))
}

/// Gives a file another name, under which nothing looks for it.
///
/// # Errors
/// When the system refuses.
pub(super) fn set_aside(file: &Path, wall: Wall, why: &str) -> Result<(), CannotOpen> {
    let at = |time: u64| {
        let mut name = file.file_name().map_or_else(OsString::new, OsString::from);
        name.push(format!(".corrupt-{time}"));
        file.with_file_name(name)
    };
    // A rename would take the place of another one's file.
    let free = (wall.0..u64::MAX).map(at).find(|aside| !aside.exists());
    let aside = free.unwrap_or_else(|| at(u64::MAX));
    fs::rename(file, &aside).map_err(|cause| CannotOpen::io("set aside", file, cause))?;
    tracing::error!(
        file = %file.display(), set_aside_as = %aside.display(), why,
        "a file of the journal is corrupt; it is set aside, not deleted"
    );
    Ok(())
}

fn refused(what: &'static str, file: &Path, fault: Fault) -> CannotOpen {
    let cause = match fault {
        Fault::Io(cause) => cause,
        Fault::Corrupt(why) => io::Error::other(why),
        Fault::Newer(version) => io::Error::other(format!("it is of version {version}, beyond {}", store::SCHEMA)),
    };
    CannotOpen::io(what, file, cause)
}

#[cfg(test)]
mod tests;
