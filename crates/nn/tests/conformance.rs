//! Core's suite for every trainer, on nets with and without batch norm and dropout.

use fedtvd_core::model::{Layout, Params};
use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_core::train::conformance::{Case, check};
use fedtvd_core::train::{Samples, Values};
use fedtvd_nn::{Cpu, models};
use std::sync::Arc;

#[test]
fn the_core_accepts_this_trainer() {
    let mut stream = Stream::at(3, Purpose::Split, 0, 0);
    let values = (0..13 * 784).map(|_| stream.normal() as f32).collect();
    let labels = (0..13).map(|row| row % 10).collect();
    let samples = Arc::new(Samples::new([1, 28, 28], 10, Values::Floats(values), labels, 11).unwrap());
    let lines = |text: &str| {
        let lines: Vec<String> = text.split(", ").map(str::to_owned).collect();
        models::from_lines(&lines, [1, 28, 28], 10).unwrap()
    };
    for network in [
        models::named("logistic", [1, 28, 28], 10).unwrap(),
        models::named("lenet", [1, 28, 28], 10).unwrap(),
        models::named("lenet-bn", [1, 28, 28], 10).unwrap(),
        lines("conv 4 5x5 stride 3, groupnorm 2, relu, dropout 0.5, flatten, linear"),
    ] {
        let start = Params::initial(Arc::new(Layout::of(&network).unwrap()), 1);
        let trainer = || Box::new(Cpu::new(&network, samples.clone()).unwrap()) as Box<_>;
        let rows = [5, 1, 0, 7, 2, 9, 10];
        let case = Case { trainer: &trainer, start: &start, rows: &rows, missing: 13, classes: 10 };
        assert_eq!(check(&case), Ok(()), "{network:?}");
    }
}
