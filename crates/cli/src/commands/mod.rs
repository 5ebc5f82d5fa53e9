//! One file per subcommand, with its options and its output. Code that several share is in `request`, `terminal` and
//! `output`; everything else is in the library crates. A new subcommand is a file here and two lines in `main`.

pub(crate) mod audit;
pub(crate) mod certs;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod data_schema;
pub(crate) mod evaluate;
pub(crate) mod evaluate_clients;
pub(crate) mod evaluated_data;
pub(crate) mod init;
pub(crate) mod join;
pub(crate) mod join_request;
pub(crate) mod models;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod split;
pub(crate) mod strategies;
pub(crate) mod sweep;
pub(crate) mod theory;
pub(crate) mod tune;
pub(crate) mod verify;
pub(crate) mod weights;
