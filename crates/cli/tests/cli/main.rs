//! The program as typed, one module per subcommand or promise; one binary, so that it is linked once.

mod compare;
mod data;
mod federation;
mod json;
mod obstacles;
mod page;
mod program;
mod report;
mod reproduce;
mod run;
mod split;
mod strategies;
mod sweep;
mod weights;
