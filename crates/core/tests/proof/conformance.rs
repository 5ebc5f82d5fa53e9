//! The conformance suite accepts trainers that follow every field of a pass, and names each field that one ignores.

use crate::exact::{Exact, Quadratic, Regression};
use fedtvd_core::model::{Layout, Params};
use fedtvd_core::stream::Key;
use fedtvd_core::train::conformance::{Case, check};
use fedtvd_core::train::{Evaluation, Pass, PassReport, Samples, TrainFailure, Trainer, Values};
use std::sync::Arc;

fn samples() -> Arc<Samples> {
    let values: Vec<f32> = (0..24).map(|i| ((i * 7 % 11) as f32 - 5.0) / 5.0).collect();
    let labels = vec![0, 1, 2, 0, 1, 2];
    Arc::new(Samples::new([1, 1, 4], 3, Values::Floats(values), labels, 6).unwrap())
}

fn verdict(trainer: &dyn Fn() -> Box<dyn Trainer>) -> Result<(), String> {
    let mut start = Params::zeros(Arc::new(Layout::vector(12)));
    start.values.iter_mut().enumerate().for_each(|(i, w)| *w = (i as f32 - 6.0) / 12.0);
    check(&Case { trainer, start: &start, rows: &[0, 1, 2, 3, 4, 5], missing: 6, classes: 3 })
}

#[test]
fn the_exact_regression_conforms() {
    let samples = samples();
    assert_eq!(verdict(&|| Box::new(Exact::new(Regression(Arc::clone(&samples))))), Ok(()));
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

    fn evaluate(
        &mut self,
        params: &Params,
        rows: &[u32],
        offsets: Option<&[f32]>,
    ) -> Result<Evaluation, TrainFailure> {
        self.0.evaluate(params, rows, offsets)
    }
}

#[test]
fn every_field_that_a_trainer_ignores_is_detected() {
    let samples = samples();
    let oversights: [Oversight; 11] = [
        ("four passes of one", |pass| pass.keep_velocity = false),
        ("a batch smaller", |pass| pass.batch = pass.batch.max(3)),
        ("the order of samples", |pass| pass.key = Key::of(1)),
        ("four passes of one", |pass| pass.first_epoch = 0),
        ("weight decay", |pass| pass.sgd.weight_decay = 0.0),
        ("a pull", |pass| pass.pull = None),
        ("a push", |pass| pass.push = None),
        ("momentum adds", |pass| pass.sgd.momentum = 0.0),
        ("Nesterov", |pass| pass.sgd.nesterov = false),
        ("offsets enter the training", |pass| pass.offsets = None),
        ("class weights", |pass| pass.class_weights = None),
    ];
    for (sentence, oversight) in oversights {
        let found = verdict(&|| Box::new(Careless(Exact::new(Regression(Arc::clone(&samples))), oversight)));
        let message = found.unwrap_err();
        assert!(message.starts_with(&format!("it is not true that {sentence}")), "{sentence}: {message}");
    }
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
