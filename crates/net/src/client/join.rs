//! `join`: a client that connects, pulls work, and reconnects after every failure until the federation is over.

use crate::client::backoff::Backoff;
use crate::client::enrol::enrol;
use crate::client::site::Site;
use crate::client::site_data::Readable;
use crate::client::{Connection, ConnectionError, Security, SiteData, SiteError, Task};
use crate::wire;
use fedtvd_run::attack::Attack;
use fedtvd_run::directory::{FileError, sha256};
use prost::bytes::Bytes;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
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
}

/// What a client reports to its user.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
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

/// Refusals after which the server asks for the same again.
const REPEATED: [&str; 4] = ["too-long", "too-short", "bad-hash", "bad-counts"];

impl JoinError {
    /// Whether another attempt may succeed.
    fn passing(&self) -> bool {
        match self {
            Self::Connection(ConnectionError::Refused { code, passing, .. }) => {
                *passing
                    || !(FINAL.contains(&code.as_str())
                        || code.starts_with("profile-") && code != OUTDATED
                        || code == "roster-closed")
            }
            Self::Connection(ConnectionError::Lost(_) | ConnectionError::Tls { code: "tls-failed", .. }) => {
                true
            }
            // Space may be freed.
            Self::File(error) | Self::Site(SiteError::File(error)) => {
                matches!(error.error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            }
            Self::Connection(
                ConnectionError::Tls { .. }
                | ConnectionError::Version(_)
                | ConnectionError::Address(_)
                | ConnectionError::Elsewhere(_),
            )
            | Self::Site(_) => false,
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
    let mut backoff = Backoff::default();
    let (mut unsent, mut read) = (None, None);
    loop {
        match session(&options, report, &mut backoff, &mut unsent, &mut read).await {
            Ok(wire::Finished { rounds, model_hash }) => {
                let (stored, refused) = (stored.load(Relaxed), refused.load(Relaxed));
                return Ok(Outcome { rounds, model_hash, stored, refused });
            }
            Err(error) if !error.passing() => return Err(error),
            Err(error) => {
                report(&Progress::Waiting(error.to_string()));
                tokio::time::sleep(backoff.delay()).await;
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

/// The result of a job that the server has not acknowledged yet, so that the same job is not trained twice.
struct Unsent {
    /// Hash of the job.
    job: String,
    /// The update's bytes, or why there are none.
    update: Result<Bytes, String>,
}

/// One connection, from Hello to its end.
async fn session(
    options: &Options,
    report: &(dyn Fn(&Progress) + Sync),
    backoff: &mut Backoff,
    unsent: &mut Option<Unsent>,
    read: &mut Option<(String, Readable)>,
) -> Result<wire::Finished, JoinError> {
    let mut connection = Connection::dial(&address(&options.server)?, &options.security).await?;
    let welcome = connection.hello().await?;
    // A table is read again only if the schema has changed, which it does once, when it is completed.
    if read.as_ref().is_none_or(|(schema, _)| *schema != welcome.schema) {
        let (schema, data) = (welcome.schema.clone(), options.data.clone());
        let found = blocking(move || data.read(&schema)).await?;
        if !found.notes.is_empty() && read.is_none() {
            report(&Progress::Read(found.notes.clone()));
        }
        *read = Some((welcome.schema.clone(), found));
    }
    let Some((_, data)) = read else { return Err(ConnectionError::Lost("no data".to_owned()).into()) };
    let data = data.clone().standardised(&welcome.run, &mut connection, report).await?;
    let mut site = {
        let (welcome, options) = (welcome.clone(), options.clone());
        blocking(move || Site::new(&welcome, &options, &data)).await?
    };
    let run = welcome.run.clone();
    report(&Progress::Joined(welcome.clone()));
    loop {
        let task = connection.pull(&run).await?;
        match task {
            // Only accepted work, or no work at all, counts as a success: a server that refuses everything is asked
            // less and less often.
            Task::Wait => backoff.reset(),
            Task::Finished(finished) => return Ok(finished),
            Task::Survey(survey) => enrol(&mut connection, &mut site, &run, &survey).await?,
            Task::Evaluate(round, model) => {
                let found;
                (site, found) = blocking(move || {
                    let found = site.evaluate(&model);
                    (site, found)
                })
                .await;
                let evaluated = match found {
                    Ok(found) => connection.evaluate(&run, round, found).await,
                    Err(why) => Err(ConnectionError::Lost(format!("the model cannot be read: {why}"))),
                };
                settle(evaluated, report, backoff).await?;
            }
            Task::Train(round, job) => {
                let hash = sha256(&job);
                if unsent.as_ref().is_none_or(|unsent| unsent.job != hash) {
                    report(&Progress::Training(round + 1));
                    let trained;
                    (site, trained) = blocking(move || {
                        let trained = site.train(&job);
                        (site, trained)
                    })
                    .await;
                    let update = trained?.map(Bytes::from).map_err(|failure| failure.to_string());
                    *unsent = Some(Unsent { job: hash, update });
                }
                let Some(Unsent { update, .. }) = unsent else { continue };
                let sent = match update {
                    Err(failure) => connection.fail(&run, round, failure.clone()).await,
                    Ok(bytes) => {
                        let ticket = wire::Ticket {
                            run: run.clone(),
                            round,
                            client: welcome.client,
                            hash: sha256(bytes),
                            bytes: bytes.len() as u64,
                        };
                        connection
                            .upload(ticket, bytes.clone())
                            .await
                            .map(|_| report(&Progress::Sent(round + 1)))
                    }
                };
                if sent.is_ok() {
                    *unsent = None;
                }
                settle(sent, report, backoff).await?;
            }
        }
    }
}

/// Reports the refusal of one piece of work, which is not a reason to leave.
async fn settle(
    done: Result<(), ConnectionError>,
    report: &(dyn Fn(&Progress) + Sync),
    backoff: &mut Backoff,
) -> Result<(), JoinError> {
    match done {
        Ok(()) => {
            backoff.reset();
            Ok(())
        }
        Err(error @ ConnectionError::Refused { passing: false, .. })
            if JoinError::Connection(error.clone()).passing() =>
        {
            let asked_again =
                matches!(&error, ConnectionError::Refused { code, .. } if REPEATED.contains(&code.as_str()));
            report(&Progress::Refused(error));
            if asked_again {
                tokio::time::sleep(backoff.delay()).await;
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Runs blocking work on a thread where it does not hold up the connection.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
