//! The model that a run starts from: random, or from a file.

use crate::backend::initial;
use crate::configuration::Experiment;
use fedtvd_core::model::{Layout, ModelDefinition, ModelFileError, Params};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The name of the copy that a run directory keeps of the file.
pub(crate) const FILE: &str = "start.safetensors";

/// A model before the first round.
#[derive(Clone, Debug)]
pub struct StartModel {
    /// The model.
    pub params: Params,
    /// The bytes of its file; `None` if it is random.
    pub file: Option<Vec<u8>>,
    /// What a user should know about it.
    pub note: Option<String>,
}

/// Why a model cannot be started from.
#[derive(Debug, Error)]
pub enum StartError {
    /// The file cannot be read.
    #[error("model.start: reading {path}: {error}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Several different models at the beginning, of a backend that makes one.
    #[error(
        "{0} begins with several models, and a backend gives the initial values of one; choose another strategy, or a model made \
         of layers"
    )]
    Several(String),
    /// The file does not fit the model.
    #[error("model.start: {path}: {error}", path = path.display())]
    Misfit {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Box<ModelFileError>,
    },
    /// A model that is not made of layers has no initial values.
    #[error("{0}")]
    Initial(String),
}

/// Bytes of the largest model file: 2^32 numbers, which is more than a trainer can address, and the largest head that a
/// safetensors file can have.
const LARGEST: u64 = (4 << 32) + 100_000_000;

/// The bytes of a model file. Pipes and devices, which may have no end, are refused.
pub fn model_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let refused = |why: String| Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
    let found = std::fs::metadata(path)?;
    if !found.is_file() {
        return refused("it is not a regular file".to_owned());
    }
    if found.len() > LARGEST {
        return refused(format!("it has {} bytes; a model has at most {LARGEST}", found.len()));
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(found.len()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl StartModel {
    /// The model that an experiment starts from.
    pub fn of(
        experiment: &Experiment,
        model: &ModelDefinition,
        layout: &Arc<Layout>,
    ) -> Result<Self, StartError> {
        let initial = match model {
            ModelDefinition::Network(_) => Params::initial(Arc::clone(layout), experiment.seed),
            ModelDefinition::Other(_) if experiment.run.strategy.models() > 1 => {
                return Err(StartError::Several(experiment.run.strategy.label.clone()));
            }
            ModelDefinition::Other(other) => {
                initial(other, layout, experiment.seed).map_err(StartError::Initial)?
            }
        };
        let Some(path) = &experiment.start else {
            return Ok(Self { params: initial, file: None, note: None });
        };
        let file = model_bytes(path).map_err(|error| StartError::Read { path: path.clone(), error })?;
        let (params, new) = Params::started_from(&file, initial)
            .map_err(|error| StartError::Misfit { path: path.clone(), error: Box::new(error) })?;
        let note = (!new.is_empty()).then(|| {
            format!("the head of {} has another width: {} start at random", path.display(), new.join(" and "))
        });
        Ok(Self { params, file: Some(file), note })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_possible_size_are_read_as_models() {
        let refused = |path: &Path| model_bytes(path).unwrap_err().to_string();
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(refused(folder.path()), "it is not a regular file");
        #[cfg(unix)]
        assert_eq!(refused(Path::new("/dev/zero")), "it is not a regular file");
        let path = folder.path().join("model.safetensors");
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(LARGEST + 1).unwrap();
        assert!(refused(&path).contains("a model has at most 17279869184"), "{}", refused(&path));
        std::fs::write(&path, [1, 2, 3]).unwrap();
        assert_eq!(model_bytes(&path).unwrap(), [1, 2, 3]);
    }
}
