//! Data sets, and every way of splitting them over clients.
//!
//! The embedded subset of Fashion-MNIST over ten clients with label skew:
//!
//! ```
//! use fedtvd_data::set::{DataOptions, Places};
//! use fedtvd_data::split::{Deck, SplitOptions, Terms};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let data = DataOptions { set: "fmnist-mini".to_owned(), ..DataOptions::default() }.load(&Places::new(None))?;
//! let deck = Deck::new(&data.samples, data.groups.as_ref());
//! let split = SplitOptions { clients: 10, alpha: 0.5, ..SplitOptions::default() };
//! let terms = Terms { set: "fmnist-mini", seed: 1, holdout: 0.1, reference: None };
//! let dealt = split.deal(&deck, &terms)?;
//! assert_eq!(dealt.clients.len(), 10);
//! # Ok(())
//! # }
//! ```

pub mod decode;
pub mod export;
pub mod holdout;
pub mod mini;
pub mod set;
pub mod split;
pub mod statistics;
pub mod table;

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
