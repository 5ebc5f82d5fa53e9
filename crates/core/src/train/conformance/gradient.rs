//! The part of the suite about [`Trainer::gradient`](crate::train::Trainer::gradient) and about constants of batch norms.

use super::{Case, LR, TOLERANCE, after, plain, sgd};
use crate::model::Params;
use crate::train::{NormShift, Pass, Pull, TrainFailure};

/// The gradient that a new trainer finds; NaN where it fails.
pub(super) fn of(case: &Case<'_>, pass: &Pass<'_>) -> Vec<f64> {
    let failed = vec![f32::NAN; case.start.trainable().len()];
    let found = (case.trainer)().gradient(case.start, case.rows, pass).unwrap_or(failed);
    found.into_iter().map(f64::from).collect()
}

/// Whether two gradients are equal, up to the tolerance times the largest entry and rounding of the parameters.
fn alike(case: &Case<'_>, a: &[f64], b: &[f64]) -> bool {
    let largest = b.iter().fold(0f64, |most, g| most.max(g.abs()));
    let size = case.start.trainable().iter().fold(0f64, |most, x| most.max(f64::from(x.abs())));
    let slack = TOLERANCE * largest + 8.0 * f64::from(f32::EPSILON) * size / LR;
    largest > 0.0 && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= slack)
}

/// The gradient that a step from one model to another was made with.
fn stepped(before: &Params, after: &Params) -> Vec<f64> {
    let pairs = before.trainable().iter().zip(after.trainable());
    pairs.map(|(before, after)| (f64::from(*before) - f64::from(*after)) / LR).collect()
}

/// In one batch of all rows, it is the gradient that the first step of a pass uses, and of the loss alone.
pub(super) fn is_that_of_a_step(case: &Case<'_>) -> bool {
    let vector: Vec<f32> = (0..case.start.trainable().len()).map(|i| (i % 5) as f32 / 5.0 - 0.4).collect();
    let classes: Vec<f32> = (0..case.classes).map(|c| 1.0 + (c % 3) as f32).collect();
    let plain = plain(case);
    let loss = match case.classes {
        0..2 => vec![plain],
        _ => vec![
            plain,
            Pass { first_epoch: 3, ..plain },
            Pass { offsets: Some(&classes), ..plain },
            Pass { class_weights: Some(&classes), ..plain },
            Pass { smoothing: 0.5, ..plain },
        ],
    };
    loss.into_iter().all(|pass| {
        let more = Pass {
            optimizer: sgd(|s| (s.momentum, s.weight_decay) = (0.9, 0.5)),
            clip: Some(1e-3),
            pull: Some(Pull { mu: 0.5, anchor: &vector }),
            push: Some(&vector),
            ..pass
        };
        let step = stepped(case.start, &after(case, &[pass]));
        alike(case, &of(case, &pass), &step) && of(case, &pass) == of(case, &more)
    })
}

/// With batches of one row it is the mean over the epoch's batches. An epoch with a learning rate of 0 and a momentum of
/// 1 sums their gradients in the velocity, which the first step of the next epoch adds to its own gradient.
pub(super) fn is_a_mean_over_batches(case: &Case<'_>) -> bool {
    let single = Pass { batch: 1, optimizer: sgd(|s| (s.lr, s.momentum) = (0.0, 1.0)), ..plain(case) };
    let next = Pass { first_epoch: 1, optimizer: sgd(|s| s.momentum = 1.0), ..plain(case) };
    let kept = Pass { keep_state: true, ..next };
    let sum = stepped(&after(case, &[single, next]), &after(case, &[single, kept]));
    let mean: Vec<f64> = sum.into_iter().map(|g| g / case.rows.len() as f64).collect();
    alike(case, &of(case, &single), &mean)
}

/// With short batches and class weights, Σ w times the gradient is linear in the weights w, so each batch counts by the
/// weights of its samples.
pub(super) fn weighs_batches(case: &Case<'_>) -> bool {
    if case.classes < 2 {
        return true;
    }
    let Ok(evaluation) = (case.trainer)().evaluate(case.start, case.rows, None) else { return false };
    let counts: Vec<u64> = evaluation.confusion.chunks(case.classes).map(|row| row.iter().sum()).collect();
    let Some(class) = counts.iter().position(|count| *count > 0) else { return false };
    let (inside, outside) = (counts[class] as f64, (case.rows.len() as u64 - counts[class]) as f64);
    let weighted = |own: f32, others: f32| {
        let mut weights = vec![others; case.classes];
        weights[class] = own;
        of(case, &Pass { batch: 2, class_weights: Some(&weights), ..plain(case) })
    };
    let (own, others, mixed) = (weighted(1.0, 0.0), weighted(0.0, 1.0), weighted(3.0, 1.0));
    let mean =
        |(own, others): (&f64, &f64)| (3.0 * inside * own + outside * others) / (3.0 * inside + outside);
    let mean: Vec<f64> = own.iter().zip(&others).map(mean).collect();
    alike(case, &mixed, &mean) && weighted(0.0, 0.0).iter().all(|g| *g == 0.0)
}

/// A gradient between two passes changes nothing, and a bad request is refused.
pub(super) fn leaves_no_trace(case: &Case<'_>) -> bool {
    let first = Pass { batch: 2, optimizer: sgd(|s| s.momentum = 0.9), ..plain(case) };
    let kept = Pass { first_epoch: 1, keep_state: true, ..first };
    let mut trainer = (case.trainer)();
    let mut params = case.start.clone();
    let all = trainer.pass(&mut params, case.rows, &first).is_ok()
        && trainer.gradient(&params, case.rows, &kept).is_ok()
        && trainer.pass(&mut params, case.rows, &kept).is_ok();
    let refusal = |rows: &[u32], pass: Pass<'_>| (case.trainer)().gradient(case.start, rows, &pass).err();
    all && params == after(case, &[first, kept])
        && refusal(&[], first) == Some(TrainFailure::NoSamples)
        && refusal(case.rows, Pass { batch: 0, ..first }) == Some(TrainFailure::EmptyBatch)
        && matches!(refusal(&[case.missing], first), Some(TrainFailure::NoSuchRow { .. }))
}

/// Constants of zero change no bit and other constants do, if there are buffers; either way the mean statistics of the
/// batches are reported, and only then.
pub(super) fn shifts_norms(case: &Case<'_>) -> bool {
    let buffers = case.start.values.len() - case.start.trainable().len();
    let (zeros, ones) = (vec![0.0; buffers], vec![1.0; buffers]);
    let pass = Pass { batch: 2, epochs: 2, ..plain(case) };
    let shifted = |shift: &[f32]| {
        let mut params = case.start.clone();
        let pass = Pass { norm: Some(NormShift { shift, floor: &zeros }), ..pass };
        let report = (case.trainer)().pass(&mut params, case.rows, &pass);
        (params, report.ok().and_then(|report| report.statistics))
    };
    let ((same, statistics), (other, _)) = (shifted(&zeros), shifted(&ones));
    let plainly = (case.trainer)().pass(&mut case.start.clone(), case.rows, &pass);
    let fits = |statistics: Vec<f64>| statistics.len() == buffers && statistics.iter().all(|s| s.is_finite());
    same == after(case, &[pass])
        && (buffers > 0) == (other != same)
        && statistics.is_some_and(fits)
        && plainly.is_ok_and(|report| report.statistics.is_none())
}
