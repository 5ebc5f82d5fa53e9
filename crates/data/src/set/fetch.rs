//! Downloading a data set: checked by its published checksums, resumed where it stopped.

use super::catalogue::{Entry, Part};
use super::places::{Place, Places};
use super::verify::checks;
use crate::decode::Flaw;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use ureq::Agent;
use ureq::http::StatusCode;

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file.
    pub file: &'a str,
    /// Bytes on disk.
    pub done: u64,
    /// Bytes in all, if the server says so.
    pub total: Option<u64>,
}

/// Why a data set was not downloaded.
#[derive(Debug, Error)]
pub enum FetchError {
    /// It is in the program.
    #[error("{0} is embedded in the program; there is nothing to download")]
    Embedded(&'static str),
    /// The server cannot be reached, or stopped.
    #[error("{address}: {reason}; {}without a network, put the file {file} into {}", so_far(kept.as_deref()), folder.display())]
    Network {
        /// The address.
        address: String,
        /// What happened.
        reason: String,
        /// Its name.
        file: String,
        /// Where the first part of it is, if any of it has come.
        kept: Option<PathBuf>,
        /// Where the file belongs.
        folder: PathBuf,
    },
    /// Not the published bytes.
    #[error("{address}: expected {part} with SHA-256 {expected}, found {found}; nothing was kept")]
    Checksum {
        /// Where it came from.
        address: String,
        /// Which file is wrong.
        part: String,
        /// What was published.
        expected: String,
        /// The SHA-256 of the download.
        found: String,
    },
    /// The disk.
    #[error("{}: {error}", path.display())]
    Disk {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The download cannot be read.
    #[error(transparent)]
    Flaw(#[from] Flaw),
}

fn so_far(kept: Option<&Path>) -> String {
    kept.map_or(String::new(), |kept| {
        format!("the partial download is kept in {}, and fetching again resumes it; ", kept.display())
    })
}

/// Connections that are tried before giving up.
const TRIES: u32 = 4;

/// Downloads what is missing of a data set and answers with its folder; `mirror` replaces the official addresses.
pub fn fetch(
    entry: &Entry,
    places: &Places,
    mirror: Option<&str>,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, FetchError> {
    if entry.parts.is_empty() {
        return Err(FetchError::Embedded(entry.name));
    }
    let folder = places.target(entry);
    fs::create_dir_all(&folder).map_err(|error| FetchError::Disk { path: folder.clone(), error })?;
    match entry.archive {
        Some(archive) => Download::new(&folder, archive.address, mirror, entry.parts, true).run(progress)?,
        None => {
            for part in entry.parts {
                let address = part.address.unwrap_or_default();
                Download::new(&folder, address, mirror, std::slice::from_ref(part), false).run(progress)?;
            }
        }
    }
    Ok(folder)
}

/// One file on its way.
struct Download<'a> {
    address: String,
    file: &'a str,
    target: PathBuf,
    kept: PathBuf,
    parts: &'a [Part],
    archive: bool,
}

/// How a connection ended.
enum Ending {
    Done,
    /// Another one may help.
    Cut(String),
    /// Trying again would not help.
    Refused(String),
}

impl<'a> Download<'a> {
    fn new(folder: &Path, official: &'a str, mirror: Option<&str>, parts: &'a [Part], archive: bool) -> Self {
        let file = official.rsplit('/').next().unwrap_or(official);
        let address =
            mirror.map_or(official.to_owned(), |mirror| format!("{}/{file}", mirror.trim_end_matches('/')));
        let (target, kept) = (folder.join(file), folder.join(format!("{file}.part")));
        Self { address, file, target, kept, parts, archive }
    }

    fn run(&self, progress: &mut dyn FnMut(Progress)) -> Result<(), FetchError> {
        if self.target.is_file() && self.checked(&self.target).is_ok() {
            let done = self.length(&self.target);
            progress(Progress { file: self.file, done, total: Some(done) });
            return Ok(());
        }
        let resumed = self.length(&self.kept) > 0;
        self.pull(progress)?;
        let mut verdict = self.checked(&self.kept);
        if verdict.is_err() && resumed {
            // The part on disk may be of something else: once more, from the start.
            self.remove()?;
            self.pull(progress)?;
            verdict = self.checked(&self.kept);
        }
        if let Err(error) = verdict {
            self.remove()?;
            return Err(error);
        }
        fs::rename(&self.kept, &self.target).map_err(|error| self.disk(error))
    }

    /// Brings the rest of the file, over several connections if need be.
    fn pull(&self, progress: &mut dyn FnMut(Progress)) -> Result<(), FetchError> {
        let agent: Agent = Agent::config_builder()
            .timeout_connect(Some(Duration::from_secs(20)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .http_status_as_error(false)
            .build()
            .into();
        let mut tries = 0;
        loop {
            let before = self.length(&self.kept);
            let (reason, again) = match self.connection(&agent, progress)? {
                Ending::Done => return Ok(()),
                Ending::Cut(reason) => (reason, true),
                Ending::Refused(reason) => (reason, false),
            };
            // A connection that made progress does not count as a failure.
            tries = if self.length(&self.kept) > before { 1 } else { tries + 1 };
            if tries >= TRIES || !again {
                let (address, file) = (self.address.clone(), self.file.to_owned());
                let kept = Some(self.kept.clone()).filter(|kept| self.length(kept) > 0);
                let folder = self.kept.parent().unwrap_or(&self.kept).to_owned();
                return Err(FetchError::Network { address, reason, file, kept, folder });
            }
            std::thread::sleep(Duration::from_millis(100 << (2 * tries)));
        }
    }

    /// One connection.
    fn connection(&self, agent: &Agent, progress: &mut dyn FnMut(Progress)) -> Result<Ending, FetchError> {
        let mut done = self.length(&self.kept);
        let mut request = agent.get(&self.address);
        if done > 0 {
            request = request.header("Range", format!("bytes={done}-"));
        }
        let response = match request.call() {
            Ok(response) => response,
            Err(error) => return Ok(Ending::Cut(error.to_string())),
        };
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => done = 0,
            // Everything has been downloaded already.
            StatusCode::RANGE_NOT_SATISFIABLE => return Ok(Ending::Done),
            status if status.is_server_error() => {
                return Ok(Ending::Cut(format!("the server answers {status}")));
            }
            status => return Ok(Ending::Refused(format!("the server answers {status}"))),
        }
        let length =
            response.headers().get("content-length").and_then(|length| length.to_str().ok()?.parse().ok());
        let total = length.map(|length: u64| done + length);
        let mut file = OpenOptions::new();
        let file = if done > 0 { file.append(true) } else { file.write(true).truncate(true).create(true) };
        let mut file: File = file.open(&self.kept).map_err(|error| self.disk(error))?;
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = match body.read(&mut buffer) {
                Ok(0) if total.is_some_and(|total| done < total) => {
                    return Ok(Ending::Cut("the connection ended early".to_owned()));
                }
                Ok(0) => return Ok(Ending::Done),
                Ok(read) => read,
                Err(error) => return Ok(Ending::Cut(error.to_string())),
            };
            file.write_all(&buffer[..read]).map_err(|error| self.disk(error))?;
            done += read as u64;
            progress(Progress { file: self.file, done, total });
            if done > self.limit() {
                self.remove()?;
                let reason =
                    format!("the server sent more than {} bytes, too many for this file", self.limit());
                return Ok(Ending::Refused(reason));
            }
        }
    }

    /// Longer than this it cannot be, even if compression made it longer.
    fn limit(&self) -> u64 {
        self.parts.iter().map(|part| part.length).sum::<u64>() * 11 / 10 + (1 << 20)
    }

    fn checked(&self, path: &Path) -> Result<(), FetchError> {
        let wrong = |part: &str, expected: &str, found: String| FetchError::Checksum {
            address: self.address.clone(),
            part: part.to_owned(),
            expected: expected.to_owned(),
            found,
        };
        if !self.archive {
            let part = &self.parts[0];
            let found = super::verify::hash_of_file(path).unwrap_or_else(|flaw| flaw.to_string());
            return if found == part.sha256 { Ok(()) } else { Err(wrong(part.name, part.sha256, found)) };
        }
        match checks(self.parts, &Place::Archive(path.to_owned())).into_iter().find(|check| !check.right) {
            None => Ok(()),
            Some(check) => {
                let found = check.found.or(check.flaw).unwrap_or_else(|| "none".to_owned());
                Err(wrong(&check.file, &check.expected, found))
            }
        }
    }

    fn length(&self, path: &Path) -> u64 {
        fs::metadata(path).map_or(0, |metadata| metadata.len())
    }

    fn remove(&self) -> Result<(), FetchError> {
        fs::remove_file(&self.kept).map_err(|error| self.disk(error))
    }

    fn disk(&self, error: std::io::Error) -> FetchError {
        FetchError::Disk { path: self.kept.clone(), error }
    }
}
