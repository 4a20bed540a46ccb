//! The wheel of 30: how numbers without the factors 2, 3 and 5 are laid out in bits.
//!
//! Owns the layout: byte `b` stands for the numbers `30 b` to `30 b + 29`, its bit `i` for `30 b + RESIDUES[i]`. Knows of
//! no sieve. Section 7 of the contract.
//!
//! A prime `p = 30 a + RESIDUES[c]` (its class is `c`) has a multiple in the layout for each cofactor
//! `q = 30 k + RESIDUES[w]` (its spoke is `w`). The eight multiples of one turn of `w` lie within `p` bytes, and where they
//! lie depends on `a` and on tables over `c` and `w` alone: that is what makes crossing off cheap.

#![allow(
    clippy::cast_possible_truncation,
    reason = "what is left modulo 30, and what the constant tables hold, is small"
)]

/// Numbers that one byte stands for.
pub(super) const SPAN: u64 = 30;

/// What is left modulo 30 of a number without the factors 2, 3 and 5, ascending.
pub(super) const RESIDUES: [u64; 8] = [1, 7, 11, 13, 17, 19, 23, 29];

/// From the cofactor of each spoke to that of the next.
pub(super) const GAPS: [usize; 8] = [6, 4, 2, 4, 2, 4, 6, 2];

/// For what is left modulo 30: the first spoke that is not below it.
pub(super) const SPOKE_FROM: [u8; 30] = spoke_from();

/// By class and spoke: the byte that crosses off the multiple, all bits set but one.
pub(super) const MASKS: [[u8; 8]; 8] = masks();

/// By class and spoke: bytes to the multiple of the next spoke, beyond the `a * GAPS[w]` that the prime's size gives.
pub(super) const CARRIES: [[usize; 8]; 8] = carries();

/// For bit `i` of eight bytes read as one little-endian word: the number that it stands for, from the first byte's on.
pub(super) const OFFSETS: [u64; 64] = offsets();

/// Where a prime next crosses off: byte and spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Byte of the layout, counted from the number 0.
    pub(super) byte: u64,
    /// Spoke of the cofactor.
    pub(super) spoke: u8,
}

/// The first place from `from_byte` on where `prime` crosses off a multiple with a cofactor of at least `cofactor`.
///
/// Right as long as `from_byte * 30 + 32 * prime` and `prime * (cofactor + 6)` are below 2^64.
#[inline]
pub(super) fn first_place(prime: u64, cofactor: u64, from_byte: u64) -> Place {
    let cofactor = cofactor.max((from_byte * SPAN).div_ceil(prime));
    let turn = cofactor / SPAN;
    let spoke = SPOKE_FROM[(cofactor % SPAN) as usize];
    Place { byte: prime * (turn * SPAN + RESIDUES[usize::from(spoke & 7)]) / SPAN, spoke }
}

/// The class of a prime above 5: the index of its residue.
pub(super) fn class_of(prime: u64) -> usize {
    usize::from(SPOKE_FROM[(prime % SPAN) as usize])
}

const fn spoke_from() -> [u8; 30] {
    let mut table = [0; 30];
    let mut rest = 0;
    let mut spoke = 0;
    while rest < 30 {
        if rest as u64 > RESIDUES[spoke as usize] {
            spoke += 1;
        }
        table[rest] = spoke;
        rest += 1;
    }
    table
}

const fn masks() -> [[u8; 8]; 8] {
    let mut table = [[0; 8]; 8];
    let spoke_from = spoke_from();
    let mut class = 0;
    while class < 8 {
        let mut spoke = 0;
        while spoke < 8 {
            let bit = spoke_from[(RESIDUES[class] * RESIDUES[spoke] % SPAN) as usize];
            table[class][spoke] = !(1 << bit);
            spoke += 1;
        }
        class += 1;
    }
    table
}

const fn carries() -> [[usize; 8]; 8] {
    let mut table = [[0; 8]; 8];
    let mut class = 0;
    while class < 8 {
        let mut spoke = 0;
        while spoke < 8 {
            let here = RESIDUES[class] * RESIDUES[spoke] / SPAN;
            let next = RESIDUES[class] * (RESIDUES[spoke] + GAPS[spoke] as u64) / SPAN;
            table[class][spoke] = (next - here) as usize;
            spoke += 1;
        }
        class += 1;
    }
    table
}

const fn offsets() -> [u64; 64] {
    let mut table = [0; 64];
    let mut bit = 0;
    while bit < 64 {
        table[bit] = (bit as u64 / 8) * SPAN + RESIDUES[bit % 8];
        bit += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::testing::Xorshift;

    #[test]
    fn steps_from_a_first_place_visit_exactly_the_multiples_on_the_wheel() {
        let mut random = Xorshift(30);
        for prime in [7, 11, 13, 17, 19, 23, 29, 31, 61, 97, 10_007, 3_037_000_493] {
            let from_byte = random.below(1 << 58);
            let Place { mut byte, spoke } = first_place(prime, 0, from_byte);
            let (mut spoke, class) = (usize::from(spoke), class_of(prime));
            let mut cofactor = (from_byte * SPAN).div_ceil(prime);
            for _ in 0..20 {
                while !RESIDUES.contains(&(cofactor % SPAN)) {
                    cofactor += 1;
                }
                let multiple = prime * cofactor;
                let bit = MASKS[class][spoke].trailing_ones() as usize;
                assert_eq!(MASKS[class][spoke].count_ones(), 7);
                assert_eq!(byte * SPAN + RESIDUES[bit], multiple, "{prime} * {cofactor}");
                byte += prime / SPAN * GAPS[spoke] as u64 + CARRIES[class][spoke] as u64;
                spoke = (spoke + 1) % 8;
                cofactor += 1;
            }
        }
    }

    #[test]
    fn offsets_are_the_numbers_of_eight_bytes_that_neither_2_nor_3_nor_5_divides() {
        let numbers = (0..8 * SPAN).filter(|number| [2, 3, 5].iter().all(|prime| number % prime != 0));
        assert!(numbers.eq(OFFSETS));
    }
}
