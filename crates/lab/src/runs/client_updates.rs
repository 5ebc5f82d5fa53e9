//! What became of each client's updates in a run.

use fedtvd_core::round::{ClientId, RoundRecord};
use fedtvd_run::collapse::is_absence;
use serde::Serialize;
use std::collections::BTreeMap;

/// The updates of one client over all rounds of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClientUpdates {
    /// Rounds in which it was selected.
    pub selected: u32,
    /// Rounds in which it did not answer.
    pub absent: u32,
    /// Updates that failed or were rejected.
    pub failed: u32,
    /// Updates that were scaled down.
    pub scaled: u32,
    /// The smallest factor by which an update was scaled down.
    pub smallest_factor: Option<f64>,
    /// Why its first failed update was not used.
    pub first_failure: Option<String>,
}

impl ClientUpdates {
    /// Whether an update failed, was rejected or was scaled down.
    pub fn noteworthy(&self) -> bool {
        self.failed > 0 || self.scaled > 0
    }
}

/// The updates of every client that was selected in these rounds.
pub(crate) fn client_updates(lines: &[RoundRecord]) -> BTreeMap<ClientId, ClientUpdates> {
    let mut all: BTreeMap<ClientId, ClientUpdates> = BTreeMap::new();
    for client in lines.iter().flat_map(|line| &line.clients) {
        let own = all.entry(client.client).or_default();
        own.selected += 1;
        match &client.failure {
            Some(failure) if is_absence(failure) => own.absent += 1,
            Some(failure) => {
                own.failed += 1;
                own.first_failure.get_or_insert_with(|| failure.to_string());
            }
            None => {}
        }
        // A rejected update has failed already.
        if let (Some(screened), None) = (&client.screened, &client.failure) {
            own.scaled += 1;
            let least = own.smallest_factor.map_or(screened.factor, |least| least.min(screened.factor));
            own.smallest_factor = Some(least);
        }
    }
    all
}
