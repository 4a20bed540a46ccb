//! The real binary, as people and scripts use it: what it prints, what it says of mistakes, how it ends.
//!
//! Each cluster here is one of `floodline up`, with ports that it chooses itself. Nothing sleeps: every wait is for an
//! output or an exit, and has a bound.

mod cluster;
mod data;
mod messages;
mod mistakes;
mod nodes;
mod program;
mod rotation;
