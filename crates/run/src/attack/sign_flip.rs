//! The client pushes the model backwards.
//!
//! ```text
//! w_k  <- w_t - s (w_k - w_t)
//! Δc_k <- -s Δc_k                 for every carried vector
//! ```

use crate::attack::Spec;
use crate::attack::scale::scale;

pub(super) const SPEC: Spec = Spec {
    scale: Some(1.0),
    update: Some(|upload, situation| scale(upload, situation.base(), -situation.scale)),
    ..Spec::new("sign-flip", "its change of the model is reversed, and multiplied by a scale")
};
