//! How the models of a run do at its simulated clients, from its newest checkpoint.

use crate::directory::{Checkpoints, ClientResult, RunDirectory};
use crate::open::{fits, reopen};
use crate::run_error::RunError;
use crate::simulation::{Resources, Workers, simulation};
use fedtvd_data::set::Places;

/// The shared model and the clients' own ones on the hold-out of each client; `None` if no client has one, and without a checkpoint.
pub fn client_models(
    directory: &RunDirectory,
    places: &Places,
    resources: Resources,
) -> Result<Option<Vec<ClientResult>>, RunError> {
    let (experiment, setup) = reopen(directory, places)?;
    let checkpoints = Checkpoints::new(directory.file("checkpoint"), experiment.rounds);
    let done = directory.lines()?.len() as u32;
    let found = checkpoints.find(&setup.parts.shared, done)?.or_refuse(done, u32::MAX)?;
    let Some(checkpoint) = found.checkpoint else { return Ok(None) };
    fits(directory.path(), &experiment, &checkpoint.state)?;
    let Workers { trainers, .. } = Workers::on(&resources.device, &setup, resources.workers)?;
    let mut rounds = simulation(&experiment, &setup, trainers, resources.update_memory)?;
    rounds.restore(checkpoint.state, checkpoint.memories);
    Ok(rounds.client_results()?)
}
