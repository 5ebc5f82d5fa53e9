//! The table of clients: what became of each client's updates.

use crate::report::csv::csv;
use crate::report::findings::{Report, SettingReport};
use crate::runs::client_updates::ClientUpdates;
use crate::runs::record::Participant;
use fedtvd_core::round::ClientId;
use fedtvd_run::directory::ClientResult;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One client in one run.
#[derive(Clone, Debug, Serialize)]
pub struct ClientLine<'a> {
    /// The strategy's label.
    pub strategy: &'a str,
    /// The seed.
    pub seed: u64,
    /// The client.
    pub client: ClientId,
    /// Its size, skew and mean weight; `None` if none of its updates was used.
    #[serde(skip)]
    pub participant: Option<&'a Participant>,
    /// Its updates; none if it was never selected.
    #[serde(flatten)]
    pub updates: ClientUpdates,
    /// The final model on its own hold-out; `None` without one.
    #[serde(skip)]
    pub result: Option<&'a ClientResult>,
}

/// All clients of a setting's runs, by strategy, seed and client.
pub fn clients(part: &SettingReport) -> impl Iterator<Item = ClientLine<'_>> {
    part.setting.strategies.iter().flat_map(|strategy| {
        strategy.records.iter().flat_map(move |record| {
            let results: BTreeMap<ClientId, &ClientResult> =
                record.client_results.iter().flatten().map(|result| (result.client, result)).collect();
            let all: BTreeSet<ClientId> =
                record.client_updates.keys().copied().chain(results.keys().copied()).collect();
            all.into_iter().map(move |client| ClientLine {
                strategy: &strategy.label,
                seed: record.summary.seed,
                client,
                participant: record.participants.get(&client),
                updates: record.client_updates.get(&client).cloned().unwrap_or_default(),
                result: results.get(&client).copied(),
            })
        })
    })
}

/// The clients with updates that failed, were rejected or were scaled down.
pub fn noteworthy(part: &SettingReport) -> Vec<ClientLine<'_>> {
    clients(part).filter(|line| line.updates.noteworthy()).collect()
}

/// Columns of `clients.csv`.
const COLUMNS: [&str; 16] = [
    "setting",
    "strategy",
    "seed",
    "client",
    "size",
    "tvd",
    "weight",
    "selected",
    "absent",
    "failed",
    "scaled",
    "smallest_factor",
    "first_failure",
    "holdout",
    "holdout_accuracy",
    "holdout_loss",
];

/// `clients.csv`: a line per run and client. Values that do not apply are empty.
pub(super) fn table(report: &Report) -> String {
    let field = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let record = |title: &str, line: ClientLine<'_>| {
        let ClientLine { strategy, seed, client, participant, updates, result } = line;
        let size = participant.map(|own| own.size).or(result.map(|own| own.size));
        vec![
            title.to_owned(),
            strategy.to_owned(),
            seed.to_string(),
            client.to_string(),
            size.map_or(String::new(), |size| size.to_string()),
            field(participant.and_then(|own| own.tvd).or(result.map(|own| own.tvd))),
            field(participant.map(|own| own.weight)),
            updates.selected.to_string(),
            updates.absent.to_string(),
            updates.failed.to_string(),
            updates.scaled.to_string(),
            field(updates.smallest_factor),
            updates.first_failure.unwrap_or_default(),
            result.map_or(String::new(), |own| own.holdout.to_string()),
            field(result.map(|own| own.accuracy)),
            field(result.and_then(|own| own.loss)),
        ]
    };
    let lines =
        report.parts.iter().flat_map(|part| clients(part).map(|line| record(&part.setting.title, line)));
    csv(std::iter::once(COLUMNS.map(str::to_owned).to_vec()).chain(lines))
}
