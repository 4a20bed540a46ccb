//! The job kinds: how each is checked, split, run and folded (section 7 of the contract).
//!
//! Owns the one table of kinds. Never knows of nodes, time or the network; depends on `std` alone.
//!
//! What a kind does stands in one file, as an implementation of `Job`. A fourth kind is such a file, and a line in each
//! part of the table below: [`Payload`], [`Kind`], `Payload::with_job` and `Kind::row`.

#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::wildcard_enum_match_arm)]

mod max;
mod presieve;
mod primality;
mod primecount;
mod primes_between;
mod primesum;
mod share;
mod sieve;
mod tally;
#[cfg(test)]
mod testing;
mod wheel;

use std::error::Error;
use std::fmt;
use std::sync::Arc;

// The table.

/// What a client asks for: a kind with its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The largest of a non-empty list.
    Max(Arc<[i64]>),
    /// How many of a list are prime, repeats counted.
    PrimeCount(Arc<[u64]>),
    /// The sum of the primes from `start` to `end`, both included.
    PrimeSum {
        /// First number of the range.
        start: u64,
        /// Last number of the range, at most 2^63.
        end: u64,
    },
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The largest of a list.
    Max,
    /// How many of a list are prime.
    PrimeCount,
    /// The sum of the primes of a range.
    PrimeSum,
}

impl Payload {
    fn with_job<T>(&self, act: impl FnOnce(Kind, &dyn Job) -> T) -> T {
        match self {
            Self::Max(list) => act(Kind::Max, &max::Max(list)),
            Self::PrimeCount(list) => act(Kind::PrimeCount, &primecount::PrimeCount(list)),
            &Self::PrimeSum { start, end } => act(Kind::PrimeSum, &primesum::PrimeSum { start, end }),
        }
    }
}

impl Kind {
    fn row(self) -> Row {
        match self {
            Self::Max => Row { name: "MAX", combine: max::combine },
            Self::PrimeCount => Row { name: "PRIMECOUNT", combine: primecount::combine },
            Self::PrimeSum => Row { name: "PRIMESUM", combine: primesum::combine },
        }
    }
}

/// What a kind is apart from any input.
struct Row {
    /// As people and contracts write it.
    name: &'static str,
    /// Two parts of an answer in one. The order of parts makes no difference.
    combine: fn(Value, Value) -> Value,
}

/// What a kind does with its input.
trait Job {
    /// Whether the job can be taken.
    fn check(&self, max_numbers: usize) -> Result<(), Refused>;
    /// Into how many slices it is cut, at least 1.
    fn slices(&self, cut: Cut) -> u32;
    /// One of that many slices, `None` if there is no such one or nothing in it.
    fn slice(&self, slices: u32, slice: u32) -> Option<Payload>;
    /// Computes; ends early if `cancelled`, looked at every millisecond or so, says so.
    fn run(&self, cancelled: &dyn Fn() -> bool) -> Result<Value, Cancelled>;
}

// What the rest of the crate sees of it.

impl Payload {
    /// The kind of job.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.with_job(|kind, _| kind)
    }

    /// Whether the job can be taken. `max_numbers` is the most that a list may hold (`FLOODLINE_MAX_NUMBERS`).
    ///
    /// # Errors
    /// [`Refused`] for an empty or too long list, a start above the end, an end above 2^63.
    pub fn check(&self, max_numbers: usize) -> Result<(), Refused> {
        self.with_job(|_, job| job.check(max_numbers))
    }

    /// Into how many slices the job is cut, at least 1: a list one for each live worker, a range some for each; never more
    /// than it has numbers.
    #[must_use]
    pub fn slices(&self, cut: Cut) -> u32 {
        self.with_job(|_, job| job.slices(cut))
    }

    /// Slice number `slice`, counted from 0, when the job is cut into `slices`. Together the slices hold each number of
    /// the job once, in order, and differ by at most one number in size.
    ///
    /// `None` if there is no such slice, or nothing in it because there are more slices than numbers.
    #[must_use]
    pub fn slice(&self, slices: u32, slice: u32) -> Option<Self> {
        self.with_job(|_, job| job.slice(slices, slice))
    }

    /// Computes the answer, on the calling thread, in at most some MiB of memory. `cancelled` is looked at about every
    /// millisecond.
    ///
    /// An input that [`check`](Self::check) refuses has an answer too: the smallest number of 64 bits is the MAX of
    /// nothing, and a range beyond 2^63 has its exact sum, computed slowly.
    ///
    /// # Errors
    /// [`Cancelled`] once `cancelled` returned true.
    pub fn run(&self, cancelled: &dyn Fn() -> bool) -> Result<Value, Cancelled> {
        self.with_job(|_, job| job.run(cancelled))
    }
}

impl Kind {
    /// The answer of a job from those of all its slices, in any order; `None` without any.
    pub fn fold(self, parts: impl Iterator<Item = Value>) -> Option<Value> {
        parts.reduce(self.row().combine)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.row().name)
    }
}

/// An answer or a part of one. 128 bits hold the sum of all primes below 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub i128);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What the count of slices depends on, at the moment of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Workers that would get work, the leader among them. 0 counts as 1.
    pub live_workers: u32,
    /// Slices of a range for each of them.
    pub tasks_per_worker: u32,
    /// The most slices of a range.
    pub max_tasks: u32,
}

/// Why a job cannot be taken: a sentence that says what, which value, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Refused {}

/// A computation ended early because it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl Cancelled {
    fn look(cancelled: &dyn Fn() -> bool) -> Result<(), Self> {
        if cancelled() { Err(Self) } else { Ok(()) }
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the computation was cancelled")
    }
}

impl Error for Cancelled {}

// What the kinds that take lists have in common.

fn check_list(kind: Kind, numbers: usize, max_numbers: usize) -> Result<(), Refused> {
    if numbers == 0 {
        return Err(Refused(format!("{kind} got an empty list: give at least one number")));
    }
    if numbers > max_numbers {
        return Err(Refused(format!(
            "{kind} got {numbers} numbers, the limit is {max_numbers} (FLOODLINE_MAX_NUMBERS): split the list or raise the limit"
        )));
    }
    Ok(())
}

fn slices_of_list(numbers: usize, cut: Cut) -> u32 {
    cut.live_workers.min(u32::try_from(numbers).unwrap_or(u32::MAX)).max(1)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::testing::Xorshift;
    use super::*;

    /// One job of each kind, of a few hundred numbers.
    fn jobs() -> [Payload; 3] {
        let mut random = Xorshift(3);
        let signed = (0..211).map(|_| random.next().cast_signed()).collect();
        let unsigned = (0..307).map(|_| random.below(1_000)).collect();
        [Payload::Max(signed), Payload::PrimeCount(unsigned), Payload::PrimeSum { start: 3, end: 400 }]
    }

    #[test]
    fn every_cut_folds_to_the_answer_of_the_whole() {
        for job in jobs() {
            let whole = job.run(&|| false).unwrap();
            for slices in (1..=40).chain([307, 1_000]) {
                let parts = (0..slices).filter_map(|slice| job.slice(slices, slice));
                let answers = parts.map(|part| {
                    assert_eq!(part.kind(), job.kind());
                    assert_eq!(part.check(usize::MAX), Ok(()));
                    part.run(&|| false).unwrap()
                });
                assert_eq!(job.kind().fold(answers), Some(whole), "{} in {slices}", job.kind());
            }
        }
    }

    #[test]
    fn slices_that_do_not_exist_are_none() {
        for job in jobs() {
            for (slices, slice) in [(0, 0), (1, 1), (4, 4), (u32::MAX, u32::MAX), (1_000, 999)] {
                assert_eq!(job.slice(slices, slice), None, "{} {slice} of {slices}", job.kind());
            }
        }
    }

    #[test]
    fn every_slice_of_the_chosen_cut_exists() {
        for job in jobs() {
            for live_workers in [0, 1, 5, 250, u32::MAX] {
                let slices = job.slices(Cut { live_workers, tasks_per_worker: 4, max_tasks: 32 });
                assert!(slices >= 1 && job.slice(slices, slices - 1).is_some(), "{} for {live_workers}", job.kind());
            }
        }
    }

    #[test]
    fn lists_are_dealt_out_over_the_live_workers() {
        let cut = |live_workers| Cut { live_workers, tasks_per_worker: 4, max_tasks: 32 };
        let list = Payload::Max((0..7).collect());
        assert_eq!([0, 1, 5, 9].map(|live| list.slices(cut(live))), [1, 1, 5, 7]);
        let dealt: Vec<_> = (0..3).filter_map(|slice| list.slice(3, slice)).collect();
        assert_eq!(dealt, [&[0, 1, 2][..], &[3, 4], &[5, 6]].map(|list| Payload::Max(list.into())));
        assert_eq!([0, 7].map(|numbers| Payload::PrimeCount(vec![2; numbers].into()).slices(cut(5))), [1, 5]);
    }

    #[test]
    fn empty_and_too_long_lists_are_refused_with_the_limit() {
        let [max, count, _] = jobs();
        assert_eq!((max.check(211), count.check(307)), (Ok(()), Ok(())));
        let long =
            "PRIMECOUNT got 307 numbers, the limit is 306 (FLOODLINE_MAX_NUMBERS): split the list or raise the limit";
        assert_eq!(count.check(306).unwrap_err().to_string(), long);
        let empty = "MAX got an empty list: give at least one number";
        assert_eq!(Payload::Max([].into()).check(5).unwrap_err().to_string(), empty);
    }

    #[test]
    fn kinds_have_the_names_of_the_contract() {
        assert_eq!(jobs().map(|job| job.kind().to_string()), ["MAX", "PRIMECOUNT", "PRIMESUM"]);
        assert_eq!(format!("{:>12}", Kind::Max), "         MAX");
    }

    #[test]
    fn nothing_folds_to_nothing_and_sums_do_not_overflow() {
        for kind in [Kind::Max, Kind::PrimeCount, Kind::PrimeSum] {
            assert_eq!(kind.fold([].into_iter()), None);
            assert_eq!(kind.fold([Value(-7)].into_iter()), Some(Value(-7)));
            assert_eq!(kind.fold([Value(i128::MAX), Value(1)].into_iter()), Some(Value(i128::MAX)));
        }
        assert_eq!(Kind::Max.fold([Value(2), Value(9), Value(4)].into_iter()), Some(Value(9)));
        assert_eq!(Kind::PrimeSum.fold([Value(2), Value(9), Value(4)].into_iter()), Some(Value(15)));
    }

    #[test]
    fn each_kind_ends_at_the_look_that_says_so() {
        let long = [
            Payload::Max(vec![1; 300_000].into()),
            Payload::PrimeCount(vec![4; 3_000].into()),
            Payload::PrimeSum { start: 1, end: 1 << 60 },
        ];
        for job in long {
            let looks = Cell::new(0);
            let cancelled = || {
                looks.set(looks.get() + 1);
                looks.get() >= 3
            };
            assert_eq!(job.run(&cancelled), Err(Cancelled), "{}", job.kind());
            assert_eq!(looks.get(), 3, "{}", job.kind());
        }
    }
}
