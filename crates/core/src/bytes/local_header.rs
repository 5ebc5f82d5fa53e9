//! How a job's header states local training.
//!
//! `local` has the fields that every client knows, and readers of all versions ignore further ones. So whatever came later is
//! in fields of the header itself, which are left out if they change nothing: jobs of plain SGD keep their bytes, and a client
//! that does not know a field refuses the job.

use crate::train::{Adam, Local, Optimizer, Schedule, Sgd};
use serde::{Deserialize, Serialize};

/// The fields that every client knows.
#[derive(Serialize, Deserialize)]
pub(super) struct LocalHeader {
    epochs: u32,
    batch: usize,
    sgd: SgdHeader,
    round_decay: f64,
    epoch_decay: f64,
}

/// The optimiser. With Adam and AdamW, only its learning rate and weight decay count.
#[derive(Serialize, Deserialize)]
struct SgdHeader {
    lr: f64,
    momentum: f64,
    nesterov: bool,
    weight_decay: f64,
}

/// Adam or AdamW instead of SGD.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdamHeader {
    beta1: f64,
    beta2: f64,
    eps: f64,
    /// Whether weight decay shrinks w (AdamW) instead of entering the gradient (Adam).
    decoupled: bool,
}

/// What a header says of local training: its `local`, `adam`, `clip` and `label_smoothing`.
pub(super) type Parts = (LocalHeader, Option<AdamHeader>, Option<f64>, Option<f64>);

/// The fields that state this training.
pub(super) fn parts(local: &Local) -> Parts {
    let plain = |lr, weight_decay| SgdHeader { lr, momentum: 0.0, nesterov: false, weight_decay };
    let adaptive = |adam: Adam, decoupled| {
        let Adam { lr, beta1, beta2, eps, weight_decay } = adam;
        (plain(lr, weight_decay), Some(AdamHeader { beta1, beta2, eps, decoupled }))
    };
    let (sgd, adam) = match local.optimizer {
        Optimizer::Sgd(Sgd { lr, momentum, nesterov, weight_decay }) => {
            (SgdHeader { lr, momentum, nesterov, weight_decay }, None)
        }
        Optimizer::Adam(adam) => adaptive(adam, false),
        Optimizer::AdamW(adam) => adaptive(adam, true),
    };
    let &Local { epochs, batch, epoch_decay, clip, smoothing, .. } = local;
    let header = LocalHeader { epochs, batch, sgd, round_decay: local.schedule.factor(), epoch_decay };
    (header, adam, clip, Some(smoothing).filter(|smoothing| *smoothing != 0.0))
}

/// The training that these fields state.
pub(super) fn local((header, adam, clip, smoothing): Parts) -> Local {
    let LocalHeader { epochs, batch, sgd, round_decay, epoch_decay } = header;
    let SgdHeader { lr, momentum, nesterov, weight_decay } = sgd;
    let optimizer = match adam {
        None => Optimizer::Sgd(Sgd { lr, momentum, nesterov, weight_decay }),
        Some(AdamHeader { beta1, beta2, eps, decoupled }) => {
            let adam = Adam { lr, beta1, beta2, eps, weight_decay };
            if decoupled { Optimizer::AdamW(adam) } else { Optimizer::Adam(adam) }
        }
    };
    let (schedule, smoothing) = (Schedule::exponential(round_decay), smoothing.unwrap_or(0.0));
    Local { epochs, batch, optimizer, clip, smoothing, schedule, epoch_decay }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_with_plain_sgd_is_stated_as_it_always_was() {
        let (header, adam, clip, smoothing) = parts(&Local::default());
        assert_eq!(
            serde_json::to_string(&header).unwrap(),
            r#"{"epochs":4,"batch":32,"sgd":{"lr":0.01,"momentum":0.9,"nesterov":false,"weight_decay":0.0},"round_decay":1.0,"epoch_decay":1.0}"#
        );
        assert!(adam.is_none() && clip.is_none() && smoothing.is_none());
    }

    #[test]
    fn every_option_is_read_back_as_it_was_stated() {
        let adam = Adam { lr: 0.003, beta1: 0.8, beta2: 0.95, eps: 1e-7, weight_decay: 0.02 };
        let sgd = Sgd { lr: 0.1, momentum: 0.5, nesterov: true, weight_decay: 0.3 };
        for optimizer in [Optimizer::Sgd(sgd), Optimizer::Adam(adam), Optimizer::AdamW(adam)] {
            for (clip, smoothing) in [(None, 0.0), (Some(0.5), 0.0), (None, 0.1), (Some(2.0), 0.2)] {
                let stated = Local { optimizer, clip, smoothing, epoch_decay: 0.9, ..Local::default() };
                assert_eq!(local(parts(&stated)), stated);
            }
        }
    }
}
