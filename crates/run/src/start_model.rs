//! The model that a run starts from: random, or from a file.

use crate::configuration::Experiment;
use fedtvd_core::model::{Layout, ModelFileError, Params};
use std::path::PathBuf;
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
    /// The file does not fit the model.
    #[error("model.start: {path}: {error}", path = path.display())]
    Misfit {
        /// The file.
        path: PathBuf,
        /// Why.
        error: Box<ModelFileError>,
    },
}

impl StartModel {
    /// The model that an experiment starts from.
    pub fn of(experiment: &Experiment, layout: &Arc<Layout>) -> Result<Self, StartError> {
        let Some(path) = &experiment.start else {
            let params = Params::initial(Arc::clone(layout), experiment.seed);
            return Ok(Self { params, file: None, note: None });
        };
        let file = std::fs::read(path).map_err(|error| StartError::Read { path: path.clone(), error })?;
        let (params, new) = Params::started_from(&file, layout, experiment.seed)
            .map_err(|error| StartError::Misfit { path: path.clone(), error: Box::new(error) })?;
        let note = (!new.is_empty()).then(|| {
            format!("the head of {} has another width: {} start at random", path.display(), new.join(" and "))
        });
        Ok(Self { params, file: Some(file), note })
    }
}
