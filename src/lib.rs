//! Floodline is a job cluster with no fixed master. Workers find each other through a directory, link up into a
//! random overlay, and elect their own coordinator by flooding that overlay: whoever has coordinated the least wins,
//! admits at most five jobs, and steps down. Any node may be killed at any moment, also in the middle of a flood: no
//! acknowledged job is lost, and no result counts twice.
//!
//! # The picture
//!
//! ```text
//! bytes -> proto -> wire -> grpc | http -> node::Handle -> node::actor -> protocol::step -> Effects -> node::perform
//!          schema   parse,  one call =     bounded         stamps         pure                            |
//!                   refuse  one Input      queue           time                                           |
//!                                                             ^                                           |
//!                                                             |        journal    1 persist             <-+
//!                                                             |        reply      2 answer who asked    <-+
//!                                                             |        transport  3 send                <-+
//!                                                             |        compute    4 start, stop tasks   <-+
//!                                                             |        telemetry  5 notify              <-+
//!                                                             |        timer      6 one deadline        <-+
//!                                                             |                                           |
//!                  answer, failure, saved, computed, deadline +-- all that comes back is a new Input -----+
//! ```
//!
//! `loop { event -> now -> worker.step(now, input, &mut effects) -> perform(effects) }` is the program. The protocol
//! is a synchronous state machine without clock, socket, disk, log or randomness of its own; the loop around it is
//! boring. The simulator replaces the loop, not the sockets, so that what it tests is what runs.
//!
//! # Seven files to read, in this order
//!
//! 1. `protocol/mod.rs`: the worker, and which input goes to which handler
//! 2. `protocol/message.rs`: all that workers say to each other
//! 3. `protocol/election/flood.rs`: how a flood visits, answers and ends
//! 4. `protocol/election/announce.rs`: how everybody learns of one winner
//! 5. `protocol/ledger/mod.rs`: why merging two ledgers loses nothing
//! 6. `jobs/mod.rs`: what is computed
//! 7. `node/actor.rs`: the loop
//!
//! # Who may import whom
//!
//! | module | may import |
//! | --- | --- |
//! | `jobs` | `std` only |
//! | `protocol` | `jobs` |
//! | `directory` | `protocol` |
//! | `guarantees` | `protocol`, `jobs` |
//! | `config`, `telemetry`, `wire`, `journal`, `transport` | the pure ones, which are those above; `journal` and `transport` also `wire`; `transport` also `config` and `telemetry` |
//! | `node` | all of the above |
//! | `grpc`, `http` | `node` (its `Handle` only), `wire`, the pure ones, `telemetry`, `config` |
//! | `client` | `wire`, the pure ones, `telemetry` |
//! | `app` | everything above but `client` |
//! | `cli` | `app`, `client`, `wire` (its JSON only), `config`, `telemetry`, the pure ones |
//!
//! `tests/structure` checks this table, and that the pure modules stay pure.

pub mod app;
pub mod cli;
pub mod client;
pub mod config;
pub mod directory;
pub mod grpc;
pub mod guarantees;
pub mod http;
pub mod jobs;
pub mod journal;
pub mod node;
pub mod protocol;
pub mod telemetry;
pub mod transport;
pub mod wire;
