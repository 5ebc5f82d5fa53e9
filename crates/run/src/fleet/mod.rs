//! The clients of a run behind one trait: threads on this machine, wrappers whose clients drop out or lie, and the
//! spool of a round's updates. A federation implements the same trait in `fedtvd-net`.

pub(crate) mod adversarial;
pub(crate) mod dropout;
pub(crate) mod interface;
pub(crate) mod own_models;
mod spool;
pub(crate) mod threads;
pub(crate) mod traffic;

pub use adversarial::Adversarial;
pub use dropout::{Dropout, Unreliable};
pub use interface::{Answers, Evaluated, Fleet, FleetFailure, Gathered, Traffic};
pub use threads::{Threads, evaluate, evaluate_branches, evaluate_holdouts};
