//! One node at run time: the loop around the worker, and all that it reaches.
//!
//! Owns the way from a call to an input and from an effect to the world. Never decides anything of the protocol:
//! `protocol` does. Section 14 of the contract. Read `actor.rs` first: it is the program.

mod actor;
mod callers;
mod clock;
mod compute;
mod directory;
mod events;
mod followers;
mod handle;
mod perform;
mod subscribers;
mod worker;

pub use directory::{DirectoryHandle, RunningDirectory, start as start_directory};
pub use handle::{FollowerStream, Handle, QUEUE};
pub use worker::{Broken, Running, start};

pub(crate) use clock::wall;
