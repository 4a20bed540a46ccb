//! The folder of `--data`: what makes two runs of `up` one cluster.
//!
//! Owns the folder while `up` runs, and the cluster's name in it: workers that come back must not take another
//! cluster, or be taken by one. What is in a worker's part of it is the journal's.
//!
//! ```text
//! DIR/up.lock        held as long as `up` runs
//! DIR/cluster        the cluster's name
//! DIR/worker-1/…     the data directory of a worker
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::{Allowed, Parse};

/// The folder, held.
#[derive(Debug)]
pub(super) struct Data {
    folder: PathBuf,
    /// The name of the cluster whose data it is.
    pub(super) cluster: String,
    #[expect(dead_code, reason = "held for its lock")]
    lock: File,
}

/// A folder that can't be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoData {
    #[error("cannot use {} for --data: {cause}; mend that, or give another folder", .path.display())]
    Io { path: PathBuf, cause: io::Error },
    #[error("another `floodline up` runs with --data {}; end it, or give another folder", .folder.display())]
    Taken { folder: PathBuf },
    #[error("{} holds cluster {stored}, not {given}; leave --cluster out, or give another folder with --data", .folder.display())]
    OtherCluster { folder: PathBuf, stored: String, given: String },
    #[error("{} does not hold a cluster's name; write the name into it that the cluster had, or another one to begin anew", .file.display())]
    NoName { file: PathBuf },
}

impl Data {
    /// Takes the folder, which is made if there is none. `given` is the cluster's name if somebody gave one.
    pub(super) fn take(folder: &Path, given: Option<&str>) -> Result<Data, NoData> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |cause| NoData::Io { path, cause }
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        // Nodes may be started in another folder than this process.
        let folder = folder.canonicalize().map_err(failed(folder))?;
        let lock = folder.join("up.lock");
        let opened = File::options().write(true).create(true).truncate(false).open(&lock).map_err(failed(&lock))?;
        match opened.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(NoData::Taken { folder }),
            Err(TryLockError::Error(cause)) => return Err(NoData::Io { path: lock, cause }),
        }
        let file = folder.join("cluster");
        let cluster = match fs::read_to_string(&file) {
            Ok(text) => String::parse(text.trim(), &Allowed::Name).ok_or(NoData::NoName { file })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let name = given.map_or_else(new_name, str::to_owned);
                write(&folder, &name).map_err(failed(&file))?;
                name
            }
            Err(cause) => return Err(NoData::Io { path: file, cause }),
        };
        match given.filter(|given| *given != cluster) {
            Some(given) => Err(NoData::OtherCluster { folder, stored: cluster, given: given.to_owned() }),
            None => Ok(Data { folder, cluster, lock: opened }),
        }
    }

    /// The data directory of a node.
    pub(super) fn of(&self, node: &str) -> PathBuf {
        self.folder.join(node)
    }

    /// Workers whose data is here, but which are beyond the number that is started.
    pub(super) fn left_out(&self, workers: u16) -> Vec<String> {
        let beyond = (workers..=1_000).map(|before| format!("worker-{}", u32::from(before) + 1));
        beyond.filter(|node| self.of(node).is_dir()).collect()
    }
}

/// A name that no other cluster has: process numbers come again, so the time is in it, too.
fn new_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("local-{}-{}", std::process::id(), since.as_millis())
}

/// Whole or not at all: a cluster must not come back under half a name.
fn write(folder: &Path, name: &str) -> io::Result<()> {
    let new = folder.join("cluster.new");
    let mut file = File::create(&new)?;
    writeln!(file, "{name}")?;
    file.sync_all()?;
    fs::rename(new, folder.join("cluster"))?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_the_name_of_its_cluster() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("not/there/yet");
        let first = Data::take(&path, None).expect("it is made").cluster;
        assert!(first.starts_with("local-"), "{first}");
        assert_eq!(Data::take(&path, None).expect("it is free").cluster, first);
        assert_eq!(Data::take(&path, Some(&first)).expect("it is the same").cluster, first);
        let refused = Data::take(&path, Some("other")).expect_err("it is not").to_string();
        assert!(refused.contains(&format!("holds cluster {first}, not other; leave --cluster out")), "{refused}");
    }

    #[test]
    fn a_given_name_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Data::take(folder.path(), Some("mine")).expect("it is free").cluster, "mine");
        assert_eq!(Data::take(folder.path(), None).expect("it is free").cluster, "mine");
    }

    #[test]
    fn a_folder_in_use_and_a_file_without_a_name_say_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = Data::take(folder.path(), None).expect("it is free");
        let refused = Data::take(folder.path(), None).expect_err("it is held").to_string();
        assert!(
            refused.starts_with("another `floodline up` runs with --data ") && refused.contains("end it"),
            "{refused}"
        );
        drop(held);
        fs::write(folder.path().join("cluster"), "\0\0").expect("it is written");
        let refused = Data::take(folder.path(), None).expect_err("it is no name").to_string();
        assert!(refused.contains("does not hold a cluster's name"), "{refused}");
    }

    #[test]
    fn workers_that_are_not_started_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = Data::take(folder.path(), None).expect("it is free");
        for node in ["worker-1", "worker-2", "worker-5"] {
            fs::create_dir(data.of(node)).expect("a folder");
        }
        assert_eq!(data.left_out(5), Vec::<String>::new());
        assert_eq!(data.left_out(1), ["worker-2", "worker-5"]);
    }
}
