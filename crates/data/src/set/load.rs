//! A data set by name or path, as a run needs it.

use super::catalogue::{ALL, Entry, named};
use super::places::{Missing, Places};
use super::{cifar, csv, folder, heart, idx, imbalance, npy};
use crate::decode::Flaw;
use crate::decode::cifar::Layout;
use crate::mini::{self, MiniError};
use crate::split::Groups;
use fedtvd_core::train::{Augment, Samples, SamplesError};
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Which data, and what is done to it.
#[derive(Clone, Debug, PartialEq)]
pub struct DataOptions {
    /// A name of the catalogue, or the path of a folder of images by class, of an exported client or of a CSV.
    pub set: String,
    /// CSV: the column that holds the label.
    pub label: String,
    /// CSV: the column that says whose a row is.
    pub group: Option<String>,
    /// CSV, and folders without `test`: which share of each class is for testing.
    pub test: f64,
    /// Training images are shifted by up to this many pixels.
    pub crop: usize,
    /// Every second training image is mirrored.
    pub flip: bool,
    /// Keeps r^c of class c, for training and testing.
    pub imbalance: f64,
}

impl Default for DataOptions {
    fn default() -> Self {
        Self {
            set: "fmnist-mini".to_owned(),
            label: "label".to_owned(),
            group: None,
            test: 0.2,
            crop: 0,
            flip: false,
            imbalance: 1.0,
        }
    }
}

/// A data set in memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Values and labels.
    pub samples: Arc<Samples>,
    /// Who owns which training row, if the data says so.
    pub groups: Option<Groups>,
    /// Mean and deviation by which the bytes of each channel are normalised; none if values are no bytes.
    pub normal: Vec<(f32, f32)>,
    /// The classes' names.
    pub class_names: Vec<String>,
    /// What a user should know about how the data was read.
    pub notes: Vec<String>,
}

/// Why a data set cannot be used.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A file does not decode.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// It is not there.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The embedded set is damaged.
    #[error(transparent)]
    Mini(#[from] MiniError),
    /// Its parts do not fit together.
    #[error(transparent)]
    Samples(#[from] SamplesError),
    /// Neither a name nor a path.
    #[error(
        "data.set = \"{set}\" is no data set and no path: there are {}, folders of images by class and CSV files",
        ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
    )]
    Unknown {
        /// What was asked for.
        set: String,
    },
    /// A parameter outside its range.
    #[error("data.{name} = {value} is outside {range}")]
    Range {
        /// Which parameter.
        name: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// A table that cannot be read as labelled rows.
    #[error("{file}: {reason}")]
    Table {
        /// The file.
        file: String,
        /// What is wrong and what would have been right.
        reason: String,
    },
}

/// Fails where a set is neither a name of the catalogue nor a path to something; nothing is read.
pub fn known(set: &str) -> Result<(), LoadError> {
    match named(set).is_some() || Path::new(set).exists() {
        true => Ok(()),
        false => Err(LoadError::Unknown { set: set.to_owned() }),
    }
}

impl DataOptions {
    /// Reads the data.
    pub fn load(&self, places: &Places) -> Result<Loaded, LoadError> {
        if !(self.imbalance > 0.0 && self.imbalance <= 1.0) {
            let range = "0 (not itself) to 1";
            return Err(LoadError::Range { name: "imbalance", value: self.imbalance, range });
        }
        if !(0.0..=0.9).contains(&self.test) {
            return Err(LoadError::Range { name: "test", value: self.test, range: "0 to 0.9" });
        }
        let mut loaded = match named(&self.set) {
            Some(entry) => by_name(entry, places)?,
            None => self.by_path(Path::new(&self.set))?,
        };
        loaded.notes.extend(self.without_effect());
        if loaded.samples.rows() == loaded.samples.train_rows() {
            let note = "no rows are for testing, and a run needs some to judge its model by";
            loaded.notes.push(note.to_owned());
        }
        if self.imbalance < 1.0 {
            loaded = imbalance::thinned(&loaded, self.imbalance)?;
        }
        if self.crop > 0 || self.flip {
            let augment = Augment { crop: self.crop, flip: self.flip };
            loaded.samples = Arc::new(Arc::unwrap_or_clone(loaded.samples).augmented(augment));
        }
        Ok(loaded)
    }

    /// Columns that were named where there is no table.
    fn without_effect(&self) -> Vec<String> {
        let table = named(&self.set).is_none() && Path::new(&self.set).is_file();
        let label = Some(self.label.as_str()).filter(|label| *label != Self::default().label);
        let idle = [("label", label), ("group", self.group.as_deref())];
        let note = |(key, name): (&str, Option<&str>)| {
            Some(format!(
                "data.{key} = {} does nothing: {} is not a CSV file",
                name.filter(|_| !table)?,
                self.set
            ))
        };
        idle.into_iter().filter_map(note).collect()
    }

    fn by_path(&self, path: &Path) -> Result<Loaded, LoadError> {
        if npy::Site::at(path) {
            npy::Site::load(path)
        } else if path.is_dir() {
            folder::load(path, self.test)
        } else if path.is_file() {
            csv::load(path, &self.label, self.group.as_deref(), self.test)
        } else {
            Err(LoadError::Unknown { set: self.set.clone() })
        }
    }
}

/// A data set of the catalogue, as it is.
pub(crate) fn by_name(entry: &Entry, places: &Places) -> Result<Loaded, LoadError> {
    if entry.parts.is_empty() {
        let (samples, class_names) = (Arc::new(mini::load()?), entry.class_names());
        return Ok(Loaded {
            samples,
            groups: None,
            normal: vec![(0.0, 1.0)],
            class_names,
            notes: Vec::new(),
        });
    }
    let place = places.find(entry)?;
    match entry.name {
        "cifar10" => cifar::load(entry, Layout::Cifar10, &place),
        "cifar100" => cifar::load(entry, Layout::Cifar100, &place),
        "heart" => heart::load(entry, place.path()),
        "mnist" => {
            let loaded = idx::load(entry, place.path())?;
            let groups = idx::writers(place.path(), loaded.samples.train_rows())?;
            Ok(Loaded { groups, ..loaded })
        }
        _ => idx::load(entry, place.path()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_is_named_where_there_is_no_table_is_said_to_do_nothing() {
        let options = DataOptions { group: Some("ward".to_owned()), ..DataOptions::default() };
        let notes = options.load(&Places::new(None)).unwrap().notes;
        assert_eq!(notes, ["data.group = ward does nothing: fmnist-mini is not a CSV file"]);
    }

    #[test]
    fn a_set_without_test_rows_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("few.csv");
        std::fs::write(&path, "x,label\n1,a\n2,b\n3,a\n4,b\n").unwrap();
        let set = path.to_str().unwrap().to_owned();
        let load =
            |test| DataOptions { set: set.clone(), test, ..DataOptions::default() }.load(&Places::new(None));
        assert!(load(0.2).unwrap().notes[0].starts_with("no rows are for testing"));
        assert!(load(0.5).unwrap().notes.is_empty());
    }
}
