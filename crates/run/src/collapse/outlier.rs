//! The client whose update was farthest from the others'.

use super::failed_updates::is_absence;
use super::recent::{magnitude, median, times};
use fedtvd_core::round::{ClientId, ClientRecord, RoundRecord};

/// Fewer clients have no majority to be far from.
const LEAST: usize = 3;

/// The client whose update was farthest from the others' in a round; `None` if fewer than three clients answered, or
/// if nothing is known about their updates.
pub(super) fn farthest(record: &RoundRecord) -> Option<String> {
    let answered =
        |client: &&ClientRecord| client.failure.as_ref().is_none_or(|failure| !is_absence(failure));
    let clients: Vec<&ClientRecord> = record.clients.iter().filter(answered).collect();
    if clients.len() < LEAST {
        return None;
    }
    let what = stopped(&clients)
        .or_else(|| by(&clients, "distance", |client| client.distance))
        .or_else(|| by(&clients, "norm", |client| client.norm))?;
    Some(format!("farthest from the others: {what}"))
}

/// The client that screening scaled down or rejected, with the largest norm: its distance does not show what it sent.
fn stopped(clients: &[&ClientRecord]) -> Option<String> {
    let norm = |client: &ClientRecord| match (&client.screened, &client.failure) {
        (Some(screened), _) => Some(screened.norm),
        (None, Some(_)) => client.norm,
        (None, None) => None,
    };
    let norms = clients.iter().filter_map(|client| Some((client.client, norm(client)?)));
    let (client, norm) = norms.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    Some(format!("client {client}, with norm {}", magnitude(norm)))
}

fn by(clients: &[&ClientRecord], name: &str, of: impl Fn(&ClientRecord) -> Option<f64>) -> Option<String> {
    let values: Vec<(ClientId, f64)> = clients
        .iter()
        .filter_map(|client| Some((client.client, of(client).filter(|value| value.is_finite())?)))
        .collect();
    if values.len() < LEAST {
        return None;
    }
    let &(client, value) = values.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let others =
        median(values.iter().filter(|(other, _)| *other != client).map(|(_, value)| *value).collect());
    let ratio = (others > 0.0).then(|| format!(", {} their median {name}", times(value / others)));
    Some(format!("client {client}{}", ratio.unwrap_or_default()))
}
