//! Decoders of file formats: for any bytes they return data or an error of one sentence.

pub mod archive;
pub mod cifar;
pub mod idx;
pub(crate) mod json;
pub mod npy;
pub mod picture;
mod quotes;
mod source;
pub mod table;

pub(crate) use source::READABLE;
pub use source::{Flaw, Source};
