//! What a user sees on stderr while something runs: bars on a terminal, lines elsewhere. One file per kind of work: a
//! single run, a sweep, a comparison. Answers on stdout are not made here.

pub(crate) mod comparison_progress;
pub(crate) mod sweep_progress;
pub(crate) mod watch;
