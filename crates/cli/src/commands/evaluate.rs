//! `fedtvd evaluate MODEL`: accuracy, loss and confusion matrix of a trained model, or of the model after a round.

use crate::request::{Configured, Failure, Output, quoted};
use anyhow::Context;
use clap::Args;
use fedtvd_core::model::{Layout, Params};
use fedtvd_core::train::Trainer as _;
use fedtvd_nn::Cpu;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::{HistoryError, RunDirectory, history};
use fedtvd_run::setup::{Data, network};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Compute accuracy, loss and confusion matrix of a trained model.
#[derive(Args)]
pub(crate) struct Evaluate {
    /// Model file (safetensors) or run directory; the config.toml beside it is used unless CONFIG is given
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    #[command(flatten)]
    configured: Configured,
    /// Evaluate the model after this round of a run, which keeps ten rounds, evenly spread, and the last few
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    round: Option<u32>,
    /// Use the training samples instead of the test samples
    #[arg(long)]
    train: bool,
    /// Write row, label and prediction of every sample to a CSV file
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct View<'a> {
    model: &'a Path,
    round: Option<u32>,
    set: &'a str,
    samples: u64,
    accuracy: f64,
    loss: f64,
    class_accuracy: Vec<Option<f64>>,
    class_names: &'a [String],
    confusion: Vec<&'a [u64]>,
}

impl Evaluate {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let run = self.run()?;
        if self.round.is_none()
            && let Some(run) = &run
            && run.model().map_err(Failure::request)?.is_none()
        {
            return Err(unfinished(run));
        }
        let config = self.config()?;
        let experiment = Experiment::of(&config).map_err(Failure::request)?;
        let data = Data::load(&experiment.data, &self.configured.places()).map_err(Failure::request)?;
        let samples = Arc::clone(&data.loaded.samples);
        let network = network(&experiment, &samples).map_err(Failure::request)?;
        let layout = Arc::new(Layout::of(&network).map_err(Failure::request)?);
        let (params, model) = match (self.round, &run) {
            (Some(round), Some(run)) => after_round(run, &layout, round)?,
            _ => {
                let inside = self.model.join("model.safetensors");
                let model = if self.model.is_dir() { inside } else { self.model.clone() };
                (Arc::new(read(&model, &layout).map_err(Failure::Request)?), model)
            }
        };
        let rows = if self.train { (0..samples.train_rows() as u32).collect() } else { samples.test_rows() };
        if rows.is_empty() {
            return Err(Failure::Request(anyhow::anyhow!(
                "the data set has no test rows; use --train to evaluate on the training rows"
            )));
        }
        let mut cpu = Cpu::new(&network, samples.clone()).map_err(Failure::request)?;
        let evaluation = cpu.evaluate(&params, &rows, None).map_err(Failure::work)?;
        if let Some(path) = &self.predictions {
            let text = predictions(&mut cpu, &params, &rows, samples.labels()).map_err(Failure::Work)?;
            std::fs::write(path, text)
                .with_context(|| format!("writing {}", path.display()))
                .map_err(Failure::Work)?;
        }
        let view = View {
            model: &model,
            round: self.round,
            set: &experiment.data.set,
            samples: evaluation.samples(),
            accuracy: evaluation.accuracy(),
            loss: evaluation.mean_loss(),
            class_accuracy: evaluation.class_accuracies(),
            class_names: &data.loaded.class_names,
            confusion: evaluation.confusion.chunks(samples.classes()).collect(),
        };
        self.output.answer(&view, || text(&view))
    }

    /// The run, if a run directory is named.
    fn run(&self) -> Result<Option<RunDirectory>, Failure> {
        if self.model.join("manifest.json").is_file() || self.round.is_some() && self.model.is_dir() {
            return RunDirectory::open(&self.model).map(Some).map_err(Failure::request);
        }
        match self.round {
            None => Ok(None),
            Some(round) => Err(Failure::Request(anyhow::anyhow!(
                "--round {round} needs a run directory; {} is not a directory",
                self.model.display()
            ))),
        }
    }

    /// The given configuration, or the one in the model's run directory.
    fn config(&self) -> Result<Config, Failure> {
        let folder = if self.model.is_dir() { Some(self.model.as_path()) } else { self.model.parent() };
        let beside = folder.map(|folder| folder.join("config.toml")).filter(|path| path.is_file());
        match beside {
            Some(path) if !self.configured.names_file() => self.configured.read_over(&path),
            _ => self.configured.read(),
        }
    }
}

/// The model after a round, and its file: a checkpoint, or the final model.
fn after_round(
    run: &RunDirectory,
    layout: &Arc<Layout>,
    round: u32,
) -> Result<(Arc<Params>, PathBuf), Failure> {
    let rounds = run.summary().map_err(Failure::request)?.map(|summary| summary.rounds);
    match history::model(run, layout, round) {
        Ok(found) => Ok(found),
        Err(HistoryError::NotKept { .. }) if rounds == Some(round) => {
            let model = run.file("model.safetensors");
            Ok((Arc::new(read(&model, layout).map_err(Failure::Request)?), model))
        }
        Err(HistoryError::NotKept { directory, round, mut available }) => {
            available.extend(rounds.filter(|last| !available.contains(last)));
            Err(Failure::request(HistoryError::NotKept { directory, round, available }))
        }
        Err(error) => Err(Failure::request(error)),
    }
}

/// What to do with a run that has no final model yet.
fn unfinished(run: &RunDirectory) -> Failure {
    let name = quoted(&run.path().display().to_string());
    let resume = if run.is_federation() { "serve --out" } else { "resume" };
    let kept = history::rounds(run).unwrap_or_default();
    let earlier = kept.last().map_or_else(String::new, |round| {
        format!("; to evaluate the model after round {round}: fedtvd evaluate {name} --round {round}")
    });
    Failure::Request(anyhow::anyhow!(
        "{name} has no model yet: the run is unfinished; to resume it: fedtvd {resume} {name}{earlier}"
    ))
}

fn read(path: &Path, layout: &Arc<Layout>) -> anyhow::Result<Params> {
    let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Params::from_safetensors(&bytes, layout).with_context(|| path.display().to_string())
}

fn predictions(cpu: &mut Cpu, params: &Params, rows: &[u32], labels: &[u32]) -> anyhow::Result<String> {
    let mut text = String::from("row,label,prediction\n");
    for (row, prediction) in rows.iter().zip(cpu.predictions(params, rows)?) {
        let _ = writeln!(text, "{row},{},{prediction}", labels[*row as usize]);
    }
    Ok(text)
}

fn text(view: &View<'_>) -> String {
    let mut text = format!(
        "accuracy {:.2} % on {} samples of {}, mean loss {:.4}\n",
        100.0 * view.accuracy,
        view.samples,
        view.set,
        view.loss
    );
    let wide = view.class_names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(5);
    if view.confusion.len() <= 20 {
        let _ = write!(text, "\n{:>wide$}  {:>8} │ predicted\n", "class", "accuracy");
        for ((name, accuracy), row) in view.class_names.iter().zip(&view.class_accuracy).zip(&view.confusion)
        {
            let accuracy = accuracy.map_or("—".to_owned(), |a| format!("{:.1} %", 100.0 * a));
            let row: String = row.iter().map(|count| format!("{count:>6}")).collect();
            let _ = writeln!(text, "{name:>wide$}  {accuracy:>8} │{row}");
        }
    }
    text
}
