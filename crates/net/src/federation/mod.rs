//! A federation's server side: who may take part, what the open round waits for, what is on the disk, and the fleet
//! that the loop over rounds sees.

pub(crate) mod admission;
pub(crate) mod coordinator;
pub(crate) mod dataset_info;
pub(crate) mod event;
pub(crate) mod fleet;
pub(crate) mod ledger;
pub(crate) mod phase;
pub(crate) mod round_control;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stored;

pub use coordinator::Coordinator;
pub use event::{Event, Log};
pub use start::{FederationError, Options, Ready, Work, farewell, prepare};
pub use status::{Status, ask};
