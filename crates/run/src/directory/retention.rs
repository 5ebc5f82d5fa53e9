//! Which checkpoints of past rounds are kept, besides the newest two: every n-th round and the last few.
//!
//! With n a tenth of the run there are at most ten of the former. If they take too many bytes, they are thinned out
//! evenly: every second of them, then every fourth, and fewer of the last. Multiples of 2n are multiples of n, so what
//! is kept under the stricter rule was kept under the looser one.

use std::collections::{BTreeMap, BTreeSet};

/// The newest checkpoints, which are always kept: one to resume from, and one in case it is damaged.
const NEWEST: usize = 2;
/// Checkpoints right before the newest two: a bad round is often noticed soon.
const LAST: usize = 3;
/// Number of equidistant rounds in a run.
const PARTS: u32 = 10;
/// Maximum number of bytes of all kept checkpoints but the newest two.
const MOST_BYTES: u64 = 512 << 20;

/// n: every n-th round of a run is kept.
pub(crate) fn spacing(rounds: u32) -> u32 {
    rounds.div_ceil(PARTS).max(1)
}

/// The rounds to keep, of those that are saved with these numbers of bytes; `rounds` is the length of the run.
pub(crate) fn kept(saved: &BTreeMap<u32, u64>, rounds: u32) -> BTreeSet<u32> {
    let newest: BTreeSet<u32> = saved.keys().rev().take(NEWEST).copied().collect();
    let older: Vec<u32> = saved.keys().rev().skip(NEWEST).copied().collect();
    let looser_first = (0..u32::BITS).map(|k| {
        let step = spacing(rounds).saturating_mul(1 << k);
        let last = LAST.saturating_sub(k as usize).max(1);
        let spread = older.iter().filter(move |round| *round % step == 0);
        older.iter().take(last).chain(spread).copied().collect::<BTreeSet<u32>>()
    });
    let bytes =
        |chosen: &BTreeSet<u32>| chosen.iter().fold(0, |sum: u64, round| sum.saturating_add(saved[round]));
    let history = { looser_first }.find(|chosen| bytes(chosen) <= MOST_BYTES).unwrap_or_default();
    newest.union(&history).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MB: u64 = 1 << 20;

    /// What is on disk after each round was saved with this many bytes and the others were removed.
    fn after(rounds: u32, done: u32, bytes: u64) -> Vec<u32> {
        let mut saved = BTreeMap::new();
        for round in 1..=done {
            saved.insert(round, bytes);
            let kept = kept(&saved, rounds);
            saved.retain(|round, _| kept.contains(round));
        }
        saved.into_keys().collect()
    }

    #[test]
    fn every_tenth_part_of_a_run_and_the_last_few_rounds_are_kept() {
        assert_eq!(after(300, 157, MB), [30, 60, 90, 120, 150, 153, 154, 155, 156, 157]);
        assert_eq!(after(25, 25, MB), [3, 6, 9, 12, 15, 18, 21, 22, 23, 24, 25]);
        assert_eq!(after(6, 6, MB), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn large_checkpoints_are_thinned_out_evenly_and_very_large_ones_leave_only_the_newest_two() {
        assert_eq!(after(300, 300, 100 * MB), [120, 240, 296, 297, 298, 299, 300]);
        assert_eq!(after(300, 290, 200 * MB), [240, 288, 289, 290]);
        assert_eq!(after(300, 290, 400 * MB), [288, 289, 290]);
        assert_eq!(after(300, 290, 600 * MB), [289, 290]);
    }

    /// Saved rounds of a run, each with its bytes.
    fn saved() -> impl Strategy<Value = (u32, BTreeMap<u32, u64>)> {
        (1..2000u32).prop_flat_map(|rounds| {
            let bytes = prop_oneof![Just(0), 0..MB, 0..1000 * MB, Just(u64::MAX)];
            (Just(rounds), proptest::collection::btree_map(1..=rounds, bytes, 0..60))
        })
    }

    proptest! {
        #[test]
        fn the_newest_two_are_always_kept((rounds, saved) in saved()) {
            let kept = kept(&saved, rounds);
            prop_assert!(saved.keys().rev().take(2).all(|round| kept.contains(round)));
            prop_assert!(kept.iter().all(|round| saved.contains_key(round)));
        }

        #[test]
        fn the_others_are_bounded_in_number_and_bytes((rounds, saved) in saved()) {
            let kept = kept(&saved, rounds);
            prop_assert!(kept.len() <= 15, "{kept:?}");
            let older = kept.iter().rev().skip(2);
            let bytes = older.fold(0u64, |sum, round| sum.saturating_add(saved[round]));
            prop_assert!(bytes <= MOST_BYTES, "{bytes}");
        }

        #[test]
        fn what_is_kept_is_kept_again((rounds, saved) in saved()) {
            let once = kept(&saved, rounds);
            let rest = saved.into_iter().filter(|(round, _)| once.contains(round)).collect();
            prop_assert_eq!(kept(&rest, rounds), once);
        }

        #[test]
        fn small_checkpoints_of_every_nth_round_stay((rounds, saved) in saved()) {
            let saved: BTreeMap<u32, u64> = saved.into_keys().map(|round| (round, 30 * MB)).collect();
            let kept = kept(&saved, rounds);
            prop_assert!(saved.keys().filter(|round| *round % spacing(rounds) == 0).all(|round| kept.contains(round)));
        }
    }
}
