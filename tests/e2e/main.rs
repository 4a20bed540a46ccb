//! The image on a real engine, as people run it: by `docker compose`, and by hand. `make e2e` runs these tests; they
//! need an engine, and the image of this source.
//!
//! Sections 2, 11 and 12 of the contract. Answers are compared with published values or with what the test knows.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "measures are told")]

#[path = "../stage/command.rs"]
mod command;
mod compose;
mod image;
#[path = "../stage/jaeger.rs"]
#[allow(dead_code, reason = "what prints traces needs more of it")]
mod jaeger;
#[path = "../stage/outside.rs"]
#[allow(dead_code, reason = "the tests on Kubernetes need more of it")]
mod outside;
mod stack;
mod traces;
