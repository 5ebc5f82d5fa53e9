//! Why a federation cannot start, in sentences that say what to do.

use crate::federation::ExtraError;
use crate::federation::ledger::LedgerError;
use fedtvd_core::round::ClientId;
use fedtvd_core::round::quorum::SmallCohort;
use fedtvd_run::RunError;
use std::collections::BTreeSet;
use thiserror::Error;

/// Why a federation cannot start.
#[derive(Debug, Error)]
pub enum FederationError {
    /// The run directory or its files.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A strategy that needs a roster.
    #[error("{0} needs to know all clients before the first round; name them with --roster FILE")]
    NeedsRoster(String),
    /// An empty roster.
    #[error("the roster is empty; write one client's name per line, or leave --roster out")]
    EmptyRoster,
    /// The run was started with another roster.
    #[error(
        "the run was started {before} and cannot be resumed with the roster {now:?}; leave --roster out to resume it"
    )]
    OtherRoster {
        /// How it was started.
        before: String,
        /// The roster asked for.
        now: BTreeSet<ClientId>,
    },
    /// Simulated dropouts, which a federation does not have.
    #[error("cohort.absent and cohort.partial are for simulations; real clients drop out by themselves")]
    Dropout,
    /// Rounds with too few clients for hardened mode.
    #[error(transparent)]
    Cohort(#[from] SmallCohort),
    /// More clients than there are.
    #[error(transparent)]
    Extra(#[from] ExtraError),
    /// Stopping by the test set.
    #[error(
        "stop.patience needs the clients' hold-outs: a run that stops by the server's test set would choose its result by it; \
         evaluation.test = false evaluates the model on the hold-outs"
    )]
    Patience,
    /// Simulated liars, which a federation does not have.
    #[error("attack.kind is for simulations; in a federation, a client lies with fedtvd join --attack")]
    Attack,
    /// A data set that the server does not have and whose shape is unknown.
    #[error(
        "data.set = \"{0}\" is not on this machine, and its shape is unknown; for tables, name their schema with data.schema; \
         otherwise name a data set of the catalogue, or a site's folder written by fedtvd split --export"
    )]
    Shapeless(String),
    /// The directory holds a run of another configuration.
    #[error("{0} holds a run of another configuration; leave the configuration out to resume it")]
    OtherConfig(String),
    /// Another schema than the one that the run was started with.
    #[error(
        "the schema changed since the run began: {file} is not the one that {run} was started with; restore it, or continue \
         with the run's own schema by copying {run}/schema.toml over it, or start a new run with another --out"
    )]
    SchemaChanged {
        /// The schema that was read, or the table that it was made from.
        file: String,
        /// The run directory.
        run: String,
    },
    /// A rollback of a run that does not exist.
    #[error("{0} holds no federation that could be rolled back")]
    NoFederation(String),
    /// The directory holds a simulation.
    #[error(
        "{0} holds a simulation; resume it with \"fedtvd resume {0}\" (--from ROUND returns to an earlier round), or \
         choose another --out"
    )]
    Simulation(String),
    /// The model cannot be trained on this machine.
    #[error(transparent)]
    Backend(#[from] fedtvd_run::backend::BackendError),
}
