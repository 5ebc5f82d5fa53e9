//! A vector lent to a safetensors file that is written.

use crate::memory::Array;
use safetensors::tensor::{Dtype, View};
use std::borrow::Cow;

/// Numbers that become bytes when the file asks for them, or that are only told of.
pub(crate) struct Lent<'a> {
    numbers: Numbers<'a>,
    shape: [usize; 1],
    told: bool,
}

enum Numbers<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    U64(&'a [u64]),
}

impl<'a> Lent<'a> {
    pub(crate) fn array(array: &'a Array) -> Self {
        match array {
            Array::F32(values) => Self::f32(values),
            Array::F64(values) => Self::new(Numbers::F64(values), values.len()),
            Array::U64(values) => Self::new(Numbers::U64(values), values.len()),
        }
    }

    pub(crate) fn f32(values: &'a [f32]) -> Self {
        Self::new(Numbers::F32(values), values.len())
    }

    fn new(numbers: Numbers<'a>, len: usize) -> Self {
        Self { numbers, shape: [len], told: false }
    }

    /// The same in the file's head, without its bytes.
    pub(crate) fn told(self) -> Self {
        Self { told: true, ..self }
    }
}

impl View for Lent<'_> {
    fn dtype(&self) -> Dtype {
        match self.numbers {
            Numbers::F32(_) => Dtype::F32,
            Numbers::F64(_) => Dtype::F64,
            Numbers::U64(_) => Dtype::U64,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let bytes = match self.numbers {
            _ if self.told => Vec::new(),
            Numbers::F32(values) => le_bytes(values, |x| x.to_le_bytes()),
            Numbers::F64(values) => le_bytes(values, |x| x.to_le_bytes()),
            Numbers::U64(values) => le_bytes(values, |x| x.to_le_bytes()),
        };
        Cow::Owned(bytes)
    }

    fn data_len(&self) -> usize {
        match self.numbers {
            Numbers::F32(values) => size_of_val(values),
            Numbers::F64(values) => size_of_val(values),
            Numbers::U64(values) => size_of_val(values),
        }
    }
}

fn le_bytes<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| bytes(value)).collect()
}
