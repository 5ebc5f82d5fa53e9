//! Progress on stderr: bars on a terminal, lines otherwise. One file each for a single run, a sweep and a comparison.

pub(crate) mod comparison_progress;
pub(crate) mod sweep_progress;
pub(crate) mod trouble;
pub(crate) mod watch;
