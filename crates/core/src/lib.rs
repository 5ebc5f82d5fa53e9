//! The heart of fedtvd: what clients know about their labels, how much each counts, how each trains.
//!
//! Pure functions over plain data. Nothing here reads a clock, a file, an environment variable or a global
//! generator, and nothing starts a thread: the same state and the same updates give the same bits anywhere.

pub mod acceptance;
mod augment;
pub mod bytes;
pub mod client;
pub mod conformance;
pub mod drift;
pub mod enrolment;
pub mod exact;
pub mod failure;
pub mod hardened;
pub mod job;
pub mod layout;
pub mod local;
pub mod memory;
pub mod model_file;
pub mod nearest;
pub mod network;
pub mod notation;
pub mod param;
pub mod params;
mod parcel;
pub mod pass;
pub mod profile;
mod range;
pub mod recipe;
pub mod record;
mod reference;
pub mod round;
pub mod rules;
pub mod run;
pub mod samples;
mod sealing;
pub mod spec;
pub mod statistic;
pub mod step;
pub mod strategy;
pub mod stream;
mod tensor;
pub mod trainer;
pub mod updates;
pub mod upload_head;
pub mod upload_stream;
pub mod value;
