//! The schema of a federation that is resumed: it must be the one that the run was started with, since the model's inputs
//! and the clients' data depend on it.

use crate::federation::dataset_info::DatasetInfo;
use crate::federation::ledger::{Ledger, LedgerError};
use crate::federation::{Event, FederationError, Log};
use fedtvd_data::set::read_schema;
use fedtvd_data::table::Schema;
use fedtvd_run::RunError;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::files::{doing, read_text, write};
use fedtvd_run::directory::{DirectoryError, Manifest, RunDirectory, disk, sha256};
use std::path::{Path, PathBuf};

/// The schema in a run directory, if it is complete.
const OWN: &str = "schema.toml";

/// What a resumed federation does about its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// It keeps the schema.
    Same,
    /// It takes up an edited one, as another run: no update depends on the old one yet, but sites may have agreed to it.
    Edited,
}

/// Reads a schema that is no longer where it was from the run directory instead.
pub(crate) fn find(directory: &RunDirectory, experiment: &mut Experiment, log: &Log) {
    let own = directory.file(OWN);
    if let Some(path) = experiment.data.schema.as_mut().filter(|path| !path.exists() && own.is_file()) {
        let note = format!("{} is gone; the run continues with {}", path.display(), own.display());
        log(&Event::Note { note });
        *path = own;
    }
}

/// Compares the schema with the one that the run was started with.
pub(crate) fn check(
    directory: &RunDirectory,
    experiment: &Experiment,
    info: &DatasetInfo,
    log: &Log,
) -> Result<Resumed, FederationError> {
    let given = experiment.data.schema.clone();
    let file = given.unwrap_or_else(|| PathBuf::from(&experiment.data.set));
    let resumed = compare(directory, &file, &info.schema_hash())?;
    if resumed == Resumed::Edited {
        let file = file.display();
        let note = format!(
            "{file} was edited before the first round: the run starts with it, under a new id; sites that have joined already \
             keep to the old one until join is started again there"
        );
        log(&Event::Note { note });
    }
    Ok(resumed)
}

/// Fails if the data cannot be read because the schema has changed.
pub(crate) fn check_unread(directory: &RunDirectory, experiment: &Experiment) -> Result<(), FederationError> {
    let Some(file) = &experiment.data.schema else { return Ok(()) };
    let Ok(schema) = read_schema(file) else { return Ok(()) };
    compare(directory, file, &hash(&schema)).map(drop)
}

fn compare(directory: &RunDirectory, file: &Path, is: &str) -> Result<Resumed, FederationError> {
    let was = directory.manifest().map_err(RunError::from)?.schema_hash;
    let own = own_hash(directory)?;
    // A run that was made before tables had schemas has no hash of one.
    if was.is_empty() || is == was || own.as_deref() == Some(is) {
        return Ok(Resumed::Same);
    }
    // A schema of the run with another hash has centres and scales that the sites have fixed.
    if own.is_some_and(|own| own != was) || begun(directory)? {
        let (file, run) = (file.display().to_string(), directory.path().display().to_string());
        return Err(FederationError::SchemaChanged { file, run });
    }
    Ok(Resumed::Edited)
}

fn hash(schema: &Schema) -> String {
    sha256(schema.text().as_bytes())
}

/// Hash of the schema in the run directory.
fn own_hash(directory: &RunDirectory) -> Result<Option<String>, FederationError> {
    let path = directory.file(OWN);
    let damaged = |why: String| DirectoryError::Damaged { path: path.display().to_string(), why };
    let read = |path: &Path| read_schema(path).map_err(|error| RunError::from(damaged(error.to_string())));
    let own = path.is_file().then(|| read(&path)).transpose()?;
    Ok(own.as_ref().map(hash))
}

/// Whether a round was opened, in this course of the run or in one that was rolled back.
fn begun(directory: &RunDirectory) -> Result<bool, FederationError> {
    let lines = directory.lines().map_err(RunError::from)?;
    let opened = !Ledger::rounds_in(&directory.file("federation"))?.is_empty();
    let other = ["checkpoint", "rolled-back"].iter().any(|name| directory.file(name).exists());
    Ok(!lines.is_empty() || opened || other)
}

/// Makes the run directory one of the edited schema, and its run one with this id: a site keeps to the first schema of a run
/// for good. May be repeated after a crash.
pub(crate) fn take_up(
    directory: &RunDirectory,
    config: &Config,
    info: &DatasetInfo,
    id: &str,
) -> Result<(), FederationError> {
    let own = directory.file(OWN);
    // First: a schema beside another one's hash would be taken for one that the sites have completed.
    if own.exists() {
        disk::remove_file(&own).map_err(doing("removing", &own)).map_err(RunError::from)?;
    }
    // Before the manifest: with it, the schema counts as that of the run.
    rename_run(&directory.file("federation").join("run.json"), id)?;
    let manifest = directory.manifest().map_err(RunError::from)?;
    let manifest =
        Manifest { schema_hash: info.schema_hash(), data_checksum: info.checksum.clone(), ..manifest };
    directory
        .write_terms(&config.with_model_for(info.shape).resolved(), &manifest)
        .map_err(RunError::from)?;
    Ok(())
}

/// Gives a run another id; its roster stays.
fn rename_run(path: &Path, id: &str) -> Result<(), FederationError> {
    if !path.exists() {
        return Ok(());
    }
    let damaged = |why: serde_json::Error| LedgerError::Damaged {
        path: path.display().to_string(),
        why: why.to_string(),
    };
    let text = read_text(path).map_err(LedgerError::from)?;
    let mut run: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
    run["run"] = id.into();
    let text = serde_json::to_string_pretty(&run).map_err(damaged)?;
    Ok(write(path, text.as_bytes()).map_err(LedgerError::from)?)
}

/// Stores a schema that needs nothing from the sites, if it is not stored yet.
pub(crate) fn store(directory: &RunDirectory, info: &DatasetInfo) -> Result<(), FederationError> {
    match info.complete_schema() {
        Some(schema) if !directory.file(OWN).exists() => {
            Ok(directory.write_schema(&schema).map_err(RunError::from)?)
        }
        _ => Ok(()),
    }
}
