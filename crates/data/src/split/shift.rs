//! Feature shift: every client sees its images through a camera of its own, which turns them, flattens their contrast or adds
//! noise. Labels stay, and so does who has which row.
//!
//! ```text
//! rotation:  by an angle of up to 180° strength in either direction; black from beyond the edge
//! contrast:  x' = f x + (1 - f) (black + g (white - black)),   f from 1 - strength to 1, g from 0 to 1
//! noise:     x' = x + normal noise with a standard deviation of up to strength (white - black)
//! ```
//!
//! Angle, f, g and deviation are uniform and belong to the client. They and the noise come from a stream of the split's seed
//! and the client alone, so that neither other clients nor the way in which rows are dealt changes them. Bytes stay bytes,
//! rounded, so that a client's exported folder holds what its simulation trains on.

use super::PlantedError;
use crate::holdout::ClientRows;
use fedtvd_core::model::Shape;
use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_core::train::{Samples, SamplesError, Values};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// What differs between the clients' images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShiftKind {
    /// Nothing.
    None,
    /// Their angle.
    Rotation,
    /// Contrast and brightness.
    Contrast,
    /// Strength of the noise.
    Noise,
}

impl ShiftKind {
    /// The kinds' names, in the order of the kinds.
    pub const WORDS: &[&str] = &["none", "rotation", "contrast", "noise"];
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::None, Self::Rotation, Self::Contrast, Self::Noise];

    /// The kind's name.
    pub fn word(self) -> &'static str {
        let place = Self::ALL.iter().position(|kind| *kind == self);
        Self::WORDS[place.expect("every kind is in the list")]
    }

    /// The kind of that name.
    pub fn named(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|known| *known == word).map(|place| Self::ALL[place])
    }
}

/// How the clients' images differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// In what.
    pub kind: ShiftKind,
    /// By how much at most, above 0 and up to 1.
    pub strength: f64,
}

/// Why samples cannot be shifted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ShiftError {
    /// Not images.
    #[error("split.shift = {} is for images; {set} is a table, so leave it out", kind.word())]
    Table {
        /// The shift.
        kind: ShiftKind,
        /// The data set.
        set: String,
    },
    /// Planted groups.
    #[error(transparent)]
    Planted(#[from] PlantedError),
    /// Values that are no longer valid.
    #[error("split.shift: {0}")]
    Samples(#[from] SamplesError),
}

/// What is done to the images of one client.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Camera {
    /// Sine and cosine of its angle.
    Turned([f64; 2]),
    /// f and g.
    Flattened([f64; 2]),
    /// Standard deviation as a fraction of the range.
    Noisy(f64),
}

impl Default for Shift {
    fn default() -> Self {
        Self { kind: ShiftKind::None, strength: 0.5 }
    }
}

impl Shift {
    /// The samples with each client's rows, its hold-out too, as its camera sees them; the others, such as the server's test
    /// rows, as they are. `None` if there is no shift.
    pub fn samples(
        self,
        set: &str,
        samples: &Samples,
        clients: &[ClientRows],
        seed: u64,
    ) -> Result<Option<Samples>, ShiftError> {
        let kind = self.kind;
        if kind == ShiftKind::None {
            return Ok(None);
        }
        let shape = samples.shape();
        if shape[1] == 1 && shape[2] == 1 {
            return Err(ShiftError::Table { kind, set: set.to_owned() });
        }
        let values = match samples.values() {
            Values::Bytes(bytes, tables) => {
                let mut bytes = bytes.clone();
                self.apply(&mut bytes, shape, clients, seed, [0.0, 255.0], f64::from, |x| {
                    x.round().clamp(0.0, 255.0) as u8
                });
                Values::Bytes(bytes, tables.clone())
            }
            Values::Floats(floats) => {
                let range = floats
                    .iter()
                    .fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], x| [low.min(*x), high.max(*x)]);
                let mut floats = floats.clone();
                self.apply(&mut floats, shape, clients, seed, range.map(f64::from), f64::from, |x| x as f32);
                Values::Floats(floats)
            }
        };
        Ok(Some(samples.with_values(values)?))
    }

    /// Replaces the images of all clients. `range` holds black and white.
    #[expect(clippy::too_many_arguments, reason = "the two conversions of a kind of value belong to it")]
    fn apply<T: Copy>(
        self,
        values: &mut [T],
        shape: Shape,
        clients: &[ClientRows],
        seed: u64,
        [black, white]: [f64; 2],
        number: impl Fn(T) -> f64,
        stored: impl Fn(f64) -> T,
    ) {
        let size: usize = shape.iter().product();
        let mut image = vec![0.0; size];
        for (client, ClientRows { train, holdout }) in clients.iter().enumerate() {
            let mut stream = Stream::at(seed, Purpose::Shift, 0, client as u32);
            let camera = self.camera(&mut stream);
            for &row in train.iter().chain(holdout) {
                let place = row as usize * size..(row as usize + 1) * size;
                let own = &mut values[place];
                image.iter_mut().zip(&*own).for_each(|(image, own)| *image = number(*own));
                camera.apply(&mut image, shape, [black, white], &mut stream);
                own.iter_mut().zip(&image).for_each(|(own, image)| *own = stored(*image));
            }
        }
    }

    /// The camera of the client whose stream this is.
    fn camera(self, stream: &mut Stream) -> Camera {
        let Self { kind, strength } = self;
        match kind {
            ShiftKind::Rotation => {
                let angle = std::f64::consts::PI * strength * (2.0 * stream.unit() - 1.0);
                Camera::Turned([angle.sin(), angle.cos()])
            }
            ShiftKind::Contrast => Camera::Flattened([1.0 - strength * stream.unit(), stream.unit()]),
            ShiftKind::Noise => Camera::Noisy(strength * stream.unit()),
            ShiftKind::None => unreachable!("without a shift there is no camera"),
        }
    }

    /// The hash of a split whose clients' images are shifted; that of the split itself without a shift.
    pub fn hash(self, split: String, seed: u64) -> String {
        if self.kind == ShiftKind::None {
            return split;
        }
        let mut hash = Sha256::new();
        hash.update(b"fedtvd partition with feature shift 1\n");
        hash.update(split);
        hash.update(self.kind.word());
        hash.update(self.strength.to_le_bytes());
        hash.update(seed.to_le_bytes());
        crate::hex(&hash.finalize())
    }

    /// What it does, for people; `None` if there is no shift.
    pub fn description(self) -> Option<String> {
        let Self { kind, strength } = self;
        let what = match kind {
            ShiftKind::None => return None,
            ShiftKind::Rotation => format!("turned by up to {}°", 180.0 * strength),
            ShiftKind::Contrast => format!("with contrast from {} to 1", 1.0 - strength),
            ShiftKind::Noise => {
                format!("with noise of a standard deviation of up to {strength} of the range of values")
            }
        };
        Some(format!(
            "feature shift ({}): every client has its images {what}, its hold-out's too; the test set is not shifted",
            kind.word()
        ))
    }
}

impl Camera {
    fn apply(self, image: &mut [f64], shape: Shape, [black, white]: [f64; 2], stream: &mut Stream) {
        match self {
            Self::Turned(turn) => {
                let [_, height, width] = shape;
                for channel in image.chunks_exact_mut(height * width) {
                    turned(channel, [height, width], turn, black);
                }
            }
            Self::Flattened([contrast, level]) => {
                let level = (1.0 - contrast) * (black + level * (white - black));
                image.iter_mut().for_each(|x| *x = contrast * *x + level);
            }
            Self::Noisy(deviation) => {
                let deviation = deviation * (white - black);
                image.iter_mut().for_each(|x| *x += deviation * stream.normal());
            }
        }
    }
}

/// Turns a channel around its centre; each new pixel is interpolated between four old ones.
fn turned(channel: &mut [f64], [height, width]: [usize; 2], [sin, cos]: [f64; 2], black: f64) {
    let old = channel.to_vec();
    let centre = [height, width].map(|side| (side as f64 - 1.0) / 2.0);
    let pixel = |y: f64, x: f64| {
        let inside = (0.0..height as f64).contains(&y) && (0.0..width as f64).contains(&x);
        if inside { old[y as usize * width + x as usize] } else { black }
    };
    for (place, to) in channel.iter_mut().enumerate() {
        let (down, right) = ((place / width) as f64 - centre[0], (place % width) as f64 - centre[1]);
        let (y, x) = (centre[0] + cos * down - sin * right, centre[1] + sin * down + cos * right);
        let (top, left) = (y.floor(), x.floor());
        let (below, beside) = (y - top, x - left);
        let line = |y: f64| (1.0 - beside) * pixel(y, left) + beside * pixel(y, left + 1.0);
        *to = (1.0 - below) * line(top) + below * line(top + 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two clients of two rows each, one of them held out, and a test row; 5x5 images in one channel.
    fn samples(values: Values) -> (Samples, Vec<ClientRows>) {
        let samples = Samples::new([1, 5, 5], 2, values, vec![0, 1, 0, 1, 0], 4).unwrap();
        let client = |first: u32| ClientRows { train: vec![first], holdout: vec![first + 1] };
        (samples, vec![client(0), client(2)])
    }

    /// The same corner of every image is white.
    fn corners() -> Vec<u8> {
        let image = |_| (0..25).map(|place| if place < 2 { 255 } else { 10 });
        (0..5).flat_map(image).collect()
    }

    fn bytes(samples: &Samples) -> Vec<u8> {
        let Values::Bytes(bytes, _) = samples.values() else { panic!("bytes stay bytes") };
        bytes.clone()
    }

    const KINDS: [ShiftKind; 3] = [ShiftKind::Rotation, ShiftKind::Contrast, ShiftKind::Noise];

    #[test]
    fn a_client_has_its_own_shift_on_all_its_rows_and_the_test_rows_none() {
        let (plain, clients) = samples(Values::bytes(corners(), &[(0.0, 1.0)]));
        for kind in KINDS {
            let shift = Shift { kind, strength: 0.5 };
            let shifted = |seed| bytes(&shift.samples("x", &plain, &clients, seed).unwrap().unwrap());
            let rows: Vec<Vec<u8>> = shifted(1).chunks(25).map(<[u8]>::to_vec).collect();
            assert_eq!(rows[4], corners()[..25], "{kind:?}");
            assert!(rows[0] != rows[4] && rows[2] != rows[4] && rows[0] != rows[2], "{kind:?}");
            // Noise differs from image to image; the others are the client's.
            assert_eq!(rows[0] == rows[1], kind != ShiftKind::Noise, "{kind:?}");
            assert_ne!(shifted(1), shifted(2), "{kind:?}");
            // A client's shift does not depend on what the others have.
            let second = &[ClientRows { train: vec![], holdout: vec![] }, clients[1].clone()];
            let alone = bytes(&shift.samples("x", &plain, second, 1).unwrap().unwrap());
            assert_eq!(alone[50..], shifted(1)[50..], "{kind:?}");
            assert_eq!(alone[..50], corners()[..50], "{kind:?}");
        }
    }

    #[test]
    fn numbers_are_shifted_like_the_bytes_that_they_are() {
        let numbers: Vec<f32> = corners().into_iter().map(f32::from).collect();
        // Black and white are the least and the greatest value, so one pixel is black.
        let (mut black, mut blackened) = (corners(), numbers);
        (black[124], blackened[124]) = (0, 0.0);
        let (from_bytes, clients) = samples(Values::bytes(black, &[(0.0, 1.0)]));
        let (from_numbers, _) = samples(Values::Floats(blackened));
        for kind in KINDS {
            let shift = Shift { kind, strength: 0.3 };
            let shifted = |samples| shift.samples("x", samples, &clients, 1).unwrap().unwrap();
            let Values::Floats(floats) = shifted(&from_numbers).values().clone() else { panic!() };
            for (byte, float) in bytes(&shifted(&from_bytes)).into_iter().zip(floats) {
                assert!(
                    (f32::from(byte) - float.clamp(0.0, 255.0)).abs() <= 0.51,
                    "{kind:?}: {byte} {float}"
                );
            }
        }
    }

    #[test]
    fn a_quarter_turn_moves_every_pixel_to_its_place_and_a_small_one_mixes_neighbours() {
        let image: Vec<f64> = (0..6).map(f64::from).collect();
        let mut quarter = [image.clone(), vec![0.0; 3]].concat();
        turned(&mut quarter, [3, 3], [1.0, 0.0], -1.0);
        // 0 1 2 / 3 4 5 / 0 0 0: the new pixel (y, x) is the old one at (1 - (x - 1), 1 + (y - 1)).
        assert_eq!(quarter, [0.0, 3.0, 0.0, 0.0, 4.0, 1.0, 0.0, 5.0, 2.0]);
        let mut still = image.clone();
        turned(&mut still, [2, 3], [0.0, 1.0], -1.0);
        assert_eq!(still, image);
        let mut eighth = vec![1.0; 9];
        let half = std::f64::consts::FRAC_1_SQRT_2;
        turned(&mut eighth, [3, 3], [half, half], 0.0);
        assert!((eighth[4] - 1.0).abs() < 1e-12 && eighth[0] < 0.7 && eighth[0] > 0.0, "{eighth:?}");
    }

    #[test]
    fn contrast_stays_within_black_and_white_and_noise_has_its_deviation() {
        let mut extremes = [0.0, 255.0];
        Camera::Flattened([0.25, 1.0]).apply(
            &mut extremes,
            [1, 1, 2],
            [0.0, 255.0],
            &mut Stream::at(1, Purpose::Shift, 0, 0),
        );
        assert_eq!(extremes, [191.25, 255.0]);
        let mut flat = vec![0.0; 10_000];
        Camera::Noisy(0.1).apply(
            &mut flat,
            [1, 100, 100],
            [0.0, 2.0],
            &mut Stream::at(1, Purpose::Shift, 0, 0),
        );
        let deviation = (flat.iter().map(|x| x * x).sum::<f64>() / 1e4).sqrt();
        // The standard deviation of 10,000 normal numbers is known to 0.7 %.
        assert!((deviation / 0.2 - 1.0).abs() < 0.03, "{deviation}");
    }

    #[test]
    fn a_shift_is_refused_for_tables_and_none_changes_nothing() {
        let table = Samples::new([4, 1, 1], 2, Values::Floats(vec![0.0; 8]), vec![0, 1], 2).unwrap();
        let rows = [ClientRows { train: vec![0, 1], holdout: vec![] }];
        let shift = Shift { kind: ShiftKind::Contrast, strength: 0.5 };
        assert_eq!(
            shift.samples("heart.csv", &table, &rows, 1).unwrap_err().to_string(),
            "split.shift = contrast is for images; heart.csv is a table, so leave it out"
        );
        assert!(Shift::default().samples("heart.csv", &table, &rows, 1).unwrap().is_none());
        assert_eq!(Shift::default().hash("abc".to_owned(), 1), "abc");
        let hash = |kind, strength, seed| Shift { kind, strength }.hash("abc".to_owned(), seed);
        let one = hash(ShiftKind::Noise, 0.5, 1);
        assert!(one != hash(ShiftKind::Noise, 0.6, 1) && one != hash(ShiftKind::Noise, 0.5, 2));
        assert_ne!(one, hash(ShiftKind::Contrast, 0.5, 1));
    }
}
