//! Tiny trainers with exact gradients, to test rules, check formulas by hand and compare with theory.

use fedtvd_core::model::Params;
use fedtvd_core::train::{
    Evaluation, OptimizerState, Pass, PassReport, Samples, TrainFailure, Trainer, step,
};
use std::sync::Arc;

/// A problem whose loss and gradient can be written down.
pub(crate) trait Problem: Send {
    /// Number of rows.
    fn rows(&self) -> usize;
    /// Adds the gradient of one row's loss to `gradient` and returns the loss.
    fn gradient(&self, w: &[f32], row: u32, offsets: Option<&[f32]>, gradient: &mut [f64]) -> f64;
    /// The same with the pass's class weights and label smoothing.
    fn training_gradient(&self, w: &[f32], row: u32, pass: &Pass<'_>, gradient: &mut [f64]) -> f64 {
        let weight = pass.weight(self.label(row));
        let mut slope = vec![0.0; gradient.len()];
        let loss = self.gradient(w, row, pass.offsets, &mut slope);
        gradient.iter_mut().zip(slope).for_each(|(sum, slope)| *sum += weight * slope);
        weight * loss
    }
    /// The class of one row, if there are classes.
    fn label(&self, _row: u32) -> u32 {
        0
    }
    /// Loss, true class and predicted class of one row, and the number of classes.
    fn evaluate_row(&self, w: &[f32], row: u32, offsets: Option<&[f32]>) -> (f64, [usize; 3]);
    /// The logits of one row; without classes, a single one.
    fn logits(&self, _w: &[f32], _row: u32) -> Vec<f32> {
        vec![0.0]
    }
}

/// A trainer that steps along exact gradients.
#[derive(Clone, Debug)]
pub(crate) struct Exact<P> {
    problem: P,
    state: OptimizerState,
}

impl<P: Problem> Exact<P> {
    /// The sum of a batch's gradients, each times its row's weight, the sum of the weights, and that of the losses.
    fn sums(&self, w: &[f32], batch: &[u32], pass: &Pass<'_>) -> (Vec<f64>, f64, f64) {
        let mut gradient = vec![0.0; w.len()];
        let (mut weights, mut losses) = (0.0, 0.0);
        for &row in batch {
            losses += self.problem.training_gradient(w, row, pass, &mut gradient);
            weights += pass.weight(self.problem.label(row));
        }
        (gradient, weights, losses)
    }

    /// A trainer of this problem.
    pub(crate) fn new(problem: P) -> Self {
        Self { problem, state: OptimizerState::default() }
    }

    fn check_pass(&self, rows: &[u32], pass: &Pass<'_>) -> Result<(), TrainFailure> {
        self.check(rows)?;
        match (rows.is_empty(), pass.batch) {
            (true, _) => Err(TrainFailure::NoSamples),
            (_, 0) => Err(TrainFailure::EmptyBatch),
            _ => Ok(()),
        }
    }

    fn check(&self, rows: &[u32]) -> Result<(), TrainFailure> {
        match rows.iter().find(|row| **row as usize >= self.problem.rows()) {
            Some(&row) => Err(TrainFailure::NoSuchRow { row, rows: self.problem.rows() }),
            None => Ok(()),
        }
    }
}

/// A sum of gradients divided by its weights; zero without weight.
fn mean(gradient: &[f64], weights: f64) -> Vec<f32> {
    gradient.iter().map(|g| if weights == 0.0 { 0.0 } else { (g / weights) as f32 }).collect()
}

impl<P: Problem> Trainer for Exact<P> {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        self.check_pass(rows, pass)?;
        let w = params.trainable_mut();
        self.state.begin(pass, w.len());
        let total: f64 = rows.iter().map(|row| pass.weight(self.problem.label(*row))).sum();
        let mut losses = [0.0; 2];
        for epoch in 0..pass.epochs {
            let mut sum = 0.0;
            for batch in pass.order(pass.first_epoch + epoch, rows).chunks(pass.batch) {
                let (gradient, weights, losses) = self.sums(w, batch, pass);
                sum += losses;
                step(pass, w, &mut self.state, &mean(&gradient, weights));
            }
            let loss = if total == 0.0 { 0.0 } else { sum / total };
            if !loss.is_finite() {
                return Err(TrainFailure::Diverged { epoch: pass.first_epoch + epoch, loss });
            }
            if epoch == 0 {
                losses[0] = loss;
            }
            losses[1] = loss;
        }
        // None of these problems has a batch norm.
        let statistics = pass.norm.map(|_| Vec::new());
        Ok(PassReport { steps: pass.steps(rows.len()), losses, statistics })
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        self.check_pass(rows, pass)?;
        let (gradient, weights, _) = self.sums(params.trainable(), rows, pass);
        let mut gradient = mean(&gradient, weights);
        pass.frozen.into_iter().for_each(|frozen| frozen.clear(&mut gradient));
        Ok(gradient)
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.check(rows)?;
        let Some(&first) = rows.first() else { return Err(TrainFailure::NoSamples) };
        let (_, [_, _, classes]) = self.problem.evaluate_row(params.trainable(), first, offsets);
        let mut evaluation = Evaluation::empty(classes);
        for &row in rows {
            let (loss, [label, guess, _]) = self.problem.evaluate_row(params.trainable(), row, offsets);
            evaluation.loss += loss;
            evaluation.confusion[label * classes + guess] += 1;
        }
        Ok(evaluation)
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        self.check(rows)?;
        Ok(rows.iter().flat_map(|&row| self.problem.logits(params.trainable(), row)).collect())
    }
}

/// F(x) = 1/2 Σ_i h_i (x_i - b_i)² for each row. A client has one row, repeated for more steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quadratic {
    /// Curvatures and minimiser of each row.
    pub(crate) rows: Vec<(Vec<f64>, Vec<f64>)>,
}

impl Problem for Quadratic {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn gradient(&self, w: &[f32], row: u32, _: Option<&[f32]>, gradient: &mut [f64]) -> f64 {
        let (h, b) = &self.rows[row as usize];
        let mut loss = 0.0;
        for i in 0..w.len() {
            let gap = f64::from(w[i]) - b[i];
            gradient[i] += h[i] * gap;
            loss += 0.5 * h[i] * gap * gap;
        }
        loss
    }

    fn evaluate_row(&self, w: &[f32], row: u32, offsets: Option<&[f32]>) -> (f64, [usize; 3]) {
        (self.gradient(w, row, offsets, &mut vec![0.0; w.len()]), [0, 0, 1])
    }
}

/// Softmax regression without bias: one weight per class and value, class by class.
#[derive(Clone, Debug)]
pub(crate) struct Regression(pub(crate) Arc<Samples>);

impl Regression {
    /// The row's values and its logits.
    fn outputs(&self, w: &[f32], row: u32) -> (Vec<f32>, Vec<f64>) {
        let mut x = vec![0.0; self.0.shape().iter().product()];
        self.0.read(row, &mut x);
        let logit =
            |weights: &[f32]| weights.iter().zip(&x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
        let logits = w.chunks(x.len()).map(logit).collect();
        (x, logits)
    }

    /// Cross-entropy with any target, and its gradient.
    fn towards(
        &self,
        target: &[f64],
        w: &[f32],
        row: u32,
        offsets: Option<&[f32]>,
        gradient: &mut [f64],
    ) -> f64 {
        let (x, logits) = self.outputs(w, row);
        let shares = Self::shares(&logits, offsets);
        let whole: f64 = target.iter().sum();
        for (c, (share, target)) in shares.iter().zip(target).enumerate() {
            for (gradient, x) in gradient[c * x.len()..].iter_mut().zip(&x) {
                *gradient += (whole * share - target) * f64::from(*x);
            }
        }
        shares.iter().zip(target).filter(|(_, target)| **target != 0.0).map(|(s, t)| -t * s.ln()).sum()
    }

    fn shares(logits: &[f64], offsets: Option<&[f32]>) -> Vec<f64> {
        let z: Vec<f64> =
            logits.iter().enumerate().map(|(c, z)| z + offsets.map_or(0.0, |o| f64::from(o[c]))).collect();
        let largest = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = z.iter().map(|z| (z - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(|power| power / sum).collect()
    }
}

impl Problem for Regression {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn gradient(&self, w: &[f32], row: u32, offsets: Option<&[f32]>, gradient: &mut [f64]) -> f64 {
        let mut target = vec![0.0; self.0.classes()];
        target[self.label(row) as usize] = 1.0;
        self.towards(&target, w, row, offsets, gradient)
    }

    fn training_gradient(&self, w: &[f32], row: u32, pass: &Pass<'_>, gradient: &mut [f64]) -> f64 {
        let classes = self.0.classes();
        let mut target: Vec<f64> =
            (0..classes as u32).map(|c| pass.smoothing / classes as f64 * pass.weight(c)).collect();
        let label = self.label(row);
        target[label as usize] += (1.0 - pass.smoothing) * pass.weight(label);
        self.towards(&target, w, row, pass.offsets, gradient)
    }

    fn label(&self, row: u32) -> u32 {
        self.0.labels()[row as usize]
    }

    fn logits(&self, w: &[f32], row: u32) -> Vec<f32> {
        self.outputs(w, row).1.into_iter().map(|logit| logit as f32).collect()
    }

    fn evaluate_row(&self, w: &[f32], row: u32, offsets: Option<&[f32]>) -> (f64, [usize; 3]) {
        let (_, logits) = self.outputs(w, row);
        let label = self.0.labels()[row as usize] as usize;
        let loss = -Self::shares(&logits, offsets)[label].ln();
        let z = |class: usize| logits[class] + offsets.map_or(0.0, |offsets| f64::from(offsets[class]));
        let guess = (0..logits.len()).fold(0, |best, c| if z(c) > z(best) { c } else { best });
        (loss, [label, guess, logits.len()])
    }
}
