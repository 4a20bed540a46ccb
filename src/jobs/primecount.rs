//! PRIMECOUNT: how many numbers of a list are prime, repeats counted (section 7 of the contract).

use std::sync::Arc;

use super::primality::is_prime;
use super::share::share_of_list;
use super::{Cancelled, Cut, Job, Kind, Payload, Refused, Value, check_list, slices_of_list};

/// Numbers between two looks at whether the job was cancelled: a millisecond, if all are large primes.
const STRETCH: usize = 256;

/// The job over its list.
pub(super) struct PrimeCount<'a>(pub(super) &'a Arc<[u64]>);

impl Job for PrimeCount<'_> {
    fn check(&self, max_numbers: usize) -> Result<(), Refused> {
        check_list(Kind::PrimeCount, self.0.len(), max_numbers)
    }

    fn slices(&self, cut: Cut) -> u32 {
        slices_of_list(self.0.len(), cut)
    }

    fn slice(&self, slices: u32, slice: u32) -> Option<Payload> {
        share_of_list(self.0, slices, slice).map(|list| Payload::PrimeCount(list.into()))
    }

    fn run(&self, cancelled: &dyn Fn() -> bool) -> Result<Value, Cancelled> {
        let mut count = 0;
        for stretch in self.0.chunks(STRETCH) {
            Cancelled::look(cancelled)?;
            count += stretch.iter().filter(|&&number| is_prime(number)).count() as i128;
        }
        Ok(Value(count))
    }
}

/// Two parts of an answer in one.
pub(super) fn combine(a: Value, b: Value) -> Value {
    Value(a.0.saturating_add(b.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::testing::{Xorshift, is_prime_by_division};

    fn run(list: &[u64]) -> Value {
        Payload::PrimeCount(list.into()).run(&|| false).unwrap()
    }

    #[test]
    fn repeats_count_each_time() {
        assert_eq!(run(&[]), Value(0));
        assert_eq!(run(&[0, 1, 2, 2, 3, 4, 2, u64::MAX, u64::MAX - 58]), Value(5));
    }

    #[test]
    fn list_over_several_stretches_agrees_with_division() {
        let mut random = Xorshift(99);
        let list: Vec<_> = (0..3 * STRETCH + 1).map(|_| random.below(1 << 24)).collect();
        let expected = list.iter().filter(|&&number| is_prime_by_division(number)).count();
        assert_eq!(run(&list), Value(expected as i128));
    }
}
