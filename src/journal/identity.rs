//! Whose slot this is, in a small file beside the store.
//!
//! Owns that file. It is apart from the store for three reasons: all slots of a folder are looked through at a start,
//! which must not open stores that others have open; a node whose store is corrupt keeps its id, and its incarnation
//! rises even if its clock steps back; and the version of the stored form is known before the store is touched.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::store::SCHEMA;
use crate::protocol::ids::{Incarnation, NodeId};

/// Its name in a slot.
pub(super) const FILE: &str = "node";
const HEAD: &str = "floodline journal ";

/// Whose slot, and which start of it was the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// Whose.
    pub(super) node: NodeId,
    /// 0 until its store was opened once.
    pub(super) incarnation: Incarnation,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum NoIdentity {
    /// It was not written yet.
    Missing,
    /// It is not what was written.
    Corrupt,
    /// A newer program wrote it.
    Newer(u32),
    /// The system refuses.
    Io(io::Error),
}

impl Identity {
    /// Reads that of a slot.
    pub(super) fn read(slot: &Path) -> Result<Identity, NoIdentity> {
        match fs::read(slot.join(FILE)) {
            Ok(bytes) => Identity::parse(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(NoIdentity::Missing),
            Err(error) => Err(NoIdentity::Io(error)),
        }
    }

    /// Puts it in the place of the one before, on the disk when this returns.
    pub(super) fn write(&self, slot: &Path) -> io::Result<()> {
        let new = slot.join("node.new");
        let mut file = File::create(&new)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, slot.join(FILE))?;
        File::open(slot)?.sync_all()
    }

    fn text(&self) -> String {
        let body = format!("{HEAD}{SCHEMA}\nnode {}\nincarnation {}\n", self.node, self.incarnation);
        let check = check_of(&body);
        format!("{body}check {check}\n")
    }

    fn parse(bytes: &[u8]) -> Result<Identity, NoIdentity> {
        let parts = || {
            let (body, check) = std::str::from_utf8(bytes).ok()?.split_once("check ")?;
            if check.strip_suffix('\n')? != check_of(body) {
                return None;
            }
            let (version, rest) = body.strip_prefix(HEAD)?.split_once('\n')?;
            Some((version.parse::<u32>().ok()?, rest.to_owned()))
        };
        let (version, rest) = parts().ok_or(NoIdentity::Corrupt)?;
        if version > SCHEMA {
            return Err(NoIdentity::Newer(version));
        }
        let fields = || {
            let (node, incarnation) = rest.strip_prefix("node ")?.split_once("\nincarnation ")?;
            let incarnation = Incarnation(incarnation.strip_suffix('\n')?.parse().ok()?);
            Some(Identity { node: NodeId::new(node).ok()?, incarnation })
        };
        fields().ok_or(NoIdentity::Corrupt)
    }
}

fn check_of(body: &str) -> String {
    Sha256::digest(body.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What a newer program may write.
#[cfg(test)]
pub(super) fn newer() -> String {
    let body = format!("{HEAD}{}\nsomething else\n", SCHEMA + 1);
    let check = check_of(&body);
    format!("{body}check {check}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { node: NodeId::new("worker-1").expect("a good name"), incarnation: Incarnation(1_764_580_000_000) }
    }

    #[test]
    fn it_comes_back_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(Identity::read(folder.path()), Err(NoIdentity::Missing)));
        identity().write(folder.path()).expect("there is space");
        assert_eq!(Identity::read(folder.path()).expect("it is whole"), identity());
    }

    #[test]
    fn any_flipped_bit_and_any_cut_makes_it_corrupt() {
        let text = identity().text().into_bytes();
        for at in 0..text.len() {
            assert!(matches!(Identity::parse(&text[..at]), Err(NoIdentity::Corrupt)), "cut at {at}");
            for bit in 0..8 {
                let mut flipped = text.clone();
                flipped[at] ^= 1 << bit;
                assert!(matches!(Identity::parse(&flipped), Err(NoIdentity::Corrupt)), "bit {bit} of {at}");
            }
        }
    }

    #[test]
    fn a_newer_one_is_told_from_a_corrupt_one() {
        assert!(matches!(Identity::parse(newer().as_bytes()), Err(NoIdentity::Newer(2))));
    }
}
