//! `fedtvd evaluate RUN --clients`: the model on each client's own hold-out, and where clients use models of their own, these.

use crate::request::{Failure, Output, per_cent, workers_on};
use anyhow::anyhow;
use fedtvd_core::model::Params;
use fedtvd_core::round::Spread;
use fedtvd_data::set::Places;
use fedtvd_lab::stats::rank::rank_correlation;
use fedtvd_run::backend::Device;
use fedtvd_run::client_models;
use fedtvd_run::configuration::Experiment;
use fedtvd_run::directory::{ClientResult, RunDirectory, client_results, spread};
use fedtvd_run::fleet::evaluate_holdouts;
use fedtvd_run::simulation::{Resources, Workers, reference};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

#[derive(Serialize)]
struct View<'a> {
    model: &'a Path,
    round: Option<u32>,
    clients: &'a [ClientResult],
    #[serde(flatten)]
    spread: Spread,
    /// The same of the models that clients use themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    personal: Option<Spread>,
    /// Whether there is no other model.
    #[serde(skip)]
    only_own: bool,
    size_correlation: Option<f64>,
    tvd_correlation: Option<f64>,
}

/// Clients in the table.
const MOST: usize = 20;

/// Prints how a model does at each client of a simulation.
pub(crate) fn evaluate_clients(
    run: &RunDirectory,
    model: (&Path, Option<u32>, &Params),
    (places, device): (&Places, &Device),
    output: Output,
) -> Result<(), Failure> {
    refuse_federation(run)?;
    let (experiment, setup) = fedtvd_run::reopen(run, places).map_err(crate::commands::run::failure)?;
    let mut workers = Workers::on(device, &setup, workers_on(device, None)?).map_err(Failure::request)?;
    let (file, round, params) = model;
    let found = evaluate_holdouts(&mut workers.trainers, &setup, params).map_err(Failure::work)?;
    let found = found.ok_or_else(no_holdouts)?;
    let reference = reference(&experiment, &setup).map_err(Failure::request)?;
    let results = client_results(Some(&found), None, &setup, &reference);
    print(&results, (file, round), false, output)
}

/// Prints how the models do that the clients of a simulation use themselves, after its last round.
pub(crate) fn evaluate_own_models(
    run: &RunDirectory,
    experiment: &Experiment,
    round: Option<u32>,
    (places, device): (&Places, &Device),
    output: Output,
) -> Result<(), Failure> {
    refuse_federation(run)?;
    if let Some(round) = round {
        return Err(Failure::Request(anyhow!(
            "clients' own models are kept for the last round only, not for round {round}; leave --round out"
        )));
    }
    let resources = Resources::on(device.clone(), workers_on(device, None)?);
    let found = client_models(run, places, resources).map_err(crate::commands::run::failure)?;
    let strategy = &experiment.run.strategy;
    let only_own = strategy.sharing.stays().is_some() || strategy.grouping.is_some();
    print(&found.ok_or_else(no_holdouts)?, (&run.file("model.safetensors"), None), only_own, output)
}

fn refuse_federation(run: &RunDirectory) -> Result<(), Failure> {
    if !run.is_federation() {
        return Ok(());
    }
    Err(Failure::Request(anyhow!(
        "--clients is for simulations; the hold-outs of a federation are at its sites"
    )))
}

fn no_holdouts() -> Failure {
    Failure::Request(anyhow!("no client of this run holds out samples; start it with split.holdout = 0.2"))
}

fn print(
    results: &[ClientResult],
    (model, round): (&Path, Option<u32>),
    only_own: bool,
    output: Output,
) -> Result<(), Failure> {
    let Some(spread) = spread(results) else { return Ok(()) };
    let against = |quantity: fn(&ClientResult) -> f64| {
        rank_correlation(&results.iter().map(|own| (quantity(own), own.accuracy)).collect::<Vec<_>>())
    };
    let (size_correlation, tvd_correlation) = (against(|own| own.size as f64), against(|own| own.tvd));
    let own: Option<Vec<f64>> = results.iter().map(|client| client.personal).collect();
    let personal = own.map(Spread::of);
    let view = View {
        model,
        round,
        clients: results,
        spread,
        personal,
        only_own,
        size_correlation,
        tvd_correlation,
    };
    output.answer(&view, || text(&view))
}

/// What the accuracies of a model over clients are, in one line.
fn accuracies(of: &str, clients: usize, Spread { mean, deviation, worst_decile }: Spread) -> String {
    format!(
        "{of} over {clients} clients, each on its own hold-out: mean {}, standard deviation {:.2}, worst tenth {}\n",
        per_cent(Some(mean), 2),
        100.0 * deviation,
        per_cent(Some(worst_decile), 2)
    )
}

fn text(view: &View<'_>) -> String {
    let clients = view.clients.len();
    let name = if view.only_own { "accuracy of clients' own models" } else { "accuracy" };
    let mut text = accuracies(name, clients, view.spread);
    let beside = view.personal.filter(|_| !view.only_own);
    text += &beside.map_or(String::new(), |own| accuracies("accuracy of clients' own models", clients, own));
    let correlation = |value: Option<f64>| value.map_or("unknown".to_owned(), |value| format!("{value:+.2}"));
    let _ = writeln!(
        text,
        "rank correlation of accuracy with size {}, with TVD (label skew) {}\n",
        correlation(view.size_correlation),
        correlation(view.tvd_correlation)
    );
    let own = if beside.is_some() { format!("  {:>9}", "own model") } else { String::new() };
    let _ = writeln!(
        text,
        "{:>7}  {:>7}  {:>5}  {:>8}  {:>9}  {:>8}{own}",
        "client", "samples", "TVD", "hold-out", "accuracy", "loss"
    );
    let mut worst_first: Vec<&ClientResult> = view.clients.iter().collect();
    worst_first.sort_by(|one, other| one.accuracy.total_cmp(&other.accuracy));
    for ClientResult { client, size, tvd, holdout, accuracy, loss, personal } in worst_first.iter().take(MOST)
    {
        let loss = loss.map_or("—".to_owned(), |loss| format!("{loss:.4}"));
        let own =
            beside.and(*personal).map_or(String::new(), |own| format!("  {:>9}", per_cent(Some(own), 1)));
        let accuracy = per_cent(Some(*accuracy), 1);
        let _ =
            writeln!(text, "{client:>7}  {size:>7}  {tvd:>5.2}  {holdout:>8}  {accuracy:>9}  {loss:>8}{own}");
    }
    if view.clients.len() > MOST {
        let _ = writeln!(text, "the worst {MOST} of {}; --json has all", view.clients.len());
    }
    text
}
