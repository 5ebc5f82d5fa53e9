//! FedPer: the last layers stay at each client, the body below them is averaged. Both train together.
//!
//! ```text
//! client k: w = (the server's body, client k's own head); local training; sends the body
//! server:   body = Σ s_k body_k
//! ```
//!
//! A client that was never asked has the initial head, so its own model is no better than guessing until then.
//!
//! Arivazhagan et al., "Federated Learning with Personalization Layers", arXiv 1912.00818, 2019.

use crate::model::{Layout, Tensor};
use crate::rules::{Guide, Recipe, Settings, Sharing, Spec};
use crate::settings::Param;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) const LAYERS: Param = Param::whole(
    "head_layers",
    1,
    (1, 1000),
    "number of last layers with parameters that stay at the client; a norm counts as a layer",
);

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "body = Σ s_k body_k;   the last `head_layers` layers stay at client k",
        choose: "where clients' tasks differ, such as other meanings of the same label",
        avoid: "where clients are asked rarely: a head then trains in few rounds. Compare with `prior` and `finetune`, which keep a shared model",
        cost: "the bytes of `fedavg` without the head, and each client keeps its head; there is no shared model to evaluate or to hand on",
    },
    params: &[LAYERS],
    ..Spec::new(
        "fedper",
        "the last layers stay at each client, the others are averaged; each client has a model of its own",
        "Arivazhagan et al., Federated Learning with Personalization Layers, arXiv 1912.00818, 2019",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    Recipe {
        sharing: Some(Arc::new(Body { head: settings.whole("head_layers") as usize })),
        ..Recipe::default()
    }
}

/// The layers below the last ones travel.
#[derive(Debug)]
pub(super) struct Body {
    /// Number of layers that stay.
    pub(super) head: usize,
}

impl Body {
    /// Whether a tensor belongs to the layers that stay.
    pub(super) fn is_head(&self, layout: &Layout, tensor: &Tensor) -> bool {
        let layers: BTreeSet<usize> = layout.tensors().iter().map(|tensor| tensor.layer).collect();
        layers.into_iter().rev().take(self.head).any(|layer| layer == tensor.layer)
    }
}

impl Sharing for Body {
    fn travels(&self, layout: &Layout, tensor: &Tensor) -> bool {
        !self.is_head(layout, tensor)
    }

    fn stays(&self) -> Option<&'static str> {
        Some("the last layers")
    }
}
