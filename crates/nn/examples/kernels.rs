//! Milliseconds per batch of 32 or another size, training and evaluation: `kernels train|eval MODEL SECONDS [BATCH]`. Prints
//! one number.

use fedtvd_core::model::{Layout, Params};
use fedtvd_core::stream::{Key, Purpose, Stream};
use fedtvd_core::train::{Pass, Samples, Sgd, Trainer, Values};
use fedtvd_nn::{Cpu, models};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

/// CPU time of this process, which other processes do not affect; wall-clock time if it is not available.
fn seconds_on_core() -> f64 {
    let spent = std::fs::read_to_string("/proc/self/schedstat").ok();
    let nanoseconds = spent.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| START.elapsed().as_secs_f64(), |nanoseconds| nanoseconds * 1e-9)
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (mode, name, seconds) = (&arguments[1], &arguments[2], arguments[3].parse::<f64>().expect("seconds"));
    let batch = arguments.get(4).map_or(32, |batch| batch.parse::<usize>().expect("a size of batches"));
    let model = models::ALL.iter().find(|model| model.name == name).expect("a model's name");
    let network = models::named(name, model.input, model.classes).expect("a model fits its own input");
    let mut stream = Stream::at(1, Purpose::Split, 0, 0);
    let size = batch * model.input.iter().product::<usize>();
    let values = (0..size).map(|_| stream.normal() as f32).collect();
    let labels = (0..batch as u32).map(|row| row % model.classes as u32).collect();
    let samples = Samples::new(model.input, model.classes, Values::Floats(values), labels, batch);
    let mut cpu = Cpu::new(&network, Arc::new(samples.expect("valid samples"))).expect("they fit");
    let layout = Arc::new(Layout::of(&network).expect("a valid network"));
    let mut params = Params::initial(layout, 1);
    let rows: Vec<u32> = (0..batch as u32).collect();
    let sgd = Sgd { lr: 0.001, momentum: 0.9, nesterov: false, weight_decay: 0.0 };
    let pass = |epochs| Pass { epochs, keep_state: true, ..Pass::new(sgd, batch, Key::of(1)) };
    let mut work = |times: u32| match mode.as_str() {
        "train" => {
            cpu.pass(&mut params, &rows, &pass(times)).expect("training goes on");
        }
        _ => {
            for _ in 0..times {
                cpu.evaluate(&params, &rows, None).expect("evaluation goes on");
            }
        }
    };
    // As many as take much longer than the resolution of the system's CPU time.
    let mut times = 1;
    let mut spent = |times: u32| {
        let start = seconds_on_core();
        work(times);
        seconds_on_core() - start
    };
    while spent(times) < seconds / 8.0 {
        times *= 2;
    }
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    while best == f64::INFINITY || begin.elapsed().as_secs_f64() < seconds {
        best = best.min(spent(times) / f64::from(times));
    }
    println!("{:.4}", best * 1e3);
}
