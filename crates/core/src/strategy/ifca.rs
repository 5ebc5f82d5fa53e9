//! IFCA: several models; in each round every client chooses the one that suits its samples best, and trains it.
//!
//! ```text
//! client k: j = argmin_i F_k(θ_i) over all models i, of equal ones the first; local training from θ_j; sends j and w_k
//! server:   θ_j = Σ_{k: chose j} s_k w_k / Σ_{k: chose j} s_k;  a model that nobody chose stays as it is
//! ```
//!
//! F_k is the mean loss over the client's training samples as the model is used, without dropout and with the running statistics of
//! batch norms; a loss with offsets keeps them. Weights, combination and the server's step act on the clients of each model alone.
//! This is the paper's variant that averages models. The first model starts as that of every other strategy, the others at random with
//! numbers of their own; if all clients choose the same one, the others never train, which another seed or more models may change.
//!
//! Ghosh, Chung, Yin, Ramchandran, "An Efficient Framework for Clustered Federated Learning", NeurIPS 2020.

use crate::round::ReadFailure;
use crate::rules::{BranchRound, Grouping, Guide, Recipe, Rule, Settings, Spec, Split};
use crate::settings::Param;
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "client k trains the model j with the least loss on its samples;   θ_j = Σ s_k w_k over the clients that chose j",
        choose: "where clients fall into a few groups that need different models, and you can guess their number",
        avoid: "where clients differ by degrees; if all choose the same model, the others never train: try other seeds",
        cost: "each client downloads all models and evaluates them on its training samples; uploads are those of `fedavg`",
    },
    params: &[Param::whole("models", 2, (2, 100), "number of models from which clients choose")],
    keeps: &[(Rule::Sharing, "a client compares whole models, also before it has tensors of its own")],
    ..Spec::new(
        "ifca",
        "each client chooses the model with the least loss on its samples; the clients of each model are averaged",
        "Ghosh et al., An Efficient Framework for Clustered Federated Learning, NeurIPS 2020",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    Recipe {
        grouping: Some(Arc::new(Ifca { models: settings.whole("models") as usize })),
        ..Recipe::default()
    }
}

#[derive(Debug)]
struct Ifca {
    models: usize,
}

impl Grouping for Ifca {
    fn models(&self) -> usize {
        self.models
    }

    fn clients_choose(&self) -> bool {
        true
    }

    fn split(&self, _: &mut BranchRound<'_, '_>) -> Result<Option<Split>, ReadFailure> {
        Ok(None)
    }
}
