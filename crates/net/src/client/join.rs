//! `join`: a client that connects, pulls work, and reconnects after every failure until the federation is over.

use crate::client::policy::{Policy, Violation};
use crate::client::sent_log::SentLog;
use crate::client::session::Session;
use crate::client::{ConnectionError, Security, SiteData, SiteError, TableUse};
use crate::wire;
use fedtvd_run::attack::Attack;
use fedtvd_run::backend::Device;
use fedtvd_run::directory::FileError;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use thiserror::Error;

/// What a client needs to take part.
#[derive(Clone)]
pub struct Options {
    /// HOST:PORT, or @FILE: a file that holds it and is read again for each attempt.
    pub server: String,
    /// How it proves its identity.
    pub security: Security,
    /// Its data.
    pub data: SiteData,
    /// Folder for what it must remember between rounds.
    pub folder: PathBuf,
    /// How it lies to the server; `None` for an honest client.
    pub attack: Option<Attack>,
    /// What the site agrees to.
    pub policy: Policy,
    /// SHA-256 of the authority's certificates, by which the site remembers what it disclosed; empty without TLS.
    pub authority: String,
    /// The name of its data in `sent.jsonl`, by which the site remembers what it disclosed.
    pub data_name: String,
    /// How long it tries without success before it gives up; `None` to try for ever.
    pub give_up: Option<Duration>,
    /// What trains.
    pub device: Device,
}

impl Options {
    /// An honest client with the default policy, which trains on the CPU.
    pub fn new(server: String, security: Security, data: SiteData, folder: PathBuf) -> Self {
        let (policy, authority, data_name) = (Policy::default(), String::new(), String::new());
        let (attack, give_up, device) = (None, None, Device::default());
        Self { server, security, data, folder, attack, policy, authority, data_name, give_up, device }
    }

    /// The list of what leaves the site.
    pub(crate) fn sent_log(&self) -> Result<Arc<SentLog>, FileError> {
        let (authority, data) = (self.authority.clone(), self.data_name.clone());
        Ok(Arc::new(SentLog::open(self.folder.join("sent.jsonl"), authority, data, self.policy.clone())?))
    }
}

/// What a client reports to its user.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// What the server's schema reads of its table, before anything about it is sent.
    Reads(TableUse),
    /// Its table was read with the server's schema, with these notes.
    Read(Vec<String>),
    /// It has sent the statistics of its columns and waits for those of the other sites.
    Gathering,
    /// It has connected.
    Joined(wire::Welcome),
    /// It is training in this round, counted from 1.
    Training(u32),
    /// Its update is on the server's disk.
    Sent(u32),
    /// The site's policy did not allow the job of this round.
    Declined(u32, Violation),
    /// The server refused its work.
    Refused(ConnectionError),
    /// It could not continue and will try again.
    Waiting(String),
}

/// What became of a client's work by the end of the federation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Number of rounds.
    pub rounds: u32,
    /// SHA-256 of the final model.
    pub model_hash: String,
    /// Updates that the server stored, since this process started.
    pub stored: u32,
    /// Work that the server refused, since this process started.
    pub refused: u32,
}

/// Why a client gives up.
#[derive(Debug, Error)]
pub enum JoinError {
    /// The server refused it for good.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// It cannot do the work.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The site's policy does not allow the work.
    #[error(transparent)]
    Policy(#[from] Violation),
    /// It cannot store what it must remember.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Refusals that another attempt cannot change.
const FINAL: [&str; 8] = [
    "columns-invalid",
    "unknown-certificate",
    "revoked",
    "wrong-protocol",
    "not-in-roster",
    "size-above-listed",
    "holdout-above-listed",
    "not-client",
];

/// The refusal of a statistic that the server no longer asks for: the next survey may ask for another.
const OUTDATED: &str = "profile-statistic";

impl JoinError {
    /// Whether it is a mistake of the server's operator, if the client has joined before: another data set or model, or an
    /// earlier list of clients.
    fn mistake(&self) -> bool {
        match self {
            Self::Connection(ConnectionError::Refused { code, .. }) => code == "unknown-certificate",
            Self::Site(SiteError::Shape { .. } | SiteError::Classes { .. }) => true,
            _ => false,
        }
    }

    /// Whether it is about the certificate: with a renewed one, another attempt may succeed.
    fn about_certificate(&self) -> bool {
        let codes = ["revoked", "expired", "unknown-certificate"];
        matches!(self, Self::Connection(ConnectionError::Refused { code, .. }) if codes.contains(&code.as_str()))
    }

    /// Whether another attempt may succeed.
    pub(crate) fn passing(&self) -> bool {
        match self {
            Self::Connection(ConnectionError::Refused { code, passing, .. }) => {
                *passing
                    || !(FINAL.contains(&code.as_str())
                        || code.starts_with("profile-") && code != OUTDATED
                        || code == "roster-closed")
            }
            // The page of a proxy, another server on the port, or a certificate that is about to be renewed.
            Self::Connection(
                ConnectionError::Lost(_) | ConnectionError::Unlisted(_) | ConnectionError::Tls { .. },
            ) => true,
            // Space may be freed.
            Self::File(error) | Self::Site(SiteError::File(error)) => {
                matches!(error.error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            }
            Self::Connection(
                ConnectionError::Version(_) | ConnectionError::Address(_) | ConnectionError::Elsewhere(_),
            )
            | Self::Site(_)
            | Self::Policy(_) => false,
        }
    }
}

/// Takes part until the federation is over; blocks.
pub fn take_part(options: Options, report: &(dyn Fn(&Progress) + Sync)) -> Result<Outcome, JoinError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ConnectionError::Lost(error.to_string()))?;
    runtime.block_on(join(options, report))
}

/// Takes part until the federation is over.
pub async fn join(options: Options, report: &(dyn Fn(&Progress) + Sync)) -> Result<Outcome, JoinError> {
    let (stored, refused) = (AtomicU32::new(0), AtomicU32::new(0));
    let report = &|progress: &Progress| {
        match progress {
            Progress::Sent(_) => drop(stored.fetch_add(1, Relaxed)),
            Progress::Refused(_) => drop(refused.fetch_add(1, Relaxed)),
            _ => {}
        }
        report(progress);
    };
    let mut session = Session::new(&options, report)?;
    loop {
        match session.connect().await {
            Ok(wire::Finished { rounds, model_hash }) => {
                let (stored, refused) = (stored.load(Relaxed), refused.load(Relaxed));
                return Ok(Outcome { rounds, model_hash, stored, refused });
            }
            // The operator revokes the previous certificate once the site has its new one.
            Err(error) if error.about_certificate() && session.certificate_renewed() => {
                report(&Progress::Waiting(format!("{error}; the certificate was renewed")));
            }
            Err(error) if session.backoff.gives_up(options.give_up) => return Err(error),
            Err(error) if !(error.passing() || session.joined && error.mistake()) => return Err(error),
            Err(error) => {
                report(&Progress::Waiting(error.to_string()));
                tokio::time::sleep(session.backoff.delay()).await;
            }
        }
    }
}

pub(crate) fn address(server: &str) -> Result<String, ConnectionError> {
    match server.strip_prefix('@') {
        None => Ok(server.to_owned()),
        Some(file) => std::fs::read_to_string(file)
            .map(|text| text.trim().to_owned())
            .map_err(|error| ConnectionError::Lost(format!("reading {file}: {error}"))),
    }
}

/// Runs blocking work on a thread where it does not hold up the connection.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
