//! What a client does with a job: the same routine in a simulation and at a real site.

use crate::memory::Memory;
use crate::round::{ClientData, ClientFailure, Job, Report, Upload};
use crate::rules::{Strategy, Task};
use crate::train::{Optimizer, Trainer};

/// Trains for one round. The client's memory is borrowed and a new one is returned, so that it can only advance when
/// the update that it belongs to was accepted.
///
/// `memory` is the one that [`Job::accepted`] names, or `None` if the client does not have it.
pub fn train(
    strategy: &Strategy,
    job: &Job,
    client: &ClientData,
    memory: Option<&Memory>,
    trainer: &mut dyn Trainer,
) -> Result<(Upload, Memory), ClientFailure> {
    let offer = &job.offer;
    job.check_carried(&strategy.local.needs())?;
    if let Some(why) = strategy.needs_sgd().filter(|_| !matches!(offer.local.optimizer, Optimizer::Sgd(_))) {
        let (label, optimizer) = (&strategy.label, offer.local.optimizer.name());
        return Err(ClientFailure::BadJob(format!("{label} cannot train with {optimizer}: {why}")));
    }
    let offsets = offsets(strategy, &client.counts, job);
    let weights = offer.class_weights.of_client(&client.counts, offer.local.smoothing);
    let task = Task {
        base: &offer.params,
        carried: &offer.carried,
        client,
        local: &offer.local,
        pass: offer.local.pass(job.key, offsets.as_deref(), weights.as_deref()),
    };
    let memory = memory.filter(|_| job.accepted.is_some());
    let trained = strategy.local.train(&task, memory, trainer)?;
    let report = Report {
        round: offer.round,
        steps: trained.steps,
        reach: trained.reach,
        losses: trained.losses,
        remembers: !strategy.local.needs().remembers || job.accepted.is_none() || memory.is_some(),
    };
    let upload = Upload { client: job.client, params: trained.params, carried: trained.carried, report };
    Ok((upload, trained.memory))
}

/// The logit offsets of the loss; `None` if all are equal, since softmax does not change.
fn offsets(strategy: &Strategy, counts: &[u64], job: &Job) -> Option<Vec<f32>> {
    let offsets = strategy.loss.offsets(counts, &job.offer.reference);
    let constant = offsets.iter().all(|offset| *offset == offsets[0]);
    (!constant).then(|| offsets.into_iter().map(|offset| offset as f32).collect())
}
