//! Fine-tuning: a client trains the shared model on its own samples before it uses it. The result never leaves the client.
//!
//! ```text
//! v_k = `tuning_epochs` epochs of local training from w, with the learning rate times `tuning_lr`, on plain cross-entropy
//! ```
//!
//! Made anew from the newest shared model each time, so that nothing is kept. Plain cross-entropy even where clients train
//! the shared model on another loss: a model for the client's own samples may know the client's own label shares.
//!
//! Tan et al., "Towards Personalized Federated Learning", IEEE Transactions on Neural Networks and Learning Systems 2023,
//! name it as the baseline of personalisation.

use crate::rules::{Guide, OwnModel, OwnTask, Personal, Recipe, Settings, Spec};
use crate::settings::{Param, Range};
use crate::train::{Local, LocalRun, Pass, TrainFailure, Trainer};
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "v_k = a few epochs of SGD on client k's samples from the shared model",
        choose: "where each client uses the model for itself and has enough samples to train on",
        avoid: "where clients have few samples: it overfits. Compare with `prior`, which costs nothing",
        cost: "as `fedavg`, and `tuning_epochs` of training at each client whenever its model is made",
    },
    params: &[
        Param::whole("tuning_epochs", 1, (1, 1000), "epochs of fine-tuning"),
        Param::number("tuning_lr", 1.0, Range::POSITIVE, "factor on the learning rate of the round"),
    ],
    ..Spec::new(
        "finetune",
        "each client trains the shared model on its own samples before it uses it; the result stays with the client",
        "Tan et al., Towards Personalized Federated Learning, IEEE TNNLS 2023",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let finetuning =
        FineTuning { epochs: settings.whole("tuning_epochs") as u32, lr: settings.number("tuning_lr") };
    Recipe { personal: Some(Arc::new(finetuning)), ..Recipe::default() }
}

#[derive(Debug)]
struct FineTuning {
    epochs: u32,
    lr: f64,
}

impl Personal for FineTuning {
    fn own_model(&self, task: &OwnTask<'_>, trainer: &mut dyn Trainer) -> Result<OwnModel, TrainFailure> {
        let optimizer = task.local.optimizer.with_lr(self.lr * task.local.optimizer.lr());
        let local = Local { optimizer, ..*task.local };
        let pass = Pass { epochs: self.epochs, optimizer, ..task.pass };
        let tuned = LocalRun::run(task.model, &task.client.rows, &local, &pass, None, None, trainer)?;
        Ok(OwnModel { params: tuned.params, offsets: None })
    }
}
