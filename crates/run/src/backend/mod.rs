//! Where models are trained and evaluated. `interface.rs` is the trait, `cpu.rs` this program's own kernels; `device.rs` finds a
//! backend by the name that `--device` gives, and `other_models.rs` finds models that are not made of layers.
//! A new backend is registered by name; nothing above this folder names one.

mod cpu;
mod device;
mod interface;
mod other_models;

pub use device::{Device, UnknownDevice, known, register};
pub use interface::{Backend, BackendError, Description};
pub(crate) use other_models::initial;
pub use other_models::{ModelSource, RegisterError, other_model, other_models, register_model};
