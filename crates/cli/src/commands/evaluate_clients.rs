//! `fedtvd evaluate RUN --clients`: the model on each client's own hold-out.

use crate::request::{Failure, Output, per_cent};
use anyhow::anyhow;
use fedtvd_core::model::Params;
use fedtvd_core::round::Spread;
use fedtvd_data::set::Places;
use fedtvd_lab::stats::rank::rank_correlation;
use fedtvd_run::directory::{ClientResult, RunDirectory, client_results, spread};
use fedtvd_run::fleet::evaluate_holdouts;
use fedtvd_run::simulation::{Workers, reference};
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
    size_correlation: Option<f64>,
    tvd_correlation: Option<f64>,
}

/// Clients in the table.
const MOST: usize = 20;

/// Prints how a model does at each client of a simulation.
pub(crate) fn evaluate_clients(
    run: &RunDirectory,
    model: (&Path, Option<u32>, &Params),
    places: &Places,
    output: Output,
) -> Result<(), Failure> {
    if run.is_federation() {
        return Err(Failure::Request(anyhow!(
            "--clients is for simulations; the hold-outs of a federation are at its sites"
        )));
    }
    let (experiment, setup) = fedtvd_run::reopen(run, places).map_err(crate::commands::run::failure)?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut workers = Workers::on_cpu(&setup, workers).map_err(Failure::request)?;
    let (file, round, params) = model;
    let found = evaluate_holdouts(&mut workers.trainers, &setup, params).map_err(Failure::work)?;
    let found = found.ok_or_else(|| {
        Failure::Request(anyhow!(
            "no client of this run holds out samples; start it with split.holdout = 0.2"
        ))
    })?;
    let results = client_results(
        Some(&found),
        None,
        &setup,
        &reference(&experiment, &setup).map_err(Failure::request)?,
    );
    let Some(spread) = spread(&results) else { return Ok(()) };
    let against = |quantity: fn(&ClientResult) -> f64| {
        rank_correlation(&results.iter().map(|own| (quantity(own), own.accuracy)).collect::<Vec<_>>())
    };
    let (size_correlation, tvd_correlation) = (against(|own| own.size as f64), against(|own| own.tvd));
    let view = View { model: file, round, clients: &results, spread, size_correlation, tvd_correlation };
    output.answer(&view, || text(&view))
}

fn text(view: &View<'_>) -> String {
    let Spread { mean, deviation, worst_decile } = view.spread;
    let mut text = format!(
        "accuracy over {} clients, each on its own hold-out: mean {}, standard deviation {:.2}, worst tenth {}\n",
        view.clients.len(),
        per_cent(Some(mean), 2),
        100.0 * deviation,
        per_cent(Some(worst_decile), 2)
    );
    let correlation = |value: Option<f64>| value.map_or("unknown".to_owned(), |value| format!("{value:+.2}"));
    let _ = writeln!(
        text,
        "rank correlation of accuracy with size {}, with TVD (label skew) {}\n",
        correlation(view.size_correlation),
        correlation(view.tvd_correlation)
    );
    let _ = writeln!(
        text,
        "{:>7}  {:>7}  {:>5}  {:>8}  {:>9}  {:>8}",
        "client", "samples", "TVD", "hold-out", "accuracy", "loss"
    );
    let mut worst_first: Vec<&ClientResult> = view.clients.iter().collect();
    worst_first.sort_by(|one, other| one.accuracy.total_cmp(&other.accuracy));
    for ClientResult { client, size, tvd, holdout, accuracy, loss, .. } in worst_first.iter().take(MOST) {
        let loss = loss.map_or("—".to_owned(), |loss| format!("{loss:.4}"));
        let accuracy = per_cent(Some(*accuracy), 1);
        let _ = writeln!(text, "{client:>7}  {size:>7}  {tvd:>5.2}  {holdout:>8}  {accuracy:>9}  {loss:>8}");
    }
    if view.clients.len() > MOST {
        let _ = writeln!(text, "the worst {MOST} of {}; --json has all", view.clients.len());
    }
    text
}
