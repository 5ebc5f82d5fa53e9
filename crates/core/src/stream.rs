//! Random numbers by address: seed, purpose, round and client determine a key, and a key determines its streams.
//!
//! Streams are addressed, never split or shared, so a new consumer cannot shift an old one, nothing has to be replayed
//! after a resume, and a remote client draws the same numbers as a simulated one. A key reveals nothing about its seed
//! or about other addresses (it is output of the ChaCha cipher), so a client cannot predict cohorts from its job's key.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// What a stream is for. The numbers are part of every result: never change or reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    /// How samples are split over clients.
    Split = 1,
    /// Which samples a client holds out.
    Holdout = 2,
    /// The initial model; the address's round is the branch, and its client the tensor's index.
    Init = 3,
    /// Client selection.
    Cohort = 4,
    /// The key in a job.
    Job = 5,
    /// The order of samples; one stream per epoch.
    Order = 6,
    /// Dropout masks; one stream per epoch.
    Dropout = 7,
    /// Random crops and flips; one stream per epoch.
    Augment = 8,
    /// Simulated dropout and partial work.
    Absence = 9,
    /// Bootstrap samples in a report; the address's round is the number of values.
    Bootstrap = 10,
    /// Noise that a liar sends.
    Attack = 11,
    /// The key with which a client makes the model that it uses itself.
    OwnModel = 12,
    /// The order in which clients are matched anew.
    Matching = 13,
    /// How a client's images differ from other clients', under a feature shift.
    Shift = 14,
    /// Which samples a client learns mixing weights on.
    Mixing = 15,
}

/// A 32-byte address from which further keys and streams are derived.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a run's seed.
    pub fn of(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self(bytes)
    }

    /// The key at an address below this one: one ChaCha block, chosen by the three numbers.
    pub fn at(&self, purpose: Purpose, round: u32, client: u32) -> Self {
        let mut block = ChaCha8Rng::from_seed(self.0);
        block.set_stream(u64::from(client));
        block.set_word_pos(u128::from(((purpose as u64) << 32) | u64::from(round)) * 16);
        let mut bytes = [0; 32];
        block.fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// Stream number `number` of this key.
    pub fn stream(&self, number: u64) -> Stream {
        let mut rng = ChaCha8Rng::from_seed(self.0);
        rng.set_stream(number);
        Stream(rng)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

/// A stream of random numbers, defined here so that they do not depend on a library's version.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream at an address.
    pub fn at(seed: u64, purpose: Purpose, round: u32, client: u32) -> Self {
        Key::of(seed).at(purpose, round, client).stream(0)
    }

    /// The next 32 random bits.
    pub fn bits32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// The next 64 random bits.
    pub fn bits64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number in 0..bound, each equally likely (Lemire's multiplication with rejection).
    ///
    /// # Panics
    /// Panics if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "the bound must be positive");
        let reject = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.bits64()) * u128::from(bound);
            if wide as u64 >= reject {
                return (wide >> 64) as u64;
            }
        }
    }

    /// A standard normal number (Box-Muller, the cosine half).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Puts the items in random order (Fisher-Yates from the end).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_address_has_its_own_stream() {
        let mut seen = BTreeSet::new();
        for seed in [0, 1, u64::MAX] {
            for purpose in [Purpose::Split, Purpose::Order, Purpose::Cohort] {
                for round in [0, 1, u32::MAX] {
                    for client in [0, 1, u32::MAX] {
                        assert!(seen.insert(Stream::at(seed, purpose, round, client).bits64()));
                    }
                }
            }
        }
    }

    #[test]
    fn an_address_gives_the_same_numbers_for_ever() {
        // Computed by a separate ChaCha8 in plain Python: the key of 7 is its eight bytes and zeros; block
        // (4 << 32) | 3 of stream 2 gives the key, block 0 of that the numbers. Every result depends on them.
        let mut stream = Stream::at(7, Purpose::Cohort, 3, 2);
        assert_eq!([stream.bits64(), stream.bits64()], FIXED);
    }
    const FIXED: [u64; 2] = [15511449405849924239, 12067778194854637894];

    #[test]
    fn below_reaches_every_number_about_equally_often() {
        let mut stream = Stream::at(1, Purpose::Split, 0, 0);
        let mut counts = [0u32; 7];
        for _ in 0..7000 {
            counts[stream.below(7) as usize] += 1;
        }
        // 1000 expected, standard deviation 29: five deviations.
        assert!(counts.iter().all(|&c| (855..1145).contains(&c)), "{counts:?}");
    }

    #[test]
    fn a_shuffle_keeps_every_item_once() {
        let mut items: Vec<u32> = (0..100).collect();
        Stream::at(1, Purpose::Order, 0, 0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_deviation_one() {
        let mut stream = Stream::at(1, Purpose::Init, 0, 0);
        let draws: Vec<f64> = (0..20_000).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.036 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
