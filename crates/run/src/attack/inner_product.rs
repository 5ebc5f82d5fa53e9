//! Inner product manipulation: all liars send the reversed mean of the honest changes, shortened so that they stay near
//! the others.
//!
//! ```text
//! w_k <- w_t - epsilon (mean - w_t)        mean: of the round's honest clients; epsilon: the scale
//! ```
//!
//! A small epsilon is hard to tell from an honest client that changed little, and turns the direction of rules that select or
//! trim; a large one reverses a mean. Trainable tensors only. A liar without honest clients in its round is honest.
//!
//! Xie, Koyejo, Gupta, "Fall of Empires: Breaking Byzantine-tolerant SGD by Inner Product Manipulation", UAI 2020.

use crate::attack::scale::finite;
use crate::attack::{Situation, Spec};
use fedtvd_core::round::Upload;

pub(super) const SPEC: Spec = Spec {
    scale: Some(0.5),
    update: Some(reversed),
    colludes: true,
    ..Spec::new(
        "inner-product",
        "its change of the model is the honest clients' mean change, reversed and multiplied by a scale",
    )
};

fn reversed(upload: &mut Upload, situation: &Situation<'_>) {
    let Some(honest) = situation.honest else { return };
    let base = situation.base();
    for ((x, &w), mean) in upload.params.values.iter_mut().zip(base).zip(&honest.mean) {
        let w = f64::from(w);
        *x = finite(w - situation.scale * (mean - w));
    }
}
