//! PRIMESUM: the sum of the primes of a range (section 7 of the contract).

use super::primes_between::sum_of_primes;
use super::share::share;
use super::{Cancelled, Cut, Job, Payload, Refused, Value};

/// The last number that a range may hold.
pub(super) const LAST: u64 = 1 << 63;

/// The job over its range, both ends included.
pub(super) struct PrimeSum {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl PrimeSum {
    fn numbers(&self) -> u128 {
        (u128::from(self.end) + 1).saturating_sub(u128::from(self.start))
    }
}

impl Job for PrimeSum {
    fn check(&self, _max_numbers: usize) -> Result<(), Refused> {
        let Self { start, end } = self;
        if start > end {
            return Err(Refused(format!("PRIMESUM got a start of {start} above its end of {end}: swap them")));
        }
        if *end > LAST {
            return Err(Refused(format!("PRIMESUM got an end of {end}, the limit is 2^63 = {LAST}: give a lower end")));
        }
        Ok(())
    }

    fn slices(&self, cut: Cut) -> u32 {
        let wanted = cut.tasks_per_worker.saturating_mul(cut.live_workers).min(cut.max_tasks);
        wanted.min(u32::try_from(self.numbers()).unwrap_or(u32::MAX)).max(1)
    }

    fn slice(&self, slices: u32, slice: u32) -> Option<Payload> {
        let share = share(self.numbers(), slices, slice)?;
        let start = self.start.checked_add(u64::try_from(share.start).ok()?)?;
        let end = self.start.checked_add(u64::try_from(share.end - 1).ok()?)?;
        Some(Payload::PrimeSum { start, end })
    }

    fn run(&self, cancelled: &dyn Fn() -> bool) -> Result<Value, Cancelled> {
        let sum = sum_of_primes(self.start, self.end, cancelled)?;
        Ok(Value(i128::try_from(sum).unwrap_or(i128::MAX)))
    }
}

/// Two parts of an answer in one.
pub(super) fn combine(a: Value, b: Value) -> Value {
    Value(a.0.saturating_add(b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Payload {
        Payload::PrimeSum { start, end }
    }

    #[test]
    fn ranges_that_are_no_job_are_refused_with_the_value_and_the_limit() {
        assert_eq!(range(0, LAST).check(0), Ok(()));
        assert_eq!(range(7, 7).check(0), Ok(()));
        let swapped = range(9, 8).check(0).unwrap_err().to_string();
        assert_eq!(swapped, "PRIMESUM got a start of 9 above its end of 8: swap them");
        let beyond = range(0, LAST + 1).check(0).unwrap_err().to_string();
        let expected =
            "PRIMESUM got an end of 9223372036854775809, the limit is 2^63 = 9223372036854775808: give a lower end";
        assert_eq!(beyond, expected);
    }

    #[test]
    fn slices_are_some_for_each_worker_within_the_limit_and_the_numbers() {
        let slices = |start, end, live_workers| {
            range(start, end).slices(Cut { live_workers, tasks_per_worker: 4, max_tasks: 32 })
        };
        assert_eq!(slices(1, 1_000, 0), 1);
        assert_eq!(slices(1, 1_000, 1), 4);
        assert_eq!(slices(1, 1_000, 5), 20);
        assert_eq!(slices(1, 1_000, 9), 32);
        assert_eq!(slices(1, 1_000, u32::MAX), 32);
        assert_eq!(slices(1, 3, 5), 3);
        assert_eq!(slices(5, 5, 5), 1);
        assert_eq!(slices(5, 4, 5), 1);
        assert_eq!(slices(0, u64::MAX, 5), 20);
    }

    #[test]
    fn slices_of_everything_reach_the_last_number_of_64_bits() {
        assert_eq!(range(0, u64::MAX).slice(1, 0), Some(range(0, u64::MAX)));
        assert_eq!(range(0, u64::MAX).slice(2, 1), Some(range(1 << 63, u64::MAX)));
        assert_eq!(range(9, 8).slice(2, 0), None);
    }
}
