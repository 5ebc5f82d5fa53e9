//! A data set in memory: values, labels, and how a trainer reads a row.
//!
//! Training rows come first, test rows after them, in one numbering. Images are kept as bytes and normalised
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

/// The samples' values, row by row, channel by channel.
#[derive(Clone, Debug)]
pub enum Values {
    /// Bytes, and for each channel the value that each byte encodes.
    Bytes(Vec<u8>, Vec<[f32; 256]>),
    /// Plain numbers.
    Floats(Vec<f32>),
}

/// Why values and labels are not a valid data set.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SamplesError {
    /// Values and labels do not have the same number of rows.
    #[error("{labels} labels need {expected} values, but there are {values}")]
    Length {
        /// Number of labels.
        labels: usize,
        /// Number of values that they need.
        expected: usize,
        /// Number of values given.
        values: usize,
    },
    /// A label beyond the classes.
    #[error("row {row} has label {label}; {classes} classes have labels 0 to {}", classes - 1)]
    Label {
        /// The row.
        row: usize,
        /// Its label.
        label: u32,
        /// Number of classes.
        classes: usize,
    },
    /// A value that is infinite or NaN.
    #[error("row {row} holds {value}, which is not a finite number")]
    NotFinite {
        /// The row.
        row: usize,
        /// The value.
        value: f32,
    },
    /// No training rows, or more than there are rows.
    #[error("{train} of {rows} rows are for training; it must be 1 to {rows}")]
    Train {
        /// Number of training rows.
        train: usize,
        /// Number of rows.
        rows: usize,
    },
}

impl Values {
    /// Bytes that encode (byte / 255 - mean) / deviation, with mean and standard deviation per channel.
    pub fn bytes(bytes: Vec<u8>, normal: &[(f32, f32)]) -> Self {
        let table = |&(mean, deviation): &(f32, f32)| {
            std::array::from_fn(|byte| (byte as f32 / 255.0 - mean) / deviation)
        };
        Self::Bytes(bytes, normal.iter().map(table).collect())
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

    /// The same samples, augmented while training.
    pub fn augmented(self, augment: Augment) -> Self {
        Self { augment: Some(augment), ..self }
    }

    /// The same samples with other values of the same kind and number.
    pub fn with_values(&self, values: Values) -> Result<Self, SamplesError> {
        let &Self { shape, classes, ref labels, train, augment, .. } = self;
        Ok(Self { augment, ..Self::new(shape, classes, values, labels.clone(), train)? })
    }

    /// The same samples with other labels on some rows.
    ///
    /// # Panics
    /// Panics if a row does not exist or its new label is beyond the classes.
    pub fn relabelled(mut self, rows: &[u32], label: impl Fn(u32) -> u32) -> Self {
        for &row in rows {
            let own = &mut self.labels[row as usize];
            *own = label(*own);
            assert!((*own as usize) < self.classes, "row {row} would have label {own}");
        }
        self
    }

    /// Channels, height and width of one sample.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The label of every row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Number of rows, for training and testing.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// Number of training rows, which come first.
    pub fn train_rows(&self) -> usize {
        self.train
    }

    /// The test rows.
    pub fn test_rows(&self) -> Vec<u32> {
        (self.train as u32..self.rows() as u32).collect()
    }

    /// The values as stored.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Reads a row as input of a network.
    ///
    /// # Panics
    /// Panics if the row does not exist or `out` is not one sample long.
    pub fn read(&self, row: u32, out: &mut [f32]) {
        let start = row as usize * out.len();
        match &self.values {
            Values::Floats(floats) => out.copy_from_slice(&floats[start..start + out.len()]),
            Values::Bytes(bytes, table) => {
                let bytes = &bytes[start..start + out.len()];
                let area = out.len() / table.len();
                for (channel, table) in table.iter().enumerate() {
                    let places = channel * area..(channel + 1) * area;
                    for (out, &byte) in out[places.clone()].iter_mut().zip(&bytes[places]) {
                        *out = table[usize::from(byte)];
                    }
                }
            }
        }
    }

    /// Reads a row for training, augmented if the data set says so.
    ///
    /// # Panics
    /// Panics if the row does not exist or `out` is not one sample long.
    pub fn read_training(&self, row: u32, stream: &mut Stream, out: &mut [f32]) {
        let Some(augment) = self.augment else {
            return self.read(row, out);
        };
        let start = row as usize * out.len();
        match &self.values {
            Values::Floats(floats) => augment.apply(self.shape, stream, out, |place| floats[start + place]),
            Values::Bytes(bytes, table) => {
                let area = out.len() / table.len();
                let pixel = |place: usize| table[place / area][usize::from(bytes[start + place])];
                augment.apply(self.shape, stream, out, pixel);
            }
        }
    }

    /// How training rows are augmented, if they are.
    pub fn augment(&self) -> Option<Augment> {
        self.augment
    }

    /// Whether training rows are augmented.
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
    fn wrong_lengths_labels_and_values_are_refused_with_the_reason() {
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
