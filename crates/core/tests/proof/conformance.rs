//! The conformance suite accepts trainers that follow every field of a pass, and names each field that one ignores.

use crate::exact::{Exact, Quadratic, Regression};
use fedtvd_core::model::{LayerKind, Layout, Params, Role, Tensor};
use fedtvd_core::stream::Key;
use fedtvd_core::train::conformance::{Case, check};
use fedtvd_core::train::{
    Adam, Evaluation, Optimizer, Pass, PassReport, Samples, Sgd, TrainFailure, Trainer, Values,
};
use std::sync::Arc;

fn samples() -> Arc<Samples> {
    let values: Vec<f32> = (0..24).map(|i| ((i * 7 % 11) as f32 - 5.0) / 5.0).collect();
    let labels = vec![0, 1, 2, 0, 1, 2];
    Arc::new(Samples::new([1, 1, 4], 3, Values::Floats(values), labels, 6).unwrap())
}

fn verdict(trainer: &dyn Fn() -> Box<dyn Trainer>) -> Result<(), String> {
    let weights = |class: usize| Tensor {
        name: format!("class{class}.weight"),
        shape: vec![4],
        layer: class,
        kind: LayerKind::Linear,
        role: Role::Weight,
        start: 0,
    };
    let mut start = Params::zeros(Arc::new(Layout::from_tensors([0, 1, 2].map(weights).to_vec())));
    start.values.iter_mut().enumerate().for_each(|(i, w)| *w = (i as f32 - 6.0) / 12.0);
    check(&Case { trainer, start: &start, rows: &[0, 1, 2, 3, 4, 5], missing: 6, classes: 3 })
}

#[test]
fn the_exact_regression_conforms() {
    let samples = samples();
    assert_eq!(verdict(&|| Box::new(Exact::new(Regression(Arc::clone(&samples))))), Ok(()));
}

/// Changes the settings of a pass's SGD.
fn sgd(pass: &mut Pass<'_>, change: fn(&mut Sgd)) {
    if let Optimizer::Sgd(sgd) = &mut pass.optimizer {
        change(sgd);
    }
}

/// Changes the settings of a pass's Adam or AdamW.
fn adam(pass: &mut Pass<'_>, change: fn(&mut Adam)) {
    if let Optimizer::Adam(adam) | Optimizer::AdamW(adam) = &mut pass.optimizer {
        change(adam);
    }
}

type Oversight = (&'static str, fn(&mut Pass<'_>));

/// A trainer that ignores something in every pass.
struct Careless(Exact<Regression>, fn(&mut Pass<'_>));

impl Trainer for Careless {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        let mut pass = *pass;
        (self.1)(&mut pass);
        self.0.pass(params, rows, &pass)
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        let mut pass = *pass;
        (self.1)(&mut pass);
        self.0.gradient(params, rows, &pass)
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.0.evaluate(params, rows, offsets)
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        self.0.logits(params, rows)
    }
}

#[test]
fn every_field_that_a_trainer_ignores_is_detected() {
    let samples = samples();
    let oversights: [Oversight; 23] = [
        ("four passes of one", |pass| pass.keep_state = false),
        ("a batch smaller", |pass| pass.batch = pass.batch.max(3)),
        ("the order of samples", |pass| pass.key = Key::of(1)),
        ("four passes of one", |pass| pass.first_epoch = 0),
        ("weight decay", |pass| sgd(pass, |sgd| sgd.weight_decay = 0.0)),
        ("a pull", |pass| pass.pull = None),
        ("a push", |pass| pass.push = None),
        ("momentum adds", |pass| sgd(pass, |sgd| sgd.momentum = 0.0)),
        ("Nesterov", |pass| sgd(pass, |sgd| sgd.nesterov = false)),
        ("offsets enter the training", |pass| pass.offsets = None),
        ("class weights", |pass| pass.class_weights = None),
        ("Adam divides", |pass| adam(pass, |adam| adam.lr = 0.1)),
        ("Adam divides", |pass| adam(pass, |adam| adam.beta1 = 0.9)),
        ("Adam divides", |pass| adam(pass, |adam| adam.beta2 = 0.999)),
        ("Adam divides", |pass| adam(pass, |adam| adam.eps = 1e-8)),
        ("Adam divides", |pass| {
            pass.keep_state = pass.keep_state && matches!(pass.optimizer, Optimizer::Sgd(_));
        }),
        ("Adam adds", |pass| adam(pass, |adam| adam.weight_decay = 0.0)),
        ("Adam adds", |pass| {
            if let Optimizer::AdamW(adam) = pass.optimizer {
                pass.optimizer = Optimizer::Adam(adam);
            }
        }),
        ("Adam divides", |pass| {
            if let Optimizer::Adam(Adam { lr, .. }) = pass.optimizer {
                pass.optimizer = Sgd { lr, momentum: 0.9, nesterov: false, weight_decay: 0.0 }.into();
            }
        }),
        ("clipping", |pass| pass.clip = None),
        ("label smoothing", |pass| pass.smoothing = 0.0),
        ("constants shift", |pass| pass.norm = None),
        ("a frozen tensor", |pass| pass.frozen = None),
    ];
    for (sentence, oversight) in oversights {
        let found = verdict(&|| Box::new(Careless(Exact::new(Regression(Arc::clone(&samples))), oversight)));
        let message = found.unwrap_err();
        assert!(message.starts_with(&format!("it is not true that {sentence}")), "{sentence}: {message}");
    }
}

/// A trainer whose passes are right and whose gradients are not.
struct Wrong(Exact<Regression>, Mistake);

type Mistake = fn(&mut Exact<Regression>, &Params, &[u32], Pass<'_>) -> Result<Vec<f32>, TrainFailure>;

impl Trainer for Wrong {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        self.0.pass(params, rows, pass)
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        (self.1)(&mut self.0, params, rows, *pass)
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.0.evaluate(params, rows, offsets)
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        self.0.logits(params, rows)
    }
}

#[test]
fn every_mistake_of_a_gradient_is_detected() {
    let samples = samples();
    let mistakes: [(&str, Mistake); 9] = [
        ("a gradient over one batch", |exact, w, rows, pass| {
            exact.gradient(w, rows, &Pass { offsets: None, ..pass })
        }),
        ("a gradient over one batch", |exact, w, rows, pass| {
            exact.gradient(w, rows, &Pass { class_weights: None, ..pass })
        }),
        ("a gradient over one batch", |exact, w, rows, pass| {
            exact.gradient(w, rows, &Pass { smoothing: 0.0, ..pass })
        }),
        ("a gradient over one batch", |exact, w, rows, pass| {
            let step = Pass { batch: rows.len(), ..pass };
            let mut moved = w.clone();
            exact.pass(&mut moved, rows, &step)?;
            let lr = pass.optimizer.lr() as f32;
            Ok(w.values.iter().zip(&moved.values).map(|(w, moved)| (w - moved) / lr).collect())
        }),
        ("a gradient over several", |exact, w, rows, pass| {
            exact.gradient(w, &rows[..rows.len().min(pass.batch)], &pass)
        }),
        ("a batch counts", |exact, w, rows, pass| {
            let batches = pass.order(0, rows);
            let mut mean = vec![0.0; w.values.len()];
            for batch in batches.chunks(pass.batch) {
                let share = batch.len() as f32 / rows.len() as f32;
                let gradient = exact.gradient(w, batch, &pass)?;
                mean.iter_mut().zip(gradient).for_each(|(mean, g)| *mean += share * g);
            }
            Ok(mean)
        }),
        ("a gradient is zero", |exact, w, rows, pass| {
            exact.gradient(w, rows, &Pass { frozen: None, ..pass })
        }),
        ("a gradient leaves", |exact, w, rows, pass| {
            exact.pass(&mut w.clone(), rows, &pass)?;
            exact.gradient(w, rows, &pass)
        }),
        ("a gradient leaves", |exact, w, rows, pass| {
            exact.gradient(w, rows, &Pass { batch: pass.batch.max(1), ..pass })
        }),
    ];
    for (sentence, mistake) in mistakes {
        let found = verdict(&|| Box::new(Wrong(Exact::new(Regression(Arc::clone(&samples))), mistake)));
        let message = found.unwrap_err();
        assert!(message.starts_with(&format!("it is not true that {sentence}")), "{sentence}: {message}");
    }
}

/// A trainer that gives the logits of the wrong rows.
struct Misplaced(Exact<Regression>);

impl Trainer for Misplaced {
    fn pass(
        &mut self,
        params: &mut Params,
        rows: &[u32],
        pass: &Pass<'_>,
    ) -> Result<PassReport, TrainFailure> {
        self.0.pass(params, rows, pass)
    }

    fn gradient(&mut self, params: &Params, rows: &[u32], pass: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        self.0.gradient(params, rows, pass)
    }

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.0.evaluate(params, rows, offsets)
    }

    fn logits(&mut self, params: &Params, rows: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        let backwards: Vec<u32> = rows.iter().rev().copied().collect();
        self.0.logits(params, &backwards)
    }
}

#[test]
fn logits_of_the_wrong_rows_are_detected() {
    let samples = samples();
    let found = verdict(&|| Box::new(Misplaced(Exact::new(Regression(Arc::clone(&samples))))));
    assert!(found.unwrap_err().starts_with("it is not true that logits give"));
}

#[test]
fn the_exact_quadratic_conforms() {
    let rows = vec![
        (vec![1.0, 2.0], vec![1.0, -1.0]),
        (vec![2.0, 1.0], vec![-1.0, 3.0]),
        (vec![0.5, 1.0], vec![2.0, 0.5]),
    ];
    let mut start = Params::zeros(Arc::new(Layout::vector(2)));
    start.values = vec![0.5, 0.25];
    let trainer = || Box::new(Exact::new(Quadratic { rows: rows.clone() })) as Box<dyn Trainer>;
    let case = Case { trainer: &trainer, start: &start, rows: &[0, 1, 2], missing: 3, classes: 1 };
    assert_eq!(check(&case), Ok(()));
}
