//! How a job's header states local training.
//!
//! `local` has the fields that every client knows; no server ever wrote others, but old clients ignore them. So whatever came
//! later is in fields of the header itself, which are left out if they change nothing: jobs of plain SGD keep their bytes, and
//! a client that does not know a field refuses the job. A number outside the range of its configuration key is refused, too.

use crate::settings::Range;
use crate::train::{Adam, Local, Optimizer, Schedule, Sgd};
use serde::{Deserialize, Serialize};

/// The fields that every client knows.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LocalHeader {
    epochs: u32,
    batch: usize,
    sgd: SgdHeader,
    round_decay: f64,
    epoch_decay: f64,
}

/// The optimiser. With Adam and AdamW, only its learning rate and weight decay count.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// The training that these fields state, or why nobody can train so.
pub(super) fn local(parts: Parts) -> Result<Local, String> {
    let checked = |name: &str, value: f64, range: Range| match range.contains(value) {
        true => Ok(()),
        false => Err(format!("{name} = {value} is outside {range}")),
    };
    let (LocalHeader { sgd, round_decay, epoch_decay, .. }, adam, clip, smoothing) = &parts;
    checked("lr", sgd.lr, Range::POSITIVE)?;
    checked("momentum", sgd.momentum, Range::BELOW_ONE)?;
    checked("weight_decay", sgd.weight_decay, Range::NOT_NEGATIVE)?;
    checked("round_decay", *round_decay, Local::DECAY)?;
    checked("epoch_decay", *epoch_decay, Local::DECAY)?;
    if let Some(AdamHeader { beta1, beta2, eps, .. }) = adam {
        checked("beta1", *beta1, Range::BELOW_ONE)?;
        checked("beta2", *beta2, Range::BELOW_ONE)?;
        checked("eps", *eps, Adam::EPS)?;
    }
    clip.map_or(Ok(()), |clip| checked("clip", clip, Range::POSITIVE))?;
    smoothing.map_or(Ok(()), |smoothing| checked("label_smoothing", smoothing, Range::BELOW_ONE))?;
    Ok(stated(parts))
}

fn stated((header, adam, clip, smoothing): Parts) -> Local {
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
                assert_eq!(local(parts(&stated)), Ok(stated));
            }
        }
    }

    #[test]
    fn training_outside_the_ranges_of_the_configuration_is_refused_with_the_reason() {
        let adam = Adam { lr: 0.003, beta1: 0.8, beta2: 0.95, eps: 1e-7, weight_decay: 0.02 };
        let sgd = Sgd { lr: 0.1, momentum: 0.5, nesterov: true, weight_decay: 0.3 };
        let with = |optimizer: Optimizer| Local { optimizer, ..Local::default() };
        let one = |adam| with(Optimizer::Adam(adam));
        let base = Local::default();
        let cases = [
            (with(Sgd { lr: 0.0, ..sgd }.into()), "lr = 0 is outside"),
            (with(Sgd { lr: -1.0, ..sgd }.into()), "lr = -1 is outside"),
            (with(Sgd { lr: f64::NAN, ..sgd }.into()), "lr = NaN is outside"),
            (with(Sgd { momentum: 1.0, ..sgd }.into()), "momentum = 1 is outside 0 to below 1"),
            (with(Sgd { weight_decay: -1.0, ..sgd }.into()), "weight_decay = -1 is outside"),
            (one(Adam { beta1: 1.5, ..adam }), "beta1 = 1.5 is outside 0 to below 1"),
            (one(Adam { beta2: -3.0, ..adam }), "beta2 = -3 is outside 0 to below 1"),
            (one(Adam { eps: 0.0, ..adam }), "eps = 0 is outside"),
            (Local { epoch_decay: 0.0, ..base }, "epoch_decay = 0 is outside"),
            (Local { epoch_decay: 1e300, ..base }, "epoch_decay = 1"),
            (Local { schedule: Schedule::exponential(-1.0), ..base }, "round_decay = -1 is outside"),
            (Local { clip: Some(0.0), ..base }, "clip = 0 is outside"),
            (Local { clip: Some(-1.0), ..base }, "clip = -1 is outside"),
            (Local { smoothing: 1.0, ..base }, "label_smoothing = 1 is outside 0 to below 1"),
            (Local { smoothing: -1e6, ..base }, "label_smoothing = -1000000 is outside"),
        ];
        for (stated, why) in cases {
            let refused = local(parts(&stated)).unwrap_err();
            assert!(refused.starts_with(why), "{refused}");
        }
    }

    #[test]
    fn an_unknown_field_of_local_training_is_refused() {
        let text = serde_json::to_string(&parts(&Local::default()).0).unwrap();
        for (from, to) in
            [("{\"epochs\"", "{\"warmup\":1,\"epochs\""), ("{\"lr\"", "{\"dampening\":1,\"lr\"")]
        {
            let error = serde_json::from_str::<LocalHeader>(&text.replace(from, to)).err().unwrap();
            assert!(error.to_string().contains("unknown field"), "{error}");
        }
    }
}
