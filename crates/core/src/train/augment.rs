//! Random augmentation of training images: shifts and mirroring.

use crate::model::Shape;
use crate::stream::Stream;

/// How training images are augmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Augment {
    /// Shift by up to this many pixels in each direction; pixels from beyond the edge are 0.
    pub crop: usize,
    /// Mirror with probability 1/2.
    pub flip: bool,
}

/// One random augmentation of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The line of the image with its border of zeros at which the result begins.
    pub down: usize,
    /// The column at which it begins.
    pub right: usize,
    /// Whether the result is mirrored.
    pub mirrored: bool,
}

impl Augment {
    /// The next augmentation of a stream.
    pub fn draw(self, stream: &mut Stream) -> Draw {
        let span = 2 * self.crop as u64 + 1;
        let (down, right) = (stream.below(span) as usize, stream.below(span) as usize);
        Draw { down, right, mirrored: self.flip && stream.below(2) == 1 }
    }

    /// Writes a randomly shifted and mirrored image; `pixel` returns the original pixel at an index.
    pub(crate) fn apply(
        self,
        [_, height, width]: Shape,
        stream: &mut Stream,
        image: &mut [f32],
        pixel: impl Fn(usize) -> f32,
    ) {
        let Draw { down, right, mirrored } = self.draw(stream);
        // The original coordinate; `None` beyond the edge.
        let origin = |to: usize, shift: usize, size: usize| {
            (to + shift).checked_sub(self.crop).filter(|from| *from < size)
        };
        for (line, pixels) in image.chunks_exact_mut(width).enumerate() {
            let (first, y) = (line / height * height, origin(line % height, down, height));
            for (x, to) in pixels.iter_mut().enumerate() {
                let x = origin(if mirrored { width - 1 - x } else { x }, right, width);
                *to = y.zip(x).map_or(0.0, |(y, x)| pixel((first + y) * width + x));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Purpose;
    use crate::train::{Samples, Values};

    #[test]
    fn bytes_are_augmented_like_the_values_that_they_encode() {
        let bytes: Vec<u8> = (0..2 * 2 * 3 * 4).map(|i| i * 5).collect();
        let stored = Values::bytes(bytes, &[(0.1, 0.5), (0.2, 0.3)]);
        let set = |values| Samples::new([2, 3, 4], 1, values, vec![0, 0], 1).unwrap();
        let plain = set(stored.clone());
        let numbers = [0, 1].map(|row| {
            let mut out = vec![0.0; 24];
            plain.read(row, &mut out);
            out
        });
        let augment = Augment { crop: 2, flip: true };
        let floats = set(Values::Floats(numbers.concat())).augmented(augment);
        let bytes = plain.augmented(augment);
        for (row, client) in (0..2).flat_map(|row| (0..20).map(move |client| (row, client))) {
            let read = |samples: &Samples| {
                let mut out = vec![9.0; 24];
                samples.read_training(row, &mut Stream::at(1, Purpose::Augment, 0, client), &mut out);
                out
            };
            assert_eq!(read(&bytes), read(&floats));
        }
    }

    #[test]
    fn a_shifted_image_keeps_its_pixels_and_is_padded_with_zeros() {
        let pixels: Vec<f32> = (1..=9).map(|x| x as f32).collect();
        let samples = Samples::new([1, 3, 3], 1, Values::Floats(pixels.clone()), vec![0], 1)
            .unwrap()
            .augmented(Augment { crop: 1, flip: true });
        let mut seen_mirrored = false;
        for client in 0..50 {
            let mut out = vec![0.0; 9];
            samples.read_training(0, &mut Stream::at(1, Purpose::Augment, 0, client), &mut out);
            let kept = out.iter().filter(|x| **x != 0.0).count();
            assert!([4, 6, 9].contains(&kept), "{out:?}");
            seen_mirrored |= out[..3] == [3.0, 2.0, 1.0];
        }
        assert!(seen_mirrored);
    }
}
