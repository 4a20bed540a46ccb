//! The layers of settings: defaults, then the file, then the environment, then flags; the later one wins.
//!
//! Owns where a value comes from, and the refusals that name it. Never decides what a value may be: `settings` and
//! `parse` do. Invariant: every bad value is told at once, and with the name under which the person gave it.
//! Section 2 of the contract.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::parse::{Allowed, show_span, span};
use super::settings::{DefaultValue, OUTSIDE_THE_TABLE, PREFIX, Row, Settings, TABLE};

/// What people said, before anything of it is read.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file to read instead of the one that the environment names.
    pub file: Option<PathBuf>,
    /// All variables; those without the prefix are ignored.
    pub environment: Vec<(String, String)>,
    /// Names of settings with what their flags said.
    pub flags: Vec<(&'static str, String)>,
}

impl Sources {
    /// The environment of this process, with `flags` over it.
    #[must_use]
    pub fn of_process(file: Option<PathBuf>, flags: Vec<(&'static str, String)>) -> Sources {
        // What is not UTF-8 is kept readable, so that the refusal can show it.
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let environment = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        Sources { file, environment, flags }
    }

    /// A variable that says nothing counts as not set: that is how compose files and shells pass on one that is
    /// missing.
    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.environment.iter().find(|(given, value)| given == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    fn file(&self) -> Option<PathBuf> {
        self.file.clone().or_else(|| self.variable("FLOODLINE_CONFIG").map(PathBuf::from))
    }
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody gave it.
    Default,
    /// This file.
    File(PathBuf),
    /// This variable.
    Environment(String),
    /// This flag, with its dashes.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Environment(variable) => write!(f, "environment {variable}"),
            Origin::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// A setting as it is in force.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its row of the table.
    pub row: &'static Row,
    /// Its value, as it was written; a list is comma-separated.
    pub text: String,
    /// Where that came from.
    pub origin: Origin,
}

impl Shown {
    /// The value under the name that the person used for it.
    fn as_given(&self) -> String {
        let (name, text) = (self.row.name, &self.text);
        match &self.origin {
            Origin::Default => format!("{name}={text:?} (default)"),
            Origin::File(path) => format!("{name}={text:?} in {}", path.display()),
            Origin::Environment(variable) => format!("{variable}={text:?}"),
            Origin::Flag(flag) => format!("{flag}={text:?}"),
        }
    }
}

/// All settings, in force.
#[derive(Clone, Debug)]
pub struct Effective {
    /// Checked and typed.
    pub settings: Settings,
    /// The same in the order of the table, each with its origin.
    pub shown: Vec<Shown>,
}

/// Something that a person said and that can't be so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSetting {
    /// The value is not allowed.
    #[error("{given} is not allowed: give {allowed}")]
    Value {
        /// The value under the name that the person used for it.
        given: String,
        /// What is allowed.
        allowed: Allowed,
    },
    /// Two values are allowed each, but not together.
    #[error("{given} is not allowed: it must be {bound}")]
    Order {
        /// The one to change, under the name that the person used for it.
        given: String,
        /// How it must stand to the other one.
        bound: String,
    },
    /// No setting has this name.
    #[error("{given} is not a setting{}", near(.meant.as_deref()))]
    Unknown {
        /// The name, and where it stands.
        given: String,
        /// What was probably meant.
        meant: Option<String>,
    },
    /// The file can't be read, or is not TOML.
    #[error("settings file {}: {cause}; name another one in FLOODLINE_CONFIG, or mend it", .path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        cause: String,
    },
}

fn near(meant: Option<&str>) -> String {
    meant
        .map_or_else(|| ": `floodline config --help` lists them".to_owned(), |meant| format!(": did you mean {meant}?"))
}

/// Everything that is wrong, a line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSettings(pub Vec<BadSetting>);

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(BadSetting::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for BadSettings {}

/// Lays the layers over each other and checks the result.
///
/// # Errors
/// [`BadSettings`], all of them, in the order of the layers and then of the table.
pub fn load(sources: &Sources) -> Result<Effective, BadSettings> {
    let mut bad = Vec::new();
    refuse_unknown_variables(sources, &mut bad);
    let layers = layers(sources, &mut bad);
    let shown: Vec<Shown> = TABLE.iter().map(|row| show(row, &layers, sources)).collect();
    let text_of = |name: &str| find(&shown, name).map_or_else(String::new, |shown| shown.text.clone());
    let given = shown.iter().filter(|shown| shown.origin != Origin::Default).map(|shown| shown.row.name).collect();
    let settings = Settings::read(text_of, given, |name| {
        if let Some(shown) = find(&shown, name) {
            bad.push(BadSetting::Value { given: shown.as_given(), allowed: shown.row.allowed });
        }
    });
    bad.extend(ORDERED.iter().filter_map(|ordered| ordered.refuse(&shown)));
    match settings {
        Some(settings) if bad.is_empty() => Ok(Effective { settings, shown }),
        _ => Err(BadSettings(bad)),
    }
}

fn find<'a>(shown: &'a [Shown], name: &str) -> Option<&'a Shown> {
    shown.iter().find(|shown| shown.row.name == name)
}

/// One layer, as figment takes it.
struct Layer {
    name: &'static str,
    values: Dict,
}

impl Layer {
    const FILE: &'static str = "file";
    const ENVIRONMENT: &'static str = "environment";
    const FLAGS: &'static str = "flags";
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

fn layers(sources: &Sources, bad: &mut Vec<BadSetting>) -> Figment {
    // figment's own reader of the environment guesses types (a cluster named 7 would be a number), and takes what
    // the process has, so that a test could not give it another one.
    let value_of = |row: &Row| Some((row.name.to_owned(), Value::from(sources.variable(&row.variable())?)));
    let environment = TABLE.iter().filter_map(value_of).collect();
    let flags = sources.flags.iter().map(|(name, text)| ((*name).to_owned(), Value::from(text.as_str()))).collect();
    let file = sources.file().map_or_else(Dict::new, |path| read_file(&path, bad));
    Figment::new()
        .merge(Layer { name: Layer::FILE, values: file })
        .merge(Layer { name: Layer::ENVIRONMENT, values: environment })
        .merge(Layer { name: Layer::FLAGS, values: flags })
}

fn read_file(path: &Path, bad: &mut Vec<BadSetting>) -> Dict {
    let refused = |cause| BadSetting::File { path: path.to_owned(), cause };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            bad.push(refused(error.to_string()));
            return Dict::new();
        }
    };
    let values = match Toml::string(&text).data() {
        Ok(mut profiles) => profiles.remove(&Profile::Default).unwrap_or_default(),
        Err(error) => {
            bad.push(refused(in_one_line(&error.to_string())));
            return Dict::new();
        }
    };
    let known = |key: &&String| TABLE.iter().any(|row| row.name == key.as_str());
    for key in values.keys().filter(|key| !known(key)) {
        let meant = nearest(key, TABLE.iter().map(|row| row.name.to_owned()));
        bad.push(BadSetting::Unknown { given: format!("{key} in {}", path.display()), meant });
    }
    values
}

/// The parser draws the place below its first line; that line and the last one, the reason, say enough.
fn in_one_line(error: &str) -> String {
    let mut lines = error.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default();
    lines.next_back().map_or_else(|| first.to_owned(), |last| format!("{first}: {last}"))
}

fn refuse_unknown_variables(sources: &Sources, bad: &mut Vec<BadSetting>) {
    let mut unknown: Vec<&str> = Vec::new();
    for (name, value) in &sources.environment {
        let known = OUTSIDE_THE_TABLE.contains(&name.as_str()) || TABLE.iter().any(|row| row.variable() == *name);
        if name.starts_with(PREFIX) && !known && !is_service_link(name, value) {
            unknown.push(name);
        }
    }
    unknown.sort_unstable();
    let names = || TABLE.iter().map(Row::variable).chain(OUTSIDE_THE_TABLE.map(str::to_owned));
    bad.extend(
        unknown.iter().map(|name| BadSetting::Unknown { given: (*name).to_owned(), meant: nearest(name, names()) }),
    );
}

/// Kubernetes tells every container of the services beside it in variables named after them, such as
/// `FLOODLINE_SERVICE_HOST` and `FLOODLINE_PORT_7400_TCP_ADDR`. They are nobody's mistake.
fn is_service_link(name: &str, value: &str) -> bool {
    let of_service =
        name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT") || name.contains("_SERVICE_PORT_");
    let protocols = ["_TCP", "_UDP", "_SCTP"];
    let of_port = name.split_once("_PORT_").is_some_and(|(_, rest)| {
        rest.starts_with(|c: char| c.is_ascii_digit()) && protocols.iter().any(|protocol| rest.contains(protocol))
    });
    of_service || of_port || (name.ends_with("_PORT") && value.contains("://"))
}

/// Compared without the prefix, which would make all names alike.
fn nearest(given: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let bare = |name: &str| name.strip_prefix(PREFIX).unwrap_or(name).to_owned();
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(&bare(given), &bare(name));
    names.filter(|name| likeness(name) > 0.7).max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
}

fn show(row: &'static Row, layers: &Figment, sources: &Sources) -> Shown {
    let Ok(value) = layers.find_value(row.name) else {
        return Shown { row, text: default_text(row, layers), origin: Origin::Default };
    };
    let layer = layers.find_metadata(row.name).map_or("", |metadata| metadata.name.as_ref());
    let origin = match layer {
        Layer::FLAGS => Origin::Flag(format!("--{}", row.flag())),
        Layer::ENVIRONMENT => Origin::Environment(row.variable()),
        _ => Origin::File(sources.file().unwrap_or_default()),
    };
    Shown { row, text: text(&value, &row.allowed), origin }
}

fn default_text(row: &Row, layers: &Figment) -> String {
    let other = |name: &str| match TABLE.iter().find(|other| other.name == name) {
        None => String::new(),
        Some(other) => layers
            .find_value(name)
            .map_or_else(|_| other.default.words().to_owned(), |value| text(&value, &other.allowed)),
    };
    match row.default {
        DefaultValue::Fixed(text) => text.to_owned(),
        DefaultValue::Computed { of, .. } => of(&other),
    }
}

/// What the person wrote, so that it can be shown and refused as such.
fn text(value: &Value, allowed: &Allowed) -> String {
    match value {
        Value::String(_, text) => text.clone(),
        Value::Char(_, char) => char.to_string(),
        Value::Bool(_, bool) => bool.to_string(),
        Value::Num(_, number) => match (number.to_i128(), number.to_u128(), number.to_f64()) {
            (Some(number), _, _) => number.to_string(),
            (_, Some(number), _) => number.to_string(),
            (_, _, Some(number)) => number.to_string(),
            (None, None, None) => "?".to_owned(),
        },
        Value::Array(_, parts) => {
            let parts: Vec<String> = parts.iter().map(|part| text(part, &Allowed::Address)).collect();
            let list = parts.join(",");
            if *allowed == Allowed::Addresses { list } else { format!("[{list}]") }
        }
        Value::Dict(..) | Value::Empty(..) => "{...}".to_owned(),
    }
}

/// Two times of which one must be so much smaller.
struct Ordered {
    small: &'static str,
    times: u32,
    large: &'static str,
    or_equal: bool,
}

const ORDERED: [Ordered; 4] = [
    Ordered { small: "election_timeout_min", times: 1, large: "election_timeout_max", or_equal: true },
    // One heartbeat may be late, or lost, before the leader is taken for gone.
    Ordered { small: "heartbeat_interval", times: 2, large: "election_timeout_min", or_equal: false },
    Ordered { small: "lease_renew", times: 1, large: "lease_ttl", or_equal: false },
    Ordered { small: "hop_reserve", times: 1, large: "flood_budget", or_equal: false },
];

impl Ordered {
    fn refuse(&self, shown: &[Shown]) -> Option<BadSetting> {
        let (small, small_span) = readable(shown, self.small)?;
        let (large, large_span) = readable(shown, self.large)?;
        let least = small_span.saturating_mul(self.times);
        if least < large_span || (self.or_equal && least == large_span) {
            return None;
        }
        // Whoever changed one of two defaults learns of that one.
        let large_is_to_change = small.origin == Origin::Default && large.origin != Origin::Default;
        let twice = self.times > 1;
        let (change, bound) = if large_is_to_change {
            let how = if self.or_equal { "at least" } else { "above" };
            (large, format!("{how} {}{}", if twice { "twice " } else { "" }, told(small, small_span)))
        } else {
            let how = if self.or_equal { "at most" } else { "below" };
            (small, format!("{how} {}{}", if twice { "half of " } else { "" }, told(large, large_span)))
        };
        Some(BadSetting::Order { given: change.as_given(), bound })
    }
}

fn told(shown: &Shown, span: Duration) -> String {
    format!("{}, which is {} ({})", shown.row.name, show_span(span), shown.origin)
}

/// A time that its own row allows: one that it refuses has been told already.
fn readable<'a>(shown: &'a [Shown], name: &str) -> Option<(&'a Shown, Duration)> {
    let shown = find(shown, name)?;
    let Allowed::Span(least, most) = shown.row.allowed else { return None };
    let span = span(&shown.text).filter(|span| *span >= least && *span <= most)?;
    Some((shown, span))
}

#[cfg(test)]
mod tests;
