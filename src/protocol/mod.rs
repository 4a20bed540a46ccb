//! The worker's protocol as a pure state machine.

pub mod ids;
pub mod time;
