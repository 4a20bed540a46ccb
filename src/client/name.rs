//! Names for jobs whose client gives none.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::protocol::ids::{BadName, JobId};

/// Crockford's: without the letters that are read as digits.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Milliseconds until the year 3084.
const TIME_BITS: u32 = 45;
/// With the time a collision within a millisecond takes about 2^20 submissions.
const RANDOM_BITS: u32 = 40;

/// A name that nobody else makes: the time, so that listings are in the order of submission, and chance.
///
/// # Errors
/// None: it is made of letters and digits.
pub fn fresh_job_id() -> Result<JobId, BadName> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    // Seeded by the system for each process, and different at each call: no generator of our own is needed.
    let chance = RandomState::new().hash_one(now);
    JobId::new(&(letters(now, TIME_BITS) + &letters(chance, RANDOM_BITS)))
}

fn letters(number: u64, bits: u32) -> String {
    let places = (0..bits / 5).rev();
    places.map(|place| char::from(LETTERS[(number >> (place * 5) & 31) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_short_new_each_time_and_sort_by_time() {
        let names: BTreeSet<String> = (0..1_000).map(|_| fresh_job_id().expect("a good name").to_string()).collect();
        assert_eq!(names.len(), 1_000);
        assert!(names.iter().all(|name| name.len() == 17), "{names:?}");
        assert!(letters(1_700_000_000_000, TIME_BITS) < letters(1_700_000_000_001, TIME_BITS));
    }
}
