//! The end of a round: turns the checked updates into the next state. Pure like `plan`, so a crash between the two
//! loses nothing, and the same answers in any order give the same bits.

use crate::memory::Memory;
use crate::model::{Layout, Params};
use crate::round::plan::cycle;
use crate::round::screening::{Decision, Norms, screen};
use crate::round::updates::AcceptedClient;
use crate::round::{
    Accepted, BranchRecord, Checked, ClientFailure, ClientId, ClientRecord, Drift, Job, Mode, Parted,
    Profile, ReadFailure, Report, RoundRecord, Run, State, UpdatePart, Updates, needed,
};
use crate::round::{branches, finite, hardened, matched, quorum, statistics};
use crate::rules::{BranchRound, Carried, Extent, Step};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The state after the round, and the record of the round.
///
/// Every update was checked completely on arrival, before it can be aggregated. A failed or rejected client is data.
/// Each branch weighs and combines its own updates. Below the quorum all models stay unchanged, and a branch stays as it was if any
/// value of its next state is not finite.
pub fn close(
    run: &Run,
    state: &State,
    jobs: &[Job],
    updates: &dyn Updates,
) -> Result<(State, RoundRecord), ReadFailure> {
    let mut next = State { round: state.round + 1, ..state.clone() };
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
            next.accepted.remove(&job.client);
        }
        if let (Ok(index), Ok(checked)) = (place, &answer) {
            let place = record.clients.len();
            candidates.push(Candidate { index, place, profile, checked: checked.clone(), factor: 1.0 });
        }
        record.clients.push(ClientRecord::new(profile, &state.reference, job, answer));
    }
    let before = next.screening.clone();
    let arrived = candidates.len();
    let counted = screened(run, candidates, &mut next.screening, &mut record);
    let needed = needed(run, state.roster.len(), jobs.len());
    record.extra = Some(jobs.len() - needed).filter(|extra| *extra > 0);
    let quorum = if cycle(run, state).is_some() { state.roster.len() } else { quorum::quorum(run, needed) };
    if counted.len() < quorum {
        record.unchanged = Some(format!("{} of {quorum} needed updates were accepted", counted.len()));
        // Norms that have grown must enter the history, or the same updates would be rejected for ever; those of a round
        // with too few answers must not.
        if arrived < quorum {
            next.screening = before;
        }
        record.branches = branch_records(run, &next);
        return Ok((next, record));
    }
    let mut by_branch: BTreeMap<u32, Vec<Candidate<'_>>> = BTreeMap::new();
    for candidate in counted {
        by_branch.entry(candidate.checked.report().branch).or_default().push(candidate);
    }
    let mut closed = BTreeMap::new();
    for (branch, clients) in by_branch {
        let mut after = next.clone();
        let found = close_branch(run, state, branch, &clients, updates, &mut after, &mut record)?;
        if found.unchanged.is_none() {
            next = after;
        }
        closed.insert(branch, found);
    }
    record.discarded = closed.values().any(|found| found.discarded);
    if closed.values().all(|found| found.unchanged.is_some()) {
        next.screening = before;
        let reasons = closed.values().filter_map(|found| found.unchanged.clone());
        record.unchanged = Some(reasons.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; "));
    }
    record.branches = branch_records(run, &next);
    if run.strategy.grouping.is_none() {
        record.drift = closed.remove(&0).and_then(|only| only.drift);
    }
    for own in &mut record.branches {
        if let Some(found) = closed.remove(&own.branch) {
            (own.drift, own.parted, own.unchanged) = (found.drift, found.parted, found.unchanged);
        }
    }
    Ok((next, record))
}

/// The records of the branches, if the strategy has several models.
fn branch_records(run: &Run, state: &State) -> Vec<BranchRecord> {
    run.strategy.grouping.as_ref().map_or_else(Vec::new, |_| state.branch_records())
}

/// What a round did to one branch.
#[derive(Default)]
struct ClosedBranch {
    /// Why its model and memories stay as they were, if they do.
    unchanged: Option<String>,
    /// Whether that is because its next value would not have been finite.
    discarded: bool,
    drift: Option<Drift>,
    parted: Option<Parted>,
}

impl ClosedBranch {
    fn unchanged(why: String) -> Self {
        Self { unchanged: Some(why), ..Self::default() }
    }
}

/// Weighs and combines the updates of one branch, and changes `next` where it changes anything.
fn close_branch(
    run: &Run,
    state: &State,
    branch: u32,
    counted: &[Candidate<'_>],
    updates: &dyn Updates,
    next: &mut State,
    record: &mut RoundRecord,
) -> Result<ClosedBranch, ReadFailure> {
    let profiles: Vec<&Profile> = counted.iter().map(|candidate| candidate.profile).collect();
    let places: Vec<usize> = counted.iter().map(|candidate| candidate.place).collect();
    let norms: Vec<f64> = counted.iter().map(Candidate::norm).collect();
    let reports: Vec<Report> = counted.iter().map(|candidate| candidate.checked.report()).collect();
    if run.strategy.grouping.is_some() {
        places.iter().for_each(|&place| record.clients[place].branch = Some(branch));
    }
    let children = state.children(branch);
    let here = state.focused(branch);
    let greatest_reach = hardened::greatest_reach(run, &reports);
    let accepted = |weights| {
        let clients = counted.iter().map(|&Candidate { index, factor, .. }| AcceptedClient { index, factor });
        Accepted::new(updates, clients.collect(), reports.clone(), greatest_reach, &here.params, weights)
    };
    if run.strategy.needs().remembers {
        next.accepted.extend(profiles.iter().map(|profile| (profile.client, state.round)));
    }
    if let Some(children) = children {
        let directions = children.map(|child| state.branches[child as usize - 1].direction.as_slice());
        let found = branches::placed(&here.params, &mut accepted(&[]), directions)?;
        next.members
            .extend(profiles.iter().zip(found).map(|(profile, child)| (profile.client, children[child])));
        return Ok(ClosedBranch::default());
    }
    next.swap(branch);
    let weighting = run.strategy.weighting.as_ref();
    let shares = hardened::shares(weighting, run.mode, &profiles, &state.reference, &mut next.weighting);
    let (weighty, least) = (weighty(&shares.weight), run.strategy.combine.least_clients());
    if weighty < least {
        return Ok(ClosedBranch::unchanged(format!("{weighty} of {least} needed updates have a weight")));
    }
    let mut accepted = accepted(&shares.weight);
    if let Some(cycle) = cycle(run, &here) {
        let matched = matched::model(run, &here, cycle, &profiles, &mut accepted, &shares.weight)?;
        let Some((params, memory)) = matched else {
            return Ok(ClosedBranch::unchanged("the matched model would be too large".to_owned()));
        };
        (next.params, next.combining) = (Arc::new(params), memory);
        let drift = accepted.drift();
        record.locate(&places, &accepted.distances());
        if let Err(flaw) = finite::check(next) {
            return Ok(ClosedBranch { discarded: true, drift, ..ClosedBranch::unchanged(flaw.to_string()) });
        }
        next.swap(branch);
        record.count(&places, &shares, &shares.weight);
        return Ok(ClosedBranch { drift, ..ClosedBranch::default() });
    }
    let combined =
        run.strategy.combine.combine(&here.params, &mut accepted, &shares.weight, &mut next.combining)?;
    let drift = accepted.drift();
    record.locate(&places, &accepted.distances());
    if let Some(grouping) = &run.strategy.grouping {
        let (round, weights) = (record.round, shares.weight.as_slice());
        let mut found =
            BranchRound { round, base: &here.params, accepted: &mut accepted, weights, norms: &norms };
        if let Some(split) = grouping.split(&mut found)? {
            let [one, other] = &split.parts;
            let directions = [
                branches::direction(&here.params, &mut accepted, &norms, one)?,
                branches::direction(&here.params, &mut accepted, &norms, other)?,
            ];
            // The updates are not combined, so that what the rule remembers of them does not count either.
            next.combining.clone_from(&here.combining);
            let clients: Vec<ClientId> = profiles.iter().map(|profile| profile.client).collect();
            let parted = next.part(branch, &split, &clients, directions);
            next.swap(branch);
            return Ok(ClosedBranch { drift, parted: Some(parted), ..ClosedBranch::default() });
        }
        next.members.extend(profiles.iter().map(|profile| (profile.client, branch)));
    }
    let roster_change = roster_change(run, &here, &profiles, &mut accepted)?;
    let step = |aggregate| Step {
        base: here.params.trainable(),
        aggregate,
        weights: &combined.counted,
        norms: &norms,
        limit: hardened::step_limit(run.mode, &norms),
        roster_change: &roster_change,
    };
    next.params = Arc::new(moved(run, &here.params.layout, &combined.values, step, &mut next.server));
    next.carried = Arc::new(carried(run, &here, &profiles, &mut accepted)?);
    statistics::fill_buffers(Arc::make_mut(&mut next.params), &run.strategy.needs(), &next.carried);
    if let Err(flaw) = finite::check(next) {
        return Ok(ClosedBranch { discarded: true, drift, ..ClosedBranch::unchanged(flaw.to_string()) });
    }
    next.swap(branch);
    record.count(&places, &shares, &combined.counted);
    Ok(ClosedBranch { drift, ..ClosedBranch::default() })
}

/// Number of clients with a weight.
fn weighty(weights: &[f64]) -> usize {
    weights.iter().filter(|weight| **weight > 0.0).count()
}

/// An update that was accepted on arrival.
struct Candidate<'a> {
    /// Its place among the outcomes.
    index: usize,
    /// Its place in the round's record.
    place: usize,
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
