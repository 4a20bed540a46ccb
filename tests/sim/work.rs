//! What clients hand in: small jobs whose answers are computed here by the plainest means.

use std::sync::Arc;

use floodline::guarantees::history::Right;
use floodline::jobs::{Payload, Value};
use floodline::protocol::dice::Dice;
use floodline::protocol::ids::{Digest, JobId, JobKey};

/// A MAX list that holds this number fails wherever its slice is computed.
pub(crate) const POISON: i64 = i64::MIN + 666;

pub(crate) fn key(id: &str, payload: &Payload) -> JobKey {
    JobKey { id: JobId::new(id).expect("a good name"), digest: digest(payload) }
}

/// Not SHA-256, but as good here: different payloads have different ones.
fn digest(payload: &Payload) -> Digest {
    let mut dice = match payload {
        Payload::Max(numbers) => {
            numbers.iter().fold(Dice::new(1), |mut dice, n| Dice::new(dice.roll() ^ n.cast_unsigned()))
        }
        Payload::PrimeCount(numbers) => numbers.iter().fold(Dice::new(2), |mut dice, n| Dice::new(dice.roll() ^ n)),
        Payload::PrimeSum { start, end } => Dice::new(Dice::new(*start ^ 3).roll() ^ end),
    };
    let mut bytes = [0; 32];
    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&dice.roll().to_be_bytes()));
    Digest(bytes)
}

pub(crate) fn any(dice: &mut Dice) -> Payload {
    let length = 1 + dice.below(12);
    match dice.below(4) {
        0 => Payload::Max((0..length).map(|_| i64::try_from(dice.below(2_000)).unwrap_or(0) - 1_000).collect()),
        1 => Payload::PrimeCount((0..length).map(|_| dice.below(200)).collect()),
        _ => {
            let start = dice.below(500);
            Payload::PrimeSum { start, end: start + dice.below(500) }
        }
    }
}

pub(crate) fn poisoned(dice: &mut Dice) -> Payload {
    let mut numbers: Vec<i64> = (0..2 + dice.below(6)).map(|_| i64::try_from(dice.below(100)).unwrap_or(0)).collect();
    let at = usize::try_from(dice.below(numbers.len() as u64)).unwrap_or(0);
    numbers[at] = POISON;
    Payload::Max(Arc::from(numbers))
}

pub(crate) fn is_poisoned(payload: &Payload) -> bool {
    matches!(payload, Payload::Max(numbers) if numbers.contains(&POISON))
}

fn is_prime(n: u64) -> bool {
    n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

pub(crate) fn right(payload: &Payload) -> Right {
    if is_poisoned(payload) {
        return Right::Fails;
    }
    let value = match payload {
        Payload::Max(numbers) => i128::from(numbers.iter().copied().max().unwrap_or(i64::MIN)),
        Payload::PrimeCount(numbers) => numbers.iter().filter(|n| is_prime(**n)).count() as i128,
        Payload::PrimeSum { start, end } => (*start..=*end).filter(|n| is_prime(*n)).map(i128::from).sum(),
    };
    Right::Answer(Value(value))
}

/// What a pool would compute: by the job kinds themselves.
pub(crate) fn compute(slice: &Payload) -> Option<Value> {
    if is_poisoned(slice) { None } else { slice.run(&|| false).ok() }
}

#[test]
fn the_plain_answers_are_the_known_ones() {
    assert_eq!(right(&Payload::PrimeSum { start: 1, end: 1_000 }), Right::Answer(Value(76_127)));
    assert_eq!(right(&Payload::PrimeCount(Arc::from([2, 2, 4, 97, 0, 1]))), Right::Answer(Value(3)));
    assert_eq!(right(&Payload::Max(Arc::from([-5, -7]))), Right::Answer(Value(-5)));
}
