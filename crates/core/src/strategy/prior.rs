//! Prior: a client that knows its own label shares adds them to the shared model's logits when it predicts for itself.
//!
//! ```text
//! prediction of client k = argmax_c  f(x)[c] + tau ln( max(P_k[c], floor) / max(Q[c], floor) )
//! ```
//!
//! If the shared model is the posterior under Q, as that of the balanced loss is in the ideal case, then by Bayes' rule this is the
//! posterior under P_k, the best prediction for the client's own samples. Nothing is trained, nothing leaves the client,
//! and the shared model stays what it is. Under plain cross-entropy the shared model already holds some mixture of the
//! clients' shares, so that tau = 1 may count them twice.
//!
//! The counterpart of the balanced loss (Menon et al., "Long-tail learning via logit adjustment", ICLR 2021); the rule of
//! prior correction is Saerens et al., "Adjusting the outputs of a classifier to new a priori probabilities", Neural
//! Computation 2002.

use crate::rules::{Guide, OwnModel, OwnTask, Personal, Recipe, Settings, Spec};
use crate::settings::{Param, Range};
use crate::strategy::balanced::log_ratios;
use crate::train::client::constant_dropped;
use crate::train::{TrainFailure, Trainer};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "client k predicts argmax of  logits + tau ln(P_k / Q)",
        choose: "as the baseline of all personal models, on top of `balanced`: it costs nothing",
        avoid: "where a client's samples in use have other label shares than those it trained on",
        cost: "as `fedavg`: no training, no bytes, no memory",
    },
    params: &[
        Param::number(
            "tau",
            1.0,
            Range::NOT_NEGATIVE,
            "strength of the correction: 0 is the shared model, 1 the full correction",
        ),
        Param::number(
            "floor",
            1e-4,
            Range::above(0.0, 1.0),
            "lower bound on label shares, for classes that a client lacks",
        ),
    ],
    ..Spec::new(
        "prior",
        "each client adds its own label shares to the shared model's logits when it predicts for itself",
        "prior correction (Saerens et al., Neural Computation 2002) with a client's own label shares",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let (tau, floor) = (settings.number("tau"), settings.number("floor"));
    Recipe { personal: Some(Arc::new(Prior { tau, floor })), ..Recipe::default() }
}

#[derive(Debug)]
struct Prior {
    tau: f64,
    floor: f64,
}

impl Personal for Prior {
    fn own_model(&self, task: &OwnTask<'_>, _: &mut dyn Trainer) -> Result<OwnModel, TrainFailure> {
        let offsets = log_ratios(&task.client.counts, task.reference, self.tau, self.floor);
        Ok(OwnModel { params: task.model.clone(), offsets: constant_dropped(offsets) })
    }
}
