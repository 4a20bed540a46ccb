//! The job kinds: how each is checked, split, run and folded (section 7 of the contract).
//!
//! Owns the one table of kinds. Never knows of nodes, time or the network; depends on `std` alone.

use std::fmt;
use std::sync::Arc;

/// What a client asks for: a kind with its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The largest of a non-empty list.
    Max(Arc<[i64]>),
    /// How many of a list are prime, repeats counted.
    PrimeCount(Arc<[u64]>),
    /// The sum of the primes from `start` to `end`, both included.
    PrimeSum {
        /// First number of the range.
        start: u64,
        /// Last number of the range, at most 2^63.
        end: u64,
    },
}

/// An answer or a part of one. 128 bits hold the sum of all primes below 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub i128);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
