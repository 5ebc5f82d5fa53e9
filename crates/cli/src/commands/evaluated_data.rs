//! The data that a model is evaluated on: the test rows of its run, if they are still the same, or all rows of another table.

use crate::request::Failure;
use anyhow::anyhow;
use fedtvd_data::set::{DataOptions, LoadError, Loaded, Places, load_table, read_schema};
use fedtvd_data::table::{Kind, Schema};
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::{Manifest, RunDirectory, sha256};
use fedtvd_run::setup::Data;
use std::path::{Path, PathBuf};

/// The data, and which of its rows count.
pub(crate) struct EvaluatedData {
    pub(crate) loaded: Loaded,
    /// Whether all rows are evaluated, since none of them is known to be for testing.
    pub(crate) all: bool,
}

/// What is asked for.
pub(crate) struct Wanted<'a> {
    /// The model's file.
    pub(crate) model: &'a Path,
    pub(crate) data: &'a DataOptions,
    /// The schema of the model, if it is for tables.
    pub(crate) schema: Option<&'a Schema>,
    pub(crate) places: &'a Places,
    /// Whether the user named the data, instead of leaving it to the run.
    pub(crate) named: bool,
}

/// Whether the data is what it was when the run began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Same,
    Changed,
    /// The schema that it was read with is gone.
    Unknown,
}

impl Wanted<'_> {
    /// Reads the data.
    pub(crate) fn read(&self) -> Result<EvaluatedData, Error> {
        let (set, own) = (&self.data.set, self.own());
        let table = self.schema.filter(|_| self.data.is_table_file());
        if own.is_none()
            && let Some(schema) = table
        {
            return Ok(EvaluatedData { loaded: all_rows(set, schema)?, all: true });
        }
        let mut loaded = match table {
            Some(schema) => self.data.load_with(self.places, schema)?,
            None => self.data.load(self.places)?,
        };
        let same_options = own.is_some_and(|own| DataOptions { set: set.clone(), ..own } == *self.data);
        let state = if same_options { self.state(&loaded)? } else { State::Same };
        match (state, table) {
            (State::Same, _) => {}
            (State::Unknown, _) => loaded.notes.push(format!(
                "it is unknown whether {set} has changed since the run, because the schema that the run was started with is \
                 gone"
            )),
            (State::Changed, _) if !self.named => return Err(Error::Changed { set: set.clone(), table: table.is_some() }),
            (State::Changed, Some(schema)) => {
                let mut loaded = all_rows(set, schema)?;
                loaded.notes.push(format!(
                    "{set} has changed since the run; all of its rows are evaluated, and the model may have been trained on \
                     some of them"
                ));
                return Ok(EvaluatedData { loaded, all: true });
            }
            (State::Changed, None) => loaded.notes.push(format!(
                "{set} has changed since the run; the model may have been trained on some of these samples"
            )),
        }
        Ok(EvaluatedData { loaded, all: false })
    }

    /// The options with which the run read its data, if this is the same data set.
    fn own(&self) -> Option<DataOptions> {
        let text = std::fs::read_to_string(self.model.with_file_name("config.toml")).ok()?;
        let own = Experiment::of(&Config::parse(&text).ok()?).ok()?.data;
        let place = |set: &str| Path::new(set).canonicalize().unwrap_or_else(|_| PathBuf::from(set));
        (!text.is_empty() && place(&own.set) == place(&self.data.set)).then_some(own)
    }

    /// Compares the checksum of the data with that of the run.
    fn state(&self, loaded: &Loaded) -> Result<State, LoadError> {
        let manifest =
            self.model.parent().and_then(|folder| RunDirectory::open(folder).ok()?.manifest().ok());
        // A server without data has no checksum.
        let Some(manifest) = manifest.filter(|manifest| !manifest.data_checksum.is_empty()) else {
            return Ok(State::Same);
        };
        let is_same = |loaded: Loaded| Data::from(loaded).checksum == manifest.data_checksum;
        if is_same(loaded.clone()) {
            return Ok(State::Same);
        }
        // The run's checksum is that of rows standardised together, not of those standardised as its clients agreed.
        match (self.schema, self.source(&manifest)) {
            (None, _) => Ok(State::Changed),
            (Some(_), None) => Ok(State::Unknown),
            (Some(_), Some(source)) => {
                let same = is_same(self.data.load_with(self.places, &source)?);
                Ok(if same { State::Same } else { State::Changed })
            }
        }
    }

    /// The schema that the run was started with.
    fn source(&self, manifest: &Manifest) -> Option<Schema> {
        let given = self.data.schema.as_ref().and_then(|path| read_schema(path).ok());
        let open = self.schema.map(|schema| {
            let mut open = schema.clone();
            for column in &mut open.columns {
                if let Kind::Number(number) = &mut column.kind {
                    number.standard = None;
                }
            }
            open
        });
        let candidates = [given, open, self.schema.cloned()].into_iter().flatten();
        { candidates }.find(|schema| sha256(schema.text().as_bytes()) == manifest.schema_hash)
    }
}

/// Not as the data of a run: its rows are all for testing.
fn all_rows(set: &str, schema: &Schema) -> Result<Loaded, LoadError> {
    load_table(Path::new(set), schema, None, 0.0)
}

/// Why there is nothing to evaluate.
pub(crate) enum Error {
    Load(LoadError),
    /// The run's data is not what it was.
    Changed {
        set: String,
        table: bool,
    },
}

impl From<LoadError> for Error {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl Error {
    /// The failure of an evaluation of this model, as a user would write it.
    pub(crate) fn failure(self, model: &str, named: bool, for_tables: bool) -> Failure {
        match self {
            Self::Load(LoadError::Unknown { set }) if for_tables && !named => Failure::Request(anyhow!(
                "the data of the run (data.set = {set:?}) is not on this machine; name a table with the same columns: \
                 fedtvd evaluate {model} --set data.set=FILE"
            )),
            Self::Load(error) => Failure::request(error),
            Self::Changed { set, table } => {
                let what = if table { "all of its rows" } else { "it all the same" };
                let file = crate::request::quoted(&set);
                Failure::Request(anyhow!(
                    "{set} has changed since the run, so that its test rows may be ones that the model was trained on; to \
                     evaluate {what}: fedtvd evaluate {model} --set data.set={file}"
                ))
            }
        }
    }
}
