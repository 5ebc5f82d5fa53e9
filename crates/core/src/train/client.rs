//! What a client does with a job: the same routine in a simulation and at a real site.

use crate::matching::{Chain, MatchingStep};
use crate::memory::Memory;
use crate::model::{Layout, Params, Parts};
use crate::round::job::OWN;
use crate::round::{ClientData, ClientFailure, Job, Offer, Report, Upload};
use crate::rules::{OwnModel, OwnTask, Strategy, Task};
use crate::train::{Frozen, Optimizer, Pass, Trainer};
use std::borrow::Cow;
use std::sync::Arc;

/// Trains for one round. The client's memory is borrowed and a new one is returned, so that it can only advance when
/// the update that it belongs to was accepted.
///
/// `layout` is that of the whole model, with the tensors that stay at the client. `memory` is the one that
/// [`Job::accepted`] names, or `None` if the client does not have it.
pub fn train(
    strategy: &Strategy,
    layout: &Arc<Layout>,
    job: &Job,
    client: &ClientData,
    memory: Option<&Memory>,
    trainer: &mut dyn Trainer,
) -> Result<(Upload, Memory), ClientFailure> {
    let offer = &job.offer;
    job.check_carried(&strategy.needs())?;
    if let Some(why) = strategy.needs_sgd().filter(|_| !matches!(offer.local.optimizer, Optimizer::Sgd(_))) {
        let (label, optimizer) = (&strategy.label, offer.local.optimizer.name());
        return Err(ClientFailure::BadJob(format!("{label} cannot train with {optimizer}: {why}")));
    }
    let step = step(strategy, job)?;
    let parts = strategy.parts(layout_of(layout, job));
    let memory = memory.filter(|_| job.accepted.is_some());
    let offsets = offsets(strategy, &client.counts, job);
    if let Some(why) = strategy.failure() {
        return Err(ClientFailure::Training(why));
    }
    let branch = chosen(strategy, job, client, offsets.as_deref(), trainer)?;
    let base = whole(&parts, job, branch, memory)?;
    let base = match step.and_then(|step| step.own_model(&base, memory)) {
        Some(own) => Cow::Owned(own),
        None => base,
    };
    let frozen = step.map(|step| Frozen::of(&base.layout, |tensor| step.is_frozen(tensor)));
    let weights = offer.class_weights.of_client(&client.counts, offer.local.smoothing);
    let task = Task {
        base: &base,
        carried: &offer.carried,
        client,
        local: &offer.local,
        pass: Pass {
            frozen: frozen.as_ref(),
            ..offer.local.pass(job.key, offsets.as_deref(), weights.as_deref())
        },
    };
    let mut trained = strategy.local.train(&task, memory, trainer)?;
    if let Some((sent, memory)) = step.and_then(|step| step.sent(&offer.params, &trained.params)) {
        (trained.params, trained.memory) = (sent, memory);
    }
    if !parts.all_travel() {
        trained.memory.put(OWN, parts.own_of(&trained.params));
    }
    let report = Report {
        round: offer.round,
        steps: trained.steps,
        reach: trained.reach,
        losses: trained.losses,
        remembers: !strategy.needs().remembers || job.accepted.is_none() || memory.is_some(),
        branch,
    };
    let params = parts.shared_of(trained.params);
    let upload = Upload { client: job.client, params, carried: trained.carried, report };
    Ok((upload, trained.memory))
}

/// The model that the client itself uses. `memory` is as in [`train`], and stays as it is.
pub fn own_model(
    strategy: &Strategy,
    layout: &Arc<Layout>,
    job: &Job,
    client: &ClientData,
    memory: Option<&Memory>,
    trainer: &mut dyn Trainer,
) -> Result<OwnModel, ClientFailure> {
    let offer = &job.offer;
    let memory = memory.filter(|_| job.accepted.is_some());
    let offsets = offsets(strategy, &client.counts, job);
    let branch = chosen(strategy, job, client, offsets.as_deref(), trainer)?;
    let shared = whole(&strategy.parts(layout_of(layout, job)), job, branch, memory)?;
    let model = strategy.local.own_model(&shared, memory).map_or(shared, Cow::Owned);
    let Some(personal) = &strategy.personal else {
        return Ok(OwnModel { params: model.into_owned(), offsets: None });
    };
    let weights = offer.class_weights.of_client(&client.counts, offer.local.smoothing);
    let task = OwnTask {
        model: &model,
        client,
        reference: &offer.reference,
        local: &offer.local,
        pass: offer.local.pass(job.key, None, weights.as_deref()),
    };
    Ok(personal.own_model(&task, trainer)?)
}

/// The branch of the offered model with the least loss on the client's training samples; of equal ones the first. The loss
/// is cross-entropy with the offsets that the client trains with.
fn chosen(
    strategy: &Strategy,
    job: &Job,
    client: &ClientData,
    offsets: Option<&[f32]>,
    trainer: &mut dyn Trainer,
) -> Result<u32, ClientFailure> {
    let Offer { branch, params, others, .. } = job.offer.as_ref();
    let (got, want) = (1 + others.len(), if strategy.clients_choose() { strategy.models() } else { 1 });
    if got != want || strategy.clients_choose() && *branch != 0 {
        let why = format!("it brings {got} models from branch {branch} on; {} uses {want}", strategy.label);
        return Err(ClientFailure::BadJob(why));
    }
    if others.is_empty() {
        return Ok(*branch);
    }
    let mut best = (f64::INFINITY, 0);
    for (branch, model) in (0..).zip(std::iter::once(params).chain(others)) {
        let loss = trainer.evaluate(model, &client.rows, offsets)?.loss;
        // A model whose loss is NaN is not chosen.
        if loss < best.0 {
            best = (loss, branch);
        }
    }
    Ok(best.1)
}

/// The layout of the whole model: that of the run, unless the job's model has other widths.
fn layout_of<'a>(layout: &'a Arc<Layout>, job: &'a Job) -> &'a Arc<Layout> {
    let offered = &job.offer.params.layout;
    if offered.widths().is_empty() { layout } else { offered }
}

/// The job's step of layer-wise matching, if it has one.
fn step<'a>(strategy: &Strategy, job: &'a Job) -> Result<Option<&'a MatchingStep>, ClientFailure> {
    let bad = |why: String| ClientFailure::BadJob(format!("its matching: {why}"));
    let grown = !job.offer.params.layout.widths().is_empty();
    if strategy.matching.is_none() && (job.matching.is_some() || grown) {
        return Err(bad(format!("{} matches no networks", strategy.label)));
    }
    let Some(step) = &job.matching else { return Ok(None) };
    let chain = Chain::of(&job.offer.params.layout).map_err(|error| bad(error.to_string()))?;
    step.check(&chain).map_err(bad)?;
    Ok(Some(step))
}

/// The shared model with the client's own tensors: as the client remembers them, at first contact as the job brings them.
fn whole<'a>(
    parts: &Parts,
    job: &'a Job,
    branch: u32,
    memory: Option<&Memory>,
) -> Result<Cow<'a, Params>, ClientFailure> {
    let offer = &job.offer;
    let model = offer.model(branch).unwrap_or(&offer.params);
    let wrong =
        |what: &str| ClientFailure::BadJob(format!("{what} does not fit the strategy {}", offer.strategy));
    if model.values.len() != parts.shared.len() {
        return Err(wrong("its model"));
    }
    if parts.all_travel() {
        return if offer.own.is_empty() { Ok(Cow::Borrowed(model)) } else { Err(wrong("its own part")) };
    }
    let own = match (memory, job.accepted) {
        (Some(memory), _) => memory.f32(OWN),
        (None, None) => Some(offer.own.f32(OWN).unwrap_or_default()),
        (None, Some(_)) => None,
    };
    match own {
        Some(own) if own.len() == parts.own.len() => Ok(parts.join(model, own)),
        Some(_) if job.accepted.is_none() => Err(wrong("its own part")),
        _ => Err(ClientFailure::LostOwnPart),
    }
}

/// The logit offsets of the loss; `None` if all are equal, since softmax does not change.
fn offsets(strategy: &Strategy, counts: &[u64], job: &Job) -> Option<Vec<f32>> {
    constant_dropped(strategy.loss.offsets(counts, &job.offer.reference))
}

/// Offsets to logits, unless all are equal.
pub(crate) fn constant_dropped(offsets: Vec<f64>) -> Option<Vec<f32>> {
    let constant = offsets.iter().all(|offset| *offset == offsets[0]);
    (!constant).then(|| offsets.into_iter().map(|offset| offset as f32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Reference;
    use crate::model::{Layer, Network};
    use crate::round::Offer;
    use crate::rules::notation;
    use crate::stream::Key;
    use crate::train::Local;

    #[test]
    fn a_step_of_matching_is_refused_by_strategies_that_match_nothing_and_by_models_that_it_does_not_fit() {
        let linear = |name: &str, out| Layer::Linear { name: name.into(), out };
        let layers = vec![linear("fc1", 4), Layer::Relu, linear("fc2", 2)];
        let layout = Layout::of(&Network { input: [3, 1, 1], classes: 2, layers }).unwrap();
        let job = |layout: &Layout, matching| {
            let params = Arc::new(Params::zeros(Arc::new(layout.clone())));
            let offer = Offer {
                round: 0,
                strategy: String::new(),
                local: Local::default(),
                class_weights: Default::default(),
                reference: Reference::uniform(2),
                branch: 0,
                params,
                others: Vec::new(),
                carried: Arc::default(),
                own: Arc::default(),
            };
            Job { client: 0, key: Key::of(1), accepted: None, matching, offer: Arc::new(offer) }
        };
        let fits = MatchingStep { layer: 0, assigned: vec![vec![3, 1]] };
        let refused = |name: &str, job: Job| step(&notation::strategy(name, []).unwrap(), &job).err();
        let bad = |why: &str| Some(ClientFailure::BadJob(format!("its matching: {why}")));
        assert_eq!(refused("fedma", job(&layout, Some(fits.clone()))), None);
        let wide = layout.with_widths(&[6, 2]).unwrap();
        assert_eq!(refused("fedma", job(&wide, Some(fits.clone()))), None);
        assert_eq!(refused("fedavg", job(&layout, None)), None);
        assert_eq!(refused("fedavg", job(&wide, None)), bad("fedavg matches no networks"));
        assert_eq!(refused("fedavg", job(&layout, Some(fits))), bad("fedavg matches no networks"));
        let beyond = MatchingStep { layer: 0, assigned: vec![vec![3, 4]] };
        assert_eq!(
            refused("fedma", job(&layout, Some(beyond))),
            bad("2 units cannot be 4 different ones of the model")
        );
    }
}
