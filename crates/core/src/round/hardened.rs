//! Hardened mode: limits what a false claim can gain. Sizes are capped at the median, then weights.
//!
//! ```text
//! n_k  <- min(n_k, the size listed with its certificate, median of n)
//! s_k  <- min(c, f s_k)   with c = min(1.6 / K, 0.4) and f such that the weights still sum to 1 (water-filling)
//! r_k  <- min(r_k, B)     with the bound B that screening would give to reaches; in means of reaches only
//! ```
//!
//! K are the clients whose updates count. A round with fewer than three of them, or with fewer than half of its cohort,
//! changes nothing: two clients cannot outvote a third that does not answer. The same caps apply to what clients
//! contribute to an aggregated reference and to the centres and scales of a table, and to their evaluations of the model.
//!
//! The cap on the reach r_k matters for FedNova, whose mean reach multiplies every update: a client that claims the
//! reach of a hundred million samples would blow up all of them, however small its weight. Its own update is divided by
//! what it claims: a large reach makes it smaller, and screening bounds what a small one does.
//!
//! Without the caps, a claimed size can give one client of ten a weight of 0.607 under FedTVD, and of 1 under FedAvg.

use crate::labels::{Ask, Reference, ReferenceError, Statistic};
use crate::memory::Memory;
use crate::round::screening::{MARGIN, bound};
use crate::round::{Mode, Profile, Report, Run};
use crate::rules::{Shares, Weighting};
use std::borrow::Cow;

/// Maximum weight of a client, as a multiple of an equal share.
const SHARE_CAP: f64 = 1.6;
/// Maximum weight of a client in a small round.
const CAP: f64 = 0.4;
/// Minimum number of clients that count in a round: with fewer, no cap could hold.
pub const LEAST: usize = 3;

/// The longest step of a server that extrapolates: as far as the median client moved. Of two medians the lower one, so that half
/// of the clients cannot set it.
pub(crate) fn step_limit(mode: Mode, norms: &[f64]) -> f64 {
    match mode {
        Mode::Paper => f64::INFINITY,
        Mode::Hardened => {
            let mut sorted = norms.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted[(sorted.len() - 1) / 2]
        }
    }
}

/// The final weights of these clients: those of the rule, capped in hardened mode, with a sum of 1.
pub fn shares(
    weighting: &dyn Weighting,
    mode: Mode,
    profiles: &[&Profile],
    reference: &Reference,
    memory: &mut Memory,
) -> Shares {
    let asked = asked(weighting, profiles, reference);
    let profiles: Vec<&Profile> = asked.iter().map(AsRef::as_ref).collect();
    let mut shares = match mode {
        Mode::Paper => weighting.shares(&profiles, reference, memory),
        Mode::Hardened => {
            let sizes = capped_sizes(profiles.iter().map(|profile| profile.counted_size()).collect());
            let capped: Vec<Profile> =
                profiles.iter().zip(sizes).map(|(p, size)| Profile { size, ..(*p).clone() }).collect();
            let mut shares = weighting.shares(&capped.iter().collect::<Vec<_>>(), reference, memory);
            shares.weight = filled(&shares.weight, cap(profiles.len()));
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

/// The profiles with the statistic that the weighting asks for. Clients whose label counts are known, because another rule
/// needs them, have reported every other statistic as well.
fn asked<'a>(
    weighting: &dyn Weighting,
    profiles: &[&'a Profile],
    reference: &Reference,
) -> Vec<Cow<'a, Profile>> {
    let ask = weighting.asks();
    let seen = |profile: &&'a Profile| match &profile.statistic {
        Statistic::Histogram(counts) if ask != Ask::Histogram => {
            Cow::Owned(Profile { statistic: ask.answer(counts, reference), ..(*profile).clone() })
        }
        _ => Cow::Borrowed(*profile),
    };
    profiles.iter().map(seen).collect()
}

/// Weights by size alone, capped: what a client's label counts, its evaluation or its statistics of a table's columns
/// may weigh. There must be at least one.
pub fn size_weights(sizes: Vec<u64>) -> Vec<f64> {
    let (clients, sizes) = (sizes.len(), capped_sizes(sizes));
    let total: f64 = sizes.iter().map(|&size| size as f64).sum();
    filled(&sizes.iter().map(|&size| size as f64 / total).collect::<Vec<_>>(), cap(clients))
}

/// The reference that clients' label counts give, in client order, each with the size that it counts as. In hardened
/// mode no client contributes more than its cap.
pub fn reference(mode: Mode, clients: &[(u64, &[u64])]) -> Result<Reference, ReferenceError> {
    match mode {
        Mode::Paper => Reference::aggregated(clients.iter().map(|(_, counts)| *counts)),
        Mode::Hardened => {
            let weights = size_weights(clients.iter().map(|(size, _)| *size).collect());
            Reference::mixed(weights.into_iter().zip(clients.iter().map(|(_, counts)| *counts)))
        }
    }
}

/// The maximum weight of one of this many clients; never below an equal share.
fn cap(clients: usize) -> f64 {
    let clients = clients as f64;
    (SHARE_CAP / clients).min(CAP).max(1.0 / clients)
}

/// Sizes capped at their median.
fn capped_sizes(sizes: Vec<u64>) -> Vec<u64> {
    let median = median(sizes.clone());
    sizes.into_iter().map(|size| size.min(median)).collect()
}

/// The greatest reach that counts in a mean of reaches: in hardened mode, bounded as norms are.
pub(crate) fn greatest_reach(run: &Run, reports: &[Report]) -> f64 {
    match run.mode {
        Mode::Paper => f64::INFINITY,
        Mode::Hardened => {
            bound(run.screen, MARGIN, &reports.iter().map(|report| report.reach).collect::<Vec<_>>())
        }
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
    fn the_cap_is_1_6_equal_shares_at_most_0_4_and_never_below_an_equal_share() {
        assert_eq!([1, 2, 3, 4, 10].map(cap), [1.0, 0.5, 0.4, 0.4, 1.6 / 10.0]);
    }

    #[test]
    fn the_median_of_an_even_number_of_values_is_their_midpoint() {
        assert_eq!(median(vec![5, 1, 9]), 5);
        assert_eq!(median(vec![4, 1, 9, 6]), 5);
        assert_eq!(median(vec![u64::MAX, u64::MAX]), u64::MAX);
    }
}
