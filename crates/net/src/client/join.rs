//! `join`: a client that connects, pulls work, and reconnects after every failure until the federation is over.

use crate::client::agreement::check_welcome;
use crate::client::backoff::Backoff;
use crate::client::enrol::enrol;
use crate::client::newest_server;
use crate::client::policy::{Policy, Violation};
use crate::client::sent_log::SentLog;
use crate::client::site::{Answer, Site, check_run};
use crate::client::site_table::SiteTable;
use crate::client::{Connection, ConnectionError, Security, SiteData, SiteError, TableUse, Task};
use crate::wire;
use fedtvd_run::attack::Attack;
use fedtvd_run::directory::{FileError, sha256};
use prost::bytes::Bytes;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
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
    /// What the site agrees to.
    pub policy: Policy,
    /// SHA-256 of the authority's certificate, by which the site remembers what it disclosed; empty without TLS.
    pub authority: String,
    /// The name of its data in `sent.jsonl`, by which the site remembers what it disclosed.
    pub data_name: String,
}

impl Options {
    /// An honest client with the default policy.
    pub fn new(server: String, security: Security, data: SiteData, folder: PathBuf) -> Self {
        let (policy, authority, data_name) = (Policy::default(), String::new(), String::new());
        Self { server, security, data, folder, attack: None, policy, authority, data_name }
    }

    /// The list of what leaves the site.
    pub(crate) fn sent_log(&self) -> Result<Arc<SentLog>, FileError> {
        let (path, server) = (self.folder.join("sent.jsonl"), self.server.clone());
        Ok(Arc::new(SentLog::open(path, server, self.authority.clone(), self.data_name.clone())?))
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
            Self::Connection(
                ConnectionError::Lost(_)
                | ConnectionError::Unlisted(_)
                | ConnectionError::Tls { code: "tls-failed", .. },
            ) => true,
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
    let mut backoff = Backoff::default();
    let (mut unsent, mut table) = (None, SiteTable::default());
    let sent = options.sent_log()?;
    loop {
        match session(&options, report, &mut backoff, &mut unsent, &mut table, &sent).await {
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
    table: &mut SiteTable,
    sent: &Arc<SentLog>,
) -> Result<wire::Finished, JoinError> {
    let connection = Connection::dial(&address(&options.server)?, &options.security).await?;
    let mut connection = connection.listed(sent);
    let welcome = connection.hello().await?;
    check_run(&welcome.run)?;
    sent.enter(&welcome.run);
    follow_newest(options, report, &mut connection, &welcome).await?;
    let worked = work(options, report, backoff, unsent, table, sent, &welcome, &mut connection).await;
    if let Err(JoinError::Policy(violation) | JoinError::Site(SiteError::Policy(violation))) = &worked {
        // The server's operator should know; if it cannot be told, the site's own error stands.
        let _ = connection.decline(&welcome.run, violation.to_string()).await;
    }
    worked
}

/// The work on one connection.
#[expect(clippy::too_many_arguments, reason = "one connection's share of what outlives it")]
async fn work(
    options: &Options,
    report: &(dyn Fn(&Progress) + Sync),
    backoff: &mut Backoff,
    unsent: &mut Option<Unsent>,
    table: &mut SiteTable,
    sent: &Arc<SentLog>,
    welcome: &wire::Welcome,
    connection: &mut Connection,
) -> Result<wire::Finished, JoinError> {
    check_welcome(&options.policy, welcome)?;
    let data = table.data(welcome, options, connection, report).await?;
    let mut site = {
        let (welcome, options) = (welcome.clone(), options.clone());
        blocking(move || Site::new(&welcome, &options, &data)).await?
    };
    connection.receive_at_most(site.largest_job());
    let run = welcome.run.clone();
    report(&Progress::Joined(welcome.clone()));
    loop {
        let task = connection.pull(&run).await?;
        match task {
            // Only accepted work, or no work at all, counts as a success: a server that refuses everything is asked
            // less and less often.
            Task::Wait => backoff.reset(),
            Task::Finished(finished) => return Ok(finished),
            Task::Survey(survey) => enrol(connection, &mut site, &run, &survey, sent).await?,
            Task::TooLarge { round, bytes } => {
                // Model, carried vectors and head of this model are smaller, whatever the policy allows.
                let why = format!(
                    "a job or model of {bytes} bytes; this model's has at most {}",
                    site.largest_job()
                );
                connection.fail(&run, round, why.clone()).await?;
                return Err(SiteError::Unreadable { what: "a job", why }.into());
            }
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
                if let Err(violation) = options.policy.check_rounds(sent.updates_today()) {
                    refuse(connection, &run, round, violation, report).await?;
                    continue;
                }
                if unsent.as_ref().is_none_or(|unsent| unsent.job != hash) {
                    report(&Progress::Training(round + 1));
                    let trained;
                    (site, trained) = blocking(move || {
                        let trained = site.train(&job);
                        (site, trained)
                    })
                    .await;
                    let update = match trained? {
                        Answer::Update(bytes) => Ok(Bytes::from(bytes)),
                        Answer::Failure(failure) => Err(failure.to_string()),
                        Answer::Refused(violation) => {
                            refuse(connection, &run, round, violation, report).await?;
                            continue;
                        }
                    };
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

/// Refuses a job that the site's policy does not allow; the client stays only if it may be allowed on another day.
async fn refuse(
    connection: &mut Connection,
    run: &str,
    round: u32,
    violation: Violation,
    report: &(dyn Fn(&Progress) + Sync),
) -> Result<(), JoinError> {
    connection.fail(run, round, violation.to_string()).await?;
    if violation.passing {
        report(&Progress::Declined(round + 1, violation));
        return Ok(());
    }
    Err(violation.into())
}

/// Refuses to work for a server that was started before another one of this run, after telling it so.
async fn follow_newest(
    options: &Options,
    report: &(dyn Fn(&Progress) + Sync),
    connection: &mut Connection,
    welcome: &wire::Welcome,
) -> Result<(), JoinError> {
    let Some(lease) = connection.lease else { return Ok(()) };
    let known = newest_server::largest(&options.folder, welcome);
    connection.largest_lease = known.max(Some(lease));
    if known.is_some_and(|known| known > lease) {
        // The server refuses this request and logs it for its operator.
        let _ = connection.pull(&welcome.run).await;
        return Err(newest_server::outdated(&options.folder, welcome).into());
    }
    if known != Some(lease)
        && let Err(error) = newest_server::remember(&options.folder, welcome, lease)
    {
        // Without a folder to write to, the client works as before, but cannot recognise a copy of the server.
        report(&Progress::Read(vec![format!("the newest server is not remembered: {error}")]));
    }
    Ok(())
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
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
