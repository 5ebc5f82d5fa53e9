//! The inner loops that pointers and wide registers make fast, behind safe functions.
#![expect(unsafe_code, reason = "vector registers are loaded and stored through pointers")]
#![expect(clippy::needless_range_loop, reason = "loops over registers are written alike, by number")]

pub(crate) mod aligned;
pub(crate) mod isa;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod product;
pub(crate) mod sums;
pub(crate) mod vector;
pub(crate) mod weights;
pub(crate) mod winograd;
#[cfg(target_arch = "x86_64")]
mod x86;
