//! What is constant during a run, and everything that changes.

use crate::labels::Reference;
use crate::memory::Memory;
use crate::model::Params;
use crate::round::enrolment;
use crate::round::job::OWN;
use crate::round::{Branch, ClientId, Profile, Refusal, Stratum};
use crate::rules::{Carried, Extent, Strategy};
use crate::train::{ClassWeights, Local};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is constant during a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The strategy.
    pub strategy: Strategy,
    /// Seed of the jobs' keys.
    pub seed: u64,
    /// Seed of client selection.
    pub cohort_seed: u64,
    /// Fraction of the roster selected per round.
    pub fraction: f64,
    /// Clients that are asked beyond the cohort; a round needs no more updates for them.
    pub extra: usize,
    /// A group of which every round selects the same number of clients; `None` to draw all clients alike.
    pub stratum: Option<Stratum>,
    /// How clients train.
    pub local: Local,
    /// Weights of the classes in the clients' losses.
    pub class_weights: ClassWeights,
    /// Minimum number of accepted updates, at least 1, and more in hardened mode; with fewer, a round leaves the model
    /// unchanged.
    pub quorum: usize,
    /// How far clients' claims are trusted.
    pub mode: Mode,
    /// In hardened mode, how far the norm of an update may be above the median, in median absolute deviations.
    pub screen: f64,
    /// Largest size that a client may claim.
    pub largest_size: u64,
    /// Whether all clients must be enrolled before the first round. Strategies that keep sums over all clients need that
    /// anyway.
    pub fixed_roster: bool,
}

impl Run {
    /// Whether clients may not join after the first round, because weights over the whole roster would change.
    pub fn needs_roster(&self) -> bool {
        self.fixed_roster || self.strategy.needs_roster()
    }
}

/// How far clients' claims about themselves are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As in the paper: every possible claim is taken at face value.
    #[default]
    Paper,
    /// Weights are capped, large updates scaled down, and rounds of few clients change nothing.
    Hardened,
}

/// Everything that changes during a run: plain data, which a checkpoint stores as bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The next round.
    pub round: u32,
    /// The global model: the tensors that travel.
    pub params: Arc<Params>,
    /// Initial values of the tensors that stay at clients; empty if all travel.
    pub own: Arc<Memory>,
    /// The reference label distribution Q.
    pub reference: Reference,
    /// Enrolled clients, by id.
    pub roster: Vec<Profile>,
    /// The server's copy of the carried vectors.
    pub carried: Arc<Memory>,
    /// Memory of the weighting rule.
    pub weighting: Memory,
    /// Memory of the rule that combines updates.
    pub combining: Memory,
    /// Memory of the server rule.
    pub server: Memory,
    /// Memory of the screening: norms of recent updates.
    pub screening: Memory,
    /// The models of further branches; model and memories of the first are those above.
    pub branches: Vec<Branch>,
    /// The branch of each client that has taken part, for strategies with several models.
    pub members: BTreeMap<ClientId, u32>,
    /// The last accepted round of each client, for strategies whose clients keep a memory.
    pub accepted: BTreeMap<ClientId, u32>,
}

impl State {
    /// The state before the first round, with the initial values of the whole model.
    pub fn new(run: &Run, whole: Params, reference: Reference) -> Self {
        let parts = run.strategy.parts(&whole.layout);
        let mut own = Memory::default();
        if !parts.all_travel() {
            own.put(OWN, parts.own_of(&whole));
        }
        let further = (1..run.strategy.models() as u32)
            .map(|branch| {
                let whole = Params::initial_of(Arc::clone(&whole.layout), run.seed, branch);
                Branch {
                    params: Arc::new(parts.shared_of(whole)),
                    weighting: Memory::default(),
                    combining: Memory::default(),
                    server: Memory::default(),
                    parent: None,
                    direction: Vec::new(),
                }
            })
            .collect();
        let params = parts.shared_of(whole);
        Self {
            round: 0,
            carried: Arc::new(beginning(run, &params)),
            params: Arc::new(params),
            own: Arc::new(own),
            reference,
            roster: Vec::new(),
            weighting: Memory::default(),
            combining: Memory::default(),
            server: Memory::default(),
            screening: Memory::default(),
            branches: further,
            members: BTreeMap::new(),
            accepted: BTreeMap::new(),
        }
    }

    /// Enrols a client after checking its profile, which is fixed for the run.
    pub fn enrol(&mut self, run: &Run, profile: Profile) -> Result<(), Refusal> {
        enrolment::check(run, &self.reference, &profile)?;
        match self.roster.binary_search_by_key(&profile.client, |known| known.client) {
            Ok(place) => {
                let (client, size, known) = (profile.client, profile.size, &self.roster[place]);
                // What the operator lists may change; what the client says may not.
                if (Profile { listed: known.listed, ..profile } == *known) {
                    return Ok(());
                }
                let what = match known.size == size {
                    true => "its number of training samples is the same, their labels are not".to_owned(),
                    false => format!("{} training samples at enrolment, {size} now", known.size),
                };
                Err(Refusal::Changed { client, what })
            }
            Err(_) if run.needs_roster() && self.round > 0 => {
                Err(Refusal::RosterClosed { client: profile.client })
            }
            Err(place) => {
                self.roster.insert(place, profile);
                Ok(())
            }
        }
    }

    /// Lets all clients begin again without memories. The server's copies of carried vectors begin again too, so that
    /// they remain the means of the clients' parts, and so does a server rule's sum over the clients.
    pub fn restart_memories(&mut self, run: &Run) {
        self.carried = Arc::new(beginning(run, &self.params));
        self.accepted.clear();
        if run.strategy.server.sums_clients() {
            self.server = Memory::default();
        }
        // Norms of changes from other variates say nothing about those to come.
        self.screening = Memory::default();
    }

    /// The profile of an enrolled client.
    pub fn profile(&self, client: ClientId) -> Option<&Profile> {
        let place = self.roster.binary_search_by_key(&client, |known| known.client).ok()?;
        Some(&self.roster[place])
    }
}

/// The carried vectors before the first round.
fn beginning(run: &Run, params: &Params) -> Memory {
    let mut carried = Memory::default();
    for Carried { name, extent } in run.strategy.needs().carries {
        carried.put(
            name,
            match extent {
                Extent::Trainable => vec![0.0f32; params.layout.trainable()],
                Extent::Buffers => params.values[params.layout.trainable()..].to_vec(),
            },
        );
    }
    carried
}
