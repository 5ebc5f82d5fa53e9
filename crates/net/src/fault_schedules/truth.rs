//! What must hold after every operation and after every schedule, whatever the faults were.

use crate::fault_schedules::client::{counts, place};
use crate::fault_schedules::plan::Plan;
use crate::fault_schedules::simulated::model_hashes;
use crate::federation::check_audit;
use crate::federation::coordinator::Terms;
use crate::federation::ledger::{Answer, Closing};
use crate::server::refusal::Refusal;
use fedtvd_core::labels::{Reference, size, tvd};
use fedtvd_core::model::Params;
use fedtvd_core::round::{ClientId, Job, RoundRecord};
use fedtvd_run::directory::{RunDirectory, history};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is known of a schedule so far.
#[derive(Default)]
pub(super) struct Truth {
    /// The hash of each client's job in each round: it is the same however often it is sent.
    jobs: BTreeMap<(u32, ClientId), String>,
    /// Hashes of the updates that clients made.
    made: BTreeMap<String, (u32, ClientId)>,
    /// Hashes of the updates that the server acknowledged, and the run for which it did.
    acknowledged: BTreeMap<(u32, ClientId), BTreeSet<(String, String)>>,
    /// The round's records, counted from 0.
    records: BTreeMap<u32, RoundRecord>,
    /// The model before each round.
    models: BTreeMap<u32, Vec<u32>>,
    reference: Option<Reference>,
    /// Of the last server.
    lease: u64,
}

impl Truth {
    /// A server started with this lease, of a run with this initial model.
    pub(super) fn server_started(&mut self, lease: u64, initial: &Params) {
        assert!(lease > self.lease, "the lease {lease} is not larger than {}", self.lease);
        self.lease = lease;
        self.models.entry(0).or_insert_with(|| bits(&initial.values));
    }

    /// A client got a job.
    pub(super) fn job(&mut self, job: &Job, hash: &str) {
        let round = job.offer.round;
        let known = self.jobs.entry((round, job.client)).or_insert_with(|| hash.to_owned());
        assert_eq!(known, hash, "the job of client {} in round {} has changed", job.client, round + 1);
        let model = self.models.get(&round);
        let model =
            model.unwrap_or_else(|| panic!("round {} began before the last one was recorded", round + 1));
        let sent = bits(&job.offer.params.values);
        assert_eq!(*model, sent, "the model before round {} is not the vector of weights", round + 1);
    }

    /// A client made an update.
    pub(super) fn update(&mut self, round: u32, client: ClientId, hash: &str) {
        self.made.insert(hash.to_owned(), (round, client));
    }

    /// The server let an upload begin, or refused it. What was acknowledged in one round does not begin in the next.
    pub(super) fn admission(&self, round: u32, hash: &str, refusal: Option<&Refusal>) {
        let Some((made, client)) = self.made.get(hash) else { return };
        let counted = self
            .acknowledged
            .get(&(*made, *client))
            .is_some_and(|known| known.iter().any(|(_, known)| known == hash));
        let replayed = counted && made + 1 == round;
        assert!(
            !replayed || refusal.is_some(),
            "client {client} may send its update of round {} again",
            made + 1
        );
    }

    /// The server acknowledged an update.
    pub(super) fn acknowledged(&mut self, run: &str, round: u32, client: ClientId, hash: &str) {
        let hashes = self.acknowledged.entry((round, client)).or_default();
        hashes.insert((run.to_owned(), hash.to_owned()));
        assert_eq!(
            hashes.len(),
            1,
            "two updates of client {client} in round {} were acknowledged",
            round + 1
        );
    }

    /// A round was finished, perhaps for the second time after a restart.
    pub(super) fn record(&mut self, record: &RoundRecord, reference: &Reference) {
        self.reference = Some(reference.clone());
        let after = self.model_after(record, reference);
        let model = self.models.entry(record.round).or_insert_with(|| after.clone());
        assert_eq!(*model, after, "round {} has another result", record.round);
        let known = self.records.entry(record.round - 1).or_insert_with(|| record.clone());
        assert_eq!(known.model_hash, record.model_hash, "round {} has another result", record.round);
        assert_eq!(known.clients, record.clients, "round {} has another cohort", record.round);
    }

    /// The model after a round: the vector of its members' weights, or the model before it.
    fn model_after(&self, record: &RoundRecord, reference: &Reference) -> Vec<u32> {
        let mut model = self.models[&(record.round - 1)].clone();
        if record.unchanged.is_none() {
            model.fill(0);
            for (client, weight) in closed_form(&members(record), reference) {
                model[place(client, record.round - 1)] = weight.to_bits();
            }
        }
        model
    }

    /// Checks a finished run.
    pub(super) fn check_run(&self, plan: &Plan, out: &Path, terms: &Terms) {
        let directory = RunDirectory::open(out).unwrap();
        let lines = directory.lines().unwrap();
        assert_eq!(lines.len(), plan.rounds as usize);
        let run: serde_json::Value = read(&out.join("federation/run.json"));
        let run = run["run"].as_str().unwrap();
        let mut closings = Vec::new();
        for line in &lines {
            let round = line.round - 1;
            assert_eq!(line.model_hash, self.records[&round].model_hash);
            let closing: Closing = read(&out.join(format!("federation/round-{round:06}/closed.json")));
            let updates: BTreeMap<ClientId, &str> = closing
                .answers
                .iter()
                .filter_map(|(client, answer)| match answer {
                    Answer::Update { hash, .. } => Some((*client, hash.as_str())),
                    Answer::Failure(_) => None,
                })
                .collect();
            assert_eq!(
                updates.keys().copied().collect::<BTreeSet<_>>(),
                members(line),
                "round {}",
                line.round
            );
            for (client, hash) in &updates {
                assert_eq!(
                    self.made.get(*hash),
                    Some(&(round, *client)),
                    "round {}: an update that client {client} did not make",
                    line.round
                );
            }
            for ((_, client), hashes) in self.acknowledged.range((round, 0)..(round + 1, 0)) {
                let counted = updates.get(client).map(|hash| (run.to_owned(), (*hash).to_owned()));
                assert_eq!(
                    hashes.iter().next(),
                    counted.as_ref(),
                    "an acknowledged update of client {client} in round {} does not count",
                    line.round
                );
            }
            closings.push(closing);
            let (model, _) = history::model(&directory, &terms.layout, line.round).unwrap();
            assert_eq!(
                self.models[&line.round],
                bits(&model.values),
                "the model after round {} is not the vector of weights",
                line.round
            );
        }
        let simulated = self
            .reference
            .as_ref()
            .map(|reference| model_hashes(terms, plan.model_seed(), reference, closings));
        let recorded = lines.into_iter().map(|line| line.model_hash).collect();
        assert_eq!(simulated, Some(recorded), "the simulation of the same rounds has other models");
        check_audit(&out.join("federation/audit.jsonl"), None).unwrap();
    }

    /// Number of acknowledged updates, and of those that counted.
    pub(super) fn totals(&self) -> (u64, u64) {
        let counted = self.records.values().map(|record| members(record).len() as u64).sum();
        (self.acknowledged.len() as u64, counted)
    }

    /// Hash of the final model.
    pub(super) fn last_model(&self) -> Option<&str> {
        self.records.last_key_value().map(|(_, record)| record.model_hash.as_str())
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The clients whose updates count.
fn members(record: &RoundRecord) -> BTreeSet<ClientId> {
    record.clients.iter().filter(|client| client.failure.is_none()).map(|client| client.client).collect()
}

/// FedTVD's weights of some clients, from the formula: λ softmax(-TVD) + (1 - λ) n / Σ n with λ = 1/2.
fn closed_form(members: &BTreeSet<ClientId>, reference: &Reference) -> Vec<(ClientId, f32)> {
    let number = |client: &ClientId| size(&counts(*client)) as f64;
    let quality = |client: &ClientId| (-tvd(&counts(*client), reference)).exp();
    let (sizes, qualities): (f64, f64) =
        (members.iter().map(number).sum(), members.iter().map(quality).sum());
    let weight = |client: &ClientId| 0.5 * quality(client) / qualities + 0.5 * number(client) / sizes;
    members.iter().map(|client| (*client, weight(client) as f32)).collect()
}
