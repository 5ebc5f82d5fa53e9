//! A little is enough: all liars send the same model, so near to the honest ones that it passes for one of them.
//!
//! ```text
//! w_k[d] <- mean[d] - z deviation[d]                     of the round's honest clients
//! z = the quantile of the normal distribution at (K - m - s) / (K - m),   s = floor(K/2 + 1) - m
//! ```
//!
//! for m liars among K clients: with s honest clients farther out, the liars are a majority. z is 0 at least, which it is
//! for few liars, and 8 at most, where they are a majority by themselves; a scale takes its place. Trainable tensors only.
//! A liar without honest clients in its round is honest.
//!
//! Baruch, Baruch, Goldberg, "A Little Is Enough: Circumventing Defenses For Distributed Learning", NeurIPS 2019.

use crate::attack::scale::finite;
use crate::attack::{Honest, Situation, Spec};
use fedtvd_core::normal::normal;
use fedtvd_core::round::Upload;

pub(super) const SPEC: Spec = Spec {
    scale: Some(0.0),
    update: Some(alie),
    colludes: true,
    ..Spec::new(
        "alie",
        "its model is the honest clients' mean minus z standard deviations; z is the scale, or follows from the number of liars",
    )
};

/// The greatest z; it is reached where the liars are a majority by themselves.
const MOST: f64 = 8.0;

fn alie(upload: &mut Upload, situation: &Situation<'_>) {
    let Some(honest) = situation.honest else { return };
    let z = if situation.scale > 0.0 { situation.scale } else { greatest(honest) };
    let values = honest.mean.iter().zip(&honest.deviation).map(|(mean, deviation)| mean - z * deviation);
    upload.params.values.iter_mut().zip(values).for_each(|(x, value)| *x = finite(value));
}

/// The greatest z at which enough honest clients lie farther out.
fn greatest(honest: &Honest) -> f64 {
    let all = honest.clients + honest.liars;
    let farther = (all / 2 + 1).saturating_sub(honest.liars);
    let share = honest.clients.saturating_sub(farther) as f64 / honest.clients as f64;
    if share < 1.0 { normal(share).clamp(0.0, MOST) } else { MOST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z_follows_from_the_numbers_of_clients_and_liars() {
        let z = |clients: usize, liars| {
            let honest = Honest { mean: vec![], deviation: vec![], clients: clients - liars, liars };
            greatest(&honest)
        };
        // statistics.NormalDist().inv_cdf of 24/38, 4/7 and 24/26 in Python.
        for (clients, liars, expected) in
            [(50, 12, 0.336_038_1), (10, 3, 0.180_012_4), (50, 24, 1.426_076_9), (10, 2, 0.0), (10, 1, 0.0)]
        {
            assert!((z(clients, liars) - expected).abs() < 1e-6, "{clients} {liars}: {}", z(clients, liars));
        }
        assert_eq!(z(10, 6), 8.0, "a majority may go as far as it likes");
    }
}
