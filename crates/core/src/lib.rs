//! The heart of fedtvd: what clients know about their labels, how much each counts, how each trains.
//!
//! Pure functions over plain data. Nothing here reads a clock, a file, an environment variable or a global
//! generator, and nothing starts a thread: the same state and the same updates give the same bits anywhere.

pub mod layout;
pub mod network;
pub mod params;
pub mod pass;
pub mod samples;
pub mod step;
pub mod stream;
pub mod trainer;
