//! Whether a number is prime, for certain, for every number of 64 bits.
//!
//! Owns the Miller-Rabin test and the arithmetic modulo an odd number that it needs. Section 7 of the contract.
//!
//! A composite number passes the test to some bases, but none below the bounds of [`TIERS`] passes it to all the first
//! primes of its tier. Sources: Jaeschke, "On strong pseudoprimes to several bases", Math. Comp. 61 (1993), for the first
//! three bounds; Jiang and Deng, "Strong pseudoprimes to the first eight prime bases", Math. Comp. 83 (2014), for the
//! fourth; Sorenson and Webster, "Strong pseudoprimes to twelve prime bases", Math. Comp. 86 (2017), for the last, whose
//! bound, 318665857834031151167461, is above 2^64.

/// The first twelve primes: tried as divisors first, then the bases.
const PRIMES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

/// The least number that none of [`PRIMES`] divides and that is not prime.
const FIRST_UNDIVIDED: u64 = 41 * 41;

/// Below each bound, how many of the first primes suffice as bases.
const TIERS: [(u64, usize); 4] =
    [(3_215_031_751, 4), (3_474_749_660_383, 6), (341_550_071_728_321, 7), (3_825_123_056_546_413_051, 9)];

/// Whether `number` is prime.
pub(super) fn is_prime(number: u64) -> bool {
    for prime in PRIMES {
        if number.is_multiple_of(prime) {
            return number == prime;
        }
    }
    if number < FIRST_UNDIVIDED {
        return number > 1;
    }
    let bases = TIERS.iter().find(|(bound, _)| number < *bound).map_or(PRIMES.len(), |&(_, bases)| bases);
    let modulus = Modulus::new(number);
    PRIMES.iter().take(bases).all(|&base| modulus.is_strong_probable_prime(base))
}

/// Arithmetic modulo an odd number `n` above 1, after Montgomery, "Modular multiplication without trial division", Math.
/// Comp. 44 (1985). A number `x` stands as `x * 2^64 mod n`.
#[derive(Clone, Copy, Debug)]
struct Modulus {
    n: u64,
    /// `n * inverse` is 1 modulo 2^64.
    inverse: u64,
    /// The number 1, as it stands here.
    one: u64,
    /// The number 2^64, as it stands here.
    shift: u64,
}

impl Modulus {
    fn new(n: u64) -> Self {
        // An odd number is its own inverse modulo 8, and each step doubles the bits that are right: 3, 6, ... 96.
        let mut inverse = n;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(n.wrapping_mul(inverse)));
        }
        let one = u64::MAX % n + 1;
        let mut modulus = Self { n, inverse, one, shift: 0 };
        // 2, squared six times, is 2^64.
        modulus.shift = modulus.double(one);
        for _ in 0..6 {
            modulus.shift = modulus.multiply(modulus.shift, modulus.shift);
        }
        modulus
    }

    fn double(self, a: u64) -> u64 {
        let rest = self.n - a;
        if a >= rest { a - rest } else { a + a }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the halves of a product of 128 bits are meant")]
    fn multiply(self, a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        let multiple = (product as u64).wrapping_mul(self.inverse);
        let (low_cancels, high) = ((u128::from(multiple) * u128::from(self.n)) >> 64, (product >> 64) as u64);
        let (difference, below_zero) = high.overflowing_sub(low_cancels as u64);
        if below_zero { difference.wrapping_add(self.n) } else { difference }
    }

    fn power(self, base: u64, exponent: u64) -> u64 {
        let mut power = self.one;
        for bit in (0..u64::BITS - exponent.leading_zeros()).rev() {
            power = self.multiply(power, power);
            if exponent >> bit & 1 == 1 {
                power = self.multiply(power, base);
            }
        }
        power
    }

    /// The test of Miller and Rabin to one base: what every prime passes.
    fn is_strong_probable_prime(self, base: u64) -> bool {
        let minus_one = self.n - self.one;
        let twos = (self.n - 1).trailing_zeros();
        let mut power = self.power(self.multiply(base, self.shift), (self.n - 1) >> twos);
        if power == self.one || power == minus_one {
            return true;
        }
        for _ in 1..twos {
            power = self.multiply(power, power);
            if power == minus_one {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::testing::{Xorshift, is_prime_by_division};

    #[test]
    fn every_number_up_to_200_000_agrees_with_trial_division() {
        let mut composite = vec![false; 200_001];
        for number in 2..composite.len() {
            if !composite[number] {
                composite.iter_mut().skip(2 * number).step_by(number).for_each(|it| *it = true);
            }
            assert_eq!(is_prime(number as u64), !composite[number], "{number}");
        }
        assert!(!is_prime(0) && !is_prime(1));
    }

    #[test]
    fn random_numbers_of_every_size_agree_with_trial_division() {
        let mut random = Xorshift(0x5eed);
        for bits in 2..=36 {
            for _ in 0..20 {
                let number = random.next() >> (64 - bits) | 1;
                assert_eq!(is_prime(number), is_prime_by_division(number), "{number}");
            }
        }
    }

    #[test]
    fn two_to_the_64_stands_as_two_to_the_128_modulo_n() {
        let mut random = Xorshift(128);
        for bits in 2..=64 {
            let n = random.next() >> (64 - bits) | 3;
            let expected = (u128::MAX % u128::from(n) + 1) % u128::from(n);
            assert_eq!(u128::from(Modulus::new(n).shift), expected, "{n}");
        }
    }

    #[test]
    fn strong_pseudoprimes_to_the_first_primes_are_not_prime() {
        // The least for 1, 2, 3, ... bases: OEIS A014233.
        for number in [
            2_047,
            1_373_653,
            25_326_001,
            3_215_031_751,
            2_152_302_898_747,
            3_474_749_660_383,
            341_550_071_728_321,
            3_825_123_056_546_413_051,
        ] {
            assert!(!is_prime(number), "{number}");
            assert!(Modulus::new(number).is_strong_probable_prime(2), "{number}");
        }
    }

    #[test]
    fn carmichael_numbers_and_squares_of_primes_are_not_prime() {
        for number in [
            561,
            41_041,
            825_265,
            321_197_185,
            9_746_347_772_161,
            1_436_697_831_295_441,
            41 * 41,
            1_093 * 1_093,
            3_511 * 3_511,
            4_294_967_291 * 4_294_967_291,
        ] {
            assert!(!is_prime(number), "{number}");
        }
    }

    #[test]
    fn numbers_around_the_powers_of_two_and_the_last_of_64_bits_are_right() {
        // The nearest primes below the powers: OEIS A013603.
        for (power, below) in [(1_u64 << 31, 1), (1 << 32, 5), (1 << 61, 1), (1 << 62, 57), (1 << 63, 25)] {
            assert!((1..below).all(|back| !is_prime(power - back)), "2^{}", power.trailing_zeros());
            assert!(is_prime(power - below), "2^{}", power.trailing_zeros());
        }
        assert!((0..58).all(|back| !is_prime(u64::MAX - back)));
        assert!(is_prime(u64::MAX - 58));
    }

    #[test]
    fn products_of_two_primes_of_32_bits_are_not_prime() {
        let mut random = Xorshift(32);
        let mut primes = std::iter::repeat_with(|| random.next() >> 32).filter(|&number| is_prime(number));
        for _ in 0..100 {
            if let (Some(p), Some(q)) = (primes.next(), primes.next()) {
                assert!(!is_prime(p * q), "{p} * {q}");
            }
        }
    }
}
