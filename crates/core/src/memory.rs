//! What a rule remembers between rounds: plain named arrays, which a checkpoint stores as bytes.

use std::collections::BTreeMap;

/// Named arrays of numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory(BTreeMap<String, Array>);

/// Numbers of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Array {
    /// Model-sized vectors.
    F32(Vec<f32>),
    /// Quantities that need full precision.
    F64(Vec<f64>),
    /// Counts and ids.
    U64(Vec<u64>),
}

impl Array {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::U64(values) => values.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Vec<f32>> for Array {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(values)
    }
}

impl From<Vec<f64>> for Array {
    fn from(values: Vec<f64>) -> Self {
        Self::F64(values)
    }
}

impl From<Vec<u64>> for Array {
    fn from(values: Vec<u64>) -> Self {
        Self::U64(values)
    }
}

impl Memory {
    /// Stores an array under a name, replacing the old one.
    pub fn put(&mut self, name: &str, array: impl Into<Array>) {
        self.0.insert(name.to_owned(), array.into());
    }

    /// The f32 array of this name.
    pub fn f32(&self, name: &str) -> Option<&[f32]> {
        match self.0.get(name) {
            Some(Array::F32(values)) => Some(values),
            _ => None,
        }
    }

    /// The f64 array of this name.
    pub fn f64(&self, name: &str) -> Option<&[f64]> {
        match self.0.get(name) {
            Some(Array::F64(values)) => Some(values),
            _ => None,
        }
    }

    /// The integer array of this name.
    pub fn u64(&self, name: &str) -> Option<&[u64]> {
        match self.0.get(name) {
            Some(Array::U64(values)) => Some(values),
            _ => None,
        }
    }

    /// All arrays, sorted by name.
    pub fn arrays(&self) -> impl Iterator<Item = (&str, &Array)> {
        self.0.iter().map(|(name, array)| (name.as_str(), array))
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
