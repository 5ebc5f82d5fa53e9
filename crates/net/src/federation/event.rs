//! Events in the server's log: one per line; every kind of refusal has its own code.

use fedtvd_core::round::ClientId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// The server accepts connections.
    Listening {
        /// The address.
        address: String,
    },
    /// A connection was refused before its first request.
    Handshake {
        /// The peer's address.
        peer: String,
        /// The reason, as a code for scripts.
        code: &'static str,
        /// The reason, as a sentence.
        why: String,
    },
    /// A request was refused.
    Refused {
        /// Name of the client, if known.
        client: Option<String>,
        /// The peer's address.
        peer: String,
        /// SHA-256 of the peer's certificate; null without TLS.
        certificate: Option<String>,
        /// The round that the request is about, counted from 1, if it names one.
        round: Option<u32>,
        /// SHA-256 of the update, as announced, if the request has a ticket.
        update: Option<String>,
        /// The reason, as a code for scripts.
        code: &'static str,
        /// The reason, as a sentence.
        why: String,
    },
    /// A client enrolled.
    Enrolled {
        /// The client.
        client: ClientId,
        /// Its name.
        name: String,
        /// Its number of training samples.
        size: u64,
        /// The peer's address.
        peer: String,
        /// SHA-256 of its certificate; null without TLS.
        certificate: Option<String>,
    },
    /// A round began.
    Opened {
        /// The round, counted from 1.
        round: u32,
        /// The selected clients.
        asked: Vec<ClientId>,
        /// Number of enrolled clients.
        roster: usize,
        /// How long it waits for answers; null for no limit.
        deadline_seconds: Option<f64>,
    },
    /// An update was accepted and is on disk.
    Accepted {
        /// The client.
        client: ClientId,
        /// The round, counted from 1.
        round: u32,
        /// Its length.
        bytes: u64,
        /// SHA-256 of the update.
        update: String,
        /// The peer's address.
        peer: String,
        /// SHA-256 of the client's certificate; null without TLS.
        certificate: Option<String>,
    },
    /// A restarted server found an accepted update of the open round on disk, and it counts.
    Recovered {
        /// The client.
        client: ClientId,
        /// The round, counted from 1.
        round: u32,
        /// Its length.
        bytes: u64,
        /// SHA-256 of the update.
        update: String,
    },
    /// A duplicate update; it counts once.
    Again {
        /// The client.
        client: ClientId,
        /// The round, counted from 1.
        round: u32,
        /// SHA-256 of the update.
        update: String,
        /// The peer's address.
        peer: String,
        /// SHA-256 of the client's certificate; null without TLS.
        certificate: Option<String>,
    },
    /// A client failed to train.
    Failed {
        /// The client.
        client: ClientId,
        /// The round, counted from 1.
        round: u32,
        /// The reason.
        why: String,
        /// The peer's address.
        peer: String,
        /// SHA-256 of the client's certificate; null without TLS.
        certificate: Option<String>,
    },
    /// More events of one kind in a minute than are logged one by one.
    Suppressed {
        /// Their code, as in `refused`; or again, failed or full.
        code: &'static str,
        /// Number of events without a line of their own.
        events: u64,
        /// How many of them came from each client or address; at most twenty are named.
        sources: BTreeMap<String, u64>,
    },
    /// A connection could not be accepted: no file descriptors left, or the peer disconnected at once.
    Full {
        /// The system's error.
        why: String,
    },
    /// A round is waiting for answers.
    Waiting {
        /// The round, counted from 1.
        round: u32,
        /// Clients that have not answered.
        clients: Vec<ClientId>,
        /// Their names.
        names: Vec<String>,
    },
    /// A round was closed and takes no more answers.
    Closed {
        /// The round, counted from 1.
        round: u32,
        /// Number of accepted updates.
        accepted: usize,
        /// Clients that did not answer in time.
        late: Vec<ClientId>,
    },
    /// The run went back to an earlier round.
    RolledBack {
        /// The last round before it.
        from: u32,
        /// The round after which the run continues; 0 for the start.
        to: u32,
        /// The folder with what was discarded.
        record: String,
    },
    /// Screening scaled down or rejected an update.
    Screened {
        /// The client.
        client: ClientId,
        /// The round, counted from 1.
        round: u32,
        /// What it did, and why.
        why: String,
    },
    /// A round raised an alarm.
    Alarm {
        /// The round, counted from 1.
        round: u32,
        /// What a person should look at.
        alarm: String,
    },
    /// A note for the operator.
    Note {
        /// The text.
        note: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { address } => write!(f, "listening on {address}"),
            Self::Handshake { peer, code, why } => write!(f, "refused [{code}] {peer}: {why}"),
            Self::Refused { client, peer, code, why, .. } => {
                write!(f, "refused [{code}] {} {peer}: {why}", client.as_deref().unwrap_or("-"))
            }
            Self::Enrolled { client, name, size, .. } => {
                write!(f, "client {client} ({name}) enrolled with {size} samples")
            }
            Self::Opened { round, asked, roster, deadline_seconds } => {
                write!(f, "round {round}: asking {} of {roster} clients", asked.len())?;
                match deadline_seconds {
                    Some(limit) => write!(f, "; waiting at most {limit:.0} s"),
                    None => write!(f, "; waiting for all of them"),
                }
            }
            Self::Accepted { client, round, bytes, .. } => {
                write!(f, "round {round}: update of client {client}, {bytes} bytes")
            }
            Self::Recovered { client, round, bytes, .. } => {
                write!(
                    f,
                    "round {round}: update of client {client}, {bytes} bytes, accepted before the restart"
                )
            }
            Self::Again { client, round, .. } => {
                write!(f, "round {round}: client {client} sent its update again; it counts once")
            }
            Self::Failed { client, round, why, .. } => {
                write!(f, "round {round}: client {client} has no update: {why}")
            }
            Self::Suppressed { code, events, sources } => {
                let named: u64 = sources.values().sum();
                write!(f, "{events} more events [{code}] within a minute")?;
                for (source, events) in sources {
                    write!(f, ", {events} of {source}")?;
                }
                if named < *events { write!(f, ", {} of others", events - named) } else { Ok(()) }
            }
            Self::Full { why } => write!(f, "a connection could not be accepted: {why}"),
            Self::Waiting { round, names, .. } => {
                write!(f, "round {round}: waiting for {}", names.join(", "))
            }
            Self::Closed { round, accepted, late } if late.is_empty() => {
                write!(f, "round {round}: closed with {accepted} updates")
            }
            Self::Closed { round, accepted, late } => {
                write!(f, "round {round}: closed with {accepted} updates; without clients {late:?}")
            }
            Self::RolledBack { from, to, record } => {
                write!(f, "rolled back from round {from} to round {to}; later rounds are kept in {record}")
            }
            Self::Screened { client, round, why } => write!(f, "round {round}: client {client}: {why}"),
            Self::Alarm { round, alarm } => write!(f, "alarm: round {round}: {alarm}"),
            Self::Note { note } => write!(f, "note: {note}"),
        }
    }
}

/// Receives events.
pub type Log = Arc<dyn Fn(&Event) + Send + Sync>;
