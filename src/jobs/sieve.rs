//! The segmented sieve: stretches of the layout with the multiples of all primes up to a bound crossed off, one after
//! another.
//!
//! Owns where each sieving prime goes on in the next segment. Never knows what the numbers are wanted for. Its
//! invariant: between two segments every started prime's `at` counts from the first byte of the segment to come.
//! Section 7 of the contract.

#![allow(clippy::cast_possible_truncation, reason = "places within a segment and sieving primes are below 2^32")]

use super::presieve::{self, PRESIEVED};
use super::wheel::{CARRIES, GAPS, MASKS, Place, RESIDUES, SPAN, class_of, first_place};

/// Bytes of a segment: half of a second cache of 512 KiB.
pub(super) const SEGMENT: usize = 256 << 10;

/// Bytes of a block, in which the small primes cross off: what a first cache holds.
const BLOCK: usize = 24 << 10;

/// Primes below it cross off block by block, the others a whole segment at once: those visit a block so seldom that
/// picking up and laying down each one's place would cost more than the slower cache.
const SMALL: u32 = 10 << 10;

/// A prime at work: 12 bytes, so that the list of them streams through the cache beside the block.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    prime: u32,
    /// Bytes from the start of the segment or block to come to the next multiple.
    at: u32,
    /// Spoke of that multiple's cofactor.
    spoke: u8,
}

/// Sieves segment after segment from a byte of the layout on.
#[derive(Debug)]
pub(super) struct Sieve<'a> {
    /// Primes that are not at work yet, ascending: their squares lie ahead.
    waiting: &'a [u32],
    /// Byte of the layout at which the next segment starts.
    byte: u64,
    /// By class.
    small: [Vec<Crossing>; 8],
    /// By class.
    medium: [Vec<Crossing>; 8],
}

impl<'a> Sieve<'a> {
    /// A sieve from `byte` of the layout on that crosses off the multiples of `primes`, ascending and all below 2^22,
    /// from their squares on.
    pub(super) fn new(primes: &'a [u32], byte: u64) -> Self {
        let waiting = &primes[primes.partition_point(|&prime| prime <= PRESIEVED)..];
        Self { waiting, byte, small: Default::default(), medium: Default::default() }
    }

    /// Byte of the layout at which the next segment starts.
    pub(super) fn byte(&self) -> u64 {
        self.byte
    }

    /// Overwrites `segment`, of at most [`SEGMENT`] bytes, with the next stretch.
    pub(super) fn next(&mut self, segment: &mut [u8]) {
        let end = self.byte + segment.len() as u64;
        self.start_primes(end);
        presieve::fill(self.byte, segment);
        for until in (BLOCK..segment.len()).step_by(BLOCK).chain([segment.len()]) {
            cross_off_all(&mut self.small, segment, until);
        }
        cross_off_all(&mut self.medium, segment, segment.len());
        self.byte = end;
    }

    /// Puts to work the primes whose squares lie before byte `end`.
    fn start_primes(&mut self, end: u64) {
        while let Some((&prime, later)) = self.waiting.split_first() {
            let wide = u64::from(prime);
            if wide * wide >= end * SPAN {
                break;
            }
            let Place { byte, spoke } = first_place(wide, wide, self.byte);
            let lists = if prime < SMALL { &mut self.small } else { &mut self.medium };
            lists[class_of(wide)].push(Crossing { prime, at: (byte - self.byte) as u32, spoke });
            self.waiting = later;
        }
    }
}

fn cross_off_all(lists: &mut [Vec<Crossing>; 8], segment: &mut [u8], until: usize) {
    let [c0, c1, c2, c3, c4, c5, c6, c7] = lists;
    cross_off::<0>(c0, segment, until);
    cross_off::<1>(c1, segment, until);
    cross_off::<2>(c2, segment, until);
    cross_off::<3>(c3, segment, until);
    cross_off::<4>(c4, segment, until);
    cross_off::<5>(c5, segment, until);
    cross_off::<6>(c6, segment, until);
    cross_off::<7>(c7, segment, until);
}

/// Crosses off the multiples of primes of one class in the segment up to byte `until`, or further: but at the ends of the
/// segment it goes by whole turns of the wheel, since each switch to single steps and back costs a mispredicted branch.
/// A copy for each class, so that the masks are constants of the code.
fn cross_off<const CLASS: usize>(crossings: &mut [Crossing], segment: &mut [u8], until: usize) {
    for crossing in crossings {
        let prime = crossing.prime as usize;
        let mut at = crossing.at as usize;
        let mut spoke = usize::from(crossing.spoke & 7);
        let a = prime / SPAN as usize;
        while spoke != 0 {
            let Some(byte) = segment.get_mut(at) else { break };
            *byte &= MASKS[CLASS][spoke];
            at += a * GAPS[spoke] + CARRIES[CLASS][spoke];
            spoke = (spoke + 1) & 7;
        }
        if spoke == 0 {
            at = cross_off_turns::<CLASS>(prime, at, segment, until);
        }
        if until == segment.len() {
            while let Some(byte) = segment.get_mut(at) {
                *byte &= MASKS[CLASS][spoke];
                at += a * GAPS[spoke] + CARRIES[CLASS][spoke];
                spoke = (spoke + 1) & 7;
            }
            at -= segment.len();
        }
        crossing.at = at as u32;
        crossing.spoke = spoke as u8;
    }
}

/// Crosses off whole turns of the wheel that begin before `until` and fit into the segment, from `at` on, where spoke 0
/// is. Returns where spoke 0 is next.
#[inline]
fn cross_off_turns<const CLASS: usize>(prime: usize, mut at: usize, segment: &mut [u8], until: usize) -> usize {
    let a = prime / SPAN as usize;
    let after = |spoke: usize| {
        let carried = (RESIDUES[CLASS] * RESIDUES[spoke] / SPAN) as usize;
        a * (RESIDUES[spoke] as usize - 1) + carried
    };
    let [d1, d2, d3, d4, d5, d6, d7] = [after(1), after(2), after(3), after(4), after(5), after(6), after(7)];
    // Always so, and said here once it need not be looked at for every byte of the loop.
    if d1.max(d2).max(d3).max(d4) >= prime || d5.max(d6).max(d7) >= prime {
        return at;
    }
    while at < until
        && let Some(turn) = segment.get_mut(at..at + prime)
    {
        turn[0] &= MASKS[CLASS][0];
        turn[d1] &= MASKS[CLASS][1];
        turn[d2] &= MASKS[CLASS][2];
        turn[d3] &= MASKS[CLASS][3];
        turn[d4] &= MASKS[CLASS][4];
        turn[d5] &= MASKS[CLASS][5];
        turn[d6] &= MASKS[CLASS][6];
        turn[d7] &= MASKS[CLASS][7];
        at += prime;
    }
    at
}

/// All primes from 7 to `limit`, ascending.
pub(super) fn primes_up_to(limit: u32) -> Vec<u32> {
    let mut composite = vec![false; limit as usize / 2 + 1];
    let mut primes = Vec::new();
    for number in (3..=limit).step_by(2) {
        let at = number as usize / 2;
        if composite[at] {
            continue;
        }
        if number > 5 {
            primes.push(number);
        }
        let square = at.saturating_mul(2 * at + 2);
        composite.iter_mut().skip(square).step_by(number as usize).for_each(|it| *it = true);
    }
    primes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tally;
    use crate::jobs::testing::{Xorshift, is_prime_by_division};

    fn numbers_left(sieve: &mut Sieve<'_>, segment: &mut [u8]) -> Vec<u64> {
        let from_byte = sieve.byte();
        sieve.next(segment);
        let mut numbers = Vec::new();
        tally::for_each(from_byte, segment, |number| numbers.push(number));
        numbers
    }

    #[test]
    fn list_of_primes_agrees_with_division_and_holds_its_limit() {
        for limit in 0..400 {
            let expected: Vec<_> = (6..=limit).filter(|&number| is_prime_by_division(number.into())).collect();
            assert_eq!(primes_up_to(limit), expected, "up to {limit}");
        }
        assert_eq!(primes_up_to(1_000_000).len(), 78_498 - 3);
    }

    #[test]
    fn segments_of_any_size_one_after_another_hold_the_same_as_one() {
        let primes = primes_up_to(60_000);
        let mut random = Xorshift(0xc0ffee);
        for from_byte in [0, 1, 977, 100_000_000] {
            let mut whole = vec![0; 3 * BLOCK + 11];
            Sieve::new(&primes, from_byte).next(&mut whole);
            let mut cut = vec![0; whole.len()];
            let mut sieve = Sieve::new(&primes, from_byte);
            let mut rest = &mut cut[..];
            while !rest.is_empty() {
                let size = 1 + random.below(2 * BLOCK as u64) as usize;
                let (segment, later) = rest.split_at_mut(size.min(rest.len()));
                sieve.next(segment);
                rest = later;
            }
            assert!(whole == cut, "from byte {from_byte}");
        }
    }

    #[test]
    fn primes_whose_squares_lie_far_ahead_cross_nothing_off_yet() {
        let primes = primes_up_to(1 << 22);
        for byte in (0..4 * SEGMENT as u64).step_by(SEGMENT) {
            let (mut all, mut near) = (vec![0; SEGMENT], vec![0; SEGMENT]);
            Sieve::new(&primes, byte).next(&mut all);
            let root = ((byte + SEGMENT as u64) * SPAN).isqrt() as u32;
            Sieve::new(&primes_up_to(root), byte).next(&mut near);
            assert!(all == near, "from byte {byte}");
        }
    }

    #[test]
    fn what_is_left_is_what_no_sieving_prime_divides() {
        let primes = primes_up_to(1_000);
        for from_byte in [0, 3, 33_333, 1 << 40, (1 << 63) / SPAN - 200] {
            let left = numbers_left(&mut Sieve::new(&primes, from_byte), &mut [0; 200]);
            let all = || primes.iter().map(|&prime| u64::from(prime)).chain([2, 3, 5]);
            let expected: Vec<_> = (from_byte * SPAN..(from_byte + 200) * SPAN)
                .filter(|&number| number > 5 && all().all(|prime| number % prime != 0 || number == prime))
                .collect();
            assert_eq!(left, expected, "from byte {from_byte}");
        }
    }
}
