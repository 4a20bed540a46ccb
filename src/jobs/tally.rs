//! What a stretch of the layout stands for: the sum of its numbers, and the numbers one by one.
//!
//! Owns nothing; reads bits. Section 7 of the contract.

use super::wheel::{OFFSETS, RESIDUES, SPAN};

/// Bytes summed in one go: their counts, weighted with their places, fit 32 bits.
const RUN: usize = 1024;

/// By byte of the layout: how many numbers it holds, and in the upper half the sum of their residues.
const COUNT_AND_RESIDUES: [u64; 256] = count_and_residues();

/// The sum of the numbers set in `bytes`, the first of which is byte `from_byte` of the layout.
pub(super) fn sum(from_byte: u64, bytes: &[u8]) -> u128 {
    let mut sum = 0;
    let mut byte = from_byte;
    for run in bytes.chunks(RUN) {
        // From the end on, so that a number is added to `places` once for each byte before its own: that weights it with
        // its byte's place without a multiplication, which would cost twice the time.
        let (mut counted, mut places) = (0_u64, 0_u64);
        for &bits in run.iter().rev() {
            places = places.wrapping_add(counted);
            counted += COUNT_AND_RESIDUES[usize::from(bits)];
        }
        let (count, residues) = (counted & u64::from(u32::MAX), counted >> 32);
        let within = SPAN * (places & u64::from(u32::MAX)) + residues;
        sum += u128::from(byte * SPAN) * u128::from(count) + u128::from(within);
        byte += run.len() as u64;
    }
    sum
}

/// Calls `visit` with each number set in `bytes`, ascending.
#[inline]
pub(super) fn for_each(from_byte: u64, bytes: &[u8], mut visit: impl FnMut(u64)) {
    let mut base = from_byte * SPAN;
    for eight in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..eight.len()].copy_from_slice(eight);
        let mut word = u64::from_le_bytes(word);
        while word != 0 {
            visit(base + OFFSETS[word.trailing_zeros() as usize]);
            word &= word - 1;
        }
        base += 8 * SPAN;
    }
}

const fn count_and_residues() -> [u64; 256] {
    let mut table = [0; 256];
    let mut bits = 0;
    while bits < 256 {
        let mut spoke = 0;
        while spoke < 8 {
            if bits >> spoke & 1 == 1 {
                table[bits] += 1 + (RESIDUES[spoke] << 32);
            }
            spoke += 1;
        }
        bits += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::testing::Xorshift;

    #[test]
    fn sum_is_that_of_the_numbers_one_by_one() {
        let mut random = Xorshift(64);
        for from_byte in [0, 1, 12_345, (1 << 63) / SPAN] {
            for size in [0, 1, 7, 8, 9, RUN - 1, RUN, RUN + 1, 3 * RUN + 5] {
                let bytes: Vec<_> = (0..size).map(|_| random.next().to_le_bytes()[0]).collect();
                let mut numbers = Vec::new();
                for_each(from_byte, &bytes, |number| numbers.push(number));
                let expected = (from_byte..).zip(&bytes).flat_map(|(byte, bits)| {
                    (0..8).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| byte * SPAN + RESIDUES[bit])
                });
                assert!(expected.eq(numbers.iter().copied()), "{size} bytes");
                assert_eq!(sum(from_byte, &bytes), numbers.iter().copied().map(u128::from).sum(), "{size} bytes");
            }
        }
    }

    #[test]
    fn full_stretch_at_the_end_of_the_numbers_does_not_overflow() {
        let from_byte = (1 << 63) / SPAN;
        let bytes = vec![u8::MAX; RUN];
        let mut expected = 0;
        for_each(from_byte, &bytes, |number| expected += u128::from(number));
        assert_eq!(sum(from_byte, &bytes), expected);
    }
}
