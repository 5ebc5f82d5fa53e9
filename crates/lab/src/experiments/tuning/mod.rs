//! Honest tuning: each strategy at its own best of a stated grid. Candidates are compared on the clients' hold-outs over tuning seeds;
//! the test set is read only by the final runs of the chosen ones, over other seeds.

pub mod candidates;
pub mod choice;
pub mod ladder;
pub mod search;
