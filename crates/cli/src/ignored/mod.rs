//! What was given and has no effect: an error if it is on the command line, a note if it is in a file, since the same file
//! serves several subcommands and may list all keys. Keys, the strategies' parameters, tables and folders have a file each.

mod files;
mod idle_keys;
mod strategies;

pub(crate) use files::{data_folder, data_folder_of, tables};
pub(crate) use idle_keys::{Purpose, refuse_idle, refuse_idle_lists};
pub(crate) use strategies::{parameters, refuse_untaken, strategies};

use crate::request::{Configured, Failure};

use fedtvd_run::configuration::Config;
use files::data_sets;
use idle_keys::{beside_split, idle_keys};

/// Refuses a `--set` without effect; notes on everything else that a subcommand with a configuration file of this text does
/// not use.
pub(crate) fn checked(
    (configured, text): (&Configured, &str),
    subcommand: &str,
    configs: &[Config],
    purpose: Purpose,
) -> Result<Vec<String>, Failure> {
    refuse_idle(configured.set(), configs, purpose)?;
    let notes = tables(text, subcommand).into_iter().chain(idle_keys(configs, purpose));
    let notes = notes.chain(beside_split(configured.set(), purpose));
    Ok(notes.chain(data_folder(configured.data(), &data_sets(configs))).collect())
}
