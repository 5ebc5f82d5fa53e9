//! A run on disk: configuration, manifest, one line per round, checkpoints, summary. Every file is written completely
//! or not at all.

pub(crate) mod best_model;
pub(crate) mod checkpoint;
pub(crate) mod checkpoints;
pub(crate) mod client_results;
pub(crate) mod digest;
pub mod disk;
#[cfg(feature = "disk-faults")]
pub mod disk_faults;
pub mod files;
pub mod history;
pub(crate) mod last_rounds;
pub(crate) mod manifest;
pub(crate) mod retention;
pub mod rollback;
pub(crate) mod run_directory;
pub(crate) mod summary;
pub(crate) mod test_predictions;

pub(crate) use best_model::BestModel;
pub use checkpoint::{CheckpointError, Memories};
pub use checkpoints::{Checkpoints, NoCheckpoint};
pub use client_results::{ClientResult, client_results, spread};
pub use digest::sha256;
pub use files::FileError;
pub use history::HistoryError;
pub use last_rounds::{LastRounds, Metrics};
pub use manifest::{DeviceFingerprint, FORMAT, Fingerprint, Manifest, rules};
pub use run_directory::{DirectoryError, Inputs, Lines, RunDirectory};
pub use summary::{LAST, Summary, images};
pub use test_predictions::TestPredictions;
