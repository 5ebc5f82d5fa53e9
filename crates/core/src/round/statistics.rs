//! Batch statistics that travel beside the model: the server's copy is their mean over the clients seen so far.
//!
//! ```text
//! M <- M + Σ_{k in round} s_k^(N) Δ_k / Σ_{k seen} s_k^(N),   variances at least 0
//! ```
//!
//! A client is seen from the first round on in which an update of it counts. Δ_k is the change of its statistics; before
//! its first round they count as M. So M is the weighted mean of the statistics of all clients seen, whatever it was at
//! the beginning. The model's buffers take its values.

use crate::memory::Memory;
use crate::model::{Layout, Params, Role};
use crate::round::{Profile, State};
use crate::rules::{Carried, Extent, Needs};

/// The weight of all clients seen, those of this round included, of weights over the whole roster.
pub(crate) fn seen(state: &State, round: &[&Profile], weights: &[f64]) -> f64 {
    let here = |profile: &Profile| round.iter().any(|counted| counted.client == profile.client);
    let seen = |profile: &Profile| state.accepted.contains_key(&profile.client) || here(profile);
    state.roster.iter().zip(weights).filter(|(profile, _)| seen(profile)).map(|(_, weight)| weight).sum()
}

/// The next mean, from the weighted sum of the clients' changes and the weight of all clients seen.
pub(crate) fn next(layout: &Layout, mean: &[f32], change: &[f64], seen: f64) -> Vec<f32> {
    let share = if seen > 0.0 { 1.0 / seen } else { 0.0 };
    let moved = mean.iter().zip(change).map(|(&mean, change)| (f64::from(mean) + share * change) as f32);
    let mut next: Vec<f32> = moved.collect();
    for tensor in layout.tensors().iter().filter(|tensor| tensor.role == Role::RunningVariance) {
        let range = tensor.range();
        let here = next.get_mut(range.start - layout.trainable()..range.end - layout.trainable());
        here.into_iter().flatten().for_each(|variance| *variance = variance.max(0.0));
    }
    next
}

/// Writes statistics that travel beside the model into its buffers, if there are any.
pub(crate) fn fill_buffers(params: &mut Params, needs: &Needs, carried: &Memory) {
    let trainable = params.layout.trainable();
    for Carried { name, .. } in needs.carries.iter().filter(|carried| carried.extent == Extent::Buffers) {
        if let Some(statistics) = carried.f32(name) {
            params.values[trainable..].copy_from_slice(statistics);
        }
    }
}
