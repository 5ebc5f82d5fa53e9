//! Tests of the command line, one module per subcommand or topic, in one binary to link only once.

mod attacks;
mod call;
mod certs;
mod collapse;
mod compare;
mod data;
mod false_models;
mod false_runs;
mod federation;
#[cfg(unix)]
mod first_steps;
mod hospitals;
mod ignored;
mod imbalance;
mod json;
mod obstacles;
mod operations;
mod own_models;
mod own_strategy;
mod page;
mod program;
mod report;
mod reproduce;
mod rollback;
mod run;
mod security;
mod split;
mod strategies;
mod sweep;
mod table_evaluation;
mod table_federation;
mod table_predictions;
mod tables;
mod tune;
mod weights;
