//! Writes every named model, trained for two steps, and its loss on four rows: `export DIR`.
//! `bench/check_safetensors.py` loads the files into PyTorch and compares.

use fedtvd_core::model::{Layout, Params};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{Pass, Samples, Sgd, Trainer, Values};
use fedtvd_nn::{Cpu, models};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("export needs a directory")?);
    for model in models::ALL {
        let network = models::named(model.name, model.input, model.classes)?;
        let pixel = |i: usize| {
            let x = (i as f64 + 8.0).sin() * 43758.5453;
            (2.0 * (x - x.floor()) - 1.0) as f32
        };
        let values = (0..4 * model.input.iter().product::<usize>()).map(pixel).collect();
        let samples = Samples::new(model.input, model.classes, Values::Floats(values), vec![0, 1, 2, 3], 4)?;
        let mut cpu = Cpu::new(&network, Arc::new(samples))?;
        let mut params = Params::initial(Arc::new(Layout::of(&network)?), 1);
        let pass = Pass {
            epochs: 2,
            ..Pass::new(Sgd { lr: 0.01, momentum: 0.9, nesterov: false, weight_decay: 0.0 }, 4, Key::of(1))
        };
        cpu.pass(&mut params, &[0, 1, 2, 3], &pass)?;
        std::fs::write(directory.join(format!("{}.safetensors", model.name)), params.to_safetensors())?;
        let loss = cpu.evaluate(&params, &[0, 1, 2, 3], None)?.loss;
        std::fs::write(directory.join(format!("{}.loss", model.name)), loss.to_string())?;
    }
    Ok(())
}
