//! The core of fedtvd: client weights, local training, and how a round aggregates the clients' updates.
//!
//! Pure functions over plain data. Nothing here reads a clock, a file, an environment variable or a global
//! generator, and nothing starts a thread: the same state and the same updates give the same bits anywhere.
//!
//! The weights of three clients under FedTVD:
//!
//! ```
//! use fedtvd_core::labels::Reference;
//! use fedtvd_core::memory::Memory;
//! use fedtvd_core::round::{Mode, Profile, hardened};
//! use fedtvd_core::rules::notation;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let strategy = notation::strategy("fedtvd:lambda=0.5", [])?;
//! let (ask, reference) = (strategy.asks(), Reference::uniform(3));
//! let profile = |(client, counts): (u32, &[u64; 3])| {
//!     Profile::new(client, counts.iter().sum(), ask.answer(counts, &reference))
//! };
//! let clients: Vec<Profile> = (0..).zip(&[[30, 30, 30], [20, 40, 40], [10, 30, 70]]).map(profile).collect();
//! let clients: Vec<&Profile> = clients.iter().collect();
//! let shares = hardened::shares(strategy.weighting.as_ref(), Mode::Paper, &clients, &reference, &mut Memory::default());
//! assert!((shares.weight.iter().sum::<f64>() - 1.0).abs() < 1e-12);
//! # Ok(())
//! # }
//! ```

pub mod bytes;
pub mod labels;
pub mod matching;
pub mod median;
pub mod memory;
pub mod model;
pub mod normal;
pub mod round;
pub mod rules;
pub mod settings;
pub mod strategy;
pub mod stream;
pub mod train;
