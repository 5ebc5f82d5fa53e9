//! `fedtvd evaluate MODEL`: accuracy, loss and confusion matrix of a trained model, or of the model after a round.

use crate::commands::evaluate_clients::{evaluate_clients, evaluate_own_models};
use crate::commands::evaluated_data::{EvaluatedData, Wanted};
use crate::ignored;
use crate::output::predictions::Csv;
use crate::output::trained_model::{self, TrainedModel};
use crate::request::{
    Configured, DeviceOption, Failure, Output, eprint_line, mean_loss, per_cent, quoted, refuse, refuse_each,
    refuse_overwriting,
};
use anyhow::{Context, anyhow};
use clap::Args;
use fedtvd_core::round::Assessment;
use fedtvd_core::train::{prediction, probabilities};
use fedtvd_data::set::{DataOptions, Loaded};
use fedtvd_data::table::Schema;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::start_model::model_bytes;
use serde::Serialize;
use std::collections::BTreeSet;
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
    /// Evaluate on each client's own hold-out instead (simulations with split.holdout)
    #[arg(long, conflicts_with_all = ["train", "predictions"])]
    clients: bool,
    /// Write row, label, prediction and the probability of each class of every sample to a CSV file
    #[arg(long, value_name = "FILE")]
    predictions: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOption,
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
    balanced_accuracy: Option<f64>,
    macro_f1: Option<f64>,
    class_accuracy: Vec<Option<f64>>,
    class_names: &'a [String],
    confusion: Vec<&'a [u64]>,
    notes: &'a [String],
}

impl Evaluate {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let run = self.run()?;
        let device = self.device.device_for(&self.model)?;
        let file = match self.round {
            Some(_) => self.model.join("model.safetensors"),
            None => trained_model::file(&self.model)?,
        };
        let config = self.config(&file)?;
        let experiment = Experiment::of(&config).map_err(Failure::request)?;
        if let Some(run) = run.as_ref().filter(|_| self.clients && experiment.run.strategy.is_personal()) {
            let places = self.configured.places();
            return evaluate_own_models(run, &experiment, self.round, (&places, &device), self.output);
        }
        let bytes = model_bytes(&file).unwrap_or_default();
        let schema = trained_model::schema(&file, &bytes)?;
        self.refuse_idle(schema.as_ref(), &experiment.data)?;
        let notes = ignored::data_folder(self.configured.data(), std::slice::from_ref(&experiment.data.set));
        let notes: Vec<String> = self.unread_tables()?.into_iter().chain(notes).collect();
        let (places, named) = (self.configured.places(), self.configured.names("data.set"));
        let wanted =
            Wanted { model: &file, data: &experiment.data, schema: schema.as_ref(), places: &places, named };
        let shown = quoted(&self.model.display().to_string());
        let EvaluatedData { loaded, all } =
            wanted.read().map_err(|error| error.failure(&shown, named, schema.is_some()))?;
        if all && self.train {
            let set = &experiment.data.set;
            return Err(Failure::Request(anyhow!(
                "--train is for the data of the run; all rows of {set} are evaluated anyway"
            )));
        }
        if !self.output.quiet {
            notes.iter().chain(&loaded.notes).for_each(|note| eprint_line(format_args!("note: {note}")));
        }
        let samples = Arc::clone(&loaded.samples);
        let rows =
            if all || self.train { (0..samples.train_rows() as u32).collect() } else { samples.test_rows() };
        if rows.is_empty() {
            return Err(Failure::Request(anyhow!(
                "the data set has no test rows; use --train to evaluate on the training rows"
            )));
        }
        let config = Some(config);
        let model = match (self.round, &run) {
            (Some(round), Some(run)) => TrainedModel::after_round(run, round, config, &places)?,
            _ => TrainedModel::read(&self.model, config, &places)?,
        };
        if self.clients {
            let run = run.ok_or_else(|| Failure::Request(anyhow!("--clients needs a run directory")))?;
            return evaluate_clients(
                &run,
                (&model.file, self.round, &model.params),
                (&places, &device),
                self.output,
            );
        }
        let mut trainer = device.trainer(&model.definition, &samples).map_err(Failure::request)?;
        let evaluation = trainer.evaluate(&model.params, &rows, None).map_err(Failure::work)?;
        if let Some(path) = &self.predictions {
            refuse_overwriting(path, &[Path::new(&experiment.data.set), &model.file])?;
            let logits = trainer.logits(&model.params, &rows).map_err(Failure::work)?;
            let text = predictions(&logits, &model, &rows, &loaded);
            std::fs::write(path, text)
                .with_context(|| format!("writing {}", path.display()))
                .map_err(Failure::Work)?;
        }
        let assessment = Assessment::from(&evaluation);
        let view = View {
            model: &model.file,
            round: self.round,
            set: &experiment.data.set,
            samples: evaluation.samples(),
            accuracy: evaluation.accuracy(),
            loss: evaluation.mean_loss(),
            balanced_accuracy: assessment.balanced.map(|balanced| balanced.accuracy),
            macro_f1: assessment.macro_f1,
            class_accuracy: evaluation.class_accuracies(),
            class_names: &loaded.class_names,
            confusion: evaluation.confusion.chunks(samples.classes()).collect(),
            notes: &loaded.notes,
        };
        self.output.answer(&view, || text(&view))
    }

    /// Refuses settings of the data that the model or its run decides.
    fn refuse_idle(&self, schema: Option<&Schema>, data: &DataOptions) -> Result<(), Failure> {
        let keys = |names: &[&str]| names.iter().map(|name| format!("data.{name}")).collect::<BTreeSet<_>>();
        self.configured
            .refuse(&keys(&["crop", "flip"]), "is for training; samples are evaluated as they are")?;
        let used = |path: &str| path.starts_with("data.") || matches!(path, "model.name" | "model.layers");
        refuse(self.configured.set(), |path| !used(path), "is not used to evaluate a model")?;
        let Some(schema) = schema else {
            return refuse_each(self.configured.set(), |path| Some(format!(": {}", data.no_effect(path)?)));
        };
        let model = ["model.name", "model.layers"].map(str::to_owned).into();
        self.configured.refuse(&model, "is given by the model, which has its own layers")?;
        let mut given = keys(&["schema"]);
        if data.label != schema.label.column {
            given.insert("data.label".to_owned());
        }
        let by = "is given by the model, which reads every table with its own schema";
        self.configured.refuse(&given, by)?;
        let by = "belongs to the run; of its own table the test rows are evaluated, of another one all rows";
        self.configured.refuse(&keys(&["group", "test", "imbalance"]), by)
    }

    /// Notes on tables of the configuration file that are not used.
    fn unread_tables(&self) -> Result<Vec<String>, Failure> {
        let Some(file) = self.configured.file() else { return Ok(Vec::new()) };
        Ok(ignored::tables(&std::fs::read_to_string(file).map_err(Failure::request)?, "evaluate"))
    }

    /// The run, if a run directory is named.
    fn run(&self) -> Result<Option<RunDirectory>, Failure> {
        if self.model.join("manifest.json").is_file() || self.round.is_some() && self.model.is_dir() {
            return RunDirectory::open(&self.model).map(Some).map_err(Failure::request);
        }
        match self.round {
            None => Ok(None),
            Some(round) => Err(Failure::Request(anyhow!(
                "--round {round} needs a run directory; {} is not a directory",
                self.model.display()
            ))),
        }
    }

    /// The given configuration, or the one beside the model in its run directory.
    fn config(&self, model: &Path) -> Result<Config, Failure> {
        let beside = model.parent().map(|folder| folder.join("config.toml")).filter(|path| path.is_file());
        match beside {
            Some(path) if !self.configured.names_file() => self.configured.read_over(&path),
            _ => self.configured.read().map_err(|failure| self.misplaced().unwrap_or(failure)),
        }
    }

    /// What to write if data were named in place of a configuration.
    fn misplaced(&self) -> Option<Failure> {
        let file = self.configured.file().filter(|file| file.extension().is_none_or(|end| end != "toml"))?;
        let [model, file] = [&self.model, file].map(|path| quoted(&path.display().to_string()));
        Some(Failure::Request(anyhow!(
            "{file} is not a configuration; to evaluate the model on it: fedtvd evaluate {model} --set data.set={file}"
        )))
    }
}

/// Row (of a table: the user's own, the first after the names is 1), label and prediction as numbers and as names, and
/// the probability of each class.
fn predictions(logits: &[f32], model: &TrainedModel, rows: &[u32], loaded: &Loaded) -> String {
    let names = &model.class_names;
    let mut csv = Csv::new(b',');
    let header = ["row", "label", "prediction", "label_name", "prediction_name"];
    csv.row(header.into_iter(), &names.iter().map(|name| format!("p_{name}")).collect::<Vec<_>>());
    for (row, logits) in rows.iter().zip(logits.chunks(model.definition.classes())) {
        let (of, best) = (probabilities(logits), prediction(logits));
        let label = loaded.samples.labels()[*row as usize];
        let own = loaded.table.as_ref().map_or(u64::from(*row), |table| table.rows[*row as usize]);
        let named = |class: u32| names.get(class as usize).map_or("", String::as_str);
        let numbers = [own.to_string(), label.to_string(), best.to_string()];
        let fields = numbers.iter().map(String::as_str).chain([named(label), named(best)]);
        csv.row(fields, &of.iter().map(|p| format!("{p:.6}")).collect::<Vec<_>>());
    }
    csv.text
}

fn text(view: &View<'_>) -> String {
    let mut text = format!(
        "accuracy {:.2} % on {} samples of {}, balanced accuracy {}, macro F1 {}, mean loss {}\n",
        100.0 * view.accuracy,
        view.samples,
        view.set,
        per_cent(view.balanced_accuracy, 2),
        per_cent(view.macro_f1, 2),
        mean_loss(Some(view.loss).filter(|loss| loss.is_finite()))
    );
    let wide = view.class_names.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp(5, 1000);
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
