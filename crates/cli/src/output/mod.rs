//! Answers that need more than a line of text: charts into files, what a reproduction would run, a page of the
//! documentation. Each is used by a subcommand and knows nothing of its options.

pub(crate) mod dry_run;
pub(crate) mod plot;
pub(crate) mod strategies_page;
