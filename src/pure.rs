//! A second root that declares only the pure modules. `make pure` gives it to plain rustc: that it compiles
//! proves that they depend on `std` alone.

#![forbid(unsafe_code)]

pub mod directory;
pub mod guarantees;
pub mod jobs;
pub mod protocol;
