//! The client whose update was farthest from the others'.

use super::failed_updates::is_absence;
use super::recent::{magnitude, times};
use fedtvd_core::median::median;
use fedtvd_core::round::hardened::LEAST;
use fedtvd_core::round::{ClientId, ClientRecord, RoundRecord, Screened};

/// The client whose update was farthest from the others' in a round, and how far; `None` if fewer than three clients answered, or
/// if nothing is known about their updates.
pub(super) fn farthest(record: &RoundRecord) -> Option<(ClientId, String)> {
    let answered =
        |client: &&ClientRecord| client.failure.as_ref().is_none_or(|failure| !is_absence(failure));
    let clients: Vec<&ClientRecord> = record.clients.iter().filter(answered).collect();
    if clients.len() < LEAST {
        return None;
    }
    screened(&clients)
        .or_else(|| by(&clients, "distance", |client| client.distance))
        .or_else(|| by(&clients, "norm", |client| client.norm))
}

/// An update that screening would scale down by less than half is not named for it: its distance says more.
const MOST_FACTOR: f64 = 0.5;

/// The client whose update was farthest beyond its bound, if screening scaled it down or rejected it: its distance does not
/// show what it sent. Norms relative to bounds are comparable between parts of an update, norms are not.
fn screened(clients: &[&ClientRecord]) -> Option<(ClientId, String)> {
    // A rejected update has the factor that would have scaled it down, so that both kinds are judged alike.
    let excess = |client: &ClientRecord| {
        let Screened { norm, bound, .. } = client.screened.as_ref()?;
        Some(((bound / norm).powi(2), *norm))
    };
    let all = clients.iter().filter_map(|client| Some((client.client, excess(client)?)));
    let far = all.filter(|(_, (factor, _))| *factor < MOST_FACTOR);
    let (client, (_, norm)) = far.min_by(|(_, (a, x)), (_, (b, y))| a.total_cmp(b).then(y.total_cmp(x)))?;
    Some((client, format!("client {client}, with norm {}", magnitude(norm))))
}

fn by(
    clients: &[&ClientRecord],
    name: &str,
    of: impl Fn(&ClientRecord) -> Option<f64>,
) -> Option<(ClientId, String)> {
    let values: Vec<(ClientId, f64)> = clients
        .iter()
        .filter_map(|client| Some((client.client, of(client).filter(|value| value.is_finite())?)))
        .collect();
    if values.len() < LEAST {
        return None;
    }
    let &(client, value) = values.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let others =
        median(values.iter().filter(|(other, _)| *other != client).map(|(_, value)| *value).collect())?;
    let ratio = (others > 0.0).then(|| format!(", {} their median {name}", times(value / others)));
    Some((client, format!("client {client}{}", ratio.unwrap_or_default())))
}
