//! Hardened mode: limits the weight that a false claim can gain. Sizes are capped at the median, then weights at 1.6/K.
//!
//! ```text
//! n_k  <- min(n_k, median of n)
//! s_k  <- min(1.6 / K, f s_k)   with f such that the weights still sum to 1 (water-filling)
//! r_k  <- min(r_k, the reach of a client of median size)
//! ```
//!
//! The cap on the reach r_k matters for FedNova, whose mean reach multiplies every update: a client that claims the
//! reach of a hundred million samples would blow up all of them, however small its weight.
//!
//! Without the caps, a claimed size can give one client of ten a weight of 0.607 under FedTVD, and of 1 under FedAvg.

use crate::memory::Memory;
use crate::round::{Mode, Profile, Report, Run};
use crate::rules::{Shares, Weighting};
use crate::train::Local;

/// Maximum weight of a client, as a multiple of an equal share.
pub const CAP: f64 = 1.6;

/// The final weights of these clients: those of the rule, capped in hardened mode, with a sum of 1.
pub fn shares(weighting: &dyn Weighting, mode: Mode, profiles: &[&Profile], memory: &mut Memory) -> Shares {
    let mut shares = match mode {
        Mode::Paper => weighting.shares(profiles, memory),
        Mode::Hardened => {
            let median = median(profiles.iter().map(|profile| profile.size).collect());
            let capped: Vec<Profile> =
                profiles.iter().map(|p| Profile { size: p.size.min(median), ..(*p).clone() }).collect();
            let mut shares = weighting.shares(&capped.iter().collect::<Vec<_>>(), memory);
            shares.weight = filled(&shares.weight, CAP / profiles.len() as f64);
            shares
        }
    };
    // A rule's weights sum to 1 up to rounding; dividing once here makes λ = 0 bit-identical to FedAvg.
    let sum: f64 = shares.weight.iter().sum();
    for weight in &mut shares.weight {
        *weight /= sum;
    }
    shares
}

/// Caps reaches at that of a client of the round's median size, in hardened mode.
pub(crate) fn cap_reaches(run: &Run, local: &Local, profiles: &[&Profile], reports: &mut [Report]) {
    if run.mode == Mode::Paper || reports.is_empty() {
        return;
    }
    let median = median(profiles.iter().map(|profile| profile.size).collect());
    let [_, greatest] = local.reaches(run.strategy.local.needs().mu, median);
    for report in reports {
        report.reach = report.reach.min(greatest);
    }
}

fn median(mut sizes: Vec<u64>) -> u64 {
    sizes.sort_unstable();
    let middle = sizes.len() / 2;
    if sizes.len() % 2 == 1 { sizes[middle] } else { sizes[middle - 1].midpoint(sizes[middle]) }
}

/// min(cap, f w_k) with f such that they sum to 1; if all uncapped weights are 0, they share the rest equally.
fn filled(weights: &[f64], cap: f64) -> Vec<f64> {
    let mut capped = vec![false; weights.len()];
    loop {
        let free: f64 = weights.iter().zip(&capped).filter(|(_, full)| !**full).map(|(w, _)| w).sum();
        let full = capped.iter().filter(|full| **full).count();
        let left = 1.0 - cap * full as f64;
        let open = (weights.len() - full).max(1) as f64;
        let level = |w: f64| if free > 0.0 { w / free * left } else { left / open };
        let over: Vec<usize> =
            (0..weights.len()).filter(|&k| !capped[k] && level(weights[k]) > cap).collect();
        if over.is_empty() {
            let rest = weights.iter().zip(&capped);
            return rest.map(|(&w, &full)| if full { cap } else { level(w) }).collect();
        }
        for k in over {
            capped[k] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_above_the_cap_is_redistributed_in_proportion() {
        let close = |got: Vec<f64>, want: &[f64]| {
            assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-15), "{got:?}");
        };
        close(filled(&[0.7, 0.2, 0.1], 0.5), &[0.5, 1.0 / 3.0, 1.0 / 6.0]);
        // Filling the second one to the cap leaves 0.2 for the third.
        close(filled(&[0.7, 0.25, 0.05], 0.4), &[0.4, 0.4, 0.2]);
        close(filled(&[1.0, 0.0, 0.0], 0.5), &[0.5, 0.25, 0.25]);
        close(filled(&[0.3, 0.3, 0.4], 0.5), &[0.3, 0.3, 0.4]);
        close(filled(&[1.0], 1.6), &[1.0]);
    }

    #[test]
    fn the_median_of_an_even_number_of_values_is_their_midpoint() {
        assert_eq!(median(vec![5, 1, 9]), 5);
        assert_eq!(median(vec![4, 1, 9, 6]), 5);
        assert_eq!(median(vec![u64::MAX, u64::MAX]), u64::MAX);
    }
}
