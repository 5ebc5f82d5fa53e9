//! `fedtvd run [CONFIG]`: runs one experiment.

use crate::ignored::{self, Purpose};
use crate::request::{
    Configured, Failure, Output, Resources, mean_loss, per_cent, plural, quoted, unused_folder,
};
use crate::terminal::watch::{Watch, stop_flag};
use anyhow::anyhow;
use clap::Args;
use fedtvd_core::round::Spread;
use fedtvd_core::rules::notation;
use fedtvd_data::set::known;
use fedtvd_lab::report::heading::last_rounds;
use fedtvd_lab::report::missed::{both_accuracies, missed};
use fedtvd_lab::runs::class_names::class_names;
use fedtvd_run::configuration::{Config, EvaluationOptions, Experiment, Value};
use fedtvd_run::directory::{LAST, RunDirectory, Summary};
use fedtvd_run::estimate::{Estimate, EstimateError, estimate};
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::{Best, RunError};
use std::path::{Path, PathBuf};

/// Run one experiment: simulate federated training with one strategy and seed.
#[derive(Args)]
pub(crate) struct Run {
    #[command(flatten)]
    configured: Configured,
    /// Run directory [default: runs/NAME-HASH]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    resources: Resources,
    /// Check the configuration, and estimate time and memory, without running it
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    watch: Watch,
    #[command(flatten)]
    output: Output,
}

impl Run {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let (config, text) = self.configured.read_with_text()?;
        let experiment = Experiment::of(&config).map_err(Failure::request)?;
        let given = (&self.configured, text.as_str());
        let ignored = ignored::checked(given, "run", std::slice::from_ref(&config), Purpose::Run)?;
        ignored.iter().for_each(|note| self.watch.note(self.output, note));
        if let Some(liars) = experiment.liars {
            self.watch.note(self.output, &liars.to_string());
        }
        let data = Data::load(&experiment.data, &self.configured.places()).map_err(Failure::request)?;
        let resources = self.resources.checked()?;
        if self.dry_run {
            let setup = Setup::new(&experiment, &data).map_err(Failure::request)?;
            let workers = resources.workers;
            let estimate = estimate(&experiment, &setup, resources).map_err(|error| match error {
                EstimateError::Refused(error) => Failure::request(error),
                other => Failure::work(other),
            })?;
            return self.output.answer(&estimate, || estimated(&estimate, workers));
        }
        let out = match &self.out {
            Some(out) => out.clone(),
            None => {
                let name = match config.get("name") {
                    Value::Text(name) if name.contains(['/', '\\']) => {
                        let error = anyhow!("name = {name} contains a slash; use --out for another folder");
                        return Err(Failure::Request(error));
                    }
                    Value::Text(name) if !name.is_empty() => name,
                    _ => "run".to_owned(),
                };
                unused_folder(&name, &config, "")
            }
        };
        let runner = Runner::start(&config, &data, &out, resources).map_err(failure)?;
        run_to_end(runner, &self.watch, self.output)
    }
}

/// The kind of failure of an error.
pub(crate) fn failure(error: RunError) -> Failure {
    if error.request() { Failure::request(error) } else { Failure::work(error) }
}

/// Runs to the end and prints the summary; Ctrl-C saves and stops.
pub(crate) fn run_to_end(runner: Runner, watch: &Watch, output: Output) -> Result<(), Failure> {
    let directory = quoted(&runner.directory().path().display().to_string());
    let stop = stop_flag()?;
    let mut viewer = watch.start(&runner, output);
    let mut done = runner.rounds_done();
    let end = runner.run(stop, &mut |line| {
        done = line.round;
        viewer.show(line);
    });
    viewer.finish();
    match end {
        Ok(End::Done(summary)) => conclude(&summary, output),
        Ok(End::Stopped(rounds)) => Err(Failure::Work(anyhow!(
            "stopped after round {rounds}, progress is saved; to resume: fedtvd resume {directory}"
        ))),
        Err(error) => Err(Failure::Work(anyhow!(
            "{error}\nfedtvd: the {done} finished rounds are saved; once this is fixed, resume with: fedtvd resume \
             {directory}"
        ))),
    }
}

/// Prints the summary of a finished run; fails if its result cannot be used.
pub(crate) fn conclude(summary: &Summary, output: Output) -> Result<(), Failure> {
    output.answer(summary, || finished(summary))?;
    match &summary.collapsed {
        None => Ok(()),
        Some(why) => Err(Failure::Work(anyhow!("the run collapsed, its result cannot be used: {why}"))),
    }
}

/// The summary of a finished run as text.
fn finished(summary: &Summary) -> String {
    let memory =
        summary.peak_memory_bytes.map_or(String::new(), |bytes| format!(" · {} MB", bytes / 1_000_000));
    let failed = summary.failed.sentence().map_or(String::new(), |failed| failed + "\n");
    let alarms = match summary.alarms {
        0 => String::new(),
        rounds => format!("{} with an alarm; rounds.jsonl has them\n", plural(rounds as usize, "round")),
    };
    let stopped = summary
        .stopped
        .as_ref()
        .map_or(String::new(), |why| format!("stopped after round {}: {why}\n", summary.rounds));
    let best = summary.best.as_ref().map_or(String::new(), best);
    let clients = match &summary.last10_personal {
        Some(own) => spread("own models of clients", own),
        None => String::new(),
    } + &match &summary.client_accuracy {
        Some(clients) if summary.accuracy.is_some() => spread("per client, on its own hold-out", clients),
        _ => String::new(),
    };
    format!(
        "{}, seed {}: {}\n\
         {}{}{:.0} s · {:.0} samples/s{memory}\n\
         {clients}{stopped}{best}{failed}{alarms}\
         Run:   {}\nModel: {}   ({})\n",
        summary.strategy,
        summary.seed,
        result(summary),
        other_metrics(summary),
        missed_classes(summary),
        summary.seconds,
        summary.images_per_second,
        summary.directory,
        summary.model,
        use_of_model(summary),
    )
}

/// The command that evaluates the final model; what the file lacks if a part of the model stays at each client.
fn use_of_model(summary: &Summary) -> String {
    let data = if data_is_here(summary) { "" } else { " --set data.set=FILE" };
    let strategy = notation::strategy(&summary.strategy, []).ok();
    if strategy.as_ref().is_some_and(|strategy| strategy.grouping.is_some()) {
        let run = quoted(&summary.directory);
        return format!(
            "of branch 0; model-N.safetensors is that of branch N; fedtvd evaluate {run} --clients{data}"
        );
    }
    match strategy.and_then(|strategy| strategy.sharing.stays()) {
        None => format!("fedtvd evaluate {}{data}", quoted(&summary.model)),
        Some(stays) => {
            format!(
                "without the {stays} of each client; fedtvd evaluate {} --clients{data}",
                quoted(&summary.directory)
            )
        }
    }
}

/// The accuracy of the last rounds, or the metric on the hold-outs if the test set was not evaluated.
fn result(summary: &Summary) -> String {
    let options = config(summary).and_then(|config| EvaluationOptions::of(&config).ok()).unwrap_or_default();
    let rounds = summary.rounds;
    let due = (rounds.saturating_sub(LAST as u32) + 1..=rounds).filter(|round| options.due(*round)).count();
    let last = last_rounds(due, options.every);
    match (summary.last10_accuracy, summary.last10_validation) {
        (None, None) if summary.last10_personal.is_some() => {
            format!("no shared model to evaluate; clients' own models ({last}) below")
        }
        (None, Some(value)) => {
            let metric = options.metric;
            format!("{} on the hold-outs {} ({last})", metric.name(), metric.shown(value))
        }
        (accuracy, _) => format!(
            "accuracy {} ({last}), {} after round {rounds}",
            per_cent(accuracy, 2),
            per_cent(summary.accuracy, 2)
        ),
    }
}

/// The configuration of a run.
fn config(summary: &Summary) -> Option<Config> {
    let text = std::fs::read_to_string(Path::new(&summary.directory).join("config.toml")).ok()?;
    Config::parse(&text).ok()
}

/// An accuracy over clients, in one line.
fn spread(of: &str, spread: &Spread) -> String {
    let Spread { mean, deviation, worst_decile } = *spread;
    format!(
        "{of}: mean {}, standard deviation {:.2}, worst tenth {}\n",
        per_cent(Some(mean), 2),
        100.0 * deviation,
        per_cent(Some(worst_decile), 2)
    )
}

/// The best round by validation, in one line.
fn best(best: &Best) -> String {
    let value =
        if best.metric == "loss" { format!("{:.4}", best.value) } else { per_cent(Some(best.value), 2) };
    let test = best.test_accuracy.map_or(String::new(), |accuracy| {
        format!("; accuracy {} on the test set", per_cent(Some(accuracy), 2))
    });
    let model = best.model.as_ref().map_or(String::new(), |model| format!("   ({model})"));
    format!("Best:  round {} by validation: {} {value}{test}{model}\n", best.round, best.metric)
}

/// Balanced accuracy, macro F1 and loss, as far as they are known.
fn other_metrics(summary: &Summary) -> String {
    let classes = summary.last10_balanced_accuracy.zip(summary.last10_macro_f1);
    let classes = classes.map(|(balanced, f1)| {
        format!("balanced accuracy {}, macro F1 {}", per_cent(Some(balanced), 2), per_cent(Some(f1), 2))
    });
    let loss = summary.last10_loss.map(|loss| format!("loss {}", mean_loss(Some(loss))));
    let known: Vec<String> = [classes, loss].into_iter().flatten().collect();
    if known.is_empty() { String::new() } else { format!("{}\n", known.join(", ")) }
}

/// The classes that the model never predicts correctly, in one sentence.
fn missed_classes(summary: &Summary) -> String {
    let classes = summary.missed_classes.as_deref().unwrap_or_default();
    let (Some(accuracy), false) = (summary.last10_accuracy, classes.is_empty()) else {
        return String::new();
    };
    let directory = RunDirectory::open(Path::new(&summary.directory)).ok();
    let names = directory.and_then(|directory| {
        let config = Config::parse(&directory.config().ok()?).ok()?;
        class_names(&directory, &config)
    });
    let accuracies = both_accuracies(accuracy, summary.last10_balanced_accuracy);
    format!("{}: {accuracies}\n", missed(classes, names.as_deref()))
}

/// Whether the run's data can be read here; those of a federation may be at its sites only.
fn data_is_here(summary: &Summary) -> bool {
    config(summary).is_none_or(|config| known(&config.get("data.set").bare()).is_ok())
}

fn estimated(estimate: &Estimate, workers: usize) -> String {
    let Estimate { strategy, clients, cohort, parameters, rounds, .. } = estimate;
    let memory =
        estimate.memory_bytes.map_or("unknown".to_owned(), |bytes| format!("{} MB", bytes / 1_000_000));
    format!(
        "strategy {strategy}, {}, {cohort} of {clients} clients per round, {parameters} parameters\n\
         per worker: training {:.0} samples/s, evaluation {:.0} samples/s\n\
         about {} with {} · memory about {memory} · {} MB of traffic in a real federation\n",
        plural(*rounds as usize, "round"),
        estimate.train_per_second,
        estimate.evaluate_per_second,
        duration(estimate.seconds),
        plural(workers, "worker"),
        estimate.bytes_exchanged / 1_000_000,
    )
}

/// A duration for people.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
