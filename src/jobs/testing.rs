//! What the tests of the kinds compare with: numbers that look random, and primality the slow way.

#![allow(clippy::cast_possible_truncation, reason = "tests run where usize has 64 bits")]

/// The generator of Marsaglia, "Xorshift RNGs", J. Stat. Soft. 8 (2003). The state, from a fixed seed, is never 0.
pub(super) struct Xorshift(pub(super) u64);

impl Xorshift {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

pub(super) fn is_prime_by_division(number: u64) -> bool {
    number > 1 && (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| !number.is_multiple_of(divisor))
}

/// The sum of the primes from `start` to `end` by the sieve of Eratosthenes as it is taught.
pub(super) fn sum_by_plain_sieve(start: u64, end: u64) -> u128 {
    let mut composite = vec![false; (end - start) as usize + 1];
    let root = end.isqrt();
    let mut composite_divisor = vec![false; root as usize + 1];
    for divisor in 2..=root {
        if composite_divisor[divisor as usize] {
            continue;
        }
        composite_divisor.iter_mut().step_by(divisor as usize).for_each(|it| *it = true);
        let first = start.next_multiple_of(divisor).max(divisor * divisor) - start;
        composite.iter_mut().skip(first as usize).step_by(divisor as usize).for_each(|it| *it = true);
    }
    (start..=end)
        .zip(composite)
        .filter(|&(number, composite)| number > 1 && !composite)
        .map(|(number, _)| u128::from(number))
        .sum()
}
