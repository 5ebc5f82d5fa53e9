//! What a server tells its log: one event per line, refusals with a code of their own.

use fedtvd_core::round::ClientId;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// Something happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// The server takes connections.
    Listening {
        /// Where.
        address: String,
    },
    /// A connection was turned away before it could ask anything.
    Handshake {
        /// From where.
        peer: String,
        /// Why, for scripts.
        code: &'static str,
        /// Why, for people.
        why: String,
    },
    /// A request was refused.
    Refused {
        /// Whose certificate, where it is known.
        client: Option<String>,
        /// From where.
        peer: String,
        /// Why, for scripts.
        code: &'static str,
        /// Why, for people.
        why: String,
    },
    /// A client said what it has.
    Enrolled {
        /// Who.
        client: ClientId,
        /// Its name.
        name: String,
        /// Its training samples.
        size: u64,
    },
    /// A round began.
    Opened {
        /// Which, counted from 1.
        round: u32,
        /// Clients asked.
        asked: Vec<ClientId>,
        /// Clients enrolled.
        roster: usize,
    },
    /// An update is on the disk.
    Accepted {
        /// Who.
        client: ClientId,
        /// Which round, counted from 1.
        round: u32,
        /// How long.
        bytes: u64,
    },
    /// An update came again; it counts once.
    Again {
        /// Who.
        client: ClientId,
        /// Which round, counted from 1.
        round: u32,
    },
    /// A client could not train.
    Failed {
        /// Who.
        client: ClientId,
        /// Which round, counted from 1.
        round: u32,
        /// Why.
        why: String,
    },
    /// A connection could not be taken: the system has no more files, or a guest left at once.
    Full {
        /// What the system says.
        why: String,
    },
    /// A round has been waiting for a while.
    Waiting {
        /// Which, counted from 1.
        round: u32,
        /// Clients that have not answered.
        clients: Vec<ClientId>,
    },
    /// A round's answers are frozen.
    Closed {
        /// Which, counted from 1.
        round: u32,
        /// Updates that may count.
        accepted: usize,
        /// Clients that did not answer in time.
        late: Vec<ClientId>,
    },
    /// Something that the operator should know.
    Note {
        /// What.
        note: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { address } => write!(f, "listening on {address}"),
            Self::Handshake { peer, code, why } => write!(f, "refused [{code}] {peer}: {why}"),
            Self::Refused { client, peer, code, why } => {
                write!(f, "refused [{code}] {} {peer}: {why}", client.as_deref().unwrap_or("-"))
            }
            Self::Enrolled { client, name, size } => {
                write!(f, "client {client} ({name}) is in with {size} samples")
            }
            Self::Opened { round, asked, roster } => {
                write!(f, "round {round}: asking {} of {roster} clients", asked.len())
            }
            Self::Accepted { client, round, bytes } => {
                write!(f, "round {round}: update of client {client}, {bytes} bytes")
            }
            Self::Again { client, round } => {
                write!(f, "round {round}: client {client} sent its update again; it counts once")
            }
            Self::Failed { client, round, why } => {
                write!(f, "round {round}: client {client} has no update: {why}")
            }
            Self::Full { why } => write!(f, "a connection could not be taken: {why}"),
            Self::Waiting { round, clients } => write!(f, "round {round}: waiting for clients {clients:?}"),
            Self::Closed { round, accepted, late } if late.is_empty() => {
                write!(f, "round {round}: closed with {accepted} updates")
            }
            Self::Closed { round, accepted, late } => {
                write!(f, "round {round}: closed with {accepted} updates; without clients {late:?}")
            }
            Self::Note { note } => write!(f, "note: {note}"),
        }
    }
}

/// Where events go.
pub type Log = Arc<dyn Fn(&Event) + Send + Sync>;
