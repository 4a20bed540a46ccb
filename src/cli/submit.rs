//! `floodline submit`: hands in a job and follows it to its end.

use std::path::PathBuf;
use std::time::Duration;

use super::bar::Bar;
use super::exit::{Exit, Failure, Outcome};
use super::face::Face;
use super::follow::{Until, show};
use super::numbers;
use crate::client::{Client, Follow, fresh_job_id};
use crate::config::{Allowed, Parse};
use crate::jobs::Payload;
use crate::protocol::ids::JobId;

const SIGNED: &str = "whole numbers from -9223372036854775808 to 9223372036854775807";
const UNSIGNED: &str = "whole numbers from 0 to 18446744073709551615";
const BOUNDS: &str = "START and END, whole numbers from 0 to 9223372036854775808";

/// Arguments of `floodline submit`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,

    /// Come back as soon as the cluster has taken the job, and print its id
    #[arg(long, global = true)]
    detach: bool,

    /// Id of the job; the same id with the same input is the same job [default: a new one]
    #[arg(long, global = true, value_name = "ID", value_parser = job_id)]
    job_id: Option<JobId>,

    /// Time from now after which the job fails unless it has ended, such as 90s or 2h
    #[arg(long, global = true, value_name = "TIME", value_parser = deadline)]
    deadline: Option<Duration>,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Kind {
    /// The largest of a list of numbers
    Max(List),
    /// How many of a list of numbers are prime, repeats counted
    Primecount(List),
    /// The sum of the primes from START to END, both included
    Primesum(Range),
}

#[derive(Clone, Debug, clap::Args)]
struct List {
    /// Numbers, separated by white space; `-` or none for standard input
    #[arg(value_name = "NUMBER", allow_negative_numbers = true)]
    numbers: Vec<String>,

    /// File with the numbers, separated by white space; `-` for standard input
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

#[derive(Clone, Debug, clap::Args)]
struct Range {
    /// First number of the range; `-` or none for standard input
    #[arg(allow_negative_numbers = true)]
    start: Option<String>,

    /// Last number of the range
    #[arg(allow_negative_numbers = true)]
    end: Option<String>,

    /// File with START and END, separated by white space; `-` for standard input
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

/// Runs the command. It takes Ctrl-C itself, to say that the job goes on.
pub(crate) async fn run(args: Args, face: &Face) -> Outcome {
    let nodes = face.nodes()?;
    let payload = payload(&args.kind)?;
    let title = title(&payload);
    let id = args.job_id.map_or_else(fresh_job_id, Ok).map_err(|error| Exit::Refused.because(error))?;
    let until = if args.detach { Until::Acknowledged } else { Until::Ended };
    let bar = Bar::new(&title, face);
    bar.wait("looks for a node");
    let mut follow = Client::connect(nodes).await?.submit(id.clone(), payload, args.deadline);
    bar.wait("waits to be admitted");
    let outcome = tokio::select! {
        outcome = show(&mut follow, until, Some(&title), &bar, face) => Some(outcome),
        Ok(()) = tokio::signal::ctrl_c() => None,
    };
    bar.clear();
    match outcome {
        Some(Err(failure)) if failure.exit == Exit::Unreachable => {
            Err(failure.about(&format!("lost sight of job {id}")))
        }
        Some(outcome) => outcome,
        None => Err(interrupted(&id, &follow)),
    }
}

fn interrupted(id: &JobId, follow: &Follow) -> Failure {
    Exit::Interrupted.because(if follow.is_acknowledged() {
        format!("interrupted, but job {id} goes on; `floodline watch {id}` follows it, `floodline cancel {id}` ends it")
    } else {
        format!(
            "interrupted before job {id} was acknowledged; it may be taken all the same, `floodline watch {id}` tells"
        )
    })
}

/// Refuses what no cluster would take; how many numbers are too many is the cluster's to say.
fn payload(kind: &Kind) -> Result<Payload, Failure> {
    let payload = match kind {
        Kind::Max(list) => Payload::Max(numbers::read(&list.numbers, list.file.as_deref(), SIGNED)?.into()),
        Kind::Primecount(list) => {
            Payload::PrimeCount(numbers::read(&list.numbers, list.file.as_deref(), UNSIGNED)?.into())
        }
        Kind::Primesum(range) => {
            let words: Vec<String> = range.start.iter().chain(&range.end).cloned().collect();
            let bounds: Vec<u64> = numbers::read(&words, range.file.as_deref(), BOUNDS)?;
            let [start, end] = *bounds.as_slice() else {
                let count = bounds.len();
                return Err(Exit::Refused.because(format!("a range has two numbers, not {count}; give {BOUNDS}")));
            };
            Payload::PrimeSum { start, end }
        }
    };
    payload.check(usize::MAX).map_err(|refused| Exit::Refused.because(refused))?;
    Ok(payload)
}

/// What was asked for, as short as people can say it.
fn title(payload: &Payload) -> String {
    let of = |count: usize| if count == 1 { "1 number".to_owned() } else { format!("{count} numbers") };
    match payload {
        Payload::Max(numbers) => format!("MAX of {}", of(numbers.len())),
        Payload::PrimeCount(numbers) => format!("PRIMECOUNT of {}", of(numbers.len())),
        Payload::PrimeSum { start, end } => format!("PRIMESUM {start}..={end}"),
    }
}

fn deadline(text: &str) -> Result<Duration, String> {
    let allowed = Allowed::Span(Duration::from_millis(1), Duration::from_hours(24 * 365));
    Duration::parse(text, &allowed).ok_or_else(|| format!("give {allowed}"))
}

fn job_id(text: &str) -> Result<JobId, String> {
    JobId::new(text).map_err(|error| format!("give {}", error.allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(bounds: &[&str]) -> Result<Payload, Failure> {
        let [start, end] = [0, 1].map(|at| bounds.get(at).map(|&text| text.to_owned()));
        payload(&Kind::Primesum(Range { start, end, file: None }))
    }

    #[test]
    fn a_range_is_two_numbers_in_order_up_to_two_to_the_63() {
        assert_eq!(range(&["0", "9223372036854775808"]), Ok(Payload::PrimeSum { start: 0, end: 1 << 63 }));
        let told = |bounds: &[&str]| range(bounds).expect_err("refused").lines.join("\n");
        assert_eq!(told(&["5", "4"]), "PRIMESUM got a start of 5 above its end of 4: swap them");
        assert!(told(&["5", "9223372036854775809"]).contains("the limit is 2^63"));
        assert_eq!(told(&["5"]), format!("a range has two numbers, not 1; give {BOUNDS}"));
        assert_eq!(told(&["-5", "5"]), format!("argument 1: \"-5\" is not allowed; give {BOUNDS}"));
    }

    #[test]
    fn a_title_names_the_kind_and_its_input() {
        assert_eq!(title(&Payload::Max([1].into())), "MAX of 1 number");
        assert_eq!(title(&Payload::PrimeCount([1, 2].into())), "PRIMECOUNT of 2 numbers");
        assert_eq!(title(&Payload::PrimeSum { start: 1, end: 9 }), "PRIMESUM 1..=9");
    }
}
