//! What a client says about its labels: the statistic that a strategy asks for, and the reference distribution Q that
//! it is measured against.

pub(crate) mod reference;
pub(crate) mod statistic;

pub use reference::{Reference, ReferenceError};
pub use statistic::{Ask, Statistic, released_distance, size, tvd};
