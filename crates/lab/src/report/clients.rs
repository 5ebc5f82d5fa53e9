//! The table of clients: what became of each client's updates.

use crate::report::csv::csv;
use crate::report::findings::{Report, SettingReport};
use crate::runs::client_updates::ClientUpdates;
use crate::runs::record::Participant;
use fedtvd_core::round::ClientId;
use serde::Serialize;

/// One client in one run.
#[derive(Clone, Copy, Debug, Serialize)]
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
    /// Its updates.
    #[serde(flatten)]
    pub updates: &'a ClientUpdates,
}

/// All clients of a setting's runs, by strategy, seed and client.
pub fn clients(part: &SettingReport) -> impl Iterator<Item = ClientLine<'_>> {
    part.setting.strategies.iter().flat_map(|strategy| {
        strategy.records.iter().flat_map(move |record| {
            record.client_updates.iter().map(move |(client, updates)| ClientLine {
                strategy: &strategy.label,
                seed: record.summary.seed,
                client: *client,
                participant: record.participants.get(client),
                updates,
            })
        })
    })
}

/// The clients with updates that failed, were rejected or were scaled down.
pub fn noteworthy(part: &SettingReport) -> Vec<ClientLine<'_>> {
    clients(part).filter(|line| line.updates.noteworthy()).collect()
}

/// Columns of `clients.csv`.
const COLUMNS: [&str; 13] = [
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
];

/// `clients.csv`: a line per run and client. Values that do not apply are empty.
pub(super) fn table(report: &Report) -> String {
    let field = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let record = |title: &str, line: ClientLine<'_>| {
        let ClientLine { strategy, seed, client, participant, updates } = line;
        vec![
            title.to_owned(),
            strategy.to_owned(),
            seed.to_string(),
            client.to_string(),
            participant.map_or(String::new(), |own| own.size.to_string()),
            field(participant.and_then(|own| own.tvd)),
            field(participant.map(|own| own.weight)),
            updates.selected.to_string(),
            updates.absent.to_string(),
            updates.failed.to_string(),
            updates.scaled.to_string(),
            field(updates.smallest_factor),
            updates.first_failure.clone().unwrap_or_default(),
        ]
    };
    let lines =
        report.parts.iter().flat_map(|part| clients(part).map(|line| record(&part.setting.title, line)));
    csv(std::iter::once(COLUMNS.map(str::to_owned).to_vec()).chain(lines))
}
