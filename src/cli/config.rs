//! `floodline config`: the settings in force, and where each came from.

use serde::Serialize;

use super::exit::{Exit, Outcome};
use super::face::{Face, Output};
use super::setting_flags::SettingFlags;
use crate::config::{Allowed, Shown};

/// Arguments of `floodline config`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: SettingFlags,
}

/// Prints them; bad ones are told instead, all at once.
pub(crate) async fn run(args: Args, face: &Face) -> Outcome {
    let shown = args.flags.load()?.shown;
    match face.output {
        Output::Text => face.say(&table(&shown))?,
        Output::Json => face.say(&json(&shown))?,
    }
    Ok(Exit::Done)
}

fn table(shown: &[Shown]) -> String {
    let header = ["NAME".to_owned(), "VALUE".to_owned(), "ORIGIN".to_owned()];
    let line = |setting: &Shown| {
        let value = if setting.text.is_empty() { "none".to_owned() } else { setting.text.clone() };
        [setting.row.name.to_owned(), value, setting.origin.to_string()]
    };
    let lines: Vec<[String; 3]> = std::iter::once(header).chain(shown.iter().map(line)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let (names, values) = (width(0), width(1));
    let aligned = lines.iter().map(|[name, value, origin]| format!("{name:names$}  {value:values$}  {origin}"));
    aligned.collect::<Vec<String>>().join("\n")
}

/// Keys and types are a contract with scripts.
#[derive(Serialize)]
struct Settings<'a> {
    settings: Vec<Setting<'a>>,
}

#[derive(Serialize)]
struct Setting<'a> {
    name: &'a str,
    value: Value<'a>,
    origin: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Value<'a> {
    Count(u32),
    List(Vec<&'a str>),
    Text(&'a str),
    Nothing(()),
}

fn json(shown: &[Shown]) -> String {
    let settings = Settings { settings: shown.iter().map(Setting::of).collect() };
    serde_json::to_string(&settings).expect("text, numbers and lists of text have a JSON form")
}

impl Setting<'_> {
    fn of(shown: &Shown) -> Setting<'_> {
        Setting { name: shown.row.name, value: value(shown), origin: shown.origin.to_string() }
    }
}

fn value(setting: &Shown) -> Value<'_> {
    match setting.row.allowed {
        Allowed::Count(..) => Value::Count(setting.text.parse().expect("a loaded count is a number")),
        Allowed::Addresses => {
            Value::List(setting.text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect())
        }
        Allowed::Folder if setting.text.is_empty() => Value::Nothing(()),
        Allowed::Folder
        | Allowed::AnyOf(_)
        | Allowed::Span(..)
        | Allowed::Name
        | Allowed::NodeId
        | Allowed::Socket
        | Allowed::Address => Value::Text(&setting.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};

    /// Whatever depends on the machine is given.
    fn shown() -> Vec<Shown> {
        let environment = [("FLOODLINE_LEASE_TTL", "6s"), ("FLOODLINE_PEERS", "b:7400, c:7400"), ("PATH", "/bin")];
        let sources = Sources {
            file: None,
            environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            flags: vec![("node_id", "a".to_owned()), ("advertise", "a:0".to_owned()), ("concurrency", "3".to_owned())],
        };
        load(&sources).expect("all allowed").shown
    }

    #[test]
    fn the_table_is_aligned_and_names_the_origins() {
        assert_eq!(table(&shown()) + "\n", include_str!("testdata/config.txt"));
    }

    #[test]
    fn the_json_is_one_line_with_numbers_lists_and_text() {
        assert_eq!(json(&shown()) + "\n", include_str!("testdata/config.json"));
    }
}
