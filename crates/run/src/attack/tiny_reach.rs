//! The client trains honestly, but reports one step and the least reach that a client can have. FedNova divides a
//! change by its reach, so the change is amplified.

use crate::attack::Spec;

pub(super) const SPEC: Spec = Spec {
    update: Some(|upload, situation| {
        let [least, _] = situation.job.offer.local.reaches(situation.mu, situation.size);
        upload.report.steps = 1;
        upload.report.reach = least;
    }),
    ..Spec::new(
        "tiny-reach",
        "it reports one step and the least possible reach, by which FedNova divides its change",
    )
};
