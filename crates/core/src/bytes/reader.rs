//! Reads a safetensors file: named vectors and a JSON header.

use crate::memory::{Array, Memory};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Version of the format, incremented by every change that old readers would misread.
pub const VERSION: u32 = 1;

/// Why bytes cannot be decoded.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BytesError {
    /// Not a safetensors file.
    #[error("not a safetensors file: {0}")]
    Container(String),
    /// A safetensors file without a fedtvd header.
    #[error("this file has no fedtvd header")]
    NoHeader,
    /// An invalid header.
    #[error("the header cannot be read: {0}")]
    Header(String),
    /// Local training outside its ranges.
    #[error("its local training: {0}")]
    Local(String),
    /// A value of another kind.
    #[error("this holds a {got}; a {expected} is needed")]
    Kind {
        /// The kind found.
        got: String,
        /// The kind expected.
        expected: &'static str,
    },
    /// An unsupported version of the format.
    #[error("format version {0} is not supported; version {VERSION} is needed")]
    Version(u32),
    /// A tensor of an unsupported shape or type.
    #[error("tensor {0} is not a vector of f32, f64 or u64")]
    Type(String),
    /// A tensor that is missing, or has the wrong length or type.
    #[error("tensor {name} should hold {expected}")]
    Tensor {
        /// The tensor's name.
        name: String,
        /// What it should hold.
        expected: String,
    },
    /// A tensor that is not expected.
    #[error("unexpected tensor {0}")]
    Surplus(String),
    /// Widths that the model's layers cannot have.
    #[error("the layers of this model cannot have the widths {0:?}")]
    Widths(Vec<usize>),
    /// Clients that are out of order or repeated.
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

/// Kind and version, read before the rest of the header.
#[derive(Deserialize)]
struct Label {
    kind: String,
    version: u32,
}

/// The name of the metadata entry that holds the header.
pub(crate) const ENTRY: &str = "fedtvd";

/// Named vectors being read.
pub(crate) struct Reader<'a> {
    opened: BTreeMap<String, TensorView<'a>>,
}

impl<'a> Reader<'a> {
    /// Opens the bytes of a value of this kind.
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

    /// Takes the f32 vector of this name and length.
    pub(crate) fn take_f32(&mut self, name: &str, len: usize) -> Result<Vec<f32>, BytesError> {
        let misfit = || BytesError::Tensor { name: name.to_owned(), expected: format!("{len} f32 numbers") };
        match array(&self.opened.remove(name).ok_or_else(misfit)?) {
            Array::F32(values) if values.len() == len => Ok(values),
            _ => Err(misfit()),
        }
    }

    /// Takes all vectors under a prefix.
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

    /// Fails if a vector is left.
    pub(crate) fn finish(self) -> Result<(), BytesError> {
        self.opened.into_keys().next().map_or(Ok(()), |name| Err(BytesError::Surplus(name)))
    }
}

/// The header of a value of this kind; fails unless all tensors are vectors of supported types.
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
    fn values_round_trip_bit_for_bit() {
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
    fn foreign_bytes_are_refused_with_the_reason() {
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
    fn every_truncation_is_an_error_and_no_flipped_byte_panics() {
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
