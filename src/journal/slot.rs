//! Slots: several replicas share one folder, each has a slot of its own in it.
//!
//! Owns who gets which slot. Never looks into a store, but to learn whose it is when its slot does not say. Section 8
//! of the contract.
//!
//! ```text
//! DIR/slots.lock                     held while a slot is chosen
//! DIR/slot-0/lock                    held as long as the process lives
//! DIR/slot-0/node                    whose slot it is, and its incarnation
//! DIR/slot-0/journal.redb            the store
//! DIR/slot-0/journal.redb.corrupt-…  what could not be read, set aside
//! DIR/slot-1/…
//! ```
//!
//! A node that was given an id takes the slot of that id, else a fresh one. Without a given id it takes the slot of
//! its host name, else the first one that is free, and becomes the node whose slot that is: a container that was made
//! anew goes on as the one that it replaces. A fresh slot gets the host name, with a number if another slot has it.
//! The locks are the operating system's: they end with their process, however it ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::identity::{self, Identity, NoIdentity};
use super::recovery;
use super::{CannotOpen, Wanted};
use crate::protocol::ids::{Incarnation, NodeId};
use crate::protocol::time::Wall;

/// The most slots of a folder.
pub(super) const MOST: usize = 64;
/// The store's name in a slot.
const STORE: &str = "journal.redb";

/// A slot that this process has, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    path: PathBuf,
    /// Whose it is.
    pub(super) identity: Identity,
    #[expect(dead_code, reason = "held for its lock")]
    lock: File,
}

impl Slot {
    /// Takes one.
    ///
    /// # Errors
    /// [`CannotOpen`]; [`CannotOpen::is_passing`] tells whether to try again.
    pub(super) fn take(wanted: &Wanted, wall: Wall) -> Result<Slot, CannotOpen> {
        let folder = wanted.folder.as_path();
        fs::create_dir_all(folder).map_err(|cause| CannotOpen::io("make", folder, cause))?;
        let Some(_turn) = lock(&folder.join("slots.lock"))? else {
            return Err(CannotOpen::Busy { folder: folder.to_owned() });
        };
        let mut found = Vec::new();
        for number in 0..MOST {
            found.push(Found::at(slot_path(folder, number), wanted, wall)?);
        }
        match &wanted.node {
            Some(node) => given(found, node),
            None => any(found, &wanted.host),
        }
    }

    /// Its store.
    pub(super) fn store(&self) -> PathBuf {
        self.path.join(STORE)
    }

    /// Writes down that this is now that start of its node.
    pub(super) fn start(&mut self, incarnation: Incarnation) -> Result<(), CannotOpen> {
        self.identity.incarnation = incarnation;
        self.identity.write(&self.path).map_err(|cause| CannotOpen::io("write", &self.path.join(identity::FILE), cause))
    }
}

/// What there is where a slot may be.
#[derive(Debug)]
enum Found {
    /// Nothing, or a slot that nobody has ever finished to make.
    Blank { path: PathBuf },
    /// Nobody has it now.
    Free(Slot),
    /// A process has it; whose it is may be unreadable.
    Taken { path: PathBuf, node: Option<NodeId> },
}

impl Found {
    fn at(path: PathBuf, wanted: &Wanted, wall: Wall) -> Result<Found, CannotOpen> {
        if !path.is_dir() {
            return Ok(Found::Blank { path });
        }
        let Some(lock) = lock(&path.join("lock"))? else {
            let node = Identity::read(&path).ok().map(|identity| identity.node);
            return Ok(Found::Taken { path, node });
        };
        let is_corrupt = match Identity::read(&path) {
            Ok(identity) => return Ok(Found::Free(Slot { path, identity, lock })),
            Err(NoIdentity::Newer(version)) => {
                return Err(CannotOpen::Newer { file: path.join(identity::FILE), version });
            }
            Err(NoIdentity::Io(cause)) => return Err(CannotOpen::io("read", &path.join(identity::FILE), cause)),
            Err(NoIdentity::Missing) => false,
            Err(NoIdentity::Corrupt) => true,
        };
        if is_corrupt {
            recovery::set_aside(&path.join(identity::FILE), wall, "its check does not match")?;
        }
        let Some(mut identity) = recovery::owner(&path.join(STORE), wanted.flush) else {
            return Ok(Found::Blank { path });
        };
        // Not 0, which would say that the store may be one that was never begun.
        identity.incarnation = identity.incarnation.max(Incarnation(1));
        let mut slot = Slot { path, identity, lock };
        slot.start(slot.identity.incarnation)?;
        Ok(Found::Free(slot))
    }

    fn node(&self) -> Option<&NodeId> {
        match self {
            Found::Blank { .. } => None,
            Found::Free(slot) => Some(&slot.identity.node),
            Found::Taken { node, .. } => node.as_ref(),
        }
    }
}

/// The slot of a given node id, else a fresh one.
fn given(mut found: Vec<Found>, node: &NodeId) -> Result<Slot, CannotOpen> {
    match found.iter().position(|found| found.node() == Some(node)) {
        Some(at) => match found.swap_remove(at) {
            Found::Free(slot) => Ok(slot),
            Found::Taken { path, .. } | Found::Blank { path } => {
                Err(CannotOpen::Taken { slot: path, node: node.clone() })
            }
        },
        None => {
            let others: Vec<&str> = found.iter().filter_map(Found::node).map(NodeId::as_str).collect();
            if !others.is_empty() {
                tracing::info!(%node, others = others.join(", "), "the data directory is that of other nodes, too; this one begins a slot");
            }
            fresh(found, node.clone())
        }
    }
}

/// The slot of this host's name, else any that is free, else a fresh one.
fn any(mut found: Vec<Found>, host: &NodeId) -> Result<Slot, CannotOpen> {
    let is_free = |found: &Found| matches!(found, Found::Free(_));
    let own = found.iter().position(|found| is_free(found) && found.node() == Some(host));
    if let Some(at) = own.or_else(|| found.iter().position(is_free))
        && let Found::Free(slot) = found.swap_remove(at)
    {
        return Ok(slot);
    }
    let is_used = |name: &NodeId| found.iter().any(|found| found.node() == Some(name));
    let numbered = (2..=MOST + 1).filter_map(|number| NodeId::new(&format!("{host}-{number}")).ok());
    match std::iter::once(host.clone()).chain(numbered).find(|name| !is_used(name)) {
        Some(name) => fresh(found, name),
        None => fresh(Vec::new(), host.clone()),
    }
}

/// Makes a slot where there is none yet.
fn fresh(found: Vec<Found>, node: NodeId) -> Result<Slot, CannotOpen> {
    let blank = found.into_iter().find_map(|found| match found {
        Found::Blank { path } => Some(path),
        Found::Free(_) | Found::Taken { .. } => None,
    });
    let path = blank.ok_or_else(|| CannotOpen::Full { node: node.clone() })?;
    fs::create_dir_all(&path).map_err(|cause| CannotOpen::io("make", &path, cause))?;
    let Some(lock) = lock(&path.join("lock"))? else {
        return Err(CannotOpen::Taken { slot: path, node });
    };
    let mut slot = Slot { path, identity: Identity { node, incarnation: Incarnation(0) }, lock };
    slot.start(Incarnation(0))?;
    Ok(slot)
}

fn slot_path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("slot-{number}"))
}

/// A lock that ends with this process; none if another one has it.
fn lock(path: &Path) -> Result<Option<File>, CannotOpen> {
    let failed = |cause: io::Error| CannotOpen::io("lock", path, cause);
    let file = File::options().write(true).create(true).truncate(false).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(cause)) => Err(failed(cause)),
    }
}

#[cfg(test)]
mod tests;
