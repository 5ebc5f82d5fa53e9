//! One file per subcommand: its options, and what it answers. What several share is in `request`, `terminal` and
//! `output`; what a library would want is in the other crates. A new subcommand is a file here and two lines in `main`.

pub(crate) mod certs;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod evaluate;
pub(crate) mod init;
pub(crate) mod join;
pub(crate) mod models;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod split;
pub(crate) mod strategies;
pub(crate) mod sweep;
pub(crate) mod theory;
pub(crate) mod verify;
pub(crate) mod weights;
