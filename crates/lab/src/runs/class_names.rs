//! The names of a run's classes, as far as its directory says them.

use fedtvd_data::set::{Entry, named};
use fedtvd_data::table::Schema;
use fedtvd_run::configuration::Config;
use fedtvd_run::directory::RunDirectory;

/// The names of the classes of a known data set or of a table; `None` for other data, whose classes have numbers.
pub fn class_names(directory: &RunDirectory, config: &Config) -> Option<Vec<String>> {
    let schema = directory.schema().ok().flatten().and_then(|text| text.parse::<Schema>().ok());
    let known = || named(&config.get("data.set").bare()).map(Entry::class_names);
    schema.map(|schema| schema.class_names()).or_else(known)
}
