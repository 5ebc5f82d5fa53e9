//! What a client reports about its labels: the statistic that a strategy asks for, and the reference distribution Q
//! that its labels are compared with.

pub(crate) mod mixture;
pub(crate) mod reference;
pub(crate) mod statistic;

pub use reference::{Reference, ReferenceError};
pub use statistic::{Ask, Statistic, released_distance, size, tvd};
