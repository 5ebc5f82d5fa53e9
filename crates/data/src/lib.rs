//! Data sets, and every way of splitting them over clients.

pub mod decode;
pub mod mini;
pub mod split;
