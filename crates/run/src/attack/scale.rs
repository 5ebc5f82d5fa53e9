//! Model replacement: the client's change is amplified, so that it outweighs those of the others.
//!
//! ```text
//! w_k  <- w_t + s (w_k - w_t)
//! Δc_k <- s Δc_k                  for every carried vector
//! ```
//!
//! Trainable tensors only: a running variance that was scaled could be negative, and would be refused.
//!
//! Bagdasaryan, Veit, Hua, Estrin, Shmatikov, "How To Backdoor Federated Learning", AISTATS 2020.

use crate::attack::Spec;
use fedtvd_core::memory::{Array, Memory};
use fedtvd_core::round::Upload;

pub(super) const SPEC: Spec = Spec {
    scale: Some(100.0),
    update: Some(|upload, situation| scale(upload, situation.base(), situation.scale)),
    ..Spec::new("scale", "its change of the model is multiplied by a scale")
};

/// Multiplies an update's changes. Values stay finite, since an infinite one would only be refused.
pub(super) fn scale(upload: &mut Upload, base: &[f32], factor: f64) {
    let trainable = upload.params.layout.trainable();
    for (x, &w) in upload.params.values[..trainable].iter_mut().zip(base) {
        let w = f64::from(w);
        *x = finite(w + factor * (f64::from(*x) - w));
    }
    let mut carried = Memory::default();
    for (name, array) in upload.carried.arrays() {
        match array {
            Array::F32(values) => {
                let scaled = values.iter().map(|&x| finite(factor * f64::from(x)));
                carried.put(name, scaled.collect::<Vec<f32>>());
            }
            other => carried.put(name, other.clone()),
        }
    }
    upload.carried = carried;
}

/// A number as f32; one that is too large becomes the largest.
pub(super) fn finite(value: f64) -> f32 {
    value.clamp(f32::MIN.into(), f32::MAX.into()) as f32
}
