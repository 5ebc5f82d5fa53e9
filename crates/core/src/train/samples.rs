//! A data set in memory: one copy of the values, labels, and how a trainer reads a row.
//!
//! Training rows come first, test rows after them, in one numbering. Images stay bytes and are normalised
//! as they are read; tables are numbers.

use crate::model::Shape;
use crate::stream::Stream;
use crate::train::Augment;
use thiserror::Error;

/// Labelled samples of one shape.
#[derive(Clone, Debug)]
pub struct Samples {
    shape: Shape,
    classes: usize,
    labels: Vec<u32>,
    train: usize,
    values: Values,
    augment: Option<Augment>,
}

/// The samples' values, row after row, channel after channel.
#[derive(Clone, Debug)]
pub enum Values {
    /// Bytes, and for each channel what each byte is worth.
    Bytes(Vec<u8>, Vec<[f32; 256]>),
    /// Numbers as they are.
    Floats(Vec<f32>),
}

/// Why values and labels do not make a data set.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SamplesError {
    /// Values and labels do not have the same number of rows.
    #[error("{labels} labels need {expected} values, but there are {values}")]
    Length {
        /// Rows by labels.
        labels: usize,
        /// Values that they need.
        expected: usize,
        /// Values that are there.
        values: usize,
    },
    /// A label beyond the classes.
    #[error("row {row} has label {label}; {classes} classes have labels 0 to {}", classes - 1)]
    Label {
        /// Where.
        row: usize,
        /// What it says.
        label: u32,
        /// How many classes there are.
        classes: usize,
    },
    /// A value that is infinite or NaN.
    #[error("row {row} holds {value}, which is not a finite number")]
    NotFinite {
        /// Where.
        row: usize,
        /// What it is.
        value: f32,
    },
    /// No training rows, or more than there are rows.
    #[error("{train} of {rows} rows are for training; at least 1 and at most all of them can be")]
    Train {
        /// How many were named.
        train: usize,
        /// How many there are.
        rows: usize,
    },
}

impl Values {
    /// Bytes worth (byte / 255 - mean) / deviation, with mean and deviation per channel.
    pub fn bytes(bytes: Vec<u8>, normal: &[(f32, f32)]) -> Self {
        let worth = |&(mean, deviation): &(f32, f32)| {
            std::array::from_fn(|byte| (byte as f32 / 255.0 - mean) / deviation)
        };
        Self::Bytes(bytes, normal.iter().map(worth).collect())
    }

    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes, _) => bytes.len(),
            Self::Floats(floats) => floats.len(),
        }
    }
}

impl Samples {
    /// A checked data set whose first `train` rows are for training and whose others are for testing.
    pub fn new(
        shape: Shape,
        classes: usize,
        values: Values,
        labels: Vec<u32>,
        train: usize,
    ) -> Result<Self, SamplesError> {
        let size: usize = shape.iter().product();
        if labels.len() * size != values.len() {
            let expected = labels.len() * size;
            return Err(SamplesError::Length { labels: labels.len(), expected, values: values.len() });
        }
        if train == 0 || train > labels.len() {
            return Err(SamplesError::Train { train, rows: labels.len() });
        }
        if let Some((row, &label)) = labels.iter().enumerate().find(|(_, l)| **l as usize >= classes) {
            return Err(SamplesError::Label { row, label, classes });
        }
        if let Values::Floats(floats) = &values
            && let Some((place, &value)) = floats.iter().enumerate().find(|(_, v)| !v.is_finite())
        {
            return Err(SamplesError::NotFinite { row: place / size, value });
        }
        Ok(Self { shape, classes, labels, train, values, augment: None })
    }

    /// The same samples, changed at random while training.
    pub fn augmented(self, augment: Augment) -> Self {
        Self { augment: Some(augment), ..self }
    }

    /// Channels, height and width of one sample.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The label of every row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// How many rows there are, for training and testing.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// How many rows, the first ones, are for training.
    pub fn train_rows(&self) -> usize {
        self.train
    }

    /// The rows for testing.
    pub fn test_rows(&self) -> Vec<u32> {
        (self.train as u32..self.rows() as u32).collect()
    }

    /// The values as they are stored.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Reads a row as a network sees it.
    ///
    /// # Panics
    /// When the row does not exist or `out` is not one sample long.
    pub fn read(&self, row: u32, out: &mut [f32]) {
        let start = row as usize * out.len();
        match &self.values {
            Values::Floats(floats) => out.copy_from_slice(&floats[start..start + out.len()]),
            Values::Bytes(bytes, worth) => {
                let bytes = &bytes[start..start + out.len()];
                let area = out.len() / worth.len();
                for (channel, worth) in worth.iter().enumerate() {
                    let places = channel * area..(channel + 1) * area;
                    for (out, &byte) in out[places.clone()].iter_mut().zip(&bytes[places]) {
                        *out = worth[usize::from(byte)];
                    }
                }
            }
        }
    }

    /// Reads a row for training: changed at random if the data set says so.
    ///
    /// # Panics
    /// When the row does not exist or `out` is not one sample long.
    pub fn read_training(&self, row: u32, stream: &mut Stream, out: &mut [f32]) {
        let Some(augment) = self.augment else {
            return self.read(row, out);
        };
        let start = row as usize * out.len();
        match &self.values {
            Values::Floats(floats) => augment.apply(self.shape, stream, out, |place| floats[start + place]),
            Values::Bytes(bytes, worth) => {
                let area = out.len() / worth.len();
                let pixel = |place: usize| worth[place / area][usize::from(bytes[start + place])];
                augment.apply(self.shape, stream, out, pixel);
            }
        }
    }

    /// Whether training rows are changed at random.
    pub fn augments(&self) -> bool {
        self.augment.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_normalised_channel_by_channel() {
        let values = Values::bytes(vec![0, 255, 51, 255], &[(0.0, 1.0), (0.5, 0.5)]);
        let samples = Samples::new([2, 1, 2], 2, values, vec![1], 1).unwrap();
        let mut row = [0.0; 4];
        samples.read(0, &mut row);
        assert_eq!(row, [0.0, 1.0, (51.0 / 255.0 - 0.5) / 0.5, 1.0]);
    }

    #[test]
    fn wrong_lengths_labels_and_numbers_are_named() {
        let new = |values: Vec<f32>, labels: Vec<u32>| {
            Samples::new([1, 1, 2], 3, Values::Floats(values), labels, 1)
        };
        assert_eq!(
            new(vec![0.0; 3], vec![0, 1]).unwrap_err().to_string(),
            "2 labels need 4 values, but there are 3"
        );
        assert_eq!(
            new(vec![0.0; 4], vec![0, 3]).unwrap_err().to_string(),
            "row 1 has label 3; 3 classes have labels 0 to 2"
        );
        assert_eq!(
            new(vec![0.0, 0.0, 0.0, f32::NAN], vec![0, 1]).unwrap_err().to_string(),
            "row 1 holds NaN, which is not a finite number"
        );
    }
}
