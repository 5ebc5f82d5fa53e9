//! Models and their training kernels: layers with explicit forward and backward passes over flat f32
//! parameters, on one core, bit for bit reproducible, without allocation while training.

mod bind;
mod cpu;
mod flow;
mod kernels;
mod layers;
mod loss;
mod map;
pub mod models;

pub use cpu::{Cpu, CpuError};
