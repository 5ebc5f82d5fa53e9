//! The client trains on wrong labels: y becomes C - 1 - y. Its label statistic follows from the wrong labels.

use crate::attack::Spec;

pub(super) const SPEC: Spec = Spec {
    label: Some(|label, classes| classes as u32 - 1 - label),
    ..Spec::new(
        "label-flip",
        "its training labels y of C classes become C - 1 - y, and its label statistic follows",
    )
};
