//! When a run has collapsed: one definition for runs, comparisons, sweeps and servers, computed from the records of its
//! rounds alone. An alarm says what a person should look at in one round; a verdict says why a result cannot be used.
//!
//! | sign | alarm | the result cannot be used |
//! |---|---|---|
//! | failed updates | at least half of a round's updates failed or were rejected | more than half in the last 10 rounds |
//! | unchanged model | a result that is not finite was discarded | unchanged in all of the last 10 rounds |
//! | loss | not finite, or 10 times the recent median; in the first 5 rounds, 100 times that of guessing | not finite at the end |
//! | accuracy | back at chance level for 5 rounds | the same at the end |
//! | accuracy and loss | no better than guessing, and the loss is 100 times that of guessing, or 10 times for 5 rounds | the same at the end |
//! | norms of updates | a round's median or one client's is 10 times what was usual | |
//!
//! Accuracy is the mean over the classes if it is known, so that chance is 1 / number of classes however rare some of them
//! are (`level.rs`); the loss of guessing is the logarithm of that number. Clients without an answer are not failures. A run
//! that never learned has not collapsed, unless its loss is far above that of guessing (`far_from_guessing.rs`).

mod back_at_chance;
mod detector;
mod failed_updates;
mod far_from_guessing;
mod left_out;
mod level;
mod loss_jump;
mod norm_jump;
mod outlier;
mod recent;

pub use detector::Detector;
pub use failed_updates::{FailedUpdates, failed, is_absence};
pub use left_out::LeftOut;
pub use recent::magnitude;
