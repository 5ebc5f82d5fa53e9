//! The end of a round: turns the checked updates into the next state. Pure like `plan`, so a crash between the two
//! loses nothing, and the same answers in any order give the same bits.

use crate::memory::Memory;
use crate::model::Params;
use crate::round::drift::DriftSum;
use crate::round::hardened;
use crate::round::{
    Accepted, ClientFailure, ClientRecord, Job, Profile, ReadFailure, RoundRecord, Run, State, UpdatePart,
    Updates,
};
use crate::rules::{Carried, Shares};
use std::sync::Arc;

/// The state after the round, and the record of the round.
///
/// Every update was checked completely on arrival, before it can be aggregated. A failed or rejected client is data.
/// Below the quorum the model stays unchanged.
pub fn close(
    run: &Run,
    state: &State,
    jobs: &[Job],
    updates: &dyn Updates,
) -> Result<(State, RoundRecord), ReadFailure> {
    let mut next = State { round: state.round + 1, ..state.clone() };
    let mut record = RoundRecord::new(state);
    let (mut indices, mut reports, mut profiles) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        let Some(profile) = state.profile(job.client) else { continue };
        let place = updates.outcomes().binary_search_by_key(&job.client, |outcome| outcome.client);
        let answer = match place {
            Err(_) => Err(ClientFailure::Absent),
            Ok(index) => updates.outcomes()[index].answer.clone(),
        };
        if let (Ok(index), Ok(checked)) = (place, &answer) {
            indices.push(index);
            reports.push(checked.report());
            profiles.push(profile);
        }
        record.clients.push(ClientRecord::new(profile, &state.reference, job, answer));
    }
    let quorum = run.quorum.max(1);
    if reports.len() < quorum {
        record.unchanged = Some(format!("{} of {quorum} needed updates were accepted", reports.len()));
        return Ok((next, record));
    }
    hardened::cap_reaches(run, &run.local.in_round(state.round), &profiles, &mut reports);
    let weighting = run.strategy.weighting.as_ref();
    let shares = hardened::shares(weighting, run.mode, &profiles, &mut next.weighting);
    let drift = DriftSum::new(&state.params, &shares.weight);
    let mut accepted = Accepted::new(updates, indices, reports, drift);
    next.params = Arc::new(moved(run, &state.params, &mut accepted, &shares, &mut next.server)?);
    next.carried = Arc::new(carried(run, state, &profiles, &mut accepted)?);
    if run.strategy.local.needs().remembers {
        next.accepted.extend(profiles.iter().map(|profile| (profile.client, state.round)));
    }
    record.count(&shares);
    record.drift = accepted.drift();
    record.locate(&accepted.distances());
    Ok((next, record))
}

/// Combines, then steps: the server rule updates the trainable tensors; buffers are only converted to f32.
fn moved(
    run: &Run,
    base: &Params,
    accepted: &mut Accepted<'_>,
    shares: &Shares,
    memory: &mut Memory,
) -> Result<Params, ReadFailure> {
    let aggregate = run.strategy.combine.combine(base, accepted, &shares.weight)?;
    let (trainable, buffers) = aggregate.split_at(base.layout.trainable());
    let mut values = run.strategy.server.step(base.trainable(), trainable, memory);
    values.extend(buffers.iter().map(|&x| x as f32));
    Ok(Params { layout: Arc::clone(&base.layout), values })
}

/// c + Σ_{k in round} s_k^(N) Δc_k for every carried vector, with weights over the whole roster.
fn carried(
    run: &Run,
    state: &State,
    profiles: &[&Profile],
    accepted: &mut Accepted<'_>,
) -> Result<Memory, ReadFailure> {
    let names = run.strategy.local.needs().carries;
    if names.is_empty() {
        return Ok(Memory::default());
    }
    let roster: Vec<&Profile> = state.roster.iter().collect();
    let weighting = run.strategy.weighting.as_ref();
    let all = hardened::shares(weighting, run.mode, &roster, &mut Memory::default());
    let place = |profile: &&Profile| state.roster.binary_search_by_key(&profile.client, |known| known.client);
    let factors: Vec<f64> =
        profiles.iter().filter_map(|profile| place(profile).ok()).map(|place| all.weight[place]).collect();
    let mut next = Memory::default();
    for Carried { name, .. } in names {
        let old = state.carried.f32(name).unwrap_or_default();
        let change = accepted.weighted_sum(UpdatePart::Carried(name), 0..old.len(), &factors)?;
        let sum = old.iter().zip(change).map(|(&c, change)| (f64::from(c) + change) as f32);
        next.put(name, sum.collect::<Vec<f32>>());
    }
    Ok(next)
}
