//! A run directory: the interface between running and reporting.
//!
//! `config.toml` (resolved), `manifest.json`, `partition.json`, `rounds.jsonl`, `checkpoint/`, `model.safetensors`,
//! `summary.json`; the last two when the run is done.

use crate::directory::files::{doing, read_text, write};
use crate::directory::manifest::VERSION;
use crate::directory::{FORMAT, FileError, Manifest, Summary};
use fedtvd_core::round::RoundRecord;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A directory that holds one run.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

/// Why a directory cannot be used for a run.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is a run already.
    #[error("{0} already holds a run; go on with it by \"fedtvd resume {0}\", or choose another --out")]
    Taken(String),
    /// Another process goes on with the run.
    #[error("{0} is in use: another fedtvd goes on with this run; wait until it ends, or stop it")]
    Busy(String),
    /// A run whose clients are elsewhere.
    #[error("{0} holds a federation; go on with it by \"fedtvd serve --out {0}\"")]
    Federation(String),
    /// There is no run.
    #[error("{0} holds no run: it has no {1}")]
    NoRun(String, &'static str),
    /// Another version of the layout.
    #[error(
        "{path} was made by fedtvd {program} with version {got} of the run directory; this is fedtvd {VERSION}, which \
         reads version {FORMAT}: go on with the program that made it"
    )]
    Format {
        /// Which directory.
        path: String,
        /// Its version.
        got: u64,
        /// The program that made it.
        program: String,
    },
    /// A configuration that this program cannot use.
    #[error("{path} cannot be used: {why}")]
    Config {
        /// Which file.
        path: String,
        /// Why.
        why: String,
    },
    /// A file that does not read.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// Which file.
        path: String,
        /// In what way.
        why: String,
    },
}

impl RunDirectory {
    /// A new run at this place, which may be an empty directory. A federation knows no partition.
    pub fn create(
        path: &Path,
        config: &str,
        manifest: &Manifest,
        partition: Option<&str>,
    ) -> Result<Self, DirectoryError> {
        fs::create_dir_all(path).map_err(doing("making", path))?;
        let directory = Self { path: path.to_owned() };
        // Without a manifest there is no run yet: a kill may have left the first files.
        if directory.file("manifest.json").exists() {
            return Err(DirectoryError::Taken(path.display().to_string()));
        }
        write(&directory.file("config.toml"), config.as_bytes())?;
        if let Some(partition) = partition {
            write(&directory.file("partition.json"), partition.as_bytes())?;
        }
        // The manifest comes last: with it the directory holds a run.
        let text = serde_json::to_string_pretty(manifest).expect("a manifest is plain data");
        write(&directory.file("manifest.json"), text.as_bytes())?;
        Ok(directory)
    }

    /// The run at this place.
    pub fn open(path: &Path) -> Result<Self, DirectoryError> {
        let directory = Self { path: path.to_owned() };
        for needed in ["config.toml", "manifest.json"] {
            if !directory.file(needed).is_file() {
                return Err(DirectoryError::NoRun(path.display().to_string(), needed));
            }
        }
        directory.manifest()?;
        Ok(directory)
    }

    /// Whether its clients are on other machines.
    pub fn is_federation(&self) -> bool {
        self.file("federation").is_dir()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The resolved configuration.
    pub fn config(&self) -> Result<String, DirectoryError> {
        Ok(read_text(&self.file("config.toml"))?)
    }

    /// What the run was made with.
    pub fn manifest(&self) -> Result<Manifest, DirectoryError> {
        let path = self.file("manifest.json");
        let text = read_text(&path)?;
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(&path, error))?;
        match value["format"].as_u64() {
            Some(format) if format == u64::from(FORMAT) => {
                serde_json::from_value(value).map_err(|error| damaged(&path, error))
            }
            Some(got) => {
                let program = value["version"].as_str().unwrap_or("of unknown version").to_owned();
                Err(DirectoryError::Format { path: self.path.display().to_string(), got, program })
            }
            None => Err(damaged(&path, "it says no format")),
        }
    }

    /// The summary, where the run is done.
    pub fn summary(&self) -> Result<Option<Summary>, DirectoryError> {
        let path = self.file("summary.json");
        if !path.is_file() {
            return Ok(None);
        }
        serde_json::from_str(&read_text(&path)?).map(Some).map_err(|error| damaged(&path, error))
    }

    /// All complete lines of `rounds.jsonl`; a last one that a crash cut off is left out.
    pub fn lines(&self) -> Result<Vec<RoundRecord>, DirectoryError> {
        let path = self.file("rounds.jsonl");
        if !path.is_file() {
            return Ok(Vec::new());
        }
        let text = read_text(&path)?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let parse = |(number, line): (u32, &str)| {
            let line: RoundRecord = serde_json::from_str(line)
                .map_err(|error| damaged(&path, format!("line {number}: {error}")))?;
            match line.round {
                round if round == number => Ok(line),
                round => Err(damaged(&path, format!("line {number} is that of round {round}"))),
            }
        };
        (1..).zip(whole.lines()).map(parse).collect()
    }

    /// Opens `rounds.jsonl` to go on after its first `rounds` lines; what follows them is cut off. Until it is closed
    /// nobody else can open it so.
    pub(crate) fn append(&self, rounds: u32) -> Result<Lines, DirectoryError> {
        let path = self.file("rounds.jsonl");
        let open = |path: &Path| OpenOptions::new().create(true).read(true).append(true).open(path);
        let file = open(&path).map_err(doing("opening", &path))?;
        // Two processes on one run would write its lines twice. A file system without locks goes without.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(DirectoryError::Busy(self.path.display().to_string()));
        }
        let bytes = fs::read(&path).map_err(doing("reading", &path))?;
        let ends =
            bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place as u64 + 1);
        let end = match rounds {
            0 => Some(0),
            rounds => { ends }.nth(rounds as usize - 1),
        };
        let end = end.ok_or_else(|| damaged(&path, format!("it has fewer than {rounds} lines")))?;
        file.set_len(end).map_err(doing("writing", &path))?;
        Ok(Lines { file, path })
    }
}

/// `rounds.jsonl`, open at its end.
pub(crate) struct Lines {
    file: File,
    path: PathBuf,
}

impl Lines {
    /// Appends a line; it reaches the disk with [`Lines::sync`].
    pub(crate) fn write(&mut self, line: &RoundRecord) -> Result<(), FileError> {
        let text = serde_json::to_string(line).expect("a line is plain data") + "\n";
        let before = self.file.metadata().map(|data| data.len());
        self.file.write_all(text.as_bytes()).map_err(|error| {
            // A full disk may have taken half of the line.
            if let Ok(before) = before {
                let _ = self.file.set_len(before);
            }
            doing("writing", &self.path)(error)
        })
    }

    /// Makes all lines durable.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        self.file.sync_data().map_err(doing("syncing", &self.path))
    }
}

fn damaged(path: &Path, why: impl ToString) -> DirectoryError {
    DirectoryError::Damaged { path: path.display().to_string(), why: why.to_string() }
}
