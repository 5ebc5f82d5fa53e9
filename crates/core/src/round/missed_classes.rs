//! Classes that a model never gets right. A rare one hardly lowers the accuracy, so they are recorded in every round, also
//! without the accuracies of all classes.

use serde::{Deserialize, Serialize};

/// A class with samples of which none was classified correctly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MissedClass {
    /// The class, counted from 0.
    pub class: usize,
    /// Its share of the evaluated samples.
    pub share: f64,
}

/// The classes whose accuracy is 0; `shares` are those of all classes.
pub(super) fn missed_classes(
    class_accuracies: &[Option<f64>],
    shares: impl IntoIterator<Item = f64>,
) -> Vec<MissedClass> {
    let classes = class_accuracies.iter().zip(shares).enumerate();
    let missed = classes.filter(|(_, (accuracy, _))| **accuracy == Some(0.0));
    missed.map(|(class, (_, share))| MissedClass { class, share }).collect()
}
