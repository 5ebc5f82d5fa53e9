//! Client selection and the jobs of the next round. Pure: the same state gives the same jobs.

use crate::matching::{Chain, Cycle};
use crate::round::{ClientId, Job, Offer, Profile, Run, State};
use crate::stream::{Key, Purpose};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The jobs of the next round, in client order.
pub fn plan(run: &Run, state: &State) -> Vec<Job> {
    jobs(run, state, cohort(run, state), Purpose::Job)
}

/// A job for each of these clients, with keys for this purpose. Clients that remember none of their own tensors get the
/// initial values.
fn jobs(run: &Run, state: &State, clients: Vec<ClientId>, purpose: Purpose) -> Vec<Job> {
    let mut offers = BTreeMap::new();
    let cycle = cycle(run, state);
    let job = |client| {
        let accepted = state.accepted.get(&client).copied();
        let branch = if run.strategy.clients_choose() { 0 } else { state.branch_of(client) };
        let [first, later] = offers.entry(branch).or_insert_with(|| offers_of(run, state, branch));
        let offer = Arc::clone(if accepted.is_some() { later } else { first });
        let key = Key::of(run.seed).at(purpose, state.round, client);
        let matching = cycle.as_ref().map(|cycle| cycle.step(client));
        Job { client, key, accepted, matching, offer }
    };
    clients.into_iter().map(job).collect()
}

/// What clients of a branch receive that remember none of their own tensors, and what the others do. If clients choose, it
/// has the models of all branches.
fn offers_of(run: &Run, state: &State, branch: u32) -> [Arc<Offer>; 2] {
    let mut models = state.models().skip(branch as usize).map(Arc::clone);
    let first = Arc::new(Offer {
        round: state.round,
        strategy: run.strategy.label.clone(),
        local: run.local.in_round(state.round),
        class_weights: run.class_weights.clone(),
        reference: state.reference.clone(),
        branch,
        params: models.next().expect("clients are in branches that exist"),
        others: if run.strategy.clients_choose() { models.collect() } else { Vec::new() },
        carried: Arc::clone(&state.carried),
        own: Arc::clone(&state.own),
    });
    let later = match state.own.is_empty() {
        true => Arc::clone(&first),
        false => Arc::new(Offer { own: Arc::default(), ..Offer::clone(&first) }),
    };
    [first, later]
}

/// Where a run that matches networks is; `None` if it matches none, or if its model has no layers to match.
pub(crate) fn cycle(run: &Run, state: &State) -> Option<Cycle> {
    run.strategy.matching?;
    let chain = Chain::of(&state.params.layout).ok()?;
    Some(Cycle::of(&state.combining, &chain))
}

/// What each of these clients needs to make the model that it uses itself, after the round that led to this state.
pub fn plan_own_models(run: &Run, state: &State, clients: Vec<ClientId>) -> Vec<Job> {
    jobs(run, state, clients, Purpose::OwnModel)
}

/// K = max(1, floor(fraction N)): number of clients per round, of N in total.
pub fn cohort_size(fraction: f64, clients: usize) -> usize {
    // A fraction such as 0.29 times 100 must not fall just below its integer.
    ((fraction * clients as f64 + 1e-9) as usize).max(1)
}

/// Number of updates with which a round is complete: one per job, without those of extra clients.
pub fn needed(run: &Run, roster: usize, jobs: usize) -> usize {
    match run.extra {
        0 => jobs,
        _ => cohort_size(run.fraction, roster).min(jobs),
    }
}

/// A group of clients of which every round selects the same number: those with ids below `below`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stratum {
    /// The first client after the group.
    pub below: ClientId,
    /// Clients of the group per round.
    pub count: usize,
}

/// K clients and the extra ones, as the selection rule chooses them from a random order, within each stratum if there is one.
fn cohort(run: &Run, state: &State) -> Vec<ClientId> {
    let mut clients: Vec<&Profile> = state.roster.iter().collect();
    let size = cohort_size(run.fraction, clients.len()).saturating_add(run.extra);
    Key::of(run.cohort_seed).at(Purpose::Cohort, state.round, 0).stream(0).shuffle(&mut clients);
    let choose =
        |from: &[&Profile], count| run.strategy.selection.cohort(from, count, &state.reference, run.mode);
    let mut cohort = match run.stratum {
        None => choose(&clients, size),
        Some(Stratum { below, count }) => {
            let (inside, outside): (Vec<_>, Vec<_>) =
                clients.into_iter().partition(|profile| profile.client < below);
            let mut cohort = choose(&inside, count.min(size));
            cohort.extend(choose(&outside, size.saturating_sub(count)));
            cohort
        }
    };
    cohort.sort_unstable();
    cohort
}
