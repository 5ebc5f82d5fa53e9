//! The `fedtvd` command: one file per subcommand in `commands`. Results go to stdout, progress and errors to stderr.
//!
//! Exit codes: 0 success, 1 failure, 2 invalid request. It is a library, so that a program which registers strategies of its
//! own (see [`fedtvd_core::strategy::register`]) is the whole command with these strategies.

mod commands;
mod host;
mod ignored;
mod output;
mod request;
mod terminal;

use clap::{CommandFactory as _, Parser, Subcommand};
use commands::{
    audit, certs, compare, completions, data, evaluate, init, join, models, predict, report, reproduce,
    resume, run, serve, split, strategies, sweep, tune, verify, weights,
};
pub use host::{CallFailure, Called, Host, News, RoundNews, Tell, call};
use request::{Failure, eprint_line};
use std::ffi::OsString;

/// Federated learning: train one model on the data of many clients that do not share it, and compare
/// methods for clients whose data differ. For researchers who evaluate methods in simulation, and for
/// engineers who run a federation across real sites.
#[derive(Parser)]
#[command(verbatim_doc_comment, version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare strategies on the same data splits, initial models and selections of clients
    Compare(compare::Compare),
    /// Create tables, figures, statistics and an HTML page from finished runs
    Report(report::Report),
    /// Run one experiment: simulate federated training with one strategy and seed
    Run(run::Run),
    /// Resume an interrupted run with bit-identical results, or any run from an earlier round
    Resume(resume::Resume),
    /// Recompute rounds of a run and check that they are bit-identical
    Verify(verify::Verify),
    /// Compute accuracy, loss and confusion matrix of a trained model
    Evaluate(evaluate::Evaluate),
    /// Predict classes and probabilities for the rows of a table, or for images
    Predict(predict::Predict),
    /// Run all combinations of parameter values, on one machine or a cluster
    Sweep(sweep::Sweep),
    /// Tune each strategy on the clients' hold-outs and compare the tuned ones on the test set
    Tune(tune::Tune),
    /// Run the experiments of the FedTVD paper and compare the results with it
    Reproduce(reproduce::Reproduce),
    /// Print a configuration file with all keys, defaults and comments
    Init(init::Init),
    /// Show the aggregation weights of clients with given label counts
    Weights(weights::Weights),
    /// Show how a data set is split over clients, and save or export the split
    Split(split::Split),
    /// List, download, verify and locate data sets, and describe tables
    Data(data::Data),
    /// List the strategies with their parameters and papers
    Strategies(strategies::Strategies),
    /// List the models
    Models(models::Models),
    /// Run the server of a federation of clients on other machines
    Serve(serve::Serve),
    /// Join a federation as a client, with local data
    Join(join::Join),
    /// Check the audit log of a federation
    Audit(audit::Audit),
    /// Create, revoke and list the certificates of a federation
    Certs(certs::Certs),
    /// Print a completion script for a shell
    Completions(completions::Completions),
}

/// Runs the command with these arguments, the first of which is the program's name, and returns its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(told) => {
            // A closed stdout is no failure, as everywhere.
            let _ = told.print();
            return u8::try_from(told.exit_code()).unwrap_or(2);
        }
    };
    match answer(&cli.command) {
        Ok(()) => 0,
        Err(Failure::Request(error)) => {
            eprint_line(format_args!("fedtvd: {error:#}"));
            2
        }
        Err(Failure::Work(error)) => {
            eprint_line(format_args!("fedtvd: {error:#}"));
            1
        }
    }
}

fn answer(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Compare(compare) => compare.answer(),
        Command::Report(report) => report.answer(),
        Command::Run(run) => run.answer(),
        Command::Resume(resume) => resume.answer(),
        Command::Verify(verify) => verify.answer(),
        Command::Evaluate(evaluate) => evaluate.answer(),
        Command::Predict(predict) => predict.answer(),
        Command::Sweep(sweep) => sweep.answer(),
        Command::Tune(tune) => tune.answer(),
        Command::Reproduce(reproduce) => reproduce.answer(),
        Command::Init(init) => init.answer(),
        Command::Weights(weights) => weights.answer(),
        Command::Split(split) => split.answer(),
        Command::Data(data) => data.answer(),
        Command::Strategies(strategies) => strategies.answer(),
        Command::Models(models) => models.answer(),
        Command::Serve(serve) => serve.answer(),
        Command::Join(join) => join.answer(),
        Command::Audit(audit) => audit.answer(),
        Command::Certs(certs) => certs.answer(),
        Command::Completions(completions) => completions.answer(Cli::command()),
    }
}
