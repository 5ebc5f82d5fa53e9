//! `best.safetensors`: the model of the best round by validation.
//!
//! It is written before each checkpoint, so that a resumed run has it. After a crash the file may be that of a round that will be
//! computed again, with the same bits: it is recognised by its hash, which the round's record holds.

use crate::directory::{FileError, digest, disk, files};
use fedtvd_core::model::{Layout, ModelCard, Params};
use std::path::PathBuf;
use std::sync::Arc;

/// The best model so far.
pub(crate) struct BestModel {
    file: PathBuf,
    /// Hash of the best round's model; empty before the first one.
    hash: String,
    /// The model, until it is written.
    unwritten: Option<Arc<Params>>,
}

impl BestModel {
    /// Kept in this file; no model yet.
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, hash: String::new(), unwritten: None }
    }

    /// The best round is now the one with this model.
    pub(crate) fn keep(&mut self, hash: &str, model: Arc<Params>) {
        (self.hash, self.unwritten) = (hash.to_owned(), Some(model));
    }

    /// The best round is one of an earlier process, with a model of this hash.
    pub(crate) fn expect(&mut self, hash: &str) {
        self.hash = hash.to_owned();
    }

    /// Takes the model of the best round from elsewhere, if it is the right one.
    pub(crate) fn restore(&mut self, model: Arc<Params>) {
        if digest::model(&model).0 == self.hash {
            self.unwritten = Some(model);
        }
    }

    /// Writes the model if it is not written yet.
    pub(crate) fn write(&mut self, card: Option<&ModelCard>) -> Result<(), FileError> {
        if let Some(model) = &self.unwritten {
            files::write(&self.file, &model.to_described_safetensors(card))?;
            self.unwritten = None;
        }
        Ok(())
    }

    /// Removes a file with another model: that of a round that will be computed again, or that a rollback discarded.
    pub(crate) fn discard_other(&self, layout: &Arc<Layout>) -> Result<(), FileError> {
        if self.file.exists() && self.path(layout).is_none() {
            disk::remove_file(&self.file).map_err(files::doing("removing", &self.file))?;
        }
        Ok(())
    }

    /// The path of the file, if it holds the model of the best round.
    pub(crate) fn path(&self, layout: &Arc<Layout>) -> Option<String> {
        let bytes = std::fs::read(&self.file).ok()?;
        let model = Params::from_safetensors_of_any_width(&bytes, layout).ok()?;
        (digest::model(&model).0 == self.hash).then(|| self.file.display().to_string())
    }
}
