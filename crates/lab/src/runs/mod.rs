//! Finished runs, read from their directories: one record per run, sorted into settings, strategies and seeds. Nothing
//! here trains, and nothing depends on where the directories are.

mod caveats;
pub mod class_names;
pub mod client_updates;
pub mod clusters;
pub mod collection;
pub mod record;
pub mod setting;
pub mod test_rows;
mod tuned;
