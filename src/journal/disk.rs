//! The file under the store.
//!
//! Owns when what was written is on the disk. Invariant: after a failed write or flush nothing is written any more,
//! nor flushed again, since the kernel may have dropped the pages and the next flush would say that all is well.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;

/// What is done before anyone is told of a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// It is on the disk.
    Always,
    /// The operating system has it: that outlives the end of any process, not a power cut.
    Os,
}

/// A file of the store. Its slot is locked, so it needs no lock itself.
#[derive(Debug)]
pub(super) struct Disk {
    file: File,
    flush: Flush,
    failed: AtomicBool,
}

impl Disk {
    pub(super) fn new(file: File, flush: Flush) -> Disk {
        Disk { file, flush, failed: AtomicBool::new(false) }
    }

    fn once_failed_for_ever(&self, change: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        if self.failed.load(Ordering::Acquire) {
            return Err(io::Error::other("an earlier write failed"));
        }
        change(&self.file).inspect_err(|_| self.failed.store(true, Ordering::Release))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.once_failed_for_ever(|file| file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.once_failed_for_ever(|file| match self.flush {
            Flush::Always => file.sync_data(),
            Flush::Os => Ok(()),
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.once_failed_for_ever(|file| file.write_all_at(data, offset))
    }
}
