//! Federated training on one machine: configuration, the loop over rounds, the fleet of threads, the run directory.
//!
//! ```no_run
//! use fedtvd_data::set::Places;
//! use fedtvd_run::configuration::{Config, Experiment};
//! use fedtvd_run::runner::{End, Runner};
//! use fedtvd_run::setup::Data;
//! use fedtvd_run::simulation::Resources;
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::default().with_strategy("fedtvd+balanced");
//! let data = Data::load(&Experiment::of(&config)?.data, &Places::new(None))?;
//! let runner = Runner::start(&config, &data, Path::new("runs/mine"), Resources::workers(2))?;
//! if let End::Done(summary) = runner.run(&AtomicBool::new(false), &mut |round| println!("{:?}", round.accuracy))? {
//!     println!("{:?}", summary.last10_accuracy);
//! }
//! # Ok(())
//! # }
//! ```

pub mod attack;
pub mod backend;
mod client_models;
pub mod collapse;
pub mod configuration;
pub mod directory;
pub mod estimate;
mod extend;
pub mod fleet;
mod footprint;
mod monitor;
mod open;
pub mod rounds;
mod run_error;
pub mod runner;
pub mod setup;
pub mod simulation;
pub mod start_model;
mod test_set;
pub mod verify;

pub use client_models::client_models;
pub use extend::{ExtendError, extend};
pub use monitor::Best;
pub use open::{fits, reopen, same_inputs, same_rules};
pub use run_error::RunError;
