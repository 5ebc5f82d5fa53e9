//! What is constant during a run, and all that changes.

use crate::labels::Reference;
use crate::memory::Memory;
use crate::model::Params;
use crate::round::enrolment;
use crate::round::{ClientId, Profile, Refusal};
use crate::rules::{Carried, Strategy};
use crate::train::Local;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is constant during a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The strategy.
    pub strategy: Strategy,
    /// Where jobs' keys come from.
    pub seed: u64,
    /// Where cohorts come from.
    pub cohort_seed: u64,
    /// Share of the roster that a round asks.
    pub fraction: f64,
    /// How clients train.
    pub local: Local,
    /// Accepted updates below which a round leaves the model as it is; at least 1.
    pub quorum: usize,
    /// How far clients' claims are believed.
    pub mode: Mode,
    /// Largest size that a client can be enrolled with.
    pub largest_size: u64,
    /// Whether the roster is complete before the first round. A strategy that carries vectors needs that anyway.
    pub fixed_roster: bool,
}

impl Run {
    /// Whether clients may not join after the first round: weights over all of them would change.
    fn needs_roster(&self) -> bool {
        self.fixed_roster || !self.strategy.local.needs().carries.is_empty()
    }
}

/// How far clients' claims about themselves are believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// As the paper has it: claims within their possible range count as they are.
    #[default]
    Paper,
    /// Sizes are capped at the round's median, then weights at 1.6/K.
    Hardened,
}

/// All that changes during a run: plain data, so a checkpoint is its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The next round.
    pub round: u32,
    /// The global model.
    pub params: Arc<Params>,
    /// Q.
    pub reference: Reference,
    /// Enrolled clients, by id.
    pub roster: Vec<Profile>,
    /// The server's copy of vectors that travel beside the model.
    pub carried: Arc<Memory>,
    /// What the weighting remembers.
    pub weighting: Memory,
    /// What the server's step remembers.
    pub server: Memory,
    /// For strategies whose clients remember: each one's last accepted round.
    pub accepted: BTreeMap<ClientId, u32>,
}

impl State {
    /// The state before the first round.
    pub fn new(run: &Run, params: Params, reference: Reference) -> Self {
        let mut carried = Memory::default();
        for Carried { name, extent } in run.strategy.local.needs().carries {
            carried.put(name, vec![0.0f32; extent.len(&params.layout)]);
        }
        Self {
            round: 0,
            params: Arc::new(params),
            reference,
            roster: Vec::new(),
            carried: Arc::new(carried),
            weighting: Memory::default(),
            server: Memory::default(),
            accepted: BTreeMap::new(),
        }
    }

    /// Enrols a client after every check of what it says; its profile holds for the run.
    pub fn enrol(&mut self, run: &Run, profile: Profile) -> Result<(), Refusal> {
        enrolment::check(run, &self.reference, &profile)?;
        match self.roster.binary_search_by_key(&profile.client, |known| known.client) {
            Ok(place) if self.roster[place] == profile => Ok(()),
            Ok(_) => Err(Refusal::Changed { client: profile.client }),
            Err(_) if run.needs_roster() && self.round > 0 => {
                Err(Refusal::RosterClosed { client: profile.client })
            }
            Err(place) => {
                self.roster.insert(place, profile);
                Ok(())
            }
        }
    }

    /// The profile of an enrolled client.
    pub fn profile(&self, client: ClientId) -> Option<&Profile> {
        let place = self.roster.binary_search_by_key(&client, |known| known.client).ok()?;
        Some(&self.roster[place])
    }
}
