//! Ways of dealing training rows to clients. One file each, named after it.

mod correlated;
mod dealt;
mod deck;
mod dirichlet;
mod error;
mod file;
mod gamma;
mod hsu;
mod iid;
mod labels;
mod options;
mod partition;
mod planted;
mod quantity;
mod shards;
mod shift;

pub use correlated::{Correlated, tolerance};
pub use dealt::{Dealt, Terms};
pub use deck::{Deck, Groups};
pub use dirichlet::Dirichlet;
pub use error::SplitError;
pub use file::{FileError, FileFlaw, PartitionFile};
pub use hsu::Hsu;
pub use labels::Labels;
pub use options::{SplitKind, SplitOptions};
pub use partition::Partition;
pub use planted::{Planted, PlantedError};
pub use quantity::Quantity;
pub use shards::Shards;
pub use shift::{Shift, ShiftError, ShiftKind};
