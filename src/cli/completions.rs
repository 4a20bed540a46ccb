//! `floodline completions`: what a shell needs to complete commands and flags.

use clap::{CommandFactory, ValueEnum};
use clap_complete::generate;

use super::exit::{Exit, Outcome};
use super::face::Face;

/// Arguments of `floodline completions`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell that is to read them
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    /// Bourne again.
    #[value(help = "source <(floodline completions bash)")]
    Bash,
    /// Z.
    #[value(help = "floodline completions zsh > \"${fpath[1]}/_floodline\"")]
    Zsh,
    /// Friendly interactive.
    #[value(help = "floodline completions fish | source")]
    Fish,
}

/// Prints the script.
pub(crate) async fn run(args: Args, face: &Face) -> Outcome {
    face.say(script(args.shell).trim_end())?;
    Ok(Exit::Done)
}

fn script(shell: Shell) -> String {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    // Into memory first: the generator panics where a reader has gone.
    let mut script = Vec::new();
    generate(shell, &mut super::Cli::command(), "floodline", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_learns_of_commands_flags_and_settings() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            for word in ["completions", "output", "lease-ttl"] {
                assert!(script.contains(word), "{shell:?} lacks {word}");
            }
        }
    }
}
