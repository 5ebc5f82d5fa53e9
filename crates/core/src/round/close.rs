//! The end of a round: turns the checked updates into the next state. Pure like `plan`, so a crash between the two
//! loses nothing, and the same answers in any order give the same bits.

use crate::memory::Memory;
use crate::model::{Layout, Params};
use crate::round::screening::{Decision, Norms, screen};
use crate::round::updates::AcceptedClient;
use crate::round::{
    Accepted, Checked, ClientFailure, ClientRecord, Job, Mode, Profile, ReadFailure, Report, RoundRecord,
    Run, State, UpdatePart, Updates, needed,
};
use crate::round::{finite, hardened, quorum, statistics};
use crate::rules::{Carried, Extent, Step};
use std::sync::Arc;

/// The state after the round, and the record of the round.
///
/// Every update was checked completely on arrival, before it can be aggregated. A failed or rejected client is data.
/// Below the quorum the model stays unchanged, and so does the entire state if any value of the next one is not finite.
pub fn close(
    run: &Run,
    state: &State,
    jobs: &[Job],
    updates: &dyn Updates,
) -> Result<(State, RoundRecord), ReadFailure> {
    let mut unchanged = State { round: state.round + 1, ..state.clone() };
    let mut record = RoundRecord::new(state);
    let mut candidates = Vec::new();
    for job in jobs {
        let Some(profile) = state.profile(job.client) else { continue };
        let place = updates.outcomes().binary_search_by_key(&job.client, |outcome| outcome.client);
        let answer = match place {
            Err(_) => Err(ClientFailure::Absent),
            Ok(index) => updates.outcomes()[index].answer.clone(),
        };
        if answer.as_ref().is_err_and(ClientFailure::is_lost_own_part) {
            unchanged.accepted.remove(&job.client);
        }
        if let (Ok(index), Ok(checked)) = (place, &answer) {
            candidates.push(Candidate { index, profile, checked: checked.clone(), factor: 1.0 });
        }
        record.clients.push(ClientRecord::new(profile, &state.reference, job, answer));
    }
    let mut next = unchanged.clone();
    let arrived = candidates.len();
    let counted = screened(run, candidates, &mut next.screening, &mut record);
    let needed = needed(run, state.roster.len(), jobs.len());
    record.extra = Some(jobs.len() - needed).filter(|extra| *extra > 0);
    let quorum = quorum::quorum(run, needed);
    if counted.len() < quorum {
        record.unchanged = Some(format!("{} of {quorum} needed updates were accepted", counted.len()));
        // Norms that have grown must enter the history, or the same updates would be rejected for ever; those of a round
        // with too few answers must not.
        let screening = if arrived < quorum { unchanged.screening } else { next.screening };
        return Ok((State { screening, ..unchanged }, record));
    }
    let profiles: Vec<&Profile> = counted.iter().map(|candidate| candidate.profile).collect();
    let weighting = run.strategy.weighting.as_ref();
    let shares = hardened::shares(weighting, run.mode, &profiles, &state.reference, &mut next.weighting);
    let (weighty, least) = (weighty(&shares.weight), run.strategy.combine.least_clients());
    if weighty < least {
        record.unchanged = Some(format!("{weighty} of {least} needed updates have a weight"));
        return Ok((unchanged, record));
    }
    let reports: Vec<Report> = counted.iter().map(|candidate| candidate.checked.report()).collect();
    let greatest_reach = hardened::greatest_reach(run, &reports);
    let mut accepted = Accepted::new(
        updates,
        counted.iter().map(|&Candidate { index, factor, .. }| AcceptedClient { index, factor }).collect(),
        reports,
        greatest_reach,
        &state.params,
        &shares.weight,
    );
    let combined =
        run.strategy.combine.combine(&state.params, &mut accepted, &shares.weight, &mut next.combining)?;
    let norms: Vec<f64> = counted.iter().map(Candidate::norm).collect();
    let roster_change = roster_change(run, state, &profiles, &mut accepted)?;
    let step = |aggregate| Step {
        base: state.params.trainable(),
        aggregate,
        weights: &combined.counted,
        norms: &norms,
        limit: hardened::step_limit(run.mode, &norms),
        roster_change: &roster_change,
    };
    next.params = Arc::new(moved(run, &state.params.layout, &combined.values, step, &mut next.server));
    next.carried = Arc::new(carried(run, state, &profiles, &mut accepted)?);
    statistics::fill_buffers(Arc::make_mut(&mut next.params), &run.strategy.needs(), &next.carried);
    record.drift = accepted.drift();
    record.locate(&accepted.distances());
    if let Err(flaw) = finite::check(&next) {
        record.unchanged = Some(flaw.to_string());
        record.discarded = true;
        return Ok((unchanged, record));
    }
    if run.strategy.needs().remembers {
        next.accepted.extend(profiles.iter().map(|profile| (profile.client, state.round)));
    }
    record.count(&shares, &combined.counted);
    Ok((next, record))
}

/// Number of clients with a weight.
fn weighty(weights: &[f64]) -> usize {
    weights.iter().filter(|weight| **weight > 0.0).count()
}

/// An update that was accepted on arrival.
struct Candidate<'a> {
    /// Its place among the outcomes.
    index: usize,
    profile: &'a Profile,
    checked: Checked,
    /// The factor of screening on its changes.
    factor: f64,
}

impl Candidate<'_> {
    /// ‖w_k − w_t‖ after screening.
    fn norm(&self) -> f64 {
        self.factor * self.checked.norm()
    }
}

/// The updates that count, with their factors; in hardened mode, large ones are scaled down or rejected.
fn screened<'a>(
    run: &Run,
    candidates: Vec<Candidate<'a>>,
    memory: &mut Memory,
    record: &mut RoundRecord,
) -> Vec<Candidate<'a>> {
    if run.mode == Mode::Paper {
        return candidates;
    }
    // What such clients remember is part of sums at the server, so their updates cannot be shortened.
    let reject = run.strategy.needs_roster();
    let decisions = screen(run.screen, reject, &norms(run, &candidates), memory);
    let clients = record.clients.iter_mut().filter(|client| client.failure.is_none());
    let mut counted = Vec::with_capacity(candidates.len());
    for ((candidate, client), decision) in candidates.into_iter().zip(clients).zip(decisions) {
        let factor = decision.factor();
        match decision {
            Decision::Whole => {}
            Decision::Scaled(screened) => client.screened = Some(screened),
            Decision::Rejected(screened) => {
                client.screened = Some(screened.clone());
                client.failure = Some(screened.into());
                continue;
            }
        }
        counted.push(Candidate { factor, ..candidate });
    }
    counted
}

/// The norms of what each client would add to the sums, part by part.
fn norms(run: &Run, candidates: &[Candidate<'_>]) -> Vec<Norms> {
    let combine = run.strategy.combine.as_ref();
    let part = |part: &str, norm: &dyn Fn(&Candidate<'_>) -> f64| Norms {
        part: part.to_owned(),
        values: candidates.iter().map(norm).collect(),
    };
    let mut parts = vec![
        part("the model", &|client| combine.amplification(&client.checked.report()) * client.checked.norm()),
        part("the buffers", &|client| client.checked.buffer_norm()),
    ];
    for (place, Carried { name, .. }) in run.strategy.needs().carries.iter().enumerate() {
        parts.push(part(name, &|client| client.checked.carried_norms()[place]));
    }
    parts
}

/// The next model: the server rule updates the trainable tensors; buffers are only converted to f32.
fn moved<'a>(
    run: &Run,
    layout: &Arc<Layout>,
    aggregate: &'a [f64],
    step: impl FnOnce(&'a [f64]) -> Step<'a>,
    memory: &mut Memory,
) -> Params {
    let (trainable, buffers) = aggregate.split_at(layout.trainable());
    let mut values = run.strategy.server.step(&step(trainable), memory);
    values.extend(buffers.iter().map(|&x| x as f32));
    Params { layout: Arc::clone(layout), values }
}

/// c + Σ_{k in round} s_k^(N) Δc_k for every carried vector, with weights over the whole roster. Batch statistics are
/// divided by the weight of the clients seen.
fn carried(
    run: &Run,
    state: &State,
    profiles: &[&Profile],
    accepted: &mut Accepted<'_>,
) -> Result<Memory, ReadFailure> {
    let names = run.strategy.needs().carries;
    if names.is_empty() {
        return Ok(Memory::default());
    }
    let weights = roster_weights(run, state);
    let factors = of_round(state, profiles, &weights);
    let seen = statistics::seen(state, profiles, &weights);
    let mut next = Memory::default();
    for Carried { name, extent } in names {
        let old = state.carried.f32(name).unwrap_or_default();
        let change = accepted.weighted_sum(UpdatePart::Carried(name), 0..old.len(), &factors)?;
        let sum = match extent {
            Extent::Trainable => {
                old.iter().zip(change).map(|(&c, change)| (f64::from(c) + change) as f32).collect()
            }
            Extent::Buffers => statistics::next(&state.params.layout, old, &change, seen),
        };
        next.put(name, sum);
    }
    Ok(next)
}

/// Σ_{k in round} s_k^(N) (w_k - w_t) over the trainable tensors, if the server rule sums over clients.
fn roster_change(
    run: &Run,
    state: &State,
    profiles: &[&Profile],
    accepted: &mut Accepted<'_>,
) -> Result<Vec<f64>, ReadFailure> {
    if !run.strategy.server.sums_clients() {
        return Ok(Vec::new());
    }
    let base = state.params.trainable();
    let factors = of_round(state, profiles, &roster_weights(run, state));
    let share: f64 = factors.iter().sum();
    let sum = accepted.weighted_sum(UpdatePart::Model, 0..base.len(), &factors)?;
    Ok(sum.into_iter().zip(base).map(|(sum, &w)| sum - share * f64::from(w)).collect())
}

/// s^(N): the weights of all clients together, in the roster's order.
fn roster_weights(run: &Run, state: &State) -> Vec<f64> {
    let roster: Vec<&Profile> = state.roster.iter().collect();
    let weighting = run.strategy.weighting.as_ref();
    hardened::shares(weighting, run.mode, &roster, &state.reference, &mut Memory::default()).weight
}

/// The weights s_k^(N) of the round's clients, in the round's order.
fn of_round(state: &State, profiles: &[&Profile], weights: &[f64]) -> Vec<f64> {
    let place = |profile: &&Profile| state.roster.binary_search_by_key(&profile.client, |known| known.client);
    profiles.iter().filter_map(|profile| place(profile).ok()).map(|place| weights[place]).collect()
}
