//! FedRep: as FedPer, the last layers stay at each client; a round first trains the head alone, then the body alone.
//!
//! ```text
//! client k: w = (the server's body φ, client k's own head h_k)
//!           h_k: `head_epochs` epochs with φ frozen;   φ_k: local.epochs epochs with h_k frozen;   sends φ_k
//! server:   φ = Σ s_k φ_k
//! ```
//!
//! What is frozen stays bit for bit, batch norms with their running statistics too, and a frozen batch norm normalises by
//! those statistics: the head is then trained on the features that it meets in use, and a long training of the head leaves
//! the server's statistics as they are. (The paper's networks have no batch norm.) Each phase has a new optimiser's state and
//! the round's learning rate. Steps and reach are those of the body, since the head is not sent.
//!
//! The paper trains the head for 10 epochs, then the body for 1 (5 in some runs), by SGD with lr 0.01, momentum 0.5, batch 10.
//!
//! Collins et al., "Exploiting Shared Representations for Personalized Federated Learning", ICML 2021.

use crate::memory::Memory;
use crate::rules::{Guide, LocalRule, Needs, Property, Recipe, Settings, Spec, Task, Trained};
use crate::settings::Param;
use crate::strategy::fedper::{Body, LAYERS};
use crate::train::{Frozen, LocalRun, Pass, TrainFailure, Trainer};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "head h_k: `head_epochs` epochs with the body φ frozen, then φ with h_k frozen;   φ = Σ s_k φ_k",
        choose: "where clients share a representation but not the labels' meaning, and a head is cheap to train",
        avoid: "where clients are asked rarely: a head then trains in few rounds. Compare with `prior` and `finetune`, which keep a shared model",
        cost: "the bytes of `fedper`, and `head_epochs` more epochs per round, each about half as long; each client keeps its head",
    },
    params: &[
        LAYERS,
        Param::whole(
            "head_epochs",
            10,
            (1, 1000),
            "epochs of the head in a round, before local.epochs of the body",
        ),
    ],
    lacks: &[(Property::TrainsPlainly, "the head trains first, with the body frozen, and then the body")],
    ..Spec::new(
        "fedrep",
        "the last layers stay at each client and train first, then the others, which are averaged; each client has a model of its own",
        "Collins et al., Exploiting Shared Representations for Personalized Federated Learning, ICML 2021",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let head = settings.whole("head_layers") as usize;
    let epochs = settings.whole("head_epochs") as u32;
    Recipe {
        local: Some(Arc::new(HeadThenBody { body: Body { head }, epochs })),
        sharing: Some(Arc::new(Body { head })),
        ..Recipe::default()
    }
}

#[derive(Debug)]
struct HeadThenBody {
    body: Body,
    /// Of the head.
    epochs: u32,
}

impl LocalRule for HeadThenBody {
    fn epochs(&self, local: u32) -> u64 {
        u64::from(self.epochs) + u64::from(local)
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn train(
        &self,
        task: &Task<'_>,
        _: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<Trained, TrainFailure> {
        let (rows, local, layout) = (&task.client.rows, task.local, &task.base.layout);
        let body = Frozen::of(layout, |tensor| !self.body.is_head(layout, tensor));
        let head = Frozen::of(layout, |tensor| self.body.is_head(layout, tensor));
        let first = Pass { epochs: self.epochs, frozen: Some(&body), ..task.pass };
        // Later epochs, so that the body does not see the samples in the head's order again.
        let second = Pass { first_epoch: self.epochs, frozen: Some(&head), ..task.pass };
        let tuned = LocalRun::run(task.base, rows, local, &first, None, None, trainer)?;
        let mut run = LocalRun::run(&tuned.params, rows, local, &second, None, None, trainer)?;
        run.losses[0] = tuned.losses[0];
        Ok(run.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LayerKind, Layout, Params, Role, Tensor};
    use crate::round::ClientData;
    use crate::stream::Key;
    use crate::train::{Evaluation, Local, PassReport};

    /// A trainer that adds 1 to all that moves in an epoch, and notes what each pass trains and in which epochs.
    #[derive(Default)]
    struct Counting(Vec<(Vec<std::ops::Range<usize>>, u32, u32, bool)>);

    impl Trainer for Counting {
        fn pass(
            &mut self,
            params: &mut Params,
            _: &[u32],
            pass: &Pass<'_>,
        ) -> Result<PassReport, TrainFailure> {
            let moving = pass.frozen.expect("every pass freezes something").moving().to_vec();
            for range in &moving {
                params.values[range.clone()].iter_mut().for_each(|w| *w += pass.epochs as f32);
            }
            self.0.push((moving, pass.first_epoch, pass.epochs, pass.keep_state));
            let loss = self.0.len() as f64;
            Ok(PassReport { steps: pass.epochs.into(), losses: [loss; 2], statistics: None })
        }

        fn logits(&mut self, _: &Params, _: &[u32]) -> Result<Vec<f32>, TrainFailure> {
            unreachable!("FedRep needs no logits")
        }

        fn gradient(&mut self, _: &Params, _: &[u32], _: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
            unreachable!("FedRep needs no gradient")
        }

        fn evaluate(&mut self, _: &Params, _: &[u32], _: Option<&[f32]>) -> Result<Evaluation, TrainFailure> {
            unreachable!("FedRep evaluates nothing")
        }
    }

    #[test]
    fn the_head_trains_first_and_then_the_body_and_only_the_bodys_steps_are_reported() {
        let tensor = |name: &str, len, layer, kind, role| Tensor::new(name, vec![len], layer, kind, role);
        let layout = Arc::new(Layout::from_tensors(vec![
            tensor("conv.weight", 2, 0, LayerKind::Conv, Role::Weight),
            tensor("bn.weight", 1, 1, LayerKind::BatchNorm, Role::Scale),
            tensor("fc.weight", 3, 2, LayerKind::Linear, Role::Weight),
            tensor("bn.running_mean", 1, 1, LayerKind::BatchNorm, Role::RunningMean),
        ]));
        let base = Params::zeros(layout);
        let client = ClientData { rows: vec![0], holdout: Vec::new(), counts: vec![1] };
        let local = Local { epochs: 2, ..Local::default() };
        let (carried, reference) = (Memory::default(), local.pass(Key::of(1), None, None));
        let task = Task { base: &base, carried: &carried, client: &client, local: &local, pass: reference };
        let mut trainer = Counting::default();
        let rule = build(&Settings::defaults(&SPEC)).local.unwrap();
        let trained = rule.train(&task, None, &mut trainer).unwrap();
        let (body, head) = (0..3, 3..6);
        assert_eq!(trainer.0, [(vec![head], 0, 10, false), (vec![body], 10, 2, false)]);
        assert_eq!(trained.params.values, [2.0, 2.0, 2.0, 10.0, 10.0, 10.0, 0.0]);
        // Two steps with momentum 0.9: 0.01 (1 + 1.9).
        assert_eq!((trained.steps, trained.losses), (2, [1.0, 2.0]));
        assert!((trained.reach - 0.029).abs() < 1e-15);
    }
}
