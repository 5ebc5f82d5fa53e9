//! One round: `plan` says who does what, `close` makes of the answers the next state. Both are pure, so a
//! crash between them loses nothing, and the same answers in any order give the same bits.

use crate::drift::DriftSum;
use crate::failure::ClientFailure;
use crate::hardened;
use crate::job::{Job, Offer};
use crate::memory::Memory;
use crate::params::Params;
use crate::profile::{ClientId, Profile};
use crate::record::{ClientRecord, RoundRecord};
use crate::rules::{Carried, Shares};
use crate::run::{Run, State};
use crate::stream::{Key, Purpose};
use crate::updates::{Accepted, ReadFailure, UpdatePart, Updates};
use std::sync::Arc;

/// The jobs of the next round, in client order.
pub fn plan(run: &Run, state: &State) -> Vec<Job> {
    let offer = Arc::new(Offer {
        round: state.round,
        strategy: run.strategy.label.clone(),
        local: run.local.in_round(state.round),
        reference: state.reference.clone(),
        params: Arc::clone(&state.params),
        carried: Arc::clone(&state.carried),
    });
    let job = |client| Job {
        client,
        key: Key::of(run.seed).at(Purpose::Job, state.round, client),
        accepted: state.accepted.get(&client).copied(),
        offer: Arc::clone(&offer),
    };
    cohort(run, state).into_iter().map(job).collect()
}

/// K = max(1, floor(fraction N)): how many of N clients a round asks.
pub fn cohort_size(fraction: f64, clients: usize) -> usize {
    // A fraction such as 0.29 times 100 must not fall just below its integer.
    ((fraction * clients as f64 + 1e-9) as usize).max(1)
}

/// K clients, each equally likely, without replacement.
fn cohort(run: &Run, state: &State) -> Vec<ClientId> {
    let mut clients: Vec<ClientId> = state.roster.iter().map(|profile| profile.client).collect();
    let size = cohort_size(run.fraction, clients.len());
    Key::of(run.cohort_seed).at(Purpose::Cohort, state.round, 0).stream(0).shuffle(&mut clients);
    clients.truncate(size);
    clients.sort_unstable();
    clients
}

/// The state after the round and what happened in it.
///
/// Every update was checked completely when it arrived, before it can touch a sum. A failed or rejected client is data.
/// Below the quorum the model stays as it is.
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
    Ok((next, record))
}

/// Combines, then steps: the server's rule sees the trainable tensors, buffers are cast as they are.
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
