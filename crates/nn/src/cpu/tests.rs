//! Tests of the CPU trainer.

use super::*;
use crate::models::from_lines;
use fedtvd_core::model::Layer;
use fedtvd_core::stream::Key;
use fedtvd_core::train::{Adam, Local, Pull, Sgd, Values, prediction};

#[test]
fn as_many_inputs_as_classes_train_too() {
    // The first and the last map lie the same way, and could share a buffer of gradients.
    for lines in ["flatten|linear 4|relu|linear", "relu|flatten|linear 4|relu|linear", "linear 4|relu|linear"]
    {
        let lines: Vec<String> = lines.split('|').map(str::to_owned).collect();
        let network = from_lines(&lines, [2, 1, 1], 2).unwrap();
        let values = (0..40).map(|i| (i % 2 * (i / 2 % 2)) as f32).collect();
        let labels = (0..20).map(|row| row % 2).collect();
        let samples = Arc::new(Samples::new([2, 1, 1], 2, Values::Floats(values), labels, 20).unwrap());
        let rows: Vec<u32> = (0..20).collect();
        let local = fedtvd_core::train::Local { epochs: 60, ..Default::default() };
        let mut params = Params::initial(Arc::new(Layout::of(&network).unwrap()), 1);
        let mut cpu = Cpu::new(&network, samples).unwrap();
        let report = cpu.pass(&mut params, &rows, &local.pass(Key::of(1), None, None)).unwrap();
        assert!(report.losses[1] < 0.9 * report.losses[0], "{lines:?}: {:?}", report.losses);
        let logits = cpu.logits(&params, &rows).unwrap();
        let hits =
            rows.iter().zip(logits.chunks(2)).filter(|(row, own)| **row % 2 == prediction(own)).count();
        assert_eq!(hits as f64 / 20.0, cpu.evaluate(&params, &rows, None).unwrap().accuracy());
    }
}

#[test]
fn the_memory_of_training_has_everything_that_the_layers_hold() {
    let bytes = |lines: &[&str], input| {
        let lines: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
        Cpu::training_memory(&from_lines(&lines, input, 2).unwrap(), 64, &Local::default().optimizer).unwrap()
    };
    // Samples times inputs in f32 beside the map itself: a linear layer's input, sample by sample.
    let [narrow, wide] = [1024, 2048].map(|units| bytes(&[&format!("linear {units}"), "linear"], [3, 1, 1]));
    // Per unit: value, gradient and copy of 64 samples; 3 x (1 + 2) + 1 weights in 3 copies and 2 vectors; two taps.
    // One more place for every register of units.
    let places = 8 * 1024 / Isa::chosen().unwrap().lanes() as u128;
    let unit = 4 * 3 * 64 + 4 * 5 * 6 + 2 * 8;
    assert!((wide - narrow).abs_diff(1024 * unit + places) <= 8, "{narrow} {wide}");
    let dropout = bytes(&["linear 1024", "dropout 0.5", "linear"], [3, 1, 1]) - narrow;
    // Values, factors and perhaps gradients of 64 samples.
    assert!(dropout >= 1024 * 4 * 2 * 64, "{dropout}");
    // A place of eight bytes per pixel and group of samples, of each convolution and of dx of the second one.
    let conv = bytes(&["conv 1 1x1", "conv 1 1x1", "flatten", "linear"], [1, 50, 50]);
    let pooled = bytes(&["conv 1 1x1", "flatten", "linear"], [1, 50, 50]);
    let groups = 64 / Isa::chosen().unwrap().lanes() as u128;
    assert!(conv - pooled >= 4 * 64 * 2500 + 2 * 8 * groups * 2500, "{conv} {pooled}");
}

#[test]
fn a_network_with_more_numbers_than_tables_can_address_is_an_error() {
    let network = |units: usize| {
        from_lines(&[format!("linear {units}"), "relu".to_owned(), "linear".to_owned()], [1, 1, 1], 2)
    };
    let data = |rows: usize| {
        let labels = (0..rows as u32).map(|row| row % 2).collect();
        Arc::new(Samples::new([1, 1, 1], 2, Values::Floats(vec![0.5; rows]), labels, rows).unwrap())
    };
    // 32 samples of an evaluation, or 43,000 of a batch, times units: beyond 2^32.
    let mut vast = network(3).unwrap();
    let Layer::Linear { out, .. } = &mut vast.layers[0] else { panic!("{vast:?}") };
    *out = 140_000_000;
    let error = Cpu::new(&vast, data(2)).err().unwrap();
    assert!(matches!(error, CpuError::TooLarge { numbers } if numbers > 1 << 32), "{error}");
    let network = network(100_000).unwrap();
    let mut cpu = Cpu::new(&network, data(43_000)).unwrap();
    let mut params = Params::zeros(Arc::new(Layout::of(&network).unwrap()));
    let rows: Vec<u32> = (0..43_000).collect();
    let local = Local { batch: 43_000, epochs: 1, ..Local::default() };
    let failure = cpu.pass(&mut params, &rows, &local.pass(Key::of(1), None, None)).unwrap_err();
    assert!(failure.to_string().contains("numbers; 4294967295 are possible"), "{failure}");
    assert!(cpu.evaluate(&params, &rows[..40], None).is_ok(), "the buffers from before are still there");
}

#[test]
fn adam_takes_the_memory_of_one_more_vector_than_sgd() {
    let network = from_lines(&["linear 3".to_owned(), "relu".to_owned(), "linear".to_owned()], [4, 1, 1], 2);
    let network = network.unwrap();
    let adam = Adam { lr: 0.01, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.0 };
    let sgd = Sgd { lr: 0.01, momentum: 0.0, nesterov: false, weight_decay: 0.0 };
    let bytes = |optimizer| Cpu::training_memory(&network, 8, &optimizer).unwrap();
    // 4 x 3 + 3 and 3 x 2 + 2 parameters of four bytes.
    assert_eq!(bytes(Optimizer::AdamW(adam)) - bytes(Optimizer::Sgd(sgd)), 4 * 23);
}

#[test]
fn a_step_has_the_same_bits_with_every_instruction_set() {
    let adam = Adam { lr: 0.01, beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.1 };
    let sgd = Sgd { lr: 0.01, momentum: 0.9, nesterov: true, weight_decay: 0.1 };
    let network = from_lines(&["linear 37".to_owned(), "relu".to_owned(), "linear".to_owned()], [9, 1, 1], 3);
    let start = Params::initial(Arc::new(Layout::of(&network.unwrap()).unwrap()), 1);
    let mut stream = Stream::at(3, Purpose::Split, 0, 0);
    let mut numbers = || -> Vec<f32> { start.trainable().iter().map(|_| stream.normal() as f32).collect() };
    let (gradients, anchor, push) = ([numbers(), numbers(), numbers()], numbers(), numbers());
    for optimizer in [Optimizer::Sgd(sgd), Optimizer::Adam(adam), Optimizer::AdamW(adam)] {
        for (clip, pulled, pushed) in [
            (None, false, false),
            (Some(0.5), false, true),
            (Some(0.5), true, false),
            (Some(2.0), true, true),
        ] {
            let pass = Pass {
                clip,
                pull: pulled.then_some(Pull { mu: 0.1, anchor: &anchor }),
                push: pushed.then_some(&push[..]),
                ..Pass::new(optimizer, 1, Key::of(1))
            };
            let stepped = |isa: Isa| {
                let (mut params, mut state) = (start.clone(), OptimizerState::default());
                state.begin(&pass, params.trainable().len());
                for gradient in &gradients {
                    isa.run(Step { pass: &pass, params: &mut params, state: &mut state, gradient });
                }
                params.values.iter().map(|w| w.to_bits()).collect::<Vec<u32>>()
            };
            let models: Vec<_> = Isa::available().into_iter().map(stepped).collect();
            assert!(models.iter().all(|model| *model == models[0]), "{pass:?}");
        }
    }
}

#[test]
fn every_instruction_set_trains_alike() {
    let lines = "conv 6 3x3 pad 1|batchnorm|relu|maxpool 2|residual {|conv 6 3x3 pad 1|groupnorm 2|}|relu|\
                 dropout 0.3|conv 21 3x3 stride 2|avgpool 2 stride 1|flatten|linear 19|relu|linear";
    let lines: Vec<String> = lines.split('|').map(str::to_owned).collect();
    let network = from_lines(&lines, [2, 11, 12], 5).unwrap();
    let mut stream = Stream::at(3, Purpose::Split, 0, 0);
    let values = (0..37 * 2 * 11 * 12).map(|_| stream.normal() as f32).collect();
    let labels = (0..37).map(|row| row % 5).collect();
    let samples = Arc::new(Samples::new([2, 11, 12], 5, Values::Floats(values), labels, 37).unwrap());
    let rows: Vec<u32> = (0..37).collect();
    let sgd = Sgd { lr: 0.05, momentum: 0.9, nesterov: false, weight_decay: 0.0 };
    let pass = Pass { epochs: 2, ..Pass::new(sgd, 20, Key::of(1)) };
    let start = Params::initial(Arc::new(Layout::of(&network).unwrap()), 1);
    let trained = |isa: Isa| {
        let mut params = start.clone();
        let mut cpu = Cpu::with(&network, samples.clone(), isa).unwrap();
        cpu.pass(&mut params, &rows, &pass).unwrap();
        (params, cpu.evaluate(&start, &rows, None).unwrap().loss)
    };
    let (right, loss) = trained(Isa::available()[0]);
    for isa in Isa::available() {
        let (params, other) = trained(isa);
        assert!((loss - other).abs() < 1e-4 * loss, "{}: {loss} {other}", isa.name());
        for (a, b) in right.values.iter().zip(&params.values) {
            // Four steps in f32, summed in other orders.
            assert!((a - b).abs() < 2e-5 * (1.0 + a.abs()), "{}: {a} {b}", isa.name());
        }
    }
}

#[test]
fn the_gradient_of_one_large_batch_is_the_mean_of_those_of_its_parts() {
    let mut stream = Stream::at(7, Purpose::Split, 0, 0);
    for isa in Isa::available() {
        // Widths that are no multiple of the lanes: the last registers overlap. 200 samples are summed in two parts.
        for inputs in [20, 36, 40, 84, 100] {
            let values = (0..200 * inputs).map(|_| stream.normal() as f32).collect();
            let labels = (0..200).map(|row| row % 3).collect();
            let samples = Samples::new([inputs, 1, 1], 3, Values::Floats(values), labels, 200).unwrap();
            let network = from_lines(&["linear".to_owned()], [inputs, 1, 1], 3).unwrap();
            let params = Params::initial(Arc::new(Layout::of(&network).unwrap()), 1);
            let mut cpu = Cpu::with(&network, Arc::new(samples), isa).unwrap();
            let rows: Vec<u32> = (0..200).collect();
            let sgd = Sgd { lr: 0.01, momentum: 0.0, nesterov: false, weight_decay: 0.0 };
            let mut of = |batch| cpu.gradient(&params, &rows, &Pass::new(sgd, batch, Key::of(1))).unwrap();
            let (whole, parts) = (of(200), of(50));
            for (place, (whole, part)) in whole.iter().zip(&parts).enumerate() {
                // Rounding of sums of 200 numbers of about 1, divided by 200.
                assert!((whole - part).abs() < 1e-5, "{} {inputs}, {place}: {whole} and {part}", isa.name());
            }
        }
    }
}
