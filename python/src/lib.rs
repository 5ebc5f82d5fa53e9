//! `fedtvd._native`: the program and its core for the Python package, which gives them a Python face. Numbers cross as NumPy
//! arrays, documents as JSON, requests as the arguments of a subcommand.

mod call;
mod labels;
mod rules;
mod torch;

use pyo3::prelude::*;

/// The program and its core.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::call::{call, main};
    #[pymodule_export]
    use crate::labels::{released_distance, split, tvd};
    #[pymodule_export]
    use crate::rules::register;
    #[pymodule_export]
    use crate::torch::{conformance, register_devices, register_module};
}
