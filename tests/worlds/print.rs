//! The hash of a value, by way of its text.
//!
//! Everything that a worker knows is in its `Debug` text, so equal texts are equal states. The hash has 64 bits: among
//! the some million states of a search two different ones share one with a chance below one in a million.

use std::fmt::{Debug, Write};

struct Hasher {
    state: u64,
}

impl Write for Hasher {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let mut chunks = text.as_bytes().chunks_exact(8);
        for chunk in &mut chunks {
            self.mix(u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
        }
        let rest = chunks.remainder().iter().fold(0, |rest, byte| (rest << 8) | u64::from(*byte));
        // With the length, so that where one text ends and the next begins does not get lost.
        self.mix(rest ^ ((text.len() as u64) << 56));
        Ok(())
    }
}

impl Hasher {
    fn mix(&mut self, word: u64) {
        let mixed = (self.state ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.state = mixed ^ (mixed >> 29);
    }
}

/// Of one value.
pub(crate) fn hash(value: &impl Debug) -> u64 {
    let mut hasher = Hasher { state: 0x243F_6A88_85A3_08D3 };
    write!(hasher, "{value:?}").expect("a hash takes any text");
    finish(hasher.state)
}

/// Of several hashes, in order.
pub(crate) fn together(hashes: impl IntoIterator<Item = u64>) -> u64 {
    let mut hasher = Hasher { state: 0x1319_8A2E_0370_7344 };
    hashes.into_iter().for_each(|hash| hasher.mix(hash));
    finish(hasher.state)
}

fn finish(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ (mixed >> 27)
}

#[test]
fn different_values_have_different_hashes() {
    let mut all: Vec<u64> = (0..100_000_u64).map(|n| hash(&(n / 300, "x", n % 300))).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 100_000);
    assert_ne!(together([1, 2]), together([2, 1]));
}
