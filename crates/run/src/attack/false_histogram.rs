//! The client claims many samples, all of class 0. This shifts a reference that is aggregated from the clients'
//! label counts, and the weights of strategies that ask for label counts. Training is honest.
//!
//! ```text
//! h' = (n', 0, ..., 0)
//! ```

use crate::attack::{Claim, Spec};

pub(super) const SPEC: Spec = Spec {
    counts: Some(all_in_one_class),
    ..Spec::new("false-histogram", "it claims a large size, with all samples in class 0")
};

fn all_in_one_class(claim: &Claim<'_>) -> Vec<u64> {
    let mut counts = vec![0; claim.counts.len()];
    counts[0] = claim.size;
    counts
}
