//! Clients that take part in name only: most of their updates failed or were rejected. The others may hide that, since a
//! round goes on without them, and their data are missing in the model.

use super::failed_updates::is_absence;
use fedtvd_core::round::{ClientId, RoundRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A client of which most updates were not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The client.
    pub client: ClientId,
    /// Updates that it sent or failed to make.
    pub updates: u32,
    /// How many of them failed or were rejected.
    pub failed: u32,
}

/// Fewer updates of a client say little about it.
const LEAST: u32 = 3;
/// Clients named in a sentence.
const NAMED: usize = 5;

/// Each client's updates and failures so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(BTreeMap<ClientId, (u32, u32)>);

impl Tally {
    pub(super) fn observe(&mut self, record: &RoundRecord) {
        for client in &record.clients {
            if client.failure.as_ref().is_some_and(is_absence) {
                continue;
            }
            let (updates, failed) = self.0.entry(client.client).or_default();
            *updates += 1;
            *failed += u32::from(client.failure.is_some());
        }
    }

    /// The clients that sent at least three updates, of which more than half were not used.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let all = self.0.iter().map(|(&client, &(updates, failed))| LeftOut { client, updates, failed });
        all.filter(|client| client.updates >= LEAST && 2 * client.failed > client.updates).collect()
    }
}

/// A sentence that names these clients; `None` without any.
pub(super) fn sentence(clients: &[LeftOut]) -> Option<String> {
    let named: Vec<String> = clients
        .iter()
        .take(NAMED)
        .map(|LeftOut { client, updates, failed }| format!("{client} ({failed} of {updates})"))
        .collect();
    let more = match clients.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let of = match clients.len() {
        0 => return None,
        1 => "most updates of this client were not used",
        _ => "most updates of these clients were not used",
    };
    Some(format!("{of}, so that their labels are missing: {}{more}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(clients: &[(ClientId, u32, u32)]) -> Tally {
        Tally(clients.iter().map(|&(client, updates, failed)| (client, (updates, failed))).collect())
    }

    #[test]
    fn a_client_is_left_out_if_most_of_at_least_three_updates_were_not_used() {
        let left_out = tally(&[(1, 12, 12), (2, 12, 6), (3, 12, 7), (4, 2, 2), (5, 9, 0)]).left_out();
        assert_eq!(left_out.iter().map(|own| own.client).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn five_clients_are_named_and_the_others_counted() {
        let clients: Vec<_> = (0..7).map(|client| (client, 4, 4)).collect();
        let sentence = sentence(&tally(&clients).left_out()).expect("seven clients are left out");
        assert!(
            sentence.ends_with(": 0 (4 of 4), 1 (4 of 4), 2 (4 of 4), 3 (4 of 4), 4 (4 of 4) and 2 more")
        );
        assert_eq!(super::sentence(&[]), None);
    }
}
