//! A conformance suite for trainers: how each field of a pass must affect training, on any device.
//!
//! A trainer's tests call [`check`], whose error names the violated property. Comparisons are of single steps over all
//! rows at once, so that they hold for any model, even with batch norm and dropout.

mod frozen;
mod gradient;

use crate::model::Params;
use crate::stream::Key;
use crate::train::{Adam, Optimizer, Pass, Pull, Sgd, TrainFailure, Trainer, prediction, probabilities};
use std::sync::Arc;

/// The model and data that a trainer is checked on.
pub struct Case<'a> {
    /// Creates a trainer.
    pub trainer: &'a dyn Fn() -> Box<dyn Trainer>,
    /// The model to start from.
    pub start: &'a Params,
    /// At least three rows, of at least two classes if there are classes.
    pub rows: &'a [u32],
    /// A row that the data set does not have.
    pub missing: u32,
    /// Length of the logits.
    pub classes: usize,
}

/// A property that every trainer must have, and its test.
type Check = (&'static str, fn(&Case<'_>) -> bool);

/// Relative tolerance on a change of parameters: gradients are recovered from f32 differences.
const TOLERANCE: f64 = 2e-3;
/// Learning rate of the suite's passes.
const LR: f64 = 0.1;

/// Runs the whole suite; the error is the first property that does not hold.
pub fn check(case: &Case<'_>) -> Result<(), String> {
    assert!(case.rows.len() >= 3, "the suite needs at least three rows");
    let checks: [Check; 29] = [
        ("the same pass gives the same bits", repeats),
        ("four passes of one epoch equal one pass of four", continues),
        ("a batch smaller than the rows makes a step for each batch, the last one short", counts_steps),
        ("the order of samples follows the key and the number of the epoch", follows_the_key),
        ("a learning rate of zero leaves the trainable parameters unchanged", stays_unchanged),
        ("weight decay adds weight_decay w to the gradient", decays),
        ("a pull adds mu (w - anchor) to the gradient", pulls),
        ("a push adds itself to the gradient", pushes),
        (
            "momentum adds momentum times the last velocity, and only if the velocity is kept",
            remembers_velocity,
        ),
        ("Nesterov's momentum looks one step ahead", looks_ahead),
        ("offsets enter the training loss; equal ones change nothing", offsets_train),
        ("class weights make the loss of a batch a weighted mean", class_weights_train),
        ("offsets enter an evaluation's loss and its predictions", offsets_predict),
        ("an evaluation sees every row once and repeats", evaluates),
        ("logits give the losses and predictions of an evaluation", logits_evaluate),
        ("Adam divides the mean gradient by the root of its mean square, both without bias", adapts),
        ("Adam adds weight_decay w to the gradient, and AdamW shrinks w by lr weight_decay w", adam_decays),
        (
            "clipping scales gradient and pull down to a norm, and leaves weight decay, push and short gradients alone",
            clips,
        ),
        ("label smoothing spreads a part of the target over all classes", smooths),
        (
            "a gradient over one batch is that of a step: with offsets, class weights and smoothing, without the optimiser",
            gradient::is_that_of_a_step,
        ),
        ("a gradient over several batches is their mean", gradient::is_a_mean_over_batches),
        ("a batch counts in a gradient by the weights of its samples", gradient::weighs_batches),
        (
            "a gradient leaves the trainer as it was and refuses what a pass refuses",
            gradient::leaves_no_trace,
        ),
        (
            "constants shift the statistics of batch norms, and a pass with them reports their mean",
            gradient::shifts_norms,
        ),
        (
            "a frozen tensor stays as it is, whatever moves the others, which move as ever",
            frozen::does_not_move,
        ),
        ("clipping leaves frozen tensors out of the norm", frozen::does_not_count_when_clipping),
        ("a gradient is zero where a tensor is frozen", frozen::has_no_gradient),
        (
            "frozen batch norms keep their running statistics and normalise by them",
            frozen::normalises_by_running_statistics,
        ),
        ("an empty list of rows, a batch size of 0 and a missing row are refused", refuses),
    ];
    match checks.iter().find(|(_, holds)| !holds(case)) {
        Some((sentence, _)) => Err(format!("it is not true that {sentence}")),
        None => Ok(()),
    }
}

fn plain(case: &Case<'_>) -> Pass<'static> {
    Pass::new(sgd(|_| {}), case.rows.len(), Key::of(1))
}

/// The optimiser of [`plain`] with a change.
fn sgd(change: impl Fn(&mut Sgd)) -> Optimizer {
    let mut sgd = Sgd { lr: LR, momentum: 0.0, nesterov: false, weight_decay: 0.0 };
    change(&mut sgd);
    sgd.into()
}

/// The model after consecutive passes by one trainer.
fn after(case: &Case<'_>, passes: &[Pass<'_>]) -> Params {
    let mut trainer = (case.trainer)();
    let mut params = case.start.clone();
    for pass in passes {
        if trainer.pass(&mut params, case.rows, pass).is_err() {
            params.values.fill(f32::NAN);
        }
    }
    params
}

/// Whether b - a equals `change` elementwise, up to the tolerance times the largest change.
fn differs_by(a: &Params, b: &Params, change: impl Fn(usize) -> f64) -> bool {
    let changes: Vec<f64> = (0..a.trainable().len()).map(change).collect();
    let largest = changes.iter().fold(0f64, |most, change| most.max(change.abs()));
    let size = a.trainable().iter().fold(0f64, |most, x| most.max(f64::from(x.abs())));
    let slack = TOLERANCE * largest + 8.0 * f64::from(f32::EPSILON) * size;
    let pairs = a.trainable().iter().zip(b.trainable()).zip(&changes);
    largest > 0.0 && { pairs }.all(|((a, b), change)| (f64::from(*b) - f64::from(*a) - change).abs() <= slack)
}

fn repeats(case: &Case<'_>) -> bool {
    let pass = Pass { epochs: 2, batch: 2, ..plain(case) };
    let (first, again) = (after(case, &[pass]), after(case, &[pass]));
    first == again && first != *case.start
}

fn continues(case: &Case<'_>) -> bool {
    let base = plain(case);
    let whole = Pass { epochs: 4, batch: 2, optimizer: sgd(|s| s.momentum = 0.9), ..base };
    let parts = [0, 1, 2, 3].map(|e| Pass { epochs: 1, first_epoch: e, keep_state: e > 0, ..whole });
    after(case, &[whole]) == after(case, &parts)
}

fn counts_steps(case: &Case<'_>) -> bool {
    let pass = Pass { epochs: 3, batch: 2, ..plain(case) };
    let report = (case.trainer)().pass(&mut case.start.clone(), case.rows, &pass);
    let ordered = |r: [f64; 2]| r.iter().all(|loss| loss.is_finite());
    report.is_ok_and(|report| report.steps == pass.steps(case.rows.len()) && ordered(report.losses))
}

fn follows_the_key(case: &Case<'_>) -> bool {
    let pass = Pass { batch: 1, ..plain(case) };
    let other = (2..40).map(|seed| Pass { key: Key::of(seed), ..pass });
    let later = (1..40).map(|first_epoch| Pass { first_epoch, ..pass });
    let moved = |other: Pass<'_>| {
        other.order(other.first_epoch, case.rows) != pass.order(0, case.rows)
            && after(case, &[other]) != after(case, &[pass])
    };
    { other }.any(moved) && { later }.any(moved)
}

fn stays_unchanged(case: &Case<'_>) -> bool {
    let pass = plain(case);
    let still = after(case, &[Pass { optimizer: sgd(|s| s.lr = 0.0), ..pass }]);
    still.trainable() == case.start.trainable()
}

fn decays(case: &Case<'_>) -> bool {
    let pass = plain(case);
    let decayed = after(case, &[Pass { optimizer: sgd(|s| s.weight_decay = 0.5), ..pass }]);
    differs_by(&after(case, &[pass]), &decayed, |i| -LR * 0.5 * f64::from(case.start.values[i]))
}

fn pulls(case: &Case<'_>) -> bool {
    let pass = plain(case);
    let anchor: Vec<f32> = (0..case.start.trainable().len()).map(|i| (i % 7) as f32 / 7.0).collect();
    let pulled = after(case, &[Pass { pull: Some(Pull { mu: 0.5, anchor: &anchor }), ..pass }]);
    let gap = |i: usize| f64::from(case.start.values[i]) - f64::from(anchor[i]);
    differs_by(&after(case, &[pass]), &pulled, |i| -LR * 0.5 * gap(i))
}

fn pushes(case: &Case<'_>) -> bool {
    let pass = plain(case);
    let push: Vec<f32> = (0..case.start.trainable().len()).map(|i| (i % 5) as f32 / 5.0 - 0.4).collect();
    let pushed = after(case, &[Pass { push: Some(&push), ..pass }]);
    differs_by(&after(case, &[pass]), &pushed, |i| -LR * f64::from(push[i]))
}

fn remembers_velocity(case: &Case<'_>) -> bool {
    let base = plain(case);
    let first = Pass { optimizer: sgd(|s| s.momentum = 0.9), ..base };
    let kept = Pass { first_epoch: 1, keep_state: true, ..first };
    let dropped = Pass { keep_state: false, ..kept };
    let one = after(case, &[first]);
    let step = |i: usize| f64::from(one.values[i]) - f64::from(case.start.values[i]);
    differs_by(&after(case, &[first, dropped]), &after(case, &[first, kept]), |i| 0.9 * step(i))
}

fn looks_ahead(case: &Case<'_>) -> bool {
    let pass = plain(case);
    let plainly = after(case, &[pass]);
    let ahead = |s: &mut Sgd| (s.momentum, s.nesterov) = (0.9, true);
    let step = |i: usize| f64::from(plainly.values[i]) - f64::from(case.start.values[i]);
    differs_by(&plainly, &after(case, &[Pass { optimizer: sgd(ahead), ..pass }]), |i| 0.9 * step(i))
}

fn offsets_train(case: &Case<'_>) -> bool {
    if case.classes < 2 {
        return true;
    }
    let pass = plain(case);
    let plainly = after(case, &[pass]);
    let equal = vec![0.25; case.classes];
    let mut tilted = vec![0.0; case.classes];
    tilted[0] = 3.0;
    let step = |i: usize| f64::from(plainly.values[i]) - f64::from(case.start.values[i]);
    differs_by(case.start, &after(case, &[Pass { offsets: Some(&equal), ..pass }]), step)
        && !differs_by(case.start, &after(case, &[Pass { offsets: Some(&tilted), ..pass }]), step)
}

/// A batch's loss and gradient are weighted means of those of its classes, and zero if all weights are.
fn class_weights_train(case: &Case<'_>) -> bool {
    if case.classes < 2 {
        return true;
    }
    let Ok(evaluation) = (case.trainer)().evaluate(case.start, case.rows, None) else { return false };
    let counts: Vec<u64> = evaluation.confusion.chunks(case.classes).map(|row| row.iter().sum()).collect();
    let Some(class) = counts.iter().position(|count| *count > 0) else { return false };
    let pass = plain(case);
    let weighted = |own: f32, others: f32| {
        let mut weights = vec![others; case.classes];
        weights[class] = own;
        let mut params = case.start.clone();
        let weighted = Pass { class_weights: Some(&weights), ..pass };
        let report = (case.trainer)().pass(&mut params, case.rows, &weighted);
        (params, report.map_or(f64::NAN, |report| report.losses[0]))
    };
    let (plainly, (equal, _)) = (after(case, &[pass]), weighted(2.5, 2.5));
    let ((own, own_loss), (others, others_loss)) = (weighted(1.0, 0.0), weighted(0.0, 1.0));
    let ((mixed, mixed_loss), (unmoved, no_loss)) = (weighted(3.0, 1.0), weighted(0.0, 0.0));
    let step = |model: &Params, i: usize| f64::from(model.values[i]) - f64::from(case.start.values[i]);
    let (inside, outside) = (3.0 * counts[class] as f64, (case.rows.len() as u64 - counts[class]) as f64);
    let mean = |own: f64, others: f64| (inside * own + outside * others) / (inside + outside);
    differs_by(case.start, &equal, |i| step(&plainly, i))
        && differs_by(case.start, &mixed, |i| mean(step(&own, i), step(&others, i)))
        && !differs_by(case.start, &own, |i| step(&plainly, i))
        && (mixed_loss - mean(own_loss, others_loss)).abs() < TOLERANCE * mixed_loss
        && no_loss == 0.0
        && unmoved.trainable() == case.start.trainable()
}

fn offsets_predict(case: &Case<'_>) -> bool {
    if case.classes < 2 {
        return true;
    }
    let mut tilted = vec![0.0; case.classes];
    tilted[1] = 50.0;
    let evaluate = |offsets| (case.trainer)().evaluate(case.start, case.rows, offsets);
    let all_second =
        |confusion: &[u64]| confusion.chunks(case.classes).all(|row| row[1] == row.iter().sum::<u64>());
    match (evaluate(None), evaluate(Some(&tilted))) {
        (Ok(plain), Ok(tilted)) => all_second(&tilted.confusion) && plain.loss != tilted.loss,
        _ => false,
    }
}

fn evaluates(case: &Case<'_>) -> bool {
    let mut trainer = (case.trainer)();
    let mut evaluate = || trainer.evaluate(case.start, case.rows, None);
    match (evaluate(), evaluate()) {
        (Ok(first), Ok(again)) => first == again && first.samples() == case.rows.len() as u64,
        _ => false,
    }
}

/// Row by row: an evaluation of one row tells its class, its loss and the prediction.
fn logits_evaluate(case: &Case<'_>) -> bool {
    let mut trainer = (case.trainer)();
    let Ok(logits) = trainer.logits(case.start, case.rows) else { return false };
    let agrees = |(row, own): (&u32, &[f32])| {
        let Ok(found) = trainer.evaluate(case.start, &[*row], None) else { return false };
        let Some(place) = found.confusion.iter().position(|count| *count == 1) else { return false };
        let (label, guess) = (place / case.classes, place % case.classes);
        let loss = -probabilities(own)[label].ln();
        // With a single class there is nothing to predict, and the loss may be another one.
        guess == prediction(own) as usize
            && (case.classes == 1 || (loss - found.loss).abs() <= 1e-4 * loss.abs().max(1.0))
    };
    logits.len() == case.rows.len() * case.classes
        && case.rows.iter().zip(logits.chunks_exact(case.classes)).all(agrees)
}

const ADAM: Adam = Adam { lr: 0.01, beta1: 0.5, beta2: 0.8, eps: 1e-3, weight_decay: 0.0 };

/// The gradient of the loss after some passes, in epoch `epoch`.
fn slope(case: &Case<'_>, passes: &[Pass<'_>], epoch: u32) -> Vec<f64> {
    let step = Pass { first_epoch: epoch, optimizer: sgd(|s| s.lr = 1.0), ..plain(case) };
    let (before, moved) = (after(case, passes), after(case, &[passes, &[step]].concat()));
    let pairs = before.trainable().iter().zip(moved.trainable());
    pairs.map(|(before, moved)| f64::from(*before) - f64::from(*moved)).collect()
}

/// Two steps with different gradients: the second one has a push.
fn adapts(case: &Case<'_>) -> bool {
    let Adam { lr, beta1, beta2, eps, .. } = ADAM;
    let first = Pass { optimizer: Optimizer::Adam(ADAM), ..plain(case) };
    let push: Vec<f32> = (0..case.start.trainable().len()).map(|i| (i % 5) as f32 / 5.0 - 0.4).collect();
    let second = Pass { first_epoch: 1, keep_state: true, push: Some(&push), ..first };
    let (one, two) = (after(case, &[first]), after(case, &[first, second]));
    let (early, late) = (slope(case, &[], 0), slope(case, &[first], 1));
    let late = |i: usize| late[i] + f64::from(push[i]);
    let mean = |beta: f64, early: f64, late: f64| (beta * early + late) / (beta + 1.0);
    differs_by(case.start, &one, |i| -lr * early[i] / (early[i].abs() + eps))
        && differs_by(&one, &two, |i| {
            let square = mean(beta2, early[i] * early[i], late(i) * late(i));
            -lr * mean(beta1, early[i], late(i)) / (square.sqrt() + eps)
        })
}

fn adam_decays(case: &Case<'_>) -> bool {
    let Adam { lr, eps, .. } = ADAM;
    let decay = 0.5;
    let decayed = |optimizer: fn(Adam) -> Optimizer| {
        let optimizer = optimizer(Adam { weight_decay: decay, ..ADAM });
        after(case, &[Pass { optimizer, ..plain(case) }])
    };
    let gradient = slope(case, &[], 0);
    let w = |i: usize| f64::from(case.start.values[i]);
    let step = |g: f64| -lr * g / (g.abs() + eps);
    differs_by(case.start, &decayed(Optimizer::Adam), |i| step(gradient[i] + decay * w(i)))
        && differs_by(case.start, &decayed(Optimizer::AdamW), |i| step(gradient[i]) - lr * decay * w(i))
}

fn clips(case: &Case<'_>) -> bool {
    let (mu, decay) = (0.5, 0.25);
    let count = case.start.trainable().len();
    let anchor: Vec<f32> = (0..count).map(|i| (i % 7) as f32 / 7.0).collect();
    let push: Vec<f32> = (0..count).map(|i| (i % 5) as f32 / 5.0 - 0.4).collect();
    let w = |i: usize| f64::from(case.start.values[i]);
    let pulled: Vec<f64> =
        slope(case, &[], 0).iter().enumerate().map(|(i, g)| g + mu * (w(i) - f64::from(anchor[i]))).collect();
    let norm = pulled.iter().map(|u| u * u).sum::<f64>().sqrt();
    let pass = Pass {
        optimizer: sgd(|s| s.weight_decay = decay),
        pull: Some(Pull { mu, anchor: &anchor }),
        push: Some(&push),
        ..plain(case)
    };
    [(norm / 3.0, 1.0 / 3.0), (norm * 3.0, 1.0)].into_iter().all(|(clip, scale)| {
        let clipped = after(case, &[Pass { clip: Some(clip), ..pass }]);
        differs_by(case.start, &clipped, |i| -LR * (pulled[i] * scale + decay * w(i) + f64::from(push[i])))
    })
}

/// Steps are linear in the smoothing, and a model of zeros, whose logits are the offsets, has the loss of the formula.
fn smooths(case: &Case<'_>) -> bool {
    if case.classes < 2 {
        return true;
    }
    let smoothed = |smoothing| after(case, &[Pass { smoothing, ..plain(case) }]);
    let [none, half, full] = [0.0, 0.5, 1.0].map(smoothed);
    let step = |model: &Params, i: usize| f64::from(model.values[i]) - f64::from(case.start.values[i]);
    let Ok(evaluation) = (case.trainer)().evaluate(case.start, case.rows, None) else { return false };
    let (offsets, weights): (Vec<f32>, Vec<f32>) =
        (0..case.classes).map(|c| ((c % 3) as f32, 1.0 + (c % 4) as f32)).unzip();
    let pass = Pass {
        optimizer: sgd(|s| s.lr = 0.0),
        offsets: Some(&offsets),
        class_weights: Some(&weights),
        smoothing: 0.25,
        ..plain(case)
    };
    let mut zeros = Params::zeros(Arc::clone(&case.start.layout));
    let found =
        (case.trainer)().pass(&mut zeros, case.rows, &pass).map_or(f64::NAN, |report| report.losses[0]);
    let whole: f64 = offsets.iter().map(|z| f64::from(*z).exp()).sum();
    let losses: Vec<f64> =
        offsets.iter().zip(&weights).map(|(z, w)| f64::from(*w) * (whole.ln() - f64::from(*z))).collect();
    let spread = losses.iter().sum::<f64>() / case.classes as f64;
    let (mut sum, mut weight) = (0.0, 0.0);
    for (class, row) in evaluation.confusion.chunks(case.classes).enumerate() {
        let count = row.iter().sum::<u64>() as f64;
        sum += count * (0.75 * losses[class] + 0.25 * spread);
        weight += count * f64::from(weights[class]);
    }
    differs_by(case.start, &half, |i| 0.5 * (step(&none, i) + step(&full, i)))
        && !differs_by(case.start, &full, |i| step(&none, i))
        && (found - sum / weight).abs() < 1e-5 * found
}

fn refuses(case: &Case<'_>) -> bool {
    let pass = plain(case);
    let refusal =
        |rows: &[u32], pass: Pass<'_>| (case.trainer)().pass(&mut case.start.clone(), rows, &pass).err();
    let missing = (case.trainer)().evaluate(case.start, &[case.missing], None).err();
    refusal(&[], pass) == Some(TrainFailure::NoSamples)
        && refusal(case.rows, Pass { batch: 0, ..pass }) == Some(TrainFailure::EmptyBatch)
        && matches!(refusal(&[case.missing], pass), Some(TrainFailure::NoSuchRow { .. }))
        && matches!(missing, Some(TrainFailure::NoSuchRow { .. }))
}
