//! Finds run directories and groups them into settings by their content.

use crate::runs::record::{Found, Record, RecordError, Unfinished, read};
use crate::runs::setting::{Setting, settings};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// All runs of a report. It does not depend on where the runs are or in which order they were found.
#[derive(Debug)]
pub struct Collection {
    /// The settings, at least one.
    pub settings: Vec<Setting>,
    /// Unfinished runs, which are left out.
    pub unfinished: Vec<Unfinished>,
    /// Number of directories that could not be read.
    pub unreadable: usize,
    /// Versions of the program that made the runs.
    pub versions: Vec<String>,
    /// Their architectures, vector instructions and versions of the kernels, with the number of runs.
    pub arithmetic: BTreeMap<String, usize>,
}

/// Why there is nothing to report.
#[derive(Debug, Error)]
pub enum CollectionError {
    /// A directory that cannot be listed.
    #[error("{path} cannot be searched for runs: {error}")]
    List {
        /// Which.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// No run anywhere.
    #[error("there is no run below {0}; a run directory has a manifest.json, and \"fedtvd run\" creates one")]
    NoRun(String),
    /// All runs are unfinished.
    #[error(
        "no run is finished, {0} unfinished; \"fedtvd resume DIR\" resumes a run, and repeating a \"fedtvd sweep\" command resumes all of its runs"
    )]
    NoneFinished(usize),
    /// A strategy that no run has.
    #[error("no run has the strategy {label}; available: {all}")]
    NoStrategy {
        /// The requested label.
        label: String,
        /// All labels.
        all: String,
    },
    /// No run directory could be read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// The run directories at or below these paths, each once.
pub fn run_directories(places: &[PathBuf]) -> Result<Vec<PathBuf>, CollectionError> {
    let mut found = Vec::new();
    for place in places {
        find(place, &mut found)?;
    }
    found.sort();
    found.dedup();
    match found.is_empty() {
        true => {
            let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            Err(CollectionError::NoRun(places.join(", ")))
        }
        false => Ok(found),
    }
}

fn find(place: &Path, found: &mut Vec<PathBuf>) -> Result<(), CollectionError> {
    // A directory with rounds and without a manifest is a damaged run, and is reported as one.
    if ["manifest.json", "rounds.jsonl"].iter().any(|name| place.join(name).is_file()) {
        found.push(place.canonicalize().unwrap_or_else(|_| place.to_owned()));
        return Ok(());
    }
    let failed = |error| CollectionError::List { path: place.display().to_string(), error };
    for entry in std::fs::read_dir(place).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // Symbolic links are not followed, because they can form a loop.
        if entry.file_type().map_err(failed)?.is_dir() {
            find(&entry.path(), found)?;
        }
    }
    Ok(())
}

impl Collection {
    /// Reads run directories; `problem` is called for each that cannot be read.
    pub fn read(
        directories: &[PathBuf],
        problem: &mut dyn FnMut(&RecordError),
    ) -> Result<Self, CollectionError> {
        let (mut records, mut unfinished, mut failure, mut unreadable) = (Vec::new(), Vec::new(), None, 0);
        for directory in directories {
            match read(directory) {
                Ok(Found::Finished(record)) => records.push(*record),
                Ok(Found::Unfinished(run)) => unfinished.push(run),
                Err(error) => {
                    problem(&error);
                    unreadable += 1;
                    failure.get_or_insert(error);
                }
            }
        }
        match (records.is_empty(), failure) {
            (true, Some(error)) => Err(error.into()),
            (true, None) => Err(CollectionError::NoneFinished(unfinished.len())),
            (false, _) => Ok(Self::of(records, unfinished, unreadable)),
        }
    }

    /// Groups runs into settings.
    pub fn of(records: Vec<Record>, mut unfinished: Vec<Unfinished>, unreadable: usize) -> Self {
        let mut versions: Vec<String> = records.iter().map(|run| run.manifest.version.clone()).collect();
        versions.sort();
        versions.dedup();
        let mut arithmetic = BTreeMap::new();
        for run in &records {
            *arithmetic.entry(run.manifest.fingerprint.arithmetic()).or_default() += 1;
        }
        unfinished.sort();
        Self { settings: settings(records), unfinished, unreadable, versions, arithmetic }
    }

    /// Keeps only these strategies.
    pub fn keep(&mut self, labels: &[String]) -> Result<(), CollectionError> {
        labels.iter().try_for_each(|label| self.check(label))?;
        for setting in &mut self.settings {
            setting.strategies.retain(|strategy| labels.contains(&strategy.label));
        }
        self.settings.retain(|setting| !setting.strategies.is_empty());
        Ok(())
    }

    /// Fails if no run has this strategy.
    pub fn check(&self, label: &str) -> Result<(), CollectionError> {
        let all = self.labels();
        match all.iter().any(|own| own == label) {
            true => Ok(()),
            false => Err(CollectionError::NoStrategy { label: label.to_owned(), all: all.join(", ") }),
        }
    }

    /// The labels of all strategies, in the order of the tables.
    pub fn labels(&self) -> Vec<String> {
        let mut labels: Vec<String> = Vec::new();
        for strategy in self.settings.iter().flat_map(|setting| &setting.strategies) {
            if !labels.contains(&strategy.label) {
                labels.push(strategy.label.clone());
            }
        }
        labels.sort_by_cached_key(|label| crate::runs::setting::place(label));
        labels
    }
}
