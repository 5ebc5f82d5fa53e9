//! `join`: a client that dials in, pulls work, and comes back after every break, for ever.

use crate::backoff::Backoff;
use crate::link::{Link, LinkError, Security, Task};
use crate::site::{Site, SiteError};
use crate::wire;
use fedtvd_core::samples::Samples;
use fedtvd_run::digest::sha256;
use fedtvd_run::files::FileError;
use prost::bytes::Bytes;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use thiserror::Error;

/// What a client needs to take part.
#[derive(Clone)]
pub struct Options {
    /// HOST:PORT, or @FILE: a file that holds it, read again at each attempt.
    pub server: String,
    /// How it proves who it is.
    pub security: Security,
    /// Its data.
    pub samples: Arc<Samples>,
    /// What its classes are called.
    pub class_names: Vec<String>,
    /// Where it keeps what it must remember.
    pub folder: PathBuf,
}

/// What a client tells its user.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// It is in.
    Joined(wire::Welcome),
    /// It trains in this round, counted from 1.
    Training(u32),
    /// Its update is on the server's disk.
    Sent(u32),
    /// The server did not take its work.
    Refused(LinkError),
    /// It could not go on; it tries again.
    Waiting(String),
}

/// Why a client gives up.
#[derive(Debug, Error)]
pub enum JoinError {
    /// The server will not have it.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It cannot do the work.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// Its disk does not take what it must remember.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Refusals that no attempt changes.
const FINAL: [&str; 7] = [
    "unknown-certificate",
    "revoked",
    "wrong-protocol",
    "not-in-roster",
    "size-above-listed",
    "holdout-above-listed",
    "not-client",
];

/// The refusal of an answer to a question that is no longer asked: the next one may be another.
const ASKED_ANEW: &str = "profile-statistic";

/// Refusals after which the server asks for the same again.
const REPEATED: [&str; 4] = ["too-long", "too-short", "bad-hash", "bad-counts"];

impl JoinError {
    /// Whether another attempt may succeed.
    fn passing(&self) -> bool {
        match self {
            Self::Link(LinkError::Refused { code, passing, .. }) => {
                *passing
                    || !(FINAL.contains(&code.as_str())
                        || code.starts_with("profile-") && code != ASKED_ANEW
                        || code == "roster-closed")
            }
            Self::Link(LinkError::Lost(_) | LinkError::Tls { code: "tls-failed", .. }) => true,
            // Somebody makes room.
            Self::File(error) | Self::Site(SiteError::File(error)) => {
                matches!(error.error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
            }
            Self::Link(
                LinkError::Tls { .. }
                | LinkError::Version(_)
                | LinkError::Address(_)
                | LinkError::Elsewhere(_),
            )
            | Self::Site(_) => false,
        }
    }
}

/// Takes part until the federation is done; blocks.
pub fn take_part(options: Options, tell: &(dyn Fn(&Progress) + Sync)) -> Result<wire::Finished, JoinError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| LinkError::Lost(error.to_string()))?;
    runtime.block_on(join(options, tell))
}

/// Takes part until the federation is done.
pub async fn join(options: Options, tell: &(dyn Fn(&Progress) + Sync)) -> Result<wire::Finished, JoinError> {
    let mut backoff = Backoff::default();
    let mut unsent = None;
    loop {
        match session(&options, tell, &mut backoff, &mut unsent).await {
            Ok(finished) => return Ok(finished),
            Err(error) if !error.passing() => return Err(error),
            Err(error) => {
                tell(&Progress::Waiting(error.to_string()));
                tokio::time::sleep(backoff.wait()).await;
            }
        }
    }
}

fn address(server: &str) -> Result<String, LinkError> {
    match server.strip_prefix('@') {
        None => Ok(server.to_owned()),
        Some(file) => std::fs::read_to_string(file)
            .map(|text| text.trim().to_owned())
            .map_err(|error| LinkError::Lost(format!("reading {file}: {error}"))),
    }
}

/// What came of a job and may not have reached the server: a job gives the same again, and training takes its time.
struct Unsent {
    /// Hash of the job.
    job: String,
    /// The update's bytes, or why there are none.
    update: Result<Bytes, String>,
}

/// One connection, from hello to its end.
async fn session(
    options: &Options,
    tell: &(dyn Fn(&Progress) + Sync),
    backoff: &mut Backoff,
    unsent: &mut Option<Unsent>,
) -> Result<wire::Finished, JoinError> {
    let mut link = Link::dial(&address(&options.server)?, &options.security).await?;
    let welcome = link.hello().await?;
    let mut site = {
        let (welcome, options) = (welcome.clone(), options.clone());
        away(move || Site::new(&welcome, &options.samples, &options.class_names, &options.folder)).await?
    };
    let run = welcome.run.clone();
    tell(&Progress::Joined(welcome.clone()));
    loop {
        let task = link.pull(&run).await?;
        match task {
            // Only work that was taken, or none, is a success: a server that takes none is asked less and less often.
            Task::Wait => backoff.reset(),
            Task::Finished(finished) => return Ok(finished),
            Task::Survey(survey) => link.enrol(site.enrolment(&run, &survey)?).await?,
            Task::Judge(round, model) => {
                let found;
                (site, found) = away(move || {
                    let found = site.judge(&model);
                    (site, found)
                })
                .await;
                let judged = match found {
                    Ok(found) => link.judge(&run, round, found).await,
                    Err(why) => Err(LinkError::Lost(format!("the model does not read: {why}"))),
                };
                over(judged, tell, backoff).await?;
            }
            Task::Train(round, job) => {
                let hash = sha256(&job);
                if unsent.as_ref().is_none_or(|unsent| unsent.job != hash) {
                    tell(&Progress::Training(round + 1));
                    let trained;
                    (site, trained) = away(move || {
                        let trained = site.train(&job);
                        (site, trained)
                    })
                    .await;
                    let update = trained?.map(Bytes::from).map_err(|failure| failure.to_string());
                    *unsent = Some(Unsent { job: hash, update });
                }
                let Some(Unsent { update, .. }) = unsent else { continue };
                let sent = match update {
                    Err(failure) => link.fail(&run, round, failure.clone()).await,
                    Ok(bytes) => {
                        let ticket = wire::Ticket {
                            run: run.clone(),
                            round,
                            client: welcome.client,
                            hash: sha256(bytes),
                            bytes: bytes.len() as u64,
                        };
                        link.upload(ticket, bytes.clone()).await.map(|_| tell(&Progress::Sent(round + 1)))
                    }
                };
                if sent.is_ok() {
                    *unsent = None;
                }
                over(sent, tell, backoff).await?;
            }
        }
    }
}

/// A refusal of one piece of work is told and is no reason to leave.
async fn over(
    done: Result<(), LinkError>,
    tell: &(dyn Fn(&Progress) + Sync),
    backoff: &mut Backoff,
) -> Result<(), JoinError> {
    match done {
        Ok(()) => {
            backoff.reset();
            Ok(())
        }
        Err(error @ LinkError::Refused { passing: false, .. })
            if JoinError::Link(error.clone()).passing() =>
        {
            let asked_again =
                matches!(&error, LinkError::Refused { code, .. } if REPEATED.contains(&code.as_str()));
            tell(&Progress::Refused(error));
            if asked_again {
                tokio::time::sleep(backoff.wait()).await;
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Does blocking work where it holds up no connection.
async fn away<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
