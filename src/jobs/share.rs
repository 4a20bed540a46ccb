//! How a whole is dealt out: base size plus remainder (section 7 of the contract).

use std::ops::Range;

/// Which of `total` things slice number `slice`, counted from 0, of `slices` holds. The slices are contiguous and in
/// order; the first `total % slices` hold one more than the others, so that together they hold each thing once.
///
/// `None` if there is no such slice, or nothing in it.
pub(super) fn share(total: u128, slices: u32, slice: u32) -> Option<Range<u128>> {
    if slice >= slices {
        return None;
    }
    let (slices, slice) = (u128::from(slices), u128::from(slice));
    let (base, remainder) = (total / slices, total % slices);
    let start = slice * base + slice.min(remainder);
    let end = start + base + u128::from(slice < remainder);
    (start < end).then_some(start..end)
}

/// The part of a list that [`share`] names.
pub(super) fn share_of_list<T>(list: &[T], slices: u32, slice: u32) -> Option<&[T]> {
    let share = share(list.len() as u128, slices, slice)?;
    list.get(usize::try_from(share.start).ok()?..usize::try_from(share.end).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainder_goes_to_the_first_slices() {
        let shares: Vec<_> = (0..4).map(|slice| share(10, 4, slice)).collect();
        assert_eq!(shares, [Some(0..3), Some(3..6), Some(6..8), Some(8..10)]);
    }

    #[test]
    fn every_count_of_slices_covers_the_whole_in_order_and_evenly() {
        for total in [0, 1, 2, 31, 32, 33, 1_000, 1 << 64] {
            for slices in 1..=40 {
                let shares: Vec<_> = (0..slices).filter_map(|slice| share(total, slices, slice)).collect();
                let mut at = 0;
                for share in &shares {
                    assert_eq!(share.start, at, "{total} in {slices}");
                    at = share.end;
                }
                assert_eq!(at, total, "{total} in {slices}");
                let sizes = || shares.iter().map(|share| share.end - share.start);
                assert!(sizes().max().unwrap_or(0) - sizes().min().unwrap_or(0) <= 1, "{total} in {slices}");
            }
        }
    }

    #[test]
    fn slices_that_do_not_exist_or_would_be_empty_are_none() {
        assert_eq!(share(10, 0, 0), None);
        assert_eq!(share(10, 4, 4), None);
        assert_eq!(share(2, 4, 2), None);
        assert_eq!(share(u128::MAX, u32::MAX, u32::MAX), None);
        assert_eq!(share_of_list(&[1, 2], 3, 2), None);
        assert_eq!(share_of_list(&[1, 2, 3], 2, 0), Some(&[1, 2][..]));
    }
}
