//! The tables of the store: what a journal holds, and how a save becomes one transaction.
//!
//! Owns the stored form. Never decides what becomes of a file that can't be read: `recovery` does. Invariant: a
//! batch of saves is in the store whole or not at all. Section 8 of the contract.
//!
//! The store is redb: one file of pages with a checksum each, changed by copying, so that the last whole transaction
//! is there whatever happens to the one after it. Opening it verifies all checksums, since without that a flipped bit
//! is found when its page is read, or never.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use prost::Message;
use redb::{Database, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition};

use super::key;
use crate::protocol::Stored;
use crate::protocol::effects::Save;
use crate::protocol::ids::{Incarnation, Jac, NodeId, Position, Term};
use crate::protocol::ledger::{Past, RecordName, Stamped};
use crate::wire::{Malformed, v1};

/// The version of the stored form. One that is newer than this is left alone.
pub(super) const SCHEMA: u32 = 1;

/// Pages kept in memory. A journal reads at its start only; this is for the pages that each write changes again.
const CACHE: usize = 4 << 20;

/// How far a check says that it is when the last transaction turned out not to be whole.
const FELL_BACK: Range<f64> = 0.2..0.5;

/// Record by its key, as `proto/floodline/v1/journal.proto` has it.
const RECORDS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");
/// JAC of another worker by its node id.
const REMEMBERED: TableDefinition<'_, &str, u64> = TableDefinition::new("remembered");
/// Jobs whose outcome was told, by the key of the job's record.
const TOLD: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("told");
/// One row of each of the names below.
const ROWS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("rows");
const NODE: &str = "node";
const PAST: &str = "past";
const SCHEMA_ROW: &str = "schema";
const STANDING: &str = "standing";

/// An open store.
#[derive(Debug)]
pub(super) struct Store(Database);

/// What a store held when it was opened.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    /// Whose it is.
    pub(super) node: NodeId,
    /// Which start of that node wrote last.
    pub(super) incarnation: Incarnation,
    /// All else.
    pub(super) stored: Stored,
}

/// Why a store can't be used.
#[derive(Debug)]
pub(super) enum Fault {
    /// The system refuses.
    Io(io::Error),
    /// It is not what was written, or was never written whole.
    Corrupt(String),
    /// A newer program wrote it.
    Newer(u32),
}

impl Store {
    /// Opens it, or makes it where the file is empty, and verifies every page. `torn` is called when its last
    /// transaction was not whole, so that it stands at the one before.
    pub(super) fn open(file: impl StorageBackend, torn: impl Fn() + 'static) -> Result<Store, Fault> {
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE).set_check_integrity_on_open(true);
        builder.set_repair_callback(move |session| {
            // Every check comes by here several times; this is the step that only falling back takes.
            if FELL_BACK.contains(&session.progress()) {
                torn();
            }
        });
        Ok(Store(builder.create_with_backend(file)?))
    }

    /// Makes an empty store that of a node.
    pub(super) fn begin(&self, node: &NodeId) -> Result<(), Fault> {
        let writing = self.0.begin_write()?;
        writing.open_table(RECORDS)?;
        writing.open_table(REMEMBERED)?;
        writing.open_table(TOLD)?;
        let mut rows = writing.open_table(ROWS)?;
        rows.insert(SCHEMA_ROW, SCHEMA.to_le_bytes().as_slice())?;
        rows.insert(NODE, node.as_str().as_bytes())?;
        drop(rows);
        Ok(writing.commit()?)
    }

    /// As a newer program does.
    #[cfg(test)]
    pub(super) fn set_schema(&self, version: u32) -> Result<(), Fault> {
        let writing = self.0.begin_write()?;
        writing.open_table(ROWS)?.insert(SCHEMA_ROW, version.to_le_bytes().as_slice())?;
        Ok(writing.commit()?)
    }

    /// All that it holds; none if it was never begun.
    pub(super) fn load(&self) -> Result<Option<Kept>, Fault> {
        let reading = self.0.begin_read()?;
        let rows = match reading.open_table(ROWS) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            rows => rows?,
        };
        let row = |name: &str| rows.get(name).map(|row| row.map(|bytes| bytes.value().to_vec()));
        let schema = row(SCHEMA_ROW)?.and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        match schema {
            Some(SCHEMA) => {}
            Some(newer) if newer > SCHEMA => return Err(Fault::Newer(newer)),
            _ => return Err(Fault::Corrupt("it does not say in which form it is".to_owned())),
        }
        let text = String::from_utf8(row(NODE)?.unwrap_or_default()).unwrap_or_default();
        let node = NodeId::new(&text).map_err(|bad| Fault::Corrupt(format!("its node id {bad}")))?;
        let standing: v1::Standing = decoded(&row(STANDING)?.unwrap_or_default())?;
        let past: v1::Past = decoded(&row(PAST)?.unwrap_or_default())?;
        let (records, remembered) = (reading.open_table(RECORDS)?, reading.open_table(REMEMBERED)?);
        let remembered = remembered.iter()?.map(|entry| {
            let (node, jac) = entry?;
            let node = NodeId::new(node.value()).map_err(|bad| Fault::Corrupt(format!("a node id {bad}")))?;
            Ok((node, Jac(jac.value())))
        });
        let told = reading.open_table(TOLD)?;
        let told = told.iter()?.map(|entry| Ok(decoded::<v1::JobKey>(entry?.1.value())?.try_into()?));
        Ok(Some(Kept {
            node,
            incarnation: Incarnation(standing.incarnation),
            stored: Stored {
                records: records.iter()?.map(|entry| record(entry?)).collect::<Result<_, Fault>>()?,
                position: standing.position.map(Position::try_from).transpose()?.unwrap_or_default(),
                past: Past::try_from(past)?,
                term: Term(standing.term),
                jac: Jac(standing.jac),
                remembered: remembered.collect::<Result<_, Fault>>()?,
                told: told.collect::<Result<_, Fault>>()?,
            },
        }))
    }

    /// Writes saves in one transaction, and flushes once.
    pub(super) fn write(&self, saves: &[Save]) -> Result<(), Fault> {
        let Some(last) = saves.last() else { return Ok(()) };
        let writing = self.0.begin_write()?;
        {
            let mut records = writing.open_table(RECORDS)?;
            for (key, change) in changes(saves) {
                match change {
                    Some(record) => {
                        records.insert(key.as_slice(), v1::Record::from(record).encode_to_vec().as_slice())?
                    }
                    None => records.remove(key.as_slice())?,
                };
            }
            let mut remembered = writing.open_table(REMEMBERED)?;
            for (node, jac) in saves.iter().flat_map(|save| &save.remembered) {
                match jac {
                    Some(jac) => remembered.insert(node.as_str(), jac.0)?,
                    None => remembered.remove(node.as_str())?,
                };
            }
            let mut told = writing.open_table(TOLD)?;
            for (job, is_told) in saves.iter().flat_map(|save| &save.told) {
                let key = key::of_name(&RecordName::Job(job.clone()));
                if *is_told {
                    told.insert(key.as_slice(), v1::JobKey::from(job).encode_to_vec().as_slice())?
                } else {
                    told.remove(key.as_slice())?
                };
            }
            let mut rows = writing.open_table(ROWS)?;
            if let Some(past) = saves.iter().rev().find_map(|save| save.past.as_ref()) {
                rows.insert(PAST, v1::Past::from(past).encode_to_vec().as_slice())?;
            }
            rows.insert(STANDING, standing(last).encode_to_vec().as_slice())?;
        }
        Ok(writing.commit()?)
    }
}

/// What becomes of each record that is named in a batch: its last value, or none.
fn changes(saves: &[Save]) -> BTreeMap<Vec<u8>, Option<&Stamped>> {
    let mut changes = BTreeMap::new();
    for save in saves {
        changes.extend(save.records.iter().map(|record| (key::of_record(record), Some(record))));
        changes.extend(save.removed.iter().map(|name| (key::of_name(name), None)));
    }
    changes
}

fn standing(save: &Save) -> v1::Standing {
    v1::Standing {
        position: Some((&save.position).into()),
        term: save.term.0,
        jac: save.jac.0,
        incarnation: save.incarnation.0,
    }
}

type Entry<'a> = (redb::AccessGuard<'a, &'static [u8]>, redb::AccessGuard<'a, &'static [u8]>);

fn record((key, value): Entry<'_>) -> Result<Stamped, Fault> {
    let record = Stamped::try_from(decoded::<v1::Record>(value.value())?)?;
    if key::of_record(&record) != key.value() {
        return Err(Fault::Corrupt("a record lies under another one's key".to_owned()));
    }
    Ok(record)
}

fn decoded<M: Message + Default>(bytes: &[u8]) -> Result<M, Fault> {
    M::decode(bytes).map_err(|error| Fault::Corrupt(error.to_string()))
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Fault {
        Fault::Corrupt(malformed.to_string())
    }
}

impl From<redb::Error> for Fault {
    fn from(error: redb::Error) -> Fault {
        match error {
            // That is how the store says that a file is none of its own, or ends too early.
            redb::Error::Io(error)
                if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
            {
                Fault::Corrupt(error.to_string())
            }
            redb::Error::Io(error) => Fault::Io(error),
            error @ redb::Error::PreviousIo => Fault::Io(io::Error::other(error)),
            error => Fault::Corrupt(error.to_string()),
        }
    }
}

macro_rules! errors_of_the_store {
    ($($error:ident)*) => {
        $(impl From<redb::$error> for Fault {
            fn from(error: redb::$error) -> Fault {
                redb::Error::from(error).into()
            }
        })*
    };
}

errors_of_the_store! { CommitError DatabaseError StorageError TableError TransactionError }
