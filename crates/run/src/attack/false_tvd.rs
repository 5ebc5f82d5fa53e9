//! The client claims many samples, distributed like the reference: a total variation distance (TVD) of 0.
//!
//! ```text
//! h'[c] = floor(n' Q[c]), at least 1 where Q[c] > 0
//! ```
//!
//! Against a uniform reference the claimed size is a multiple of the number of classes, so that TVD is 0 exactly; the
//! distance of the authors' public code is then the least possible. Training is honest.

use crate::attack::{Claim, Spec};

pub(super) const SPEC: Spec = Spec {
    counts: Some(like_the_reference),
    ..Spec::new("false-tvd", "it claims a large size and the labels of the reference, so that TVD = 0")
};

fn like_the_reference(claim: &Claim<'_>) -> Vec<u64> {
    let shares = claim.reference.shares().iter();
    shares.map(|&q| ((q * claim.size as f64) as u64).max(u64::from(q > 0.0))).collect()
}
