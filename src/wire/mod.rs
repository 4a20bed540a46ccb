//! The encoding: generated types, and conversions both ways between them and the protocol's plain data.
//!
//! Owns what travels and what is stored, byte for byte, and is the only module that others learn it from. What comes
//! in is parsed, not checked later: a conversion yields the protocol's types or says which field is wrong. Never
//! trusts a digest that it can make itself. Sections 3 and 11 of the contract.

pub mod frames;
pub mod json;
pub mod status;

mod calls;
mod directory;
mod election;
mod fields;
mod jobs;
mod names;
mod people;
mod records;
mod replicate;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;

use crate::protocol::message::{Code, Refusal};
use crate::protocol::view::ClusterView;

pub use calls::Mismatched;
pub use jobs::{Subscription, digest_of, job_query, submission};

/// The generated types, clients and servers of `proto/floodline/v1`.
#[allow(missing_docs, clippy::doc_markdown, clippy::large_enum_variant)]
pub mod v1 {
    tonic::include_proto!("floodline.v1");
}

/// The descriptors of all proto files, for reflection.
pub const DESCRIPTORS: &[u8] = tonic::include_file_descriptor_set!("floodline_v1");

/// The largest request or response, in bytes: 2,000,000 numbers of 8 bytes fit twice.
pub const LARGEST_MESSAGE: usize = 32 << 20;

/// The metadata key in which a caller names its cluster. Nodes always do, clients may.
pub const CLUSTER_KEY: &str = "floodline-cluster";

/// A message that is not what its proto file says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {given}; allowed is {allowed}")]
pub struct Malformed {
    /// Which field, with the fields that it lies in.
    pub field: String,
    /// What was given, shortened.
    pub given: String,
    /// What is allowed.
    pub allowed: String,
}

impl Malformed {
    fn new(field: &str, given: impl fmt::Display, allowed: impl Into<String>) -> Malformed {
        Malformed { field: field.to_owned(), given: given.to_string(), allowed: allowed.into() }
    }

    fn inside(mut self, outer: &str) -> Malformed {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Refusal {
        Refusal::new(Code::InvalidArgument, malformed.to_string())
    }
}

/// A cluster with its name, as clients get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCluster {
    /// Its name.
    pub cluster: String,
    /// What a node sees of it.
    pub view: ClusterView,
}
