//! Who asks: a client by its certificate and the list of clients, or the operator, or nobody.

use crate::admission::Member;
use crate::allow::{AllowError, Watched};
use crate::door::Guest;
use crate::event::{Event, Log};
use crate::refusal::Refusal;
use fedtvd_core::profile::ClientId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How the server knows who asks.
pub(crate) enum Identity {
    /// By certificate, listed in a file; the operator's is the server's own.
    Certificates {
        /// The list.
        list: Arc<Watched>,
        /// The server's own certificate.
        operator: String,
    },
    /// By what it says: without TLS, between processes of one machine.
    Claimed,
}

/// Who asks, and from where.
pub(crate) struct Caller {
    pub(crate) name: Option<String>,
    pub(crate) peer: String,
    pub(crate) asks: Result<Asker, Refusal>,
}

/// Those who may ask.
pub(crate) enum Asker {
    Client(Member),
    Operator,
}

/// Most characters of what a client says it is called.
const LONGEST_NAME: usize = 80;

impl Identity {
    /// Who is at the other end of a connection, and says this of itself.
    pub(crate) fn caller(&self, guest: Option<&Guest>, said: &str, log: &Log) -> Caller {
        let peer = guest.map_or_else(|| "-".to_owned(), |guest| guest.peer.clone());
        match self {
            Self::Claimed => {
                let name: String = said.chars().take(LONGEST_NAME).collect();
                let asks = match said.parse() {
                    Ok(id) => Ok(Asker::Client(Member { id, name: name.clone(), max_size: u64::MAX })),
                    Err(_) if said == "operator" => Ok(Asker::Operator),
                    Err(_) => Err(Refusal::NoName(name.clone())),
                };
                Caller { name: Some(name), peer, asks }
            }
            Self::Certificates { list, operator } => {
                let fingerprint = guest.and_then(|guest| guest.certificate.as_deref()).unwrap_or("none");
                if fingerprint == operator {
                    return Caller { name: Some("operator".to_owned()), peer, asks: Ok(Asker::Operator) };
                }
                let (list, trouble) = list.current();
                stale(trouble, log);
                let listed = list.find(fingerprint);
                let asks = match listed {
                    None => Err(Refusal::Unknown(fingerprint.to_owned())),
                    Some(entry) if entry.revoked => Err(Refusal::Revoked(entry.name.clone())),
                    Some(entry) => {
                        let (name, max_size) = (entry.name.clone(), entry.max_size);
                        Ok(Asker::Client(Member { id: entry.id, name, max_size }))
                    }
                };
                Caller { name: listed.map(|entry| entry.name.clone()), peer, asks }
            }
        }
    }

    /// The clients that have a valid certificate; none where there are no certificates.
    pub(crate) fn valid(&self, log: &Log) -> Option<BTreeSet<ClientId>> {
        let Self::Certificates { list, .. } = self else { return None };
        let (list, trouble) = list.current();
        stale(trouble, log);
        Some(list.valid())
    }
}

/// Tells that a changed list does not read.
fn stale(trouble: Option<AllowError>, log: &Log) {
    if let Some(error) = trouble {
        log(&Event::Note { note: format!("the list of clients stays as it was: {error}") });
    }
}
