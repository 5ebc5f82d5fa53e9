//! `fedtvd`: one file per subcommand, in `commands`. Answers go to stdout, progress and errors to stderr.
//!
//! Exit codes: 0 done, 1 the work failed, 2 the request was wrong.

mod commands;
mod output;
mod request;
mod terminal;

use clap::{CommandFactory as _, Parser, Subcommand};
use commands::{
    certs, compare, completions, data, evaluate, init, join, models, report, reproduce, resume, run, serve,
    split, strategies, sweep, verify, weights,
};
use request::{Failure, tell};
use std::process::ExitCode;

/// Federated learning that asks what clients know about their labels: how much each should count, and how
/// each should train.
#[derive(Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Train several strategies side by side on the same splits, initial models and cohorts
    Compare(compare::Compare),
    /// Tables, figures, statistics and a page from runs that are done
    Report(report::Report),
    /// Run one experiment into a run directory
    Run(run::Run),
    /// Go on with a run after a stop or a crash, to the same bits
    Resume(resume::Resume),
    /// Recompute rounds of a run and compare the bits
    Verify(verify::Verify),
    /// Accuracy, loss and confusion of a trained model
    Evaluate(evaluate::Evaluate),
    /// Run every combination of lists of values, resumable, on one machine or many
    Sweep(sweep::Sweep),
    /// Run the paper's experiments and show its figures beside ours
    Reproduce(reproduce::Reproduce),
    /// Print a commented configuration with every key
    Init(init::Init),
    /// Explain how much each of some clients would count, and why
    Weights(weights::Weights),
    /// Show how data is split over clients: a picture, statistics, plots, partition.json
    Split(split::Split),
    /// List, fetch, verify and find data sets
    Data(data::Data),
    /// List the strategies, with parameters, defaults, ranges and papers
    Strategies(strategies::Strategies),
    /// List the models
    Models(models::Models),
    /// Serve a federation: clients on other machines dial in
    Serve(serve::Serve),
    /// Take part in a federation with this site's own data
    Join(join::Join),
    /// Make, revoke and list the certificates of a federation
    Certs(certs::Certs),
    /// Print completions for a shell
    Completions(completions::Completions),
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Compare(compare) => compare.answer(),
        Verb::Report(report) => report.answer(),
        Verb::Run(run) => run.answer(),
        Verb::Resume(resume) => resume.answer(),
        Verb::Verify(verify) => verify.answer(),
        Verb::Evaluate(evaluate) => evaluate.answer(),
        Verb::Sweep(sweep) => sweep.answer(),
        Verb::Reproduce(reproduce) => reproduce.answer(),
        Verb::Init(init) => init.answer(),
        Verb::Weights(weights) => weights.answer(),
        Verb::Split(split) => split.answer(),
        Verb::Data(data) => data.answer(),
        Verb::Strategies(strategies) => strategies.answer(),
        Verb::Models(models) => models.answer(),
        Verb::Serve(serve) => serve.answer(),
        Verb::Join(join) => join.answer(),
        Verb::Certs(certs) => certs.answer(),
        Verb::Completions(completions) => completions.answer(Cli::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Request(error)) => {
            tell(format_args!("fedtvd: {error:#}"));
            ExitCode::from(2)
        }
        Err(Failure::Work(error)) => {
            tell(format_args!("fedtvd: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
