//! One round: `plan` says who does what, `close` makes of the answers the next state. Both are pure, so a
//! crash between them loses nothing, and the same answers in any order give the same bits.

use crate::acceptance;
use crate::drift::Drift;
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
use crate::updates::{Accepted, Part, ReadFailure, Report, Updates};
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
/// Every update is validated completely before it can touch a sum. A failed or rejected client is data. Below
/// the quorum the model stays as it is.
pub fn close(
    run: &Run,
    state: &State,
    jobs: &[Job],
    updates: &dyn Updates,
) -> Result<(State, RoundRecord), ReadFailure> {
    let mut next = State { round: state.round + 1, ..state.clone() };
    let mut clients = Vec::with_capacity(jobs.len());
    let (mut indices, mut reports, mut profiles) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        let Some(profile) = state.profile(job.client) else { continue };
        let answer = match updates.outcomes().binary_search_by_key(&job.client, |outcome| outcome.client) {
            Err(_) => Err(ClientFailure::Absent),
            Ok(index) => {
                let answer = acceptance::check(run, job, profile, updates, index)?;
                if let Ok(report) = answer {
                    indices.push(index);
                    reports.push(report);
                    profiles.push(profile);
                }
                answer
            }
        };
        clients.push(ClientRecord::new(profile, job, answer));
    }
    let quorum = run.quorum.max(1);
    let mut record = RoundRecord::new(state.round, state.roster.len(), clients);
    if reports.len() < quorum {
        record.unchanged = Some(format!("{} of {quorum} needed updates were accepted", reports.len()));
        return Ok((next, record));
    }
    hardened::cap_reaches(run, &run.local.in_round(state.round), &profiles, &mut reports);
    let accepted = Accepted::new(updates, indices, reports);
    let weighting = run.strategy.weighting.as_ref();
    let shares = hardened::shares(weighting, run.mode, &profiles, &mut next.weighting);
    next.params = Arc::new(moved(run, &state.params, &accepted, &shares, &mut next.server)?);
    next.carried = Arc::new(carried(run, state, &profiles, &accepted)?);
    if run.strategy.local.needs().remembers {
        next.accepted.extend(profiles.iter().map(|profile| (profile.client, state.round)));
    }
    record.count(&shares);
    record.drift = Some(Drift::of(&state.params, &accepted, &shares.weight)?);
    Ok((next, record))
}

/// Whether [`close`] will accept the answer of outcome `index` to a job, so that its client can be told at once.
pub fn verdict(
    run: &Run,
    state: &State,
    job: &Job,
    updates: &dyn Updates,
    index: usize,
) -> Result<Result<Report, ClientFailure>, ReadFailure> {
    match state.profile(job.client) {
        Some(profile) => acceptance::check(run, job, profile, updates, index),
        None => Ok(Err(ClientFailure::BadJob(format!("client {} is not enrolled", job.client)))),
    }
}

/// Combines, then steps: the server's rule sees the trainable tensors, buffers are cast as they are.
fn moved(
    run: &Run,
    base: &Params,
    accepted: &Accepted<'_>,
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
    accepted: &Accepted<'_>,
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
        let change = accepted.weighted_sum(Part::Carried(name), 0..old.len(), &factors)?;
        let sum = old.iter().zip(change).map(|(&c, change)| (f64::from(c) + change) as f32);
        next.put(name, sum.collect::<Vec<f32>>());
    }
    Ok(next)
}

impl ClientRecord {
    fn new(profile: &Profile, job: &Job, answer: Result<Report, ClientFailure>) -> Self {
        let report = answer.as_ref().ok();
        Self {
            client: profile.client,
            size: profile.size,
            statistic: profile.statistic.clone(),
            quality_share: None,
            size_share: None,
            weight: None,
            steps: report.map(|report| report.steps),
            losses: report.map(|report| report.losses),
            forgot: job.accepted.is_some() && report.is_some_and(|report| !report.remembers),
            failure: answer.err(),
        }
    }
}
