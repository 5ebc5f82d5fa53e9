//! The client trains honestly, but claims many samples with its own label distribution, and the most steps and the
//! greatest reach that a client of that size can have. FedNova multiplies every change by the mean reach.
//!
//! ```text
//! h' = floor(n' / n) h
//! ```

use crate::attack::{Claim, Spec};
use fedtvd_core::labels::size;

pub(super) const SPEC: Spec = Spec {
    counts: Some(many_times_its_own),
    update: Some(|upload, situation| {
        let local = &situation.job.offer.local;
        let [_, greatest] = local.reaches(situation.mu, situation.size);
        upload.report.steps = local.most_steps(situation.size);
        upload.report.reach = greatest;
    }),
    ..Spec::new(
        "vast-reach",
        "it claims a large size, and the most steps and the greatest reach that are possible for it",
    )
};

fn many_times_its_own(claim: &Claim<'_>) -> Vec<u64> {
    let times = (claim.size / size(claim.counts).max(1)).max(1);
    claim.counts.iter().map(|count| times * count).collect()
}
