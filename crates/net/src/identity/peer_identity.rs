//! The identity behind a request: a client by its certificate and the list of clients, the operator, or nobody.

use crate::federation::admission::Member;
use crate::federation::{Event, Log};
use crate::identity::AllowList;
use crate::identity::certificate_file::CertificateFile;
use crate::identity::file_version::Change;
use crate::identity::watched_list::Watched;
use crate::server::connections::Peer;
use crate::server::refusal::Refusal;
use fedtvd_core::round::ClientId;
use std::collections::BTreeSet;
use std::sync::Arc;
use time::OffsetDateTime;

/// How the server knows who sends a request.
pub(crate) enum Authentication {
    /// By a certificate that is listed in a file; the operator's is the server's own.
    Certificates {
        /// The list.
        list: Arc<Watched>,
        /// The server's own certificate.
        own: Arc<CertificateFile>,
    },
    /// By what the request claims: without TLS, between processes of one machine.
    Claimed,
}

/// Who sends a request, and from where.
pub(crate) struct Caller {
    pub(crate) name: Option<String>,
    pub(crate) address: String,
    /// SHA-256 of its certificate; none without TLS.
    pub(crate) certificate: Option<String>,
    pub(crate) role: Result<Role, Refusal>,
}

/// Those who may send requests.
pub(crate) enum Role {
    Client(Member),
    Operator,
}

/// Those who may take part at a moment.
pub(crate) struct Valid {
    /// The clients that have a valid certificate.
    pub(crate) clients: BTreeSet<ClientId>,
    /// SHA-256 of all valid certificates, the server's own among them.
    pub(crate) certificates: BTreeSet<String>,
}

/// Maximum number of characters of the name that a client claims.
const LONGEST_NAME: usize = 80;

impl Authentication {
    /// Who is at the other end of a connection and claims this of itself.
    pub(crate) fn caller(&self, peer: Option<&Peer>, claimed: &str, log: &Log) -> Caller {
        let address = peer.map_or_else(|| "-".to_owned(), |peer| peer.address.clone());
        let certificate = peer.and_then(|peer| peer.certificate.as_deref()).map(str::to_owned);
        let member = |id, name, max_size| {
            let (peer, certificate) = (address.clone(), certificate.clone());
            Ok(Role::Client(Member { id, name, max_size, peer, certificate }))
        };
        match self {
            Self::Claimed => {
                let name: String = claimed.chars().take(LONGEST_NAME).collect();
                let role = match claimed.parse() {
                    Ok(id) => member(id, name.clone(), u64::MAX),
                    Err(_) if claimed == "operator" => Ok(Role::Operator),
                    Err(_) => Err(Refusal::NoName(name.clone())),
                };
                Caller { name: Some(name), address, certificate, role }
            }
            Self::Certificates { list, own } => {
                let fingerprint = certificate.as_deref().unwrap_or("none");
                let (list, change) = list.current();
                log_list(change, log);
                let listed = list.find(fingerprint);
                if listed.is_none() && is_own(own, fingerprint, log) {
                    let name = Some("operator".to_owned());
                    return Caller { name, address, certificate, role: Ok(Role::Operator) };
                }
                let role = match listed {
                    None => Err(Refusal::Unknown(fingerprint.to_owned())),
                    Some(entry) if entry.revoked => Err(Refusal::Revoked(entry.name.clone())),
                    Some(entry) if entry.expired() => {
                        let (name, expires) = (entry.name.clone(), entry.expires.clone());
                        Err(Refusal::Expired { name, expires })
                    }
                    Some(entry) => member(entry.id, entry.name.clone(), entry.max_size),
                };
                Caller { name: listed.map(|entry| entry.name.clone()), address, certificate, role }
            }
        }
    }

    /// The list of clients; none without TLS.
    pub(crate) fn list(&self) -> Option<Arc<AllowList>> {
        match self {
            Self::Claimed => None,
            Self::Certificates { list, .. } => Some(list.current().0),
        }
    }

    /// Why the list of clients in force is not that of the file, so that a revocation may be missing, if it is not.
    pub(crate) fn unreadable_list(&self) -> Option<String> {
        match self {
            Self::Claimed => None,
            Self::Certificates { list, .. } => list.unreadable(),
        }
    }

    /// When the server's certificate expires; none without TLS.
    pub(crate) fn server_expires(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Claimed => None,
            Self::Certificates { own, .. } => own.expires(),
        }
    }

    /// Reads the list of clients again; a sentence about what it says.
    pub(crate) fn reload(&self) -> String {
        match self {
            Self::Claimed => "reload: without TLS there is no list of clients".to_owned(),
            Self::Certificates { list, .. } => match list.reload() {
                Ok(list) => format!("reload: {}", list.summary()),
                Err(error) => format!("reload: the previous list of clients remains in force: {error}"),
            },
        }
    }

    /// What is valid now, and reads a renewed server certificate; none without TLS.
    pub(crate) fn valid(&self, log: &Log) -> Option<Valid> {
        let Self::Certificates { list, own } = self else { return None };
        let (list, change) = list.current();
        log_list(change, log);
        log_certificate(own.refresh(), log);
        let valid = list.clients.iter().filter(|entry| entry.valid());
        let mut certificates: BTreeSet<String> = valid.map(|entry| entry.fingerprint.clone()).collect();
        certificates.insert(own.fingerprint());
        Some(Valid { clients: list.valid(), certificates })
    }
}

/// Whether a certificate is the server's own, also right after it was renewed.
fn is_own(own: &CertificateFile, fingerprint: &str, log: &Log) -> bool {
    if own.fingerprint() == fingerprint {
        return true;
    }
    log_certificate(own.refresh(), log);
    own.fingerprint() == fingerprint
}

/// Logs whether a renewed server certificate can be used.
fn log_certificate(change: Option<Change>, log: &Log) {
    let note = match change {
        None => return,
        Some(Change::Unusable(why)) => format!("the previous server certificate remains in use: {why}"),
        Some(Change::Usable) => "the server certificate can be used again".to_owned(),
    };
    log(&Event::Note { note });
}

/// Logs whether a changed list can be read.
fn log_list(change: Option<Change>, log: &Log) {
    let note = match change {
        None => return,
        Some(Change::Unusable(why)) => format!("the previous list of clients remains in force: {why}"),
        Some(Change::Usable) => "the list of clients can be read again".to_owned(),
    };
    log(&Event::Note { note });
}
