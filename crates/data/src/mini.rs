//! `fmnist-mini`: a real subset of Fashion-MNIST inside the program (see `fmnist-mini/README.md`).

use crate::decode::{Flaw, Source, idx};
use fedtvd_core::train::{Samples, SamplesError, Values};
use thiserror::Error;

const TRAIN_IMAGES: &[u8] = include_bytes!("../fmnist-mini/train-images-idx3-ubyte.gz");
const TRAIN_LABELS: &[u8] = include_bytes!("../fmnist-mini/train-labels-idx1-ubyte.gz");
const TEST_IMAGES: &[u8] = include_bytes!("../fmnist-mini/t10k-images-idx3-ubyte.gz");
const TEST_LABELS: &[u8] = include_bytes!("../fmnist-mini/t10k-labels-idx1-ubyte.gz");

/// Why the embedded data set cannot be used: the program itself is damaged.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MiniError {
    /// A file does not decode.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// The files do not fit together.
    #[error("the embedded data set: {0}")]
    Samples(#[from] SamplesError),
}

/// 12,000 images for training and 2,000 for testing, 1x28x28, 10 classes, bytes worth 0 to 1.
pub fn load() -> Result<Samples, MiniError> {
    let (mut pixels, mut labels) = (Vec::with_capacity(14_000 * 28 * 28), Vec::new());
    for (part, images, names) in [("train", TRAIN_IMAGES, TRAIN_LABELS), ("t10k", TEST_IMAGES, TEST_LABELS)] {
        idx::images(&mut Source::bytes(&format!("{part}-images"), images)?, &mut pixels)?;
        labels.push(idx::labels(&mut Source::bytes(&format!("{part}-labels"), names)?, 10)?);
    }
    let train = labels[0].len();
    let labels = labels.concat().into_iter().map(u32::from).collect();
    Ok(Samples::new([1, 28, 28], 10, Values::bytes(pixels, &[(0.0, 1.0)]), labels, train)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_1200_training_and_200_test_images() {
        let samples = load().unwrap();
        assert_eq!((samples.shape(), samples.train_rows(), samples.rows()), ([1, 28, 28], 12_000, 14_000));
        let mut counts = [[0; 10]; 2];
        for (row, &label) in samples.labels().iter().enumerate() {
            counts[usize::from(row >= 12_000)][label as usize] += 1;
        }
        assert_eq!(counts, [[1200; 10], [200; 10]]);
    }

    #[test]
    fn the_first_image_is_the_ankle_boot_that_opens_fashion_mnist() {
        let samples = load().unwrap();
        let mut image = [0.0; 784];
        samples.read(0, &mut image);
        assert_eq!(samples.labels()[0], 9);
        // The mean of the first image of the official file, computed by make.py's reader: 76,247 / 255 / 784.
        let mean = image.iter().sum::<f32>() / 784.0;
        assert!((mean - SUM / 255.0 / 784.0).abs() < 1e-4, "{mean}");
    }
    const SUM: f32 = 76_247.0;
}
