//! The client sends noise instead of what it learned.
//!
//! ```text
//! w_k <- w_t + sigma n        n: standard normal numbers, new ones for every value, round and client; sigma: the scale
//! ```
//!
//! Trainable tensors only. The numbers follow from the key of the client's job, so they are the same in every repetition.

use crate::attack::scale::finite;
use crate::attack::{Situation, Spec};
use fedtvd_core::round::Upload;
use fedtvd_core::stream::Purpose;

pub(super) const SPEC: Spec = Spec {
    scale: Some(1.0),
    update: Some(noise),
    ..Spec::new("gaussian", "its change of the model is Gaussian noise, with the scale as standard deviation")
};

fn noise(upload: &mut Upload, situation: &Situation<'_>) {
    let mut stream = situation.job.key.at(Purpose::Attack, 0, 0).stream(0);
    let trainable = upload.params.layout.trainable();
    let base = situation.base();
    for (x, &w) in upload.params.values[..trainable].iter_mut().zip(base) {
        *x = finite(f64::from(w) + situation.scale * stream.normal());
    }
}
