//! When a run has collapsed: one definition for runs, comparisons, sweeps and servers, computed from the records of its
//! rounds alone. An alarm says what a person should look at in one round; a verdict says why a result cannot be used.
//!
//! | sign | alarm | the result cannot be used |
//! |---|---|---|
//! | failed updates | at least half of a round's updates failed or were rejected | more than half in the last 10 rounds |
//! | unchanged model | | in all of the last 10 rounds |
//! | loss | not finite, or 10 times the recent median | not finite at the end |
//! | accuracy | back at chance level for 5 rounds | the same at the end |
//! | norms of updates | a round's median or one client's is 10 times what was usual | |
//!
//! Clients without an answer are not failures. A run that never learned has not collapsed.

mod back_at_chance;
mod detector;
mod failed_updates;
mod loss_jump;
mod norm_jump;
mod outlier;
mod recent;

pub use detector::Detector;
pub use failed_updates::{FailedUpdates, failed, is_absence};
pub use recent::magnitude;
