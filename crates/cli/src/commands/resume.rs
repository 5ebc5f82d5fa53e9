//! `fedtvd resume RUN`: resumes an interrupted run, with bit-identical results, or any run from an earlier round.

use crate::commands::run::{conclude, failure, run_to_end};
use crate::ignored;
use crate::request::{Failure, Output, Resources};
use crate::terminal::watch::Watch;
use clap::Args;
use fedtvd_data::set::Places;
use fedtvd_run::runner::Runner;
use std::path::PathBuf;

/// Resume an interrupted run with bit-identical results, or any run from an earlier round.
#[derive(Args)]
pub(crate) struct Resume {
    /// The run directory
    #[arg(value_name = "RUN")]
    directory: PathBuf,
    /// Go back to the state after this round and continue with the next one; 0 for the start. Later rounds move to
    /// RUN/rolled-back
    #[arg(long, value_name = "ROUND")]
    from: Option<u32>,
    /// Change how long the run lasts, also a finished one: rounds, stop.target or stop.patience, such as rounds=400; can be
    /// repeated. The result is that of a run that was started with it
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder with data sets [default: $FEDTVD_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    resources: Resources,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    output: Output,
}

impl Resume {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let places = Places::new(self.data.clone());
        let resources = self.resources.checked_for(&self.directory)?;
        let resumed = Runner::resume_with(&self.directory, &places, resources, self.from, &self.set);
        let note = ignored::data_folder_of(self.data.as_deref(), &self.directory);
        note.iter().for_each(|note| self.watch.note(self.output, note));
        match resumed.map_err(failure)? {
            Ok(runner) => run_to_end(runner, &self.watch, self.output),
            Err(summary) => {
                self.watch.note(self.output, "this run is already finished");
                conclude(&summary, self.output)
            }
        }
    }
}
