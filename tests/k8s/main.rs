//! The manifests on a real Kubernetes. `make k8s-test` runs these tests on the cluster of kubectl's present context,
//! which has to have the image; they deploy into a namespace of their own, and remove it.
//!
//! Sections 2 and 12 of the contract. Answers are compared with published values.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "measures are told")]

#[path = "../stage/command.rs"]
#[allow(dead_code, reason = "the tests in containers need more of it")]
mod command;
mod deployment;
mod faults;
#[path = "../stage/outside.rs"]
#[allow(dead_code, reason = "the tests in containers need more of it")]
mod outside;
mod reach;
mod rolling;
