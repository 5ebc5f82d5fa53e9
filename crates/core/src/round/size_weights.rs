//! Weights in proportion to counts of samples, with hardened mode's caps, for statistics that are combined outside of
//! a round.

use crate::labels::{Ask, Statistic};
use crate::memory::Memory;
use crate::round::{Mode, Profile, hardened};
use crate::rules::{Shares, Weighting};

/// n_k / Σ n_j, capped in hardened mode; one weight per count.
pub fn size_weights(mode: Mode, counts: &[u64]) -> Vec<f64> {
    if counts.is_empty() {
        return Vec::new();
    }
    let profile = |&size: &u64| Profile { client: 0, size, statistic: Statistic::Nothing };
    let profiles: Vec<Profile> = counts.iter().map(profile).collect();
    let profiles: Vec<&Profile> = profiles.iter().collect();
    hardened::shares(&Proportional, mode, &profiles, &mut Memory::default()).weight
}

#[derive(Debug)]
struct Proportional;

impl Weighting for Proportional {
    fn asks(&self) -> Ask {
        Ask::Nothing
    }

    fn shares(&self, profiles: &[&Profile], _: &mut Memory) -> Shares {
        let sum: f64 = profiles.iter().map(|profile| profile.size as f64).sum();
        let size: Vec<f64> = profiles.iter().map(|profile| profile.size as f64 / sum).collect();
        Shares { quality: None, weight: size.clone(), size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_weigh_in_proportion_and_a_large_one_no_more_than_the_median_in_hardened_mode() {
        assert_eq!(size_weights(Mode::Paper, &[1, 2, 5]), [0.125, 0.25, 0.625]);
        assert_eq!(size_weights(Mode::Hardened, &[10, 10, 10, 1_000_000]), [0.25; 4]);
        assert!(size_weights(Mode::Paper, &[]).is_empty());
    }
}
