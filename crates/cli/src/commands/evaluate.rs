//! `fedtvd evaluate MODEL`: accuracy, loss and confusion matrix of a trained model.

use crate::request::{Configured, Failure, Output, quoted};
use anyhow::Context;
use clap::Args;
use fedtvd_core::model::{Layout, Params};
use fedtvd_core::train::Trainer as _;
use fedtvd_nn::Cpu;
use fedtvd_run::configuration::{Config, Experiment};
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
        let model =
            if self.model.is_dir() { self.model.join("model.safetensors") } else { self.model.clone() };
        if !model.exists() && self.model.join("manifest.json").exists() {
            let run = quoted(&self.model.display().to_string());
            return Err(Failure::Request(anyhow::anyhow!(
                "{run} has no model yet: the run is unfinished; to resume it: fedtvd resume {run}"
            )));
        }
        let config = self.config(&model)?;
        let experiment = Experiment::of(&config).map_err(Failure::request)?;
        let data = Data::load(&experiment.data, &self.configured.places()).map_err(Failure::request)?;
        let samples = Arc::clone(&data.loaded.samples);
        let network = network(&experiment, &samples).map_err(Failure::request)?;
        let layout = Arc::new(Layout::of(&network).map_err(Failure::request)?);
        let params = read(&model, &layout).map_err(Failure::Request)?;
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

    /// The given configuration, or the one beside the model in its run directory.
    fn config(&self, model: &Path) -> Result<Config, Failure> {
        let beside = model.parent().map(|folder| folder.join("config.toml")).filter(|path| path.is_file());
        match beside {
            Some(path) if !self.configured.names_file() => self.configured.read_over(&path),
            _ => self.configured.read(),
        }
    }
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
