//! The sum of the primes between two numbers, by whichever way is the cheapest.
//!
//! Owns the choice and the window. A stretch of the layout is sieved with the primes up to [`STORED`], which are kept with
//! their places from one segment to the next. Where that does not reach the square root, the primes above, of which there
//! may be 146 million, are not kept: they are made anew for each window of some MiB, by a sieve of their own, and crossed
//! off; or, where the window is too narrow to be worth that, what is left in it is tested one by one. So memory is bounded
//! by about 6 MiB wherever the range lies. Section 7 of the contract.

#![allow(
    clippy::cast_possible_truncation,
    reason = "places within a window, and primes up to the root of 2^63, are below 2^32"
)]

use super::Cancelled;
use super::primality::is_prime;
use super::primesum::LAST;
use super::sieve::{SEGMENT, Sieve, primes_up_to};
use super::tally;
use super::wheel::{CARRIES, GAPS, MASKS, Place, RESIDUES, SPAN, class_of, first_place};

/// Byte of the layout from which on sieving primes are not kept.
const STORED_BYTES: u64 = 1 << 14;

/// Sieving primes below it are kept.
const STORED: u64 = STORED_BYTES * SPAN;

/// Bytes of a window in which primes that are not kept cross off. A larger one spreads the cost of making them further,
/// but 64 computations may run on a machine at once.
const WINDOW: usize = 4 << 20;

/// How many places are gathered before they are crossed off.
const GATHERED: usize = 1024;

/// Bytes of the layout between two looks at whether the job was cancelled, where each number left costs some work.
const STRETCH: usize = 1 << 10;

/// What it costs to test one by one, for each number of the window, in picoseconds: measured at 10^18, where windows of
/// 6 million numbers cost the same by either way. Only their ratio counts.
const TEST_PS: u64 = 100_000;

/// What it costs to make the larger sieving primes and to cross off with them, for each number up to the square root, in
/// picoseconds: measured at 2^63.
const STREAM_PS: u64 = 600;

/// The sum of the primes from `start` to `end`, both included; 0 if `start` is above `end`.
///
/// Right for all numbers of 64 bits, but sieved only up to 2^63, so that no byte's number and no prime's next multiple
/// goes beyond 64 bits. `cancelled` is looked at about every millisecond of an ordinary machine.
///
/// # Errors
/// [`Cancelled`] once `cancelled` says so.
pub(super) fn sum_of_primes(start: u64, end: u64, cancelled: &dyn Fn() -> bool) -> Result<u128, Cancelled> {
    let off_the_wheel = [2, 3, 5].into_iter().filter(|prime| (start..=end).contains(prime)).sum::<u64>();
    let mut sum = u128::from(off_the_wheel);
    if start <= end.min(LAST) {
        sum += Range { start, end: end.min(LAST) }.sum_of_primes(cancelled)?;
    }
    for number in start.max(LAST + 1)..=end {
        Cancelled::look(cancelled)?;
        sum += if is_prime(number) { u128::from(number) } else { 0 };
    }
    Ok(sum)
}

/// Numbers up to 2^63, at least one, both ends included.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
}

impl Range {
    /// The sum of the primes above 5.
    fn sum_of_primes(self, cancelled: &dyn Fn() -> bool) -> Result<u128, Cancelled> {
        let stored = primes_up_to(self.end.isqrt().min(STORED) as u32);
        let mut sieve = Sieve::new(&stored, self.start / SPAN);
        let last_byte = self.end / SPAN;
        let bytes_left = |sieve: &Sieve<'_>| usize::try_from(last_byte + 1 - sieve.byte()).unwrap_or(usize::MAX);
        let size = if self.end.isqrt() < STORED { SEGMENT } else { WINDOW };
        let mut window = vec![0; size.min(bytes_left(&sieve))];
        let mut sum = 0;
        while sieve.byte() <= last_byte {
            let size = window.len().min(bytes_left(&sieve));
            let mut window = Window { from_byte: sieve.byte(), bytes: &mut window[..size] };
            for segment in window.bytes.chunks_mut(SEGMENT) {
                Cancelled::look(cancelled)?;
                sieve.next(segment);
            }
            window.trim(self);
            let root = self.end.min(window.last()).isqrt();
            sum += if root < STORED {
                window.sum(cancelled)?
            } else if window.is_cheaper_to_test(root) {
                window.sum_tested(cancelled)?
            } else {
                window.cross_off_beyond_stored(root, &stored, cancelled)?;
                window.sum(cancelled)?
            };
        }
        Ok(sum)
    }
}

/// A stretch of the layout.
#[derive(Debug)]
struct Window<'a> {
    from_byte: u64,
    bytes: &'a mut [u8],
}

impl Window<'_> {
    /// The last number that a window's last byte stands for.
    fn last(&self) -> u64 {
        (self.from_byte + self.bytes.len() as u64) * SPAN - 1
    }

    /// Takes away what lies in the range's first and last byte, but not in the range.
    fn trim(&mut self, range: Range) {
        let (from_byte, last_byte) = (self.from_byte, self.from_byte + self.bytes.len() as u64 - 1);
        for byte in [from_byte, last_byte] {
            for (bit, residue) in RESIDUES.iter().enumerate() {
                if !(range.start..=range.end).contains(&(byte * SPAN + residue)) {
                    self.bytes[(byte - from_byte) as usize] &= !(1 << bit);
                }
            }
        }
    }

    fn is_cheaper_to_test(&self, root: u64) -> bool {
        self.bytes.len() as u64 * SPAN * TEST_PS < root * STREAM_PS
    }

    fn sum(&self, cancelled: &dyn Fn() -> bool) -> Result<u128, Cancelled> {
        let mut sum = 0;
        let mut byte = self.from_byte;
        for segment in self.bytes.chunks(SEGMENT) {
            Cancelled::look(cancelled)?;
            sum += tally::sum(byte, segment);
            byte += segment.len() as u64;
        }
        Ok(sum)
    }

    /// The sum of the primes of what is left, each tested.
    fn sum_tested(&self, cancelled: &dyn Fn() -> bool) -> Result<u128, Cancelled> {
        let mut sum = 0;
        let mut byte = self.from_byte;
        for stretch in self.bytes.chunks(STRETCH) {
            Cancelled::look(cancelled)?;
            tally::for_each(byte, stretch, |number| sum += if is_prime(number) { u128::from(number) } else { 0 });
            byte += stretch.len() as u64;
        }
        Ok(sum)
    }

    /// Crosses off the multiples of all primes from [`STORED`] to `root`. Larger ones that come along do no harm: they
    /// begin at their squares, behind the window.
    fn cross_off_beyond_stored(
        &mut self,
        root: u64,
        stored: &[u32],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Cancelled> {
        let mut primes = Sieve::new(stored, STORED_BYTES);
        let last_byte = root / SPAN;
        let mut hits = Hits::new();
        let mut segment = vec![0; SEGMENT.min(last_byte.saturating_sub(STORED_BYTES) as usize + 1)];
        while primes.byte() <= last_byte {
            let mut byte = primes.byte();
            primes.next(&mut segment);
            for stretch in segment.chunks(STRETCH) {
                Cancelled::look(cancelled)?;
                if byte < self.bytes.len() as u64 {
                    tally::for_each(byte, stretch, |prime| self.cross_off(prime));
                } else {
                    tally::for_each(byte, stretch, |prime| hits.note(prime, self));
                }
                byte += stretch.len() as u64;
            }
        }
        hits.cross_off(self);
        Ok(())
    }

    #[inline]
    fn cross_off(&mut self, prime: u64) {
        let Place { byte, spoke } = first_place(prime, prime, self.from_byte);
        let mut at = (byte - self.from_byte) as usize;
        let mut spoke = usize::from(spoke & 7);
        let (a, class) = ((prime / SPAN) as usize, class_of(prime) & 7);
        while let Some(byte) = self.bytes.get_mut(at) {
            *byte &= MASKS[class][spoke];
            at += a * GAPS[spoke] + CARRIES[class][spoke];
            spoke = (spoke + 1) & 7;
        }
    }
}

/// Multiples to be crossed off in a window, of primes that have at most one there. To cross off each when it is found
/// would wait for memory each time; of a batch the processor has many under way at once.
struct Hits {
    /// Byte of the window, 22 bits or more, then 8 bits of mask.
    places: [u32; GATHERED],
    count: usize,
}

impl Hits {
    fn new() -> Self {
        Self { places: [0; GATHERED], count: 0 }
    }

    /// Notes the multiple of `prime` that lies in the window, if one does.
    #[inline]
    fn note(&mut self, prime: u64, window: &mut Window<'_>) {
        let Place { byte, spoke } = first_place(prime, prime, window.from_byte);
        let (at, mask) = (byte - window.from_byte, MASKS[class_of(prime) & 7][usize::from(spoke & 7)]);
        // Written down in any case and counted if it is in the window: a branch on that could not be foreseen.
        self.places[self.count % GATHERED] = (at as u32) << 8 | u32::from(mask);
        self.count += usize::from(at < window.bytes.len() as u64);
        if self.count == GATHERED {
            self.cross_off(window);
        }
    }

    fn cross_off(&mut self, window: &mut Window<'_>) {
        for place in &self.places[..self.count] {
            if let Some(byte) = window.bytes.get_mut((place >> 8) as usize) {
                *byte &= *place as u8;
            }
        }
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::jobs::testing::{Xorshift, is_prime_by_division, sum_by_plain_sieve};

    fn sum(start: u64, end: u64) -> u128 {
        sum_of_primes(start, end, &|| false).unwrap()
    }

    #[test]
    fn every_start_and_end_up_to_200_agrees_with_division() {
        for start in 0..=200 {
            let mut expected = 0;
            for end in start..=200 {
                expected += if is_prime_by_division(end) { u128::from(end) } else { 0 };
                assert_eq!(sum(start, end), expected, "{start}..={end}");
            }
        }
        assert_eq!(sum(11, 7), 0);
    }

    #[test]
    fn known_sums_are_met() {
        for (end, expected) in
            [(2, 2), (10, 17), (1_000, 76_127), (1_000_000, 37_550_402_023), (10_000_000, 3_203_324_994_356)]
        {
            assert_eq!(sum(1, end), expected, "1..={end}");
        }
    }

    #[test]
    fn random_ranges_agree_with_a_plain_sieve() {
        let mut random = Xorshift(7);
        for bits in 10..=40 {
            let start = random.next() >> (64 - bits);
            let end = start + random.below(20_000);
            assert_eq!(sum(start, end), sum_by_plain_sieve(start, end), "{start}..={end}");
        }
    }

    #[test]
    fn range_over_several_segments_with_medium_primes_agrees_with_a_plain_sieve() {
        let (start, end) = (4_000_000_007, 4_000_000_007 + SEGMENT as u64 * SPAN + 400_000);
        assert_eq!(sum(start, end), sum_by_plain_sieve(start, end));
    }

    #[test]
    fn range_in_which_the_root_outgrows_the_stored_primes_agrees_with_a_plain_sieve() {
        let square = STORED * STORED;
        // The first number of its byte: it comes along with no smaller prime, and its square ends the range.
        let root = (STORED + 31..).step_by(30).find(|&number| is_prime(number)).unwrap();
        for (start, end) in [
            (square - 40_000, square + 40_000),
            (square - 1, square + 1),
            (square + 2_000_000, square + 2_700_000),
            (root * root - 700_000, root * root),
        ] {
            assert_eq!(sum(start, end), sum_by_plain_sieve(start, end), "{start}..={end}");
        }
    }

    #[test]
    fn sieving_and_testing_one_by_one_agree_beyond_the_stored_primes() {
        let stored = primes_up_to(STORED as u32);
        // The narrow window has at most one multiple of each larger prime, the wide one has several.
        for (from_byte, size) in [(100_000_000_000, 1_500), (20_000_000_000, 40_000)] {
            let mut bytes = vec![0; size];
            Sieve::new(&stored, from_byte).next(&mut bytes);
            let mut window = Window { from_byte, bytes: &mut bytes };
            let tested = window.sum_tested(&|| false).unwrap();
            assert_ne!(window.sum(&|| false).unwrap(), tested);
            window.cross_off_beyond_stored(window.last().isqrt(), &stored, &|| false).unwrap();
            assert_eq!(window.sum(&|| false).unwrap(), tested, "byte {from_byte}");
        }
    }

    #[test]
    fn a_window_of_several_segments_sums_them_all() {
        let mut bytes = vec![0x81; 2 * SEGMENT + 5];
        let window = Window { from_byte: 7, bytes: &mut bytes };
        assert_eq!(window.sum(&|| false), Ok(tally::sum(7, window.bytes)));
    }

    #[test]
    fn at_ten_to_the_18_a_window_of_six_million_numbers_costs_the_same_by_either_way() {
        let mut bytes = vec![0; 210_000];
        let mut is_cheaper_to_test =
            |size: usize| Window { from_byte: 0, bytes: &mut bytes[..size] }.is_cheaper_to_test(1_000_000_000);
        assert!(is_cheaper_to_test(190_000) && !is_cheaper_to_test(210_000));
    }

    #[test]
    fn numbers_around_the_last_that_is_sieved_and_the_last_of_64_bits_are_exact() {
        for (start, end) in
            [(LAST - 1_999, LAST), (LAST - 30, LAST + 30), (LAST + 1, LAST + 100), (u64::MAX - 100, u64::MAX)]
        {
            let expected = (start..=end).filter(|&number| is_prime(number)).map(u128::from).sum();
            assert_eq!(sum(start, end), expected, "{start}..={end}");
        }
    }

    #[test]
    fn every_way_of_computing_ends_at_the_look_that_says_so() {
        let far = 1_000_000_000_000_000_000;
        for (start, end, look) in [
            (1, 1 << 62, 1),
            (1, 1 << 40, 3),
            (far, far + 9_000, 2),
            (LAST - 2_000_000, LAST, 40),
            (0, u64::MAX, 2),
            (LAST + 1, u64::MAX, 9),
        ] {
            let looks = Cell::new(0);
            let cancelled = || {
                looks.set(looks.get() + 1);
                looks.get() >= look
            };
            assert_eq!(sum_of_primes(start, end, &cancelled), Err(Cancelled), "{start}..={end}");
            assert_eq!(looks.get(), look, "{start}..={end}");
        }
    }

    #[test]
    fn crossing_off_with_larger_primes_ends_at_the_look_that_says_so() {
        let stored = primes_up_to(STORED as u32);
        let looks = Cell::new(0);
        let cancelled = || {
            looks.set(looks.get() + 1);
            looks.get() >= 5
        };
        let mut window = Window { from_byte: LAST / SPAN - 100, bytes: &mut [u8::MAX; 100] };
        let end = window.cross_off_beyond_stored(window.last().isqrt(), &stored, &cancelled);
        assert_eq!((end, looks.get()), (Err(Cancelled), 5));
    }
}
