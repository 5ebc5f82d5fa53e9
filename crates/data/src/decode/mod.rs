//! Readers of file formats: whatever the bytes, they answer with data or with one sentence.

pub mod idx;
mod source;

pub use source::{Flaw, Source};
