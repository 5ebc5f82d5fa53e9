//! Ways of dealing training rows to clients.

mod dirichlet;
mod error;
mod gamma;
mod partition;

pub use dirichlet::Dirichlet;
pub use error::SplitError;
pub use partition::Partition;
