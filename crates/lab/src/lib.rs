//! Experiments and their evaluation: what to run (`experiments`), reading finished runs (`runs`), statistics (`stats`),
//! and output for people (`figures`, `report`).
//!
//! ```no_run
//! use fedtvd_data::set::Places;
//! use fedtvd_lab::{Cell, Collection, Comparison, Report, ReportOptions, Sweep};
//! use fedtvd_run::configuration::Config;
//! use std::path::{Path, PathBuf};
//! use std::sync::atomic::AtomicBool;
//!
//! // FedAvg and FedTVD with two seeds, on two threads; finished runs are not run again.
//! let names = ["fedavg", "fedtvd"].map(str::to_owned);
//! let comparison = Comparison::new(&Config::default(), &names, &[1, 2])?;
//! let (out, places, stop) = (Path::new("runs/mine"), Places::new(None), AtomicBool::new(false));
//! let cells: Vec<&Cell> = comparison.cells().iter().collect();
//! Sweep::new(out, &places, 2, &stop).run(&cells, &|_, _| {});
//!
//! let directories: Vec<PathBuf> = cells.iter().map(|cell| out.join(&cell.folder)).collect();
//! let collection = Collection::read(&directories, &mut |error| eprintln!("{error}"))?;
//! println!("{}", Report::new(collection, &ReportOptions::default()).verdict);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod experiments;
pub mod figures;
pub mod report;
pub mod runs;
pub mod stats;

pub use experiments::comparison::Comparison;
pub use experiments::grid::Cell;
pub use experiments::sweep::{RunStatus, Sweep};
pub use report::findings::{Report, ReportOptions};
pub use runs::collection::Collection;
