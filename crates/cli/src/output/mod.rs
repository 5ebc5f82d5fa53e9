//! Longer output: charts as files, the dry run of a reproduction, a server's log, a page of the documentation. Each is used by a
//! subcommand and does not depend on its options.

pub(crate) mod dry_run;
pub(crate) mod event_log;
pub(crate) mod plot;
pub(crate) mod predictions;
pub(crate) mod strategies_page;
pub(crate) mod trained_model;
