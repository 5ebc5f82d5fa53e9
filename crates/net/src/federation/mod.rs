//! The state of a federation on the server: admission of clients, the open round, the ledger on disk, and the fleet
//! that the loop over rounds uses.

pub(crate) mod admission;
pub(crate) mod arrival;
pub(crate) mod audit;
pub(crate) mod audit_check;
pub(crate) mod clock;
pub(crate) mod coordinator;
pub(crate) mod dataset_info;
pub(crate) mod deadline;
pub(crate) mod event;
pub(crate) mod extra_clients;
pub(crate) mod federation_error;
pub(crate) mod fleet;
pub(crate) mod lease;
pub(crate) mod ledger;
pub(crate) mod next_work;
pub(crate) mod partial;
pub(crate) mod phase;
pub(crate) mod received;
pub(crate) mod recovery;
pub(crate) mod resumed_schema;
pub(crate) mod rollback;
pub(crate) mod round_control;
pub(crate) mod server_evaluator;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stored;
pub(crate) mod table_schema;

pub use audit::Audit;
pub use audit_check::{AuditError, AuditSummary, check_audit};
pub use coordinator::Coordinator;
pub use deadline::Deadline;
pub use event::{Event, Log};
pub use extra_clients::ExtraError;
pub use federation_error::FederationError;
pub use ledger::Ledger;
pub use start::{Options, Ready, Work, farewell, prepare};
pub use status::{Status, ask};
