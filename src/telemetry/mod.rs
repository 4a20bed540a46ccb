//! What a node tells its operators.
//!
//! Owns the form of the log and which happening is worth which line. Never decides what happens: code says that once,
//! with a [`Notice`](crate::protocol::notice::Notice). Section 11 of the contract.

pub mod context;
pub mod export;
pub mod logs;
pub mod metrics;
pub mod names;
pub mod observe;
pub mod spans;
