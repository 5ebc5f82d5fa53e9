//! Data sets by name, and the folders and tables that a user brings.

mod catalogue;
mod cifar;
mod csv;
mod distinct;
mod features;
mod fetch;
mod folder;
mod heart;
mod idx;
mod imbalance;
mod load;
mod npy;
mod places;
mod verify;

pub use catalogue::{ALL, Archive, Entry, Part, named};
pub use fetch::{FetchError, Progress, fetch};
pub use load::{DataOptions, LoadError, Loaded, known};
pub use npy::{About, Site};
pub use places::{Missing, Places};
pub use verify::{Check, Verdict, verify};
