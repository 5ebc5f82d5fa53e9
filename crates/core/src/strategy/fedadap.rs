//! FedAdap: each client lowers its learning rate and stops its round by the loss on samples that it holds out.
//!
//! ```text
//! η = lr of the round;  after each of up to local.epochs epochs, with the loss l on the hold-out:
//!   plateau:  l < best (1 - lr_threshold):  best = l, bad = 0;     otherwise bad = bad + 1
//!             bad > lr_patience:            η = max(factor η, min_lr), bad = 0
//!   stopping: -l >= top + stop_delta:       top = -l, count = 0;   otherwise count = count + 1
//!             count >= stop_patience:       the round ends            (the first epoch only sets top)
//! ```
//!
//! The server and what travels are FedAvg's. Clients make unequal numbers of steps with unequal learning rates, so they report
//! their true reach, and `fedadap+fednova` normalises by it. η and all counters start anew in every round; with `persist_lr` a
//! client continues from its last η, never above the round's. The first test is relative and the second one absolute, and
//! the weights of the best epoch are not restored: both as in the authors' code. The loss on the hold-out is that of
//! evaluation mode, with the loss's offsets. A client without hold-out trains all epochs.
//!
//! Sizes and label counts are those of the training samples, since a hold-out belongs to neither. What clients choose by is no
//! unbiased judge: accuracy on the hold-outs is slightly optimistic, that on the server's test set is not.
//!
//! Kundroo and Kim, "Efficient Federated Learning with Adaptive Client-Side Hyper-Parameter Optimization", ICDCS 2023, with the
//! defaults of the code that its authors published as FedAdap: 15 % held out, at most 11 epochs, lr 0.01.

use crate::memory::Memory;
use crate::rules::{Guide, LocalRule, Needs, Recipe, Settings, Spec, Task, Trained};
use crate::settings::{Param, Range};
use crate::train::{LocalRun, Pass, Passes, TrainFailure, Trainer};
use std::sync::Arc;

/// The last learning rate in a client's memory.
const LR: &str = "lr";

pub(super) const SPEC: Spec = Spec {
    guide: Guide {
        formula: "client k: η = factor η when the hold-out's loss stalls; the round ends when it stops falling",
        choose: "where one number of epochs does not fit all clients: with local.epochs as the most (11 in the paper), split.holdout = 0.15 and `fednova`",
        avoid: "with few epochs (local.epochs = 4 is over before a client would stop) or hold-outs of a few samples, whose loss is noise",
        cost: "the bytes of `fedavg`; one evaluation of the hold-out per epoch, and fewer samples to train on",
    },
    params: &[
        Param::number("factor", 0.9, Range::above(0.0, 1.0), "factor on the learning rate at a plateau"),
        Param::whole("lr_patience", 3, (0, 1000), "epochs without progress before the learning rate falls"),
        Param::number(
            "lr_threshold",
            0.01,
            Range::closed(0.0, 0.9),
            "progress for the learning rate: the loss falls by this fraction of the best one",
        ),
        Param::number("min_lr", 1e-4, Range::above(0.0, 1.0), "the learning rate does not fall below this"),
        Param::whole("stop_patience", 6, (1, 1000), "epochs without progress before the round ends"),
        Param::number(
            "stop_delta",
            0.01,
            Range::closed(0.0, 1e3),
            "progress for stopping: the loss falls by this much below the best one",
        ),
        Param::flag("persist_lr", false, "whether a client continues from its last learning rate"),
    ],
    ..Spec::new(
        "fedadap",
        "each client lowers its learning rate and stops its round by the loss on samples that it holds out",
        "Kundroo and Kim, Efficient Federated Learning with Adaptive Client-Side Hyper-Parameter Optimization, ICDCS 2023",
        build,
    )
};

fn build(settings: &Settings) -> Recipe {
    let adaptive = Adaptive {
        factor: settings.number("factor"),
        lr_patience: settings.whole("lr_patience"),
        lr_threshold: settings.number("lr_threshold"),
        min_lr: settings.number("min_lr"),
        stop_patience: settings.whole("stop_patience"),
        stop_delta: settings.number("stop_delta"),
        persists: settings.flag("persist_lr"),
    };
    Recipe { local: Some(Arc::new(adaptive)), ..Recipe::default() }
}

#[derive(Debug)]
struct Adaptive {
    factor: f64,
    lr_patience: u64,
    lr_threshold: f64,
    min_lr: f64,
    stop_patience: u64,
    stop_delta: f64,
    persists: bool,
}

/// What a client keeps count of in a round.
struct Progress {
    lr: f64,
    best: f64,
    bad: u64,
    top: f64,
    count: u64,
}

impl Adaptive {
    /// The learning rate that a client starts a round with.
    fn first_lr(&self, of_round: f64, memory: Option<&Memory>) -> f64 {
        let kept = memory.and_then(|memory| memory.f64(LR)?.first().copied());
        kept.map_or(of_round, |kept| kept.max(self.min_lr).min(of_round))
    }

    /// Takes an epoch's loss into account; whether the round ends.
    fn ends(&self, progress: &mut Progress, loss: f64) -> bool {
        if loss < progress.best * (1.0 - self.lr_threshold) {
            (progress.best, progress.bad) = (loss, 0);
        } else {
            progress.bad += 1;
        }
        if progress.bad > self.lr_patience {
            // A round may itself have a learning rate below the least one.
            progress.lr = (self.factor * progress.lr).max(self.min_lr.min(progress.lr));
            progress.bad = 0;
        }
        if -loss >= progress.top + self.stop_delta {
            (progress.top, progress.count) = (-loss, 0);
        } else {
            progress.count += 1;
        }
        progress.count >= self.stop_patience
    }
}

impl LocalRule for Adaptive {
    fn needs(&self) -> Needs {
        let least_lr = self.persists.then_some(self.min_lr);
        Needs { remembers: self.persists, holdout: true, least_lr, ..Needs::default() }
    }

    fn train(
        &self,
        task: &Task<'_>,
        memory: Option<&Memory>,
        trainer: &mut dyn Trainer,
    ) -> Result<Trained, TrainFailure> {
        let (client, local) = (task.client, task.local);
        if client.holdout.is_empty() {
            return LocalRun::run(task.base, &client.rows, local, &task.pass, None, None, trainer)
                .map(Trained::from);
        }
        let lr = self.first_lr(local.optimizer.lr(), memory);
        let mut progress = Progress { lr, best: f64::INFINITY, bad: 0, top: f64::NEG_INFINITY, count: 0 };
        let mut passes = Passes::from(task.base);
        for epoch in 0..task.pass.epochs {
            let decay = local.in_epoch(epoch).lr() / local.optimizer.lr();
            let pass = Pass {
                epochs: 1,
                first_epoch: task.pass.first_epoch + epoch,
                keep_state: epoch > 0,
                optimizer: local.optimizer.with_lr(progress.lr * decay),
                ..task.pass
            };
            passes.train(&client.rows, &pass, trainer)?;
            let evaluation = trainer.evaluate(&passes.params, &client.holdout, task.pass.offsets)?;
            if self.ends(&mut progress, evaluation.mean_loss()) {
                break;
            }
        }
        let mut trained = Trained::from(passes.finished()?);
        if self.persists {
            trained.memory.put(LR, vec![progress.lr]);
        }
        Ok(trained)
    }
}
