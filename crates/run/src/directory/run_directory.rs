//! A run directory: the interface between running and reporting.
//!
//! `config.toml` (resolved), `manifest.json`, `partition.json`, `schema.toml` of a table, `start.safetensors` if the model started
//! from a file, `rounds.jsonl`, `checkpoint/`, `best.safetensors` if there are hold-outs, `model.safetensors` (and `model-1.safetensors` and so on of a
//! strategy with several models), `predictions.npy` of a
//! simulation that evaluates on its test set, `clients.json` with hold-outs, `summary.json`; the last four when the run is done. `rolled-back/` if the run went back
//! to an earlier round.

use crate::collapse::Detector;
use crate::configuration::Experiment;
use crate::directory::files::{doing, make_folder, private, read_text, sync, write};
use crate::directory::manifest::VERSION;
use crate::directory::{ClientResult, client_results};
use crate::directory::{FORMAT, FileError, Manifest, Summary, disk, rollback};
use crate::start_model::FILE as START;
use fedtvd_core::round::RoundRecord;
use fedtvd_core::round::restored::Misfit;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A directory that holds one run.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

/// What a run is made of besides its configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    /// The split, as JSON; a federation has none.
    pub partition: Option<&'a str>,
    /// The schema of a table, as TOML.
    pub schema: Option<&'a str>,
    /// The file that the model starts from.
    pub start: Option<&'a [u8]>,
}

/// The name of the schema's file.
const SCHEMA: &str = "schema.toml";
/// Characters of the longest label of a strategy, far more than any combination has.
const LONGEST_LABEL: usize = 1000;

/// Why a directory cannot be used for a run.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The directory already holds a run.
    #[error("{0} already holds a run; resume it with \"fedtvd resume {0}\", or choose another --out")]
    Taken(String),
    /// Another process is working on the run.
    #[error("{0} is in use: another fedtvd process is working on this run; wait until it ends, or stop it")]
    Busy(String),
    /// A checkpoint that is whole and does not fit the run.
    #[error(
        "the checkpoint of {path} after round {round} does not fit the run: {misfit}; go back to an earlier round with \
         \"fedtvd resume --from\" or \"fedtvd serve --rollback\", or start a new run"
    )]
    Checkpoint {
        /// The directory.
        path: String,
        /// Its round.
        round: u32,
        /// Why.
        misfit: Box<Misfit>,
    },
    /// A run whose clients are elsewhere.
    #[error(
        "{0} holds a federation; resume it with \"fedtvd serve {0}\" (--rollback ROUND returns to an earlier round)"
    )]
    Federation(String),
    /// The directory holds no run.
    #[error("{0} holds no run: it has no {1}")]
    NoRun(String, &'static str),
    /// Another version of the layout.
    #[error(
        "{path} was made by fedtvd {program} with version {got} of the run directory; this is fedtvd {VERSION}, which \
         reads version {FORMAT}: use the program that made it"
    )]
    Format {
        /// The directory.
        path: String,
        /// Its version.
        got: u64,
        /// The program that made it.
        program: String,
    },
    /// A configuration that this program cannot use.
    #[error("{path} cannot be used: {why}")]
    Config {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// A file that cannot be parsed.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        why: String,
    },
}

impl RunDirectory {
    /// Creates a run in this directory, which may already exist. A federation has no partition.
    pub fn create(
        path: &Path,
        config: &str,
        manifest: &Manifest,
        partition: Option<&str>,
    ) -> Result<Self, DirectoryError> {
        Self::create_with(path, config, manifest, &Inputs { partition, ..Inputs::default() })
    }

    /// The same with all inputs.
    pub fn create_with(
        path: &Path,
        config: &str,
        manifest: &Manifest,
        &Inputs { partition, schema, start }: &Inputs<'_>,
    ) -> Result<Self, DirectoryError> {
        make_folder(path)?;
        let directory = Self { path: path.to_owned() };
        // Without a manifest there is no run yet: a killed process may have left the first files.
        if directory.file("manifest.json").exists() {
            return Err(DirectoryError::Taken(path.display().to_string()));
        }
        if let Some(partition) = partition {
            write(&directory.file("partition.json"), partition.as_bytes())?;
        }
        if let Some(schema) = schema {
            directory.write_schema(schema)?;
        }
        if let Some(start) = start {
            write(&directory.file(START), start)?;
        }
        directory.write_terms(config, manifest)?;
        Ok(directory)
    }

    /// Stores what the run is made with.
    pub fn write_terms(&self, config: &str, manifest: &Manifest) -> Result<(), DirectoryError> {
        write(&self.file("config.toml"), config.as_bytes())?;
        // The manifest comes last: it marks the directory as holding a run.
        let text = serde_json::to_string_pretty(manifest).expect("a manifest is plain data");
        Ok(write(&self.file("manifest.json"), text.as_bytes())?)
    }

    /// Opens the run in this directory.
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

    /// Its path.
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

    /// Stores the schema with which rows become inputs of the run's model.
    pub fn write_schema(&self, schema: &str) -> Result<(), DirectoryError> {
        Ok(write(&self.file(SCHEMA), schema.as_bytes())?)
    }

    /// The stored schema, if the data is a table.
    pub fn schema(&self) -> Result<Option<String>, DirectoryError> {
        let path = self.file(SCHEMA);
        path.is_file().then(|| read_text(&path)).transpose().map_err(DirectoryError::from)
    }

    /// Makes an experiment start from the run's own copy of the model, if it has one.
    pub fn use_start(&self, experiment: &mut Experiment) {
        let copy = self.file(START);
        if experiment.start.is_some() && copy.is_file() {
            experiment.start = Some(copy);
        }
    }

    /// What the run was made with.
    pub fn manifest(&self) -> Result<Manifest, DirectoryError> {
        let path = self.file("manifest.json");
        let text = read_text(&path)?;
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(&path, error))?;
        match value["format"].as_u64() {
            Some(format) if format == u64::from(FORMAT) => {
                let manifest: Manifest =
                    serde_json::from_value(value).map_err(|error| damaged(&path, error))?;
                match manifest.strategy.chars().count() {
                    ..=LONGEST_LABEL => Ok(manifest),
                    long => Err(damaged(
                        &path,
                        format!("a strategy of {long} characters; {LONGEST_LABEL} are possible"),
                    )),
                }
            }
            Some(got) => {
                let program = value["version"].as_str().unwrap_or("of unknown version").to_owned();
                Err(DirectoryError::Format { path: self.path.display().to_string(), got, program })
            }
            None => Err(damaged(&path, "it has no format version")),
        }
    }

    /// The summary, if the run is done. For a run of an earlier version, whether it collapsed is found in its rounds.
    pub fn summary(&self) -> Result<Option<Summary>, DirectoryError> {
        let path = self.file("summary.json");
        if !path.is_file() || rollback::begun(self)?.is_some() {
            return Ok(None);
        }
        let parse = |text: &str| {
            let value: serde_json::Value = serde_json::from_str(text)?;
            let complete = value.get("failed_updates").is_some();
            Ok((serde_json::from_value::<Summary>(value)?, complete))
        };
        let (summary, complete) =
            parse(&read_text(&path)?).map_err(|error: serde_json::Error| damaged(&path, error))?;
        let summary = if complete { summary } else { summary.with_collapse(&Detector::of(&self.lines()?)) };
        Ok(Some(summary.in_directory(&self.path)))
    }

    /// Removes the summary: the run is no longer done.
    pub(crate) fn remove_summary(&self) -> Result<(), FileError> {
        let path = self.file("summary.json");
        if path.exists() {
            disk::remove_file(&path).map_err(doing("removing", &path))?;
            sync(&self.path)?;
        }
        Ok(())
    }

    /// The file of the final model, if the run is done. A run that is being extended still has that of its former end.
    pub fn model(&self) -> Result<Option<PathBuf>, DirectoryError> {
        let path = self.file("model.safetensors");
        Ok(if path.is_file() && self.summary()?.is_some() { Some(path) } else { None })
    }

    /// The file of the final model of a branch: the first one's is that of a run with one model.
    pub fn model_of_branch(&self, branch: u32) -> PathBuf {
        match branch {
            0 => self.file("model.safetensors"),
            branch => self.file(&format!("model-{branch}.safetensors")),
        }
    }

    /// The final model on each client's hold-out, if it was evaluated there.
    pub fn client_results(&self) -> Result<Option<Vec<ClientResult>>, DirectoryError> {
        let path = self.file(client_results::FILE);
        if !path.is_file() || self.summary()?.is_none() {
            return Ok(None);
        }
        serde_json::from_str(&read_text(&path)?).map(Some).map_err(|error| damaged(&path, error))
    }

    /// All complete lines of `rounds.jsonl`; a last line cut off by a crash is ignored.
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
                round => Err(damaged(&path, format!("line {number} holds round {round}"))),
            }
        };
        let most = rollback::begun(self)?.map_or(usize::MAX, |begun| begun.rollback.to as usize);
        (1..).zip(whole.lines().take(most)).map(parse).collect()
    }

    /// Opens `rounds.jsonl` to append after its first `rounds` lines and removes what follows them. Until it is closed,
    /// no other process can do the same.
    pub(crate) fn append(&self, rounds: u32) -> Result<Lines, DirectoryError> {
        let mut lines = self.lock()?;
        lines.truncate(rounds)?;
        Ok(lines)
    }

    /// Opens `rounds.jsonl`. Until it is closed, no other process can work on the run.
    pub fn lock(&self) -> Result<Lines, DirectoryError> {
        let path = self.file("rounds.jsonl");
        let file = disk::open(private().create(true).read(true).append(true), &path)
            .map_err(doing("opening", &path))?;
        // Two processes on one run would write its lines twice. File systems without locks are not protected.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(DirectoryError::Busy(self.path.display().to_string()));
        }
        Ok(Lines { file, path })
    }
}

/// `rounds.jsonl`, open at its end.
#[derive(Debug)]
pub struct Lines {
    file: File,
    path: PathBuf,
}

impl Lines {
    /// Removes what follows the first `rounds` lines.
    pub(crate) fn truncate(&mut self, rounds: u32) -> Result<(), DirectoryError> {
        let bytes = fs::read(&self.path).map_err(doing("reading", &self.path))?;
        let ends =
            bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place as u64 + 1);
        let end = match rounds {
            0 => Some(0),
            rounds => { ends }.nth(rounds as usize - 1),
        };
        let end = end.ok_or_else(|| damaged(&self.path, format!("it has fewer than {rounds} lines")))?;
        Ok(disk::truncate(&self.file, &self.path, end).map_err(doing("writing", &self.path))?)
    }

    /// Appends a line; it reaches the disk with [`Lines::sync`].
    pub(crate) fn write(&mut self, line: &RoundRecord) -> Result<(), FileError> {
        let text = serde_json::to_string(line).expect("a line is plain data") + "\n";
        let before = self.file.metadata().map(|data| data.len());
        disk::write(&self.file, &self.path, text.as_bytes()).map_err(|error| {
            // A full disk may have stored a part of the line.
            if let Ok(before) = before {
                let _ = disk::truncate(&self.file, &self.path, before);
            }
            doing("writing", &self.path)(error)
        })
    }

    /// Makes all lines durable.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        disk::sync_data(&self.file, &self.path).map_err(doing("syncing", &self.path))
    }
}

pub(crate) fn damaged(path: &Path, why: impl ToString) -> DirectoryError {
    DirectoryError::Damaged { path: path.display().to_string(), why: why.to_string() }
}
