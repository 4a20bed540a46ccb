//! The settings of a node as flags of a command, one for each row of the table.
//!
//! Owns how a row becomes a flag and its help. Never checks a value: `config::load` does that for all layers alike,
//! so that all bad values are told at once, wherever they were given.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, Error, FromArgMatches};

use crate::config::{BadSettings, Effective, Row, Sources, TABLE, load};

const FILE: &str = "settings_file";
const HEADING: &str = "Settings";

/// Put into a command's `Args` with `#[command(flatten)]`, it gives the command all settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFlags {
    file: Option<PathBuf>,
    given: Vec<(&'static str, String)>,
}

impl SettingFlags {
    /// The settings in force: these flags over the environment, over the file, over the defaults.
    ///
    /// # Errors
    /// [`BadSettings`], all of them; a `?` in a command ends it with a line for each, and exit code 2.
    pub(crate) fn load(self) -> Result<Effective, BadSettings> {
        load(&Sources::of_process(self.file, self.given))
    }
}

impl clap::Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new(FILE)
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help_heading(HEADING)
            .help("TOML file with settings [default: $FLOODLINE_CONFIG]");
        command.arg(file).args(TABLE.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(row: &'static Row) -> Arg {
    let (sentence, default) = (row.sentence(), row.default.words());
    let long = format!(
        "{sentence}\n\nGive {}, also as {} or {} in the file [default: {default}]",
        row.allowed,
        row.variable(),
        row.name
    );
    Arg::new(row.name)
        .long(row.flag())
        .value_name(row.allowed.placeholder())
        .help_heading(HEADING)
        .help(format!("{sentence} [default: {default}]"))
        .long_help(long)
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let value = |row: &'static Row| Some((row.name, matches.get_one::<String>(row.name)?.clone()));
        Ok(SettingFlags {
            file: matches.get_one::<PathBuf>(FILE).cloned(),
            given: TABLE.iter().filter_map(value).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
