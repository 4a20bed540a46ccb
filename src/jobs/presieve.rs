//! Segments that come with the multiples of the smallest primes crossed off already.
//!
//! Owns the patterns: the multiples of a prime `p` repeat in the layout of the wheel every `p` bytes, those of several
//! primes every product of them. Laying such patterns over each other costs the same however small the primes are, where
//! crossing off one by one would take half of the time of the whole sieve. Section 7 of the contract.

#![allow(clippy::cast_possible_truncation, reason = "places within a block and within a pattern are small")]

use std::sync::LazyLock;

use super::wheel::{MASKS, RESIDUES, SPAN, class_of};

/// The largest prime that the patterns know. Beyond it crossing off is as cheap as one more pattern.
pub(super) const PRESIEVED: u32 = 163;

/// The primes of each pattern. Small with large, so that the patterns are of like size, 5 to 17 KiB: short ones would break
/// the passes into short runs, and all together fit the second cache.
const PATTERNS: [&[usize]; PATTERN_COUNT] = [
    &[7, 11, 13, 17],
    &[19, 23, 29],
    &[31, 163],
    &[37, 157],
    &[41, 151],
    &[43, 149],
    &[47, 139],
    &[53, 137],
    &[59, 131],
    &[61, 127],
    &[67, 113],
    &[71, 109],
    &[73, 107],
    &[79, 103],
    &[83, 101],
    &[89, 97],
];

/// A multiple of [`AT_ONCE`].
const PATTERN_COUNT: usize = 16;

/// How many patterns are laid in one pass.
const AT_ONCE: usize = 4;

/// The patterns, ready to be laid: the same for every computation, so that many at once share the 130 KiB.
static LAID_OUT: LazyLock<[Vec<u8>; PATTERN_COUNT]> = LazyLock::new(|| PATTERNS.map(pattern));

/// Overwrites `block`, which begins at byte `from_byte` of the layout: a bit is set where no prime up to [`PRESIEVED`]
/// divides the number. Those primes themselves are set, the number 1 is not.
pub(super) fn fill(from_byte: u64, block: &mut [u8]) {
    let (groups, _) = LAID_OUT.as_chunks::<AT_ONCE>();
    for (place, patterns) in groups.iter().enumerate() {
        lay(patterns, from_byte, block, place == 0);
    }
    if from_byte * SPAN <= u64::from(PRESIEVED) {
        restore(from_byte, block);
    }
}

/// One pattern: the layout from the number 0 on, with the multiples of `primes` crossed off, until it repeats.
fn pattern(primes: &[usize]) -> Vec<u8> {
    let mut bytes = vec![u8::MAX; primes.iter().product()];
    for &prime in primes {
        let class = class_of(prime as u64);
        for (&residue, mask) in RESIDUES.iter().zip(MASKS[class]) {
            let first = prime * residue as usize / SPAN as usize;
            bytes.iter_mut().skip(first).step_by(prime).for_each(|byte| *byte &= mask);
        }
    }
    bytes
}

/// Lays four patterns over the block, in runs that end where one of them repeats.
fn lay(patterns: &[Vec<u8>; AT_ONCE], from_byte: u64, block: &mut [u8], overwrite: bool) {
    let mut at = patterns.each_ref().map(|pattern| (from_byte % pattern.len() as u64) as usize);
    let mut rest = block;
    while !rest.is_empty() {
        let mut run = rest.len();
        for (pattern, at) in patterns.iter().zip(at) {
            run = run.min(pattern.len() - at);
        }
        let (now, later) = rest.split_at_mut(run);
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| &patterns[i][at[i]..at[i] + run]);
        let four = a.iter().zip(b).zip(c.iter().zip(d)).map(|((a, b), (c, d))| a & b & c & d);
        if overwrite {
            now.iter_mut().zip(four).for_each(|(byte, four)| *byte = four);
        } else {
            now.iter_mut().zip(four).for_each(|(byte, four)| *byte &= four);
        }
        for (pattern, at) in patterns.iter().zip(&mut at) {
            *at += run;
            if *at == pattern.len() {
                *at = 0;
            }
        }
        rest = later;
    }
}

/// The patterns cross off their own primes too: sets these again, and takes away the 1.
fn restore(from_byte: u64, block: &mut [u8]) {
    let own = PATTERNS.iter().copied().flatten().map(|&prime| prime as u64);
    for (number, set) in own.map(|prime| (prime, true)).chain([(1, false)]) {
        let byte = (number / SPAN).checked_sub(from_byte).and_then(|at| block.get_mut(at as usize));
        if let Some(byte) = byte {
            let bit = 1 << class_of(number);
            *byte = if set { *byte | bit } else { *byte & !bit };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tally;
    use crate::jobs::testing::Xorshift;

    fn expected(from_byte: u64, bytes: u64) -> Vec<u64> {
        let primes = || PATTERNS.iter().copied().flatten().map(|&prime| prime as u64);
        let stays = |&number: &u64| {
            number > 1 && primes().chain([2, 3, 5]).all(|prime| number % prime != 0 || (number == prime && prime > 5))
        };
        (from_byte * SPAN..(from_byte + bytes) * SPAN).filter(stays).collect()
    }

    #[test]
    fn blocks_anywhere_hold_what_no_small_prime_divides_and_the_small_primes() {
        let mut random = Xorshift(163);
        for bits in 0..58 {
            let from_byte = if bits < 8 { bits } else { random.next() >> (64 - bits) };
            let size = 1 + random.below(300);
            let mut block = vec![0x5a; size as usize];
            fill(from_byte, &mut block);
            let mut numbers = Vec::new();
            tally::for_each(from_byte, &block, |number| numbers.push(number));
            assert_eq!(numbers, expected(from_byte, size), "byte {from_byte}");
        }
    }

    #[test]
    fn patterns_know_every_prime_from_7_to_the_last_once() {
        let mut primes: Vec<_> = PATTERNS.iter().copied().flatten().map(|&prime| prime as u32).collect();
        primes.sort_unstable();
        assert_eq!(primes, crate::jobs::sieve::primes_up_to(PRESIEVED));
    }
}
