//! The command line: one file per command, and what they share.
//!
//! Owns the list of commands, the options that are taken everywhere ([`face`]), and how a command ends ([`exit`]).
//! Never holds what a command does. Section 11 of the contract.
//!
//! A command is a file here named after it, with `pub(crate) struct Args` (derives `clap::Args`; the settings of a
//! node come in by flattening [`setting_flags::SettingFlags`]) and `pub(crate) async fn run(args: Args, face: &Face)
//! -> Outcome`, a variant of [`Command`] whose doc is its sentence in the help, and an arm in [`run`]. It writes with
//! [`Face::say`], and ends with an [`Exit`] or with `exit.because("what, which value, what to do")`.

mod bar;
mod cancel;
mod cluster;
mod completions;
mod config;
mod events;
mod exit;
mod face;
mod follow;
mod health;
mod jobs;
mod node;
mod numbers;
mod setting_flags;
mod submit;
mod summary;
mod table;
mod up;
mod watch;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use tokio::runtime;

use exit::{Exit, Outcome};
use face::{Face, complain};

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  the job failed or was cancelled
  2  usage, a setting or an input was refused
  3  no node could be reached
  4  not found
  5  the deadline passed
  6  another node started with this node's id
  7  a node broke down, or none is left
  130  interrupted";

/// A job cluster with no fixed master: workers elect their own coordinator by flooding a random overlay.
#[derive(Debug, Parser)]
#[command(name = "floodline", bin_name = "floodline", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    face: Face,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a whole cluster on this machine, and end it with this command
    Up(up::Args),
    /// Run one node
    Node(node::Args),
    /// Hand in a job and follow it to its end
    Submit(submit::Args),
    /// Follow a job to its end
    Watch(watch::Args),
    /// End a job
    Cancel(cancel::Args),
    /// List the jobs
    Jobs(jobs::Args),
    /// Show the cluster as the asked node sees it
    Cluster(cluster::Args),
    /// Follow what happens in the cluster
    Events(events::Args),
    /// Say whether a node is ready
    Health(health::Args),
    /// Print the settings in force and where each came from
    Config(config::Args),
    /// Print what a shell needs to complete commands and flags
    Completions(completions::Args),
}

/// Runs the command that this process was started with, and says how it ended.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return answer(&error).into(),
    };
    // Two at least: on one core a thread that waits for the last spans to go would be the one that has to send them.
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    let runtime = match runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("cannot start threads: {error}; raise the limit of processes"));
            return Exit::Refused.into();
        }
    };
    let outcome = runtime.block_on(run(cli));
    // Not by dropping it, which waits for a thread that reads standard input, and that may be for ever.
    runtime.shutdown_background();
    end(outcome).into()
}

/// A command that has something to put in order when it is interrupted takes the signals itself; all others run
/// inside [`unless_interrupted`].
async fn run(cli: Cli) -> Outcome {
    let face = &cli.face;
    match cli.command {
        Command::Up(args) => up::run(args, face).await,
        Command::Node(args) => node::run(args, face).await,
        Command::Submit(args) => submit::run(args, face).await,
        Command::Watch(args) => unless_interrupted(watch::run(args, face)).await,
        Command::Cancel(args) => unless_interrupted(cancel::run(args, face)).await,
        Command::Jobs(args) => unless_interrupted(jobs::run(args, face)).await,
        Command::Cluster(args) => unless_interrupted(cluster::run(args, face)).await,
        Command::Events(args) => unless_interrupted(events::run(args, face)).await,
        Command::Health(args) => unless_interrupted(health::run(args, face)).await,
        Command::Config(args) => unless_interrupted(config::run(args, face)).await,
        Command::Completions(args) => unless_interrupted(completions::run(args, face)).await,
    }
}

/// Drops the command at Ctrl-C, so that a bar is cleared, and the exit code is a number rather than a signal.
async fn unless_interrupted(command: impl Future<Output = Outcome>) -> Outcome {
    tokio::select! {
        outcome = command => outcome,
        Ok(()) = tokio::signal::ctrl_c() => Ok(Exit::Interrupted),
    }
}

fn end(outcome: Outcome) -> Exit {
    match outcome {
        Ok(exit) => exit,
        Err(failure) => {
            failure.lines.iter().for_each(|line| complain(line));
            failure.exit
        }
    }
}

/// Help and version are answers; anything else of clap's is a mistake, told in one line.
fn answer(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Its reader may have gone, and that is no mistake.
            drop(error.print());
            Exit::Done
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            drop(error.print());
            Exit::Refused
        }
        _ => {
            complain(&in_one_line(&error.to_string()));
            Exit::Refused
        }
    }
}

/// clap says what is wrong and what was perhaps meant, a line each, and then repeats the usage.
fn in_one_line(error: &str) -> String {
    let body = error.split("\nUsage:").next().unwrap_or(error);
    let body = body.split("\nFor more information").next().unwrap_or(body);
    let lines: Vec<&str> = body.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = lines.join("; ").replace(":; ", ": ").replace("; [", " [");
    format!("{}; `--help` tells more", line.strip_prefix("error: ").unwrap_or(&line))
}

#[cfg(test)]
mod tests;
