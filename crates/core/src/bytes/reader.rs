//! A safetensors file on its way in: named vectors and a JSON header.

use crate::memory::{Array, Memory};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Version of the byte form; a change that old readers would misread counts it up.
pub const VERSION: u32 = 1;

/// Why bytes are not the value that they should be.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BytesError {
    /// No safetensors file at all.
    #[error("not a safetensors file: {0}")]
    Container(String),
    /// A safetensors file of something else.
    #[error("this file has no fedtvd header")]
    NoHeader,
    /// A header that cannot be read.
    #[error("the header cannot be read: {0}")]
    Header(String),
    /// Another kind of value.
    #[error("this holds a {got}; a {expected} is needed")]
    Kind {
        /// What it is.
        got: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Another version of the byte form.
    #[error("this has version {0} of the byte form; version {VERSION} is needed")]
    Version(u32),
    /// A tensor of a shape or type that is not used here.
    #[error("tensor {0} is no vector of f32, f64 or u64")]
    Type(String),
    /// A tensor that is not there, or has another length or type.
    #[error("tensor {name} should hold {expected}")]
    Tensor {
        /// Which.
        name: String,
        /// What belongs there.
        expected: String,
    },
    /// A tensor that does not belong there.
    #[error("there is no place for tensor {0}")]
    Surplus(String),
    /// Clients out of order or twice.
    #[error("clients must be in ascending order; client {0} is not")]
    Roster(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Envelope<H> {
    pub(crate) kind: String,
    pub(crate) version: u32,
    pub(crate) header: H,
}

/// Just enough to say what a file is before its header is read in full.
#[derive(Deserialize)]
struct Label {
    kind: String,
    version: u32,
}

/// The name of the metadata entry that holds the header.
pub(crate) const ENTRY: &str = "fedtvd";

/// Vectors on their way out of bytes.
pub(crate) struct Reader<'a> {
    opened: BTreeMap<String, TensorView<'a>>,
}

impl<'a> Reader<'a> {
    /// Opens bytes of a given kind.
    pub(crate) fn open<H: DeserializeOwned>(
        expected: &'static str,
        bytes: &'a [u8],
    ) -> Result<(H, Self), BytesError> {
        let container = |error: safetensors::SafeTensorError| BytesError::Container(error.to_string());
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(container)?;
        let header = header(expected, &metadata)?;
        let opened = SafeTensors::deserialize(bytes).map_err(container)?.tensors().into_iter().collect();
        Ok((header, Self { opened }))
    }

    /// Takes out a vector of f32 of this length.
    pub(crate) fn take_f32(&mut self, name: &str, len: usize) -> Result<Vec<f32>, BytesError> {
        let misfit = || BytesError::Tensor { name: name.to_owned(), expected: format!("{len} f32 numbers") };
        match array(&self.opened.remove(name).ok_or_else(misfit)?) {
            Array::F32(values) if values.len() == len => Ok(values),
            _ => Err(misfit()),
        }
    }

    /// Takes out everything under a prefix.
    pub(crate) fn take_memory(&mut self, prefix: &str) -> Memory {
        let mut memory = Memory::default();
        self.opened.retain(|name, view| match name.strip_prefix(prefix).and_then(|n| n.strip_prefix('/')) {
            Some(name) => {
                memory.put(name, array(view));
                false
            }
            None => true,
        });
        memory
    }

    /// Nothing may be left.
    pub(crate) fn finish(self) -> Result<(), BytesError> {
        self.opened.into_keys().next().map_or(Ok(()), |name| Err(BytesError::Surplus(name)))
    }
}

/// The header of a value of this kind, all of whose tensors are vectors of known types.
pub(crate) fn header<H: DeserializeOwned>(
    expected: &'static str,
    metadata: &Metadata,
) -> Result<H, BytesError> {
    let text = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
    let text = text.ok_or(BytesError::NoHeader)?;
    let unreadable = |error: serde_json::Error| BytesError::Header(error.to_string());
    let label: Label = serde_json::from_str(text).map_err(unreadable)?;
    if label.version != VERSION {
        return Err(BytesError::Version(label.version));
    }
    if label.kind != expected {
        return Err(BytesError::Kind { got: label.kind, expected });
    }
    let envelope: Envelope<H> = serde_json::from_str(text).map_err(unreadable)?;
    for name in metadata.offset_keys() {
        let known = [Dtype::F32, Dtype::F64, Dtype::U64];
        if !metadata.info(&name).is_some_and(|info| info.shape.len() == 1 && known.contains(&info.dtype)) {
            return Err(BytesError::Type(name));
        }
    }
    Ok(envelope.header)
}

fn array(view: &TensorView<'_>) -> Array {
    fn numbers<T, const N: usize>(bytes: &[u8], number: fn([u8; N]) -> T) -> Vec<T> {
        bytes.as_chunks().0.iter().map(|chunk| number(*chunk)).collect()
    }
    match view.dtype() {
        Dtype::F64 => Array::F64(numbers(view.data(), f64::from_le_bytes)),
        Dtype::U64 => Array::U64(numbers(view.data(), u64::from_le_bytes)),
        _ => Array::F32(numbers(view.data(), f32::from_le_bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::writer::Writer;

    #[test]
    fn numbers_come_back_to_the_bit() {
        let mut memory = Memory::default();
        memory.put("a", vec![f32::MIN_POSITIVE, -0.0, f32::NAN]);
        memory.put("b", vec![0.1 + 0.2, f64::MAX]);
        memory.put("c", vec![u64::MAX]);
        let bytes = memory.to_bytes();
        let again = Memory::from_bytes(&bytes).unwrap();
        assert_eq!(again.to_bytes(), bytes);
        assert_eq!(again.f64("b"), memory.f64("b"));
    }

    #[test]
    fn foreign_bytes_are_named() {
        let error = |bytes: &[u8]| Memory::from_bytes(bytes).unwrap_err();
        assert!(matches!(error(b""), BytesError::Container(_)));
        assert!(matches!(error(&[0xff; 64]), BytesError::Container(_)));
        let other = Writer::default().write("letter", &());
        assert_eq!(error(&other).to_string(), "this holds a letter; a memory is needed");
        let mut surplus = Writer::default();
        surplus.put("model", &[1.0]);
        assert_eq!(error(&surplus.write("memory", &())), BytesError::Surplus("model".into()));
    }

    #[test]
    fn every_truncation_is_an_error_and_no_flipped_byte_a_panic() {
        let mut memory = Memory::default();
        memory.put("a", vec![1.0f32, 2.0, 3.0]);
        let bytes = memory.to_bytes();
        for len in 0..bytes.len() {
            assert!(Memory::from_bytes(&bytes[..len]).is_err());
        }
        for place in 0..bytes.len() {
            for flip in [0x01, 0x10, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[place] ^= flip;
                let _ = Memory::from_bytes(&bytes);
            }
        }
    }
}
