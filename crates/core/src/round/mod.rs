//! One round as pure functions: `plan` assigns the jobs, `close` turns checked updates into the next state.
//! Enrolment and acceptance check everything that a client claims.

pub(crate) mod acceptance;
pub(crate) mod assessment;
pub(crate) mod balanced;
pub(crate) mod branches;
pub(crate) mod close;
pub(crate) mod drift;
pub mod enrolment;
pub(crate) mod failure;
pub(crate) mod finite;
pub mod hardened;
pub(crate) mod job;
pub(crate) mod macro_f1;
pub(crate) mod matched;
pub(crate) mod missed_classes;
pub(crate) mod personal;
pub(crate) mod plan;
pub(crate) mod products;
pub(crate) mod profile;
pub mod quorum;
pub(crate) mod record;
pub mod restored;
pub(crate) mod screening;
pub(crate) mod state;
pub(crate) mod statistics;
pub(crate) mod updates;
pub(crate) mod validation;

pub use acceptance::{Checked, Inspection, check};
pub use assessment::{Assessment, ClientEvaluation};
pub use balanced::Balanced;
pub use branches::{Branch, BranchRecord, Parted};
pub use close::close;
pub use drift::Drift;
pub use enrolment::Refusal;
pub use failure::ClientFailure;
pub use job::{Job, Offer, Survey};
pub use missed_classes::MissedClass;
pub use personal::{EvaluatedOn, OwnResult, OwnResults, Personal};
pub use plan::{Stratum, cohort_size, needed, plan, plan_own_models};
pub use profile::{ClientData, ClientId, Profile};
pub use record::{ClientRecord, RoundRecord, Screened, Spread, effective};
pub use state::{Mode, Run, State};
pub use updates::{Accepted, BLOCK, Outcome, ReadFailure, Report, UpdatePart, Updates, Upload};
pub use validation::{Holdouts, Validation};
