//! Settings: what a node can be told, where each value came from, and what is allowed.
//!
//! Owns the one table of settings ([`TABLE`]), from which parser, help, documentation and `floodline config`
//! are made. Never acts on a setting; never shows a secret. Invariant: a [`Settings`] that exists holds allowed
//! values only. Section 2 of the contract.

mod layers;
mod parse;
mod settings;

pub use layers::{BadSetting, BadSettings, Effective, Origin, Shown, Sources, load};
pub use parse::{Allowed, Parse, address, show_span};
pub use settings::{DefaultValue, Flush, LogFormat, OUTSIDE_THE_TABLE, PREFIX, Role, Row, Settings, TABLE, TextOf};
