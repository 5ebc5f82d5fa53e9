//! A data set by name or path, as a run needs it.

use super::catalogue::{ALL, Entry, named};
use super::places::{Missing, Places};
use super::table::{TableData, load_table};
use super::{cifar, folder, heart, idx, imbalance, npy, table};
use crate::decode::cifar::Layout;
use crate::decode::{Flaw, Source};
use crate::mini::{self, MiniError};
use crate::split::Groups;
use crate::table::{RowError, Schema, SchemaError};
use fedtvd_core::train::{Augment, Samples, SamplesError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Which data, and what is done to it.
#[derive(Clone, Debug, PartialEq)]
pub struct DataOptions {
    /// A name of the catalogue, or the path of a folder of images by class, of an exported client or of a CSV.
    pub set: String,
    /// CSV: the column that holds the label.
    pub label: String,
    /// CSV: the column that names the owner of each row.
    pub group: Option<String>,
    /// CSV: the path of its schema; one is made from the file if there is none.
    pub schema: Option<PathBuf>,
    /// CSV, and folders without `test`: the fraction of each class that is for testing.
    pub test: f64,
    /// Training images are shifted by up to this number of pixels.
    pub crop: usize,
    /// Training images are mirrored with probability 1/2.
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
            schema: None,
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
    /// Mean and standard deviation that normalise the bytes of each channel; empty if values are not bytes.
    pub normal: Vec<(f32, f32)>,
    /// The classes' names.
    pub class_names: Vec<String>,
    /// Notes for the user about how the data was read.
    pub notes: Vec<String>,
    /// The table that it is, if it is one.
    pub table: Option<Arc<TableData>>,
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
        "{} nor a path: use {}, a folder of images by class, or a CSV file",
        match set.as_str() {
            "" => "data.set is empty: it names neither a data set".to_owned(),
            set => format!("data.set = \"{set}\" is neither a data set"),
        },
        ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
    )]
    Unknown {
        /// The value of `data.set`.
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
        range: String,
    },
    /// A value or a column that a schema does not allow.
    #[error(transparent)]
    Row(Box<RowError>),
    /// A schema that cannot be read.
    #[error("{file}: {why}")]
    Schema {
        /// The file.
        file: String,
        /// What is wrong.
        why: SchemaError,
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

/// Fails if a set is neither a name of the catalogue nor an existing path; nothing is read.
pub fn known(set: &str) -> Result<(), LoadError> {
    match named(set).is_some() || Path::new(set).exists() {
        true => Ok(()),
        false => Err(LoadError::Unknown { set: set.to_owned() }),
    }
}

impl DataOptions {
    /// Reads the data.
    pub fn load(&self, places: &Places) -> Result<Loaded, LoadError> {
        self.load_as(places, None)
    }

    /// Reads the data; a table with this schema, whatever `schema` names.
    pub fn load_with(&self, places: &Places, schema: &Schema) -> Result<Loaded, LoadError> {
        self.load_as(places, Some(schema))
    }

    /// Whether the data is a file with a table.
    pub fn is_table_file(&self) -> bool {
        named(&self.set).is_none() && Path::new(&self.set).is_file()
    }

    fn load_as(&self, places: &Places, schema: Option<&Schema>) -> Result<Loaded, LoadError> {
        if !(self.imbalance > 0.0 && self.imbalance <= 1.0) {
            let range = "above 0 to 1".to_owned();
            return Err(LoadError::Range { name: "imbalance", value: self.imbalance, range });
        }
        if !(0.0..=0.9).contains(&self.test) {
            return Err(LoadError::Range { name: "test", value: self.test, range: "0 to 0.9".to_owned() });
        }
        let mut loaded = match named(&self.set) {
            Some(entry) => by_name(entry, places)?,
            None => self.by_path(Path::new(&self.set), schema)?,
        };
        let [_, height, width] = loaded.samples.shape();
        if self.crop > 0 && self.crop >= height.min(width) {
            let range = format!("0 to {}: samples are {height}x{width}", height.min(width) - 1);
            return Err(LoadError::Range { name: "crop", value: self.crop as f64, range });
        }
        loaded.notes.extend(self.without_effect());
        if loaded.samples.rows() == loaded.samples.train_rows() {
            let note = "there are no test rows, and a run needs some to evaluate its model";
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

    fn by_path(&self, path: &Path, schema: Option<&Schema>) -> Result<Loaded, LoadError> {
        if npy::Site::at(path) {
            npy::Site::load(path)
        } else if path.is_dir() {
            folder::load(path, self.test)
        } else if path.is_file() {
            match schema {
                Some(schema) => load_table(path, schema, self.group.as_deref(), self.test),
                None => self.table(path),
            }
        } else {
            Err(LoadError::Unknown { set: self.set.clone() })
        }
    }

    fn table(&self, path: &Path) -> Result<Loaded, LoadError> {
        let group = self.group.as_deref();
        let Some(place) = &self.schema else { return table::load(path, &self.label, group, self.test) };
        let schema = read_schema(place)?;
        if self.label != Self::default().label && self.label != schema.label.column {
            let reason = format!(
                "data.label = {:?}, but the label of {} is {:?}; leave data.label out",
                self.label,
                place.display(),
                schema.label.column
            );
            return Err(LoadError::Table { file: path.display().to_string(), reason });
        }
        load_table(path, &schema, group, self.test)
    }
}

/// Largest schema, in bytes: the server of a federation sends it to its clients in one message.
const LARGEST_SCHEMA: usize = 1 << 19;

/// Reads a schema.
pub fn read_schema(path: &Path) -> Result<Schema, LoadError> {
    let file = path.display().to_string();
    let mut source = Source::open(path)?;
    let bytes = source.rest(LARGEST_SCHEMA, "a schema")?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to() as u64;
        source.flaw(offset, "text in UTF-8".to_owned(), "other bytes".to_owned())
    })?;
    text.parse().map_err(|why| LoadError::Schema { file, why })
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
            table: None,
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
    fn images_are_not_shifted_by_their_whole_width() {
        let load = |crop| DataOptions { crop, ..DataOptions::default() }.load(&Places::new(None));
        assert_eq!(load(28).unwrap_err().to_string(), "data.crop = 28 is outside 0 to 27: samples are 28x28");
        assert!(load(27).is_ok());
    }

    #[test]
    fn a_set_without_test_rows_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("few.csv");
        std::fs::write(&path, "x,label\n1,a\n2,b\n3,a\n4,b\n").unwrap();
        let set = path.to_str().unwrap().to_owned();
        let load =
            |test| DataOptions { set: set.clone(), test, ..DataOptions::default() }.load(&Places::new(None));
        assert!(load(0.2).unwrap().notes.iter().any(|note| note.starts_with("there are no test rows")));
        assert!(!load(0.5).unwrap().notes.iter().any(|note| note.contains("no test rows")));
    }
}
