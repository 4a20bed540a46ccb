//! MAX: the largest of a non-empty list (section 7 of the contract).

use std::sync::Arc;

use super::share::share_of_list;
use super::{Cancelled, Cut, Job, Kind, Payload, Refused, Value, check_list, slices_of_list};

/// Numbers between two looks at whether the job was cancelled: some tens of microseconds.
const STRETCH: usize = 1 << 16;

/// The job over its list.
pub(super) struct Max<'a>(pub(super) &'a Arc<[i64]>);

impl Job for Max<'_> {
    fn check(&self, max_numbers: usize) -> Result<(), Refused> {
        check_list(Kind::Max, self.0.len(), max_numbers)
    }

    fn slices(&self, cut: Cut) -> u32 {
        slices_of_list(self.0.len(), cut)
    }

    fn slice(&self, slices: u32, slice: u32) -> Option<Payload> {
        share_of_list(self.0, slices, slice).map(|list| Payload::Max(list.into()))
    }

    /// The largest; of an empty list, which [`check`](Job::check) refuses, the smallest number there is.
    fn run(&self, cancelled: &dyn Fn() -> bool) -> Result<Value, Cancelled> {
        let mut largest = i64::MIN;
        for stretch in self.0.chunks(STRETCH) {
            Cancelled::look(cancelled)?;
            largest = stretch.iter().copied().fold(largest, i64::max);
        }
        Ok(Value(largest.into()))
    }
}

/// Two parts of an answer in one.
pub(super) fn combine(a: Value, b: Value) -> Value {
    a.max(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(list: &[i64]) -> Value {
        Payload::Max(list.into()).run(&|| false).unwrap()
    }

    #[test]
    fn largest_is_found_wherever_it_stands() {
        assert_eq!(run(&[i64::MIN]), Value(i64::MIN.into()));
        assert_eq!(run(&[-3, -1, -2]), Value(-1));
        assert_eq!(run(&[i64::MAX, 0, i64::MIN]), Value(i64::MAX.into()));
        let mut long = vec![5; 2 * STRETCH + 1];
        *long.last_mut().unwrap() = 6;
        assert_eq!(run(&long), Value(6));
    }
}
