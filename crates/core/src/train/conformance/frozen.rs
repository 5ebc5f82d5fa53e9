//! The part of the suite about tensors that do not move in a pass.

use super::{Case, LR, after, differs_by, gradient, plain, sgd, slope};
use crate::model::Params;
use crate::train::{Frozen, Pass, Pull};

/// Every other trainable tensor, the first one among them; no buffers.
fn every_other(case: &Case<'_>) -> Frozen {
    let trainable = case.start.layout.tensors().iter().filter(|tensor| tensor.role.trainable());
    let starts: Vec<usize> = trainable.step_by(2).map(|tensor| tensor.start).collect();
    Frozen::of(&case.start.layout, |tensor| tensor.role.trainable() && starts.contains(&tensor.start))
}

fn moves(frozen: &Frozen, place: usize) -> bool {
    frozen.moving().iter().any(|range| range.contains(&place))
}

/// Whether the frozen trainable tensors have their first bits, and anything moves.
fn stay(case: &Case<'_>, frozen: &Frozen, after: &Params) -> bool {
    let pairs = case.start.trainable().iter().zip(after.trainable()).enumerate();
    { pairs }.all(|(i, (before, after))| moves(frozen, i) || before.to_bits() == after.to_bits())
}

/// Whether the tensors that move make this change; there need not be any.
fn change(case: &Case<'_>, frozen: &Frozen, after: &Params, change: impl Fn(usize) -> f64) -> bool {
    frozen.moving().is_empty()
        || differs_by(case.start, after, |i| if moves(frozen, i) { change(i) } else { 0.0 })
}

/// Nothing that moves a parameter moves a frozen one, and the others move as if nothing were frozen.
pub(super) fn does_not_move(case: &Case<'_>) -> bool {
    let frozen = every_other(case);
    let pass = Pass { frozen: Some(&frozen), ..plain(case) };
    let (plainly, still) = (after(case, &[plain(case)]), after(case, &[pass]));
    let vector: Vec<f32> = (0..case.start.trainable().len()).map(|i| (i % 5) as f32 / 5.0 - 0.4).collect();
    let everything = Pass {
        epochs: 2,
        batch: 2,
        optimizer: sgd(|s| (s.momentum, s.weight_decay) = (0.9, 0.5)),
        pull: Some(Pull { mu: 0.5, anchor: &vector }),
        push: Some(&vector),
        ..pass
    };
    // A velocity from before is kept and not used.
    let unfrozen = Pass { frozen: None, optimizer: sgd(|s| (s.lr, s.momentum) = (0.0, 0.9)), ..plain(case) };
    let later = Pass { keep_state: true, first_epoch: 1, ..everything };
    let step = |i: usize| f64::from(plainly.values[i]) - f64::from(case.start.values[i]);
    change(case, &frozen, &still, step)
        && [vec![pass], vec![everything], vec![unfrozen, later]]
            .iter()
            .all(|passes| stay(case, &frozen, &after(case, passes)))
}

/// The norm that clipping compares is that of the gradients which move something.
pub(super) fn does_not_count_when_clipping(case: &Case<'_>) -> bool {
    let frozen = every_other(case);
    let slope = slope(case, &[], 0);
    let square: f64 = frozen.moving().iter().flat_map(|range| &slope[range.clone()]).map(|g| g * g).sum();
    let pass = Pass { clip: Some(square.sqrt() / 3.0), frozen: Some(&frozen), ..plain(case) };
    square == 0.0 || change(case, &frozen, &after(case, &[pass]), |i| -LR * slope[i] / 3.0)
}

/// A gradient is zero where a tensor is frozen, and as ever elsewhere.
pub(super) fn has_no_gradient(case: &Case<'_>) -> bool {
    let frozen = every_other(case);
    let pass = plain(case);
    let (all, some) =
        (gradient::of(case, &pass), gradient::of(case, &Pass { frozen: Some(&frozen), ..pass }));
    all.len() == some.len()
        && all.iter().zip(&some).enumerate().all(|(i, (all, some))| {
            // The same sums in the same order.
            if moves(&frozen, i) { all == some } else { *some == 0.0 }
        })
}

/// Frozen batch norms keep their running statistics, and normalise by them: a loss then depends on them, which no other
/// training loss does.
pub(super) fn normalises_by_running_statistics(case: &Case<'_>) -> bool {
    let trainable = case.start.trainable().len();
    if trainable == case.start.values.len() {
        return true;
    }
    let frozen = Frozen::of(&case.start.layout, |tensor| !tensor.role.trainable());
    let mut shifted = case.start.clone();
    shifted.values[trainable..].iter_mut().for_each(|statistic| *statistic += 0.5);
    let trained = |start: &Params, frozen| {
        let mut params = start.clone();
        let report = (case.trainer)().pass(&mut params, case.rows, &Pass { frozen, ..plain(case) });
        (params, report.map_or(f64::NAN, |report| report.losses[0]))
    };
    let ((_, loss), (_, same)) = (trained(case.start, None), trained(&shifted, None));
    let ((kept, own), (_, other)) = (trained(case.start, Some(&frozen)), trained(&shifted, Some(&frozen)));
    loss == same
        && own != other
        && own.is_finite()
        && kept.values[trainable..] == case.start.values[trainable..]
        && kept.trainable() != case.start.trainable()
}
