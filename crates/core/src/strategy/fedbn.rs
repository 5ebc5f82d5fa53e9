//! FedBN: batch norms stay at each client, everything else is averaged.
//!
//! ```text
//! client k: w = (the server's w without batch norms, client k's own batch norms); local training; sends all but batch norms
//! server:   w = Σ s_k w_k, over the tensors that travel
//! ```
//!
//! Scale, shift, running mean and running variance of every batch norm stay, those of shortcuts too: the layer's kind
//! decides, not its name. A client that was never asked has the initial ones. There is no model that the server could
//! evaluate, so each client's own model is evaluated. The paper trains without momentum, one epoch per round, and weights
//! clients equally.
//!
//! Li et al., "FedBN: Federated Learning on Non-IID Features via Local Batch Normalization", ICLR 2021.

use crate::model::{LayerKind, Layout, Tensor};
use crate::rules::{Guide, Property, Recipe, Settings, Sharing, Spec};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "w = Σ s_k w_k over all tensors but those of batch norms, which stay at client k",
        choose: "where clients' inputs differ (scanners, cameras, lighting) and the model has batch norms",
        avoid: "where labels differ and clients have few samples: their statistics are then poor, and `prior` costs nothing",
        cost: "the bytes of `fedavg` without the batch norms, and each client keeps those; there is no shared model to evaluate or to hand on",
    },
    suggests: Some("uniform"),
    lacks: &[(Property::AveragesBuffers, "batch norms stay at the clients")],
    ..Spec::new(
        "fedbn",
        "batch norms stay at each client, all other tensors are averaged; each client has a model of its own",
        "Li et al., FedBN: Federated Learning on Non-IID Features via Local Batch Normalization, ICLR 2021",
        build,
    )
};

fn build(_: &Settings) -> Recipe {
    Recipe { sharing: Some(Arc::new(AllButBatchNorms)), ..Recipe::default() }
}

#[derive(Debug)]
struct AllButBatchNorms;

impl Sharing for AllButBatchNorms {
    fn travels(&self, _: &Layout, tensor: &Tensor) -> bool {
        tensor.kind != LayerKind::BatchNorm
    }

    fn stays(&self) -> Option<&'static str> {
        Some("batch norms")
    }
}
