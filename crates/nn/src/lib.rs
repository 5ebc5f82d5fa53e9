//! Models and their training kernels: layers with explicit forward and backward passes over flat f32
//! parameters, on one core, bit for bit reproducible, without allocation while training.
//!
//! One epoch of softmax regression on four points:
//!
//! ```
//! use fedtvd_core::model::{Layout, Params};
//! use fedtvd_core::stream::Key;
//! use fedtvd_core::train::{Local, Samples, Trainer, Values};
//! use fedtvd_nn::{Cpu, models};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let values = Values::Floats(vec![0.0, 0.1, 0.9, 1.0]);
//! let samples = Arc::new(Samples::new([1, 1, 1], 2, values, vec![0, 0, 1, 1], 4)?);
//! let network = models::named("logistic", samples.shape(), samples.classes())?;
//! let mut cpu = Cpu::new(&network, samples)?;
//! let mut params = Params::initial(Arc::new(Layout::of(&network)?), 1);
//! let pass = Local { epochs: 1, batch: 2, ..Local::default() }.pass(Key::of(1), None, None);
//! let report = cpu.pass(&mut params, &[0, 1, 2, 3], &pass)?;
//! assert_eq!(report.steps, 2);
//! # Ok(())
//! # }
//! ```

mod bind;
mod cpu;
mod flow;
mod kernels;
mod layers;
mod loss;
mod map;
pub mod models;

pub use cpu::{Cpu, CpuError};
pub use kernels::isa::{InstructionsError, instructions};

/// Version of the kernels: models that were trained with another one have other bits, from the same seed. 1 had direct convolutions
/// only; 2 has Winograd convolutions, and sums batch norms in four chains.
pub const KERNELS: u32 = 2;
