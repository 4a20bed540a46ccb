//! The one table of settings: name, type, default, what is allowed, and a sentence, a row each.
//!
//! Owns which settings there are. Never reads the environment: `layers` does. Adding a setting is adding its row
//! at the end of this file, in the order in which people should read it; its field in [`Settings`], variable,
//! key, flag and help follow from it. A bind between two settings is a row of `ORDERED` in `layers`. Section 2 of
//! the contract.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tracing::level_filters::LevelFilter;

use super::parse::{Allowed, Parse};
use crate::protocol::Rotation;
use crate::protocol::ids::{Address, NodeId};

/// What the variables of the settings begin with.
pub const PREFIX: &str = "FLOODLINE_";

/// Variables with the prefix that are no settings of a node, hence no misspelt ones.
pub const OUTSIDE_THE_TABLE: [&str; 2] = ["FLOODLINE_CONFIG", "FLOODLINE_NODE"];

/// One setting.
#[derive(Debug)]
pub struct Row {
    /// Its name, which is its key in the file.
    pub name: &'static str,
    /// What it is when nobody says otherwise.
    pub default: DefaultValue,
    /// What it may be.
    pub allowed: Allowed,
    sentence: &'static str,
}

impl Row {
    /// Its environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_ascii_uppercase())
    }

    /// Its flag, without the dashes before it.
    #[must_use]
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// What it does, for help and documentation.
    #[must_use]
    pub fn sentence(&self) -> &'static str {
        self.sentence.trim()
    }
}

/// Tells the text of a setting by its name.
pub type TextOf<'a> = &'a dyn Fn(&str) -> String;

/// The value of a setting that nobody gave.
#[derive(Clone, Copy, Debug)]
pub enum DefaultValue {
    /// Always the same; an empty text is an empty list.
    Fixed(&'static str),
    /// Depends on the machine or on another setting, whose text the function may ask for by name.
    Computed {
        /// How documentation says it.
        words: &'static str,
        /// What it is here.
        of: fn(TextOf<'_>) -> String,
    },
}

impl DefaultValue {
    /// The default as documentation says it.
    #[must_use]
    pub fn words(&self) -> &'static str {
        match self {
            DefaultValue::Fixed("") => "none",
            DefaultValue::Fixed(text) => text,
            DefaultValue::Computed { words, .. } => words,
        }
    }
}

/// Which part a node plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The directory: registry, leases, membership stream.
    Bootstrap,
    /// Takes part in the overlay and in elections, runs tasks, can be coordinator.
    Worker,
}

impl Role {
    const WORDS: &[&str] = &["bootstrap", "worker"];
}

impl Parse for Role {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        match text {
            "bootstrap" => Some(Role::Bootstrap),
            "worker" => Some(Role::Worker),
            _ => None,
        }
    }
}

/// What comes before anyone is told that something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// It is on the disk.
    Always,
    /// The operating system has it.
    Os,
}

impl Flush {
    const WORDS: &[&str] = &["always", "os"];
}

impl Parse for Flush {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        match text {
            "always" => Some(Flush::Always),
            "os" => Some(Flush::Os),
            _ => None,
        }
    }
}

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    const WORDS: &[&str] = &["text", "json"];
}

impl Parse for LogFormat {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        match text {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
            _ => None,
        }
    }
}

const ROTATIONS: &[&str] = &["drain", "handover"];

impl Parse for Rotation {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        match text {
            "drain" => Some(Rotation::Drain),
            "handover" => Some(Rotation::Handover),
            _ => None,
        }
    }
}

const LOG_LEVELS: &[&str] = &["error", "warn", "info", "debug", "trace"];

impl Parse for LevelFilter {
    fn parse(text: &str, _: &Allowed) -> Option<Self> {
        // `LevelFilter` itself reads numbers and capitals too, which the table does not promise.
        LOG_LEVELS.contains(&text).then(|| text.parse().ok())?
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn host_name_and_port(text_of: TextOf<'_>) -> String {
    // With a listening address that can't be read the port is of no matter: that one is refused.
    let port = text_of("listen").parse::<SocketAddr>().map_or(0, |listen| listen.port());
    format!("{}:{port}", host_name())
}

fn cores() -> String {
    std::thread::available_parallelism().map_or(1, usize::from).to_string()
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

macro_rules! settings {
    ($(#[doc = $sentence:literal] $name:ident: $type:ty = $default:expr, $allowed:expr;)*) => {
        /// All settings of a node, checked.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings {
            $(#[doc = $sentence] pub $name: $type,)*
            /// Names of those that somebody gave.
            given: BTreeSet<&'static str>,
        }

        impl Settings {
            /// Whether somebody gave this one, in whatever layer.
            #[must_use]
            pub fn is_given(&self, name: &str) -> bool {
                self.given.contains(name)
            }
        }

        /// Every setting, in the order in which people read them.
        pub const TABLE: &[Row] = &[
            $(Row { name: stringify!($name), default: $default, allowed: $allowed, sentence: $sentence },)*
        ];

        impl Settings {
            /// Reads every setting, also after a bad one, so that `text_of` is asked for all and `refuse` hears of
            /// all that are bad.
            pub(super) fn read(
                text_of: impl Fn(&str) -> String,
                given: BTreeSet<&'static str>,
                mut refuse: impl FnMut(&'static str),
            ) -> Option<Settings> {
                $(
                    let $name = <$type as Parse>::parse(&text_of(stringify!($name)), &$allowed);
                    if $name.is_none() {
                        refuse(stringify!($name));
                    }
                )*
                Some(Settings { $($name: $name?,)* given })
            }
        }
    };
}

use Allowed::{Addresses, AnyOf, Count, Name, Socket, Span};
/// Logs go to standard error: a person reads them there, or a program.
fn log_format() -> String {
    use std::io::IsTerminal;
    if std::io::stderr().is_terminal() { "text" } else { "json" }.to_owned()
}

use DefaultValue::{Computed, Fixed};

settings! {
    /// Part that the node plays: the directory, or a worker
    role: Role = Fixed("worker"), AnyOf(Role::WORDS);
    /// Name of the cluster; messages of another one are refused
    cluster: String = Fixed("floodline"), Name;
    /// Stable identity of the node, unique in its cluster
    node_id: NodeId = Computed { words: "kept in the data directory, else the host name", of: |_| host_name() }, Allowed::NodeId;
    /// Where gRPC is served; port 0 takes a free one
    listen: SocketAddr = Fixed("0.0.0.0:7400"), Socket;
    /// Where HTTP is served; port 0 takes a free one
    http_listen: SocketAddr = Fixed("0.0.0.0:8080"), Socket;
    /// Where others dial this node's gRPC port, resolved anew at each dial; port 0 stands for the one that it listens on
    advertise: Address = Computed { words: "the host name and the gRPC port", of: host_name_and_port }, Allowed::Address;
    /// Directories; a worker registers with each
    bootstrap: Vec<Address> = Fixed(""), Addresses;
    /// Workers to link to even when no directory answers
    peers: Vec<Address> = Fixed(""), Addresses;

    /// Folder of a worker's journal; without one nothing of it survives its end
    data_dir: Option<PathBuf> = Fixed(""), Allowed::Folder;
    /// What comes before anyone is told that something is kept: it is on the disk, or the operating system has it, which outlives the end of any process but not a power cut
    flush: Flush = Fixed("always"), AnyOf(Flush::WORDS);

    /// Time between two heartbeats of a leader
    heartbeat_interval: Duration = Fixed("150ms"), Span(ms(10), secs(10));
    /// Least time without a heartbeat after which a follower takes its leader for gone
    election_timeout_min: Duration = Fixed("500ms"), Span(ms(50), secs(60));
    /// Most time without a heartbeat after which a follower takes its leader for gone
    election_timeout_max: Duration = Fixed("1000ms"), Span(ms(50), secs(120));
    /// Time that a whole election flood may take
    flood_budget: Duration = Fixed("200ms"), Span(ms(10), secs(10));
    /// Time that each hop of a flood keeps back for its own answer
    hop_reserve: Duration = Fixed("5ms"), Span(ms(1), secs(1));

    /// Time between two heartbeats of a node to its directories
    lease_renew: Duration = Fixed("2s"), Span(ms(50), secs(600));
    /// Time of silence after which a directory drops a node
    lease_ttl: Duration = Fixed("8s"), Span(ms(100), secs(3_600));

    /// Links that a worker keeps up where enough peers exist
    min_links: u32 = Fixed("2"), Count(1, 64);
    /// Time between two pings over a link
    link_ping: Duration = Fixed("500ms"), Span(ms(20), secs(60));
    /// Failed calls in a row after which a link is dropped
    neighbour_failures: u32 = Fixed("3"), Count(1, 100);

    /// Jobs that a leader admits in its term
    max_jobs_per_term: u32 = Fixed("5"), Count(1, 1_000_000);
    /// What a leader does that has admitted its jobs while some are not finished: finish them, or leave them to the next
    rotation: Rotation = Fixed("drain"), AnyOf(ROTATIONS);
    /// Time after which a leader that finishes its jobs leaves the rest to the next
    drain_limit: Duration = Fixed("10s"), Span(ms(100), secs(86_400));
    /// Live workers, the leader included, without which no job is admitted or ended; a majority of all makes a quorum
    min_members: u32 = Fixed("1"), Count(1, 4_096);
    /// Slices of a range job for each live worker
    tasks_per_worker: u32 = Fixed("4"), Count(1, 10_000);
    /// Most slices of a range job
    max_tasks: u32 = Fixed("32"), Count(1, 10_000);
    /// Failures charged to a task after which its job fails
    max_attempts: u32 = Fixed("5"), Count(1, 1_000);
    /// Most numbers of a list job
    max_numbers: u32 = Fixed("2000000"), Count(1, 10_000_000);
    /// Submissions that may wait at a worker; beyond it they are refused
    queue: u32 = Fixed("256"), Count(1, 100_000);
    /// Ended jobs that are kept with their breakdown, the latest ones
    keep_jobs: u32 = Fixed("1000"), Count(1, 100_000);
    /// Ended jobs of which at least id and outcome are kept, the latest ones
    keep_lines: u32 = Fixed("20000"), Count(100, 1_000_000);
    /// Tasks computed at once on a worker
    concurrency: u32 = Computed { words: "the number of cores", of: |_| cores() }, Count(1, 1_024);

    /// Time within which a node that was told to stop has ended
    stop_grace: Duration = Fixed("8s"), Span(ms(100), secs(600));
    /// Least severity of what is logged
    log_level: LevelFilter = Fixed("info"), AnyOf(LOG_LEVELS);
    /// What a line of the log looks like
    log_format: LogFormat = Computed { words: "text on a terminal, else json", of: |_| log_format() }, AnyOf(LogFormat::WORDS);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_a_sentence_without_a_full_stop() {
        let names: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), TABLE.len());
        for row in TABLE {
            assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", row.name);
            assert!(!row.sentence().is_empty() && !row.sentence().ends_with('.'), "{}", row.name);
        }
    }

    #[test]
    fn variable_and_flag_follow_from_the_name() {
        let row = TABLE.iter().find(|row| row.name == "lease_ttl").expect("a row of the table");
        assert_eq!((row.variable().as_str(), row.flag().as_str()), ("FLOODLINE_LEASE_TTL", "lease-ttl"));
        assert_eq!(row.sentence(), "Time of silence after which a directory drops a node");
    }
}
