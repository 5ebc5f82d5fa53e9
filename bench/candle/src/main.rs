//! Milliseconds per training step of candle on one core, for lenet and cnn.
//!
//! `RAYON_NUM_THREADS=1 RUSTFLAGS="-C target-cpu=native" cargo run --release` in this folder, under `taskset -c 0`.
//! Batch 32, forward, backward, plain SGD (candle-nn has no momentum).

use candle_core::{D, DType, Device, Result, Tensor};
use candle_nn::{Conv2dConfig, Module, Optimizer, SGD, VarBuilder, VarMap, conv2d, linear, loss};
use std::time::Instant;

fn step_ms(name: &str, convs: [(usize, usize, usize); 2], sizes: &[usize]) -> Result<()> {
    let device = Device::Cpu;
    let vars = VarMap::new();
    let vb = VarBuilder::from_varmap(&vars, DType::F32, &device);
    let [c1, c2] = [0, 1].map(|i| {
        let (input, output, padding) = convs[i];
        conv2d(input, output, 5, Conv2dConfig { padding, ..Default::default() }, vb.pp(format!("c{i}")))
    });
    let (c1, c2) = (c1?, c2?);
    let linears =
        sizes.windows(2).map(|s| linear(s[0], s[1], vb.pp(format!("l{}", s[0])))).collect::<Result<Vec<_>>>()?;
    let x = Tensor::randn(0f32, 1f32, (32, 1, 28, 28), &device)?;
    let y = Tensor::from_vec((0..32u32).map(|n| n % 10).collect(), 32, &device)?;
    let mut sgd = SGD::new(vars.all_vars(), 0.001)?;
    let mut step = || -> Result<()> {
        let mut h = c1.forward(&x)?.relu()?.max_pool2d(2)?;
        h = c2.forward(&h)?.relu()?.max_pool2d(2)?.flatten_from(1)?;
        for (n, layer) in linears.iter().enumerate() {
            h = layer.forward(&h)?;
            if n + 1 < linears.len() {
                h = h.relu()?;
            }
        }
        let loss = loss::nll(&candle_nn::ops::log_softmax(&h, D::Minus1)?, &y)?;
        sgd.backward_step(&loss)
    };
    step()?;
    let mut best = f64::INFINITY;
    for _ in 0..30 {
        let start = Instant::now();
        step()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:8} {:.3} ms", best * 1e3);
    Ok(())
}

fn main() -> Result<()> {
    step_ms("lenet", [(1, 6, 0), (6, 16, 0)], &[256, 120, 84, 10])?;
    step_ms("lenet5", [(1, 6, 2), (6, 16, 0)], &[400, 120, 84, 10])?;
    step_ms("cnn", [(1, 32, 2), (32, 64, 2)], &[3136, 512, 10])
}
