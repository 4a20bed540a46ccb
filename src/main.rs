//! The binary: hands the command line to [`floodline::cli`] and ends with its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    floodline::cli::main()
}
