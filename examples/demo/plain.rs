//! The same answers by plain code: one thread, no cluster, none of Floodline's arithmetic.
//!
//! Owns what the cluster's answers are compared with. Kept as simple as it can be, so that it can be believed.

/// Numbers from a seed, the same on every machine (splitmix64).
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// The next number, any of 64 bits.
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The largest of a list.
pub(crate) fn largest(numbers: &[i64]) -> i64 {
    numbers.iter().copied().fold(i64::MIN, i64::max)
}

/// How many of a list are prime.
pub(crate) fn primes_among(numbers: &[u64]) -> usize {
    numbers.iter().filter(|&&number| is_prime(number)).count()
}

/// The sum of the primes up to `end`, by a table of all numbers up to there.
pub(crate) fn sum_of_primes(end: usize) -> u64 {
    let mut composite = vec![false; end + 1];
    let mut sum = 0;
    for number in 2..=end {
        if !composite[number] {
            sum += number as u64;
            (number * number..=end).step_by(number).for_each(|multiple| composite[multiple] = true);
        }
    }
    sum
}

/// Miller and Rabin's test to the first twelve primes as bases, which is exact for 64 bits.
fn is_prime(number: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if let Some(&divisor) = BASES.iter().find(|&&base| number.is_multiple_of(base)) {
        return number == divisor;
    }
    if number < 2 {
        return false;
    }
    let twos = (number - 1).trailing_zeros();
    let odd = (number - 1) >> twos;
    BASES.iter().all(|&base| {
        let mut power = power_mod(base, odd, number);
        let mut passes = power == 1 || power == number - 1;
        for _ in 1..twos {
            power = times_mod(power, power, number);
            passes |= power == number - 1;
        }
        passes
    })
}

fn power_mod(mut base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let mut power = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = times_mod(power, base, modulus);
        }
        base = times_mod(base, base, modulus);
        exponent >>= 1;
    }
    power
}

fn times_mod(left: u64, right: u64, modulus: u64) -> u64 {
    (u128::from(left) * u128::from(right) % u128::from(modulus)) as u64
}
