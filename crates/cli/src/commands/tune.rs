//! `fedtvd tune`: each strategy at its own best of a grid, chosen on hold-outs, compared on the test set.

use crate::commands::compare::{refuse_seed, result_text, seeds};
use crate::commands::report::{open, write};
use crate::commands::sweep::{summaries, unfinished, usable};
use crate::ignored::{self, Purpose};
use crate::request::{
    Configured, DeviceOption, Failure, Output, eprint_line, folder, plural, quoted, title, workers_on,
};
use crate::terminal::sweep_progress::SweepProgress;
use crate::terminal::watch::stop_flag;
use anyhow::anyhow;
use clap::Args;
use fedtvd_lab::experiments::grid::{Cell, cells, swept};
use fedtvd_lab::experiments::sweep::{RunStatus, Sweep};
use fedtvd_lab::experiments::tuning::candidates::{
    HOLDOUT, TunedStrategy, TuningError, candidates, with_holdouts,
};
use fedtvd_lab::experiments::tuning::search::{Choice, Search, SearchError};
use fedtvd_lab::report::findings::{Report, ReportOptions};
use fedtvd_lab::report::tuning::{edge_notes, tuning_notes, tuning_table};
use fedtvd_lab::runs::collection::Collection;
use fedtvd_lab::stats::row::StrategySummary;
use fedtvd_lab::stats::summary::SummaryOptions;
use fedtvd_run::configuration::{Axis, Config, EvaluationOptions, Value, tuned_axes};
use fedtvd_run::directory::sha256;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Tune each strategy on the clients' hold-outs and compare the tuned ones on the test set.
#[derive(Args)]
#[command(after_help = "\
Every strategy trains with every combination of the grid's values, and with every tuning seed. The combination with the
best mean of evaluation.metric on the clients' hold-outs is chosen for it, and runs again with other seeds; only these runs
read the test set. A grid can stand in the configuration as well:

    [tune]
    \"local.lr\" = [0.003, 0.01, 0.03]
    \"strategy.mu\" = [0.01, 0.1]          # for the strategies that have it

Repeat the same command to resume after an interruption.")]
pub(crate) struct Tune {
    #[command(flatten)]
    configured: Configured,
    /// Strategies, separated by commas; the first one is the baseline
    #[arg(long, value_delimiter = ',', default_value = "fedavg,uniform,fedtvd,fedtvd+balanced")]
    strategies: Vec<String>,
    /// A key and its values, such as local.lr=0.01,0.1; can be repeated [default: the tune table of the configuration, or
    /// local.lr=0.001,0.003,0.01,0.03,0.1]
    #[arg(long, value_name = "KEY=VALUES")]
    grid: Vec<String>,
    /// Number of seeds of the result, starting with that of the configuration, or a list such as 3,7
    #[arg(long, default_value = "5")]
    seeds: String,
    /// Number of seeds for tuning, starting with 1001, or a list such as 30,31
    #[arg(long, default_value = "2")]
    tuning_seeds: String,
    /// Successive halving: train all candidates for a fraction of the rounds, keep one of N, train those N times as long
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3", value_parser = clap::value_parser!(u32).range(2..=100))]
    halving: Option<u32>,
    /// Number of threads, and of runs at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    #[command(flatten)]
    device: DeviceOption,
    /// Folder for runs and report [default: runs/tune-HASH]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Open the HTML page in a browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    output: Output,
}

/// The grid if none is given.
const GRID: &str = "local.lr=0.001,0.003,0.01,0.03,0.1";
/// The first tuning seed; those of the result usually start with 1.
const FIRST_TUNING_SEED: u64 = 1001;

#[derive(Serialize)]
struct View<'a> {
    metric: &'static str,
    tuning_seeds: &'a [u64],
    tuning: &'a [Choice],
    seeds: &'a [u64],
    summary: Vec<&'a StrategySummary>,
    report: &'a Path,
}

/// What is tuned, and how.
struct Plan {
    config: Config,
    grid: Vec<Axis>,
    seeds: Vec<u64>,
    tuning_seeds: Vec<u64>,
    strategies: Vec<TunedStrategy>,
    evaluation: EvaluationOptions,
}

impl Tune {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let plan = self.plan()?;
        let out = self.out.clone().unwrap_or_else(|| plan.folder());
        let (tuning, last) = (out.join("tuning"), out.join("final"));
        folder(&tuning)?;
        let (places, stop) = (self.configured.places(), stop_flag()?);
        let device = self.device.device()?;
        let workers = workers_on(&device, self.workers)?;
        let sweep = |out| Sweep::new(out, &places, workers, stop).on(device.clone());
        let choices = self.search(&plan, &tuning, &sweep(&tuning))?;
        let text = serde_json::to_string_pretty(&choices).map_err(Failure::work)? + "\n";
        write(&out, &[("tuning.json".to_owned(), text)]).map_err(Failure::Work)?;
        let runs = self.final_runs(&plan, &choices, &last, &sweep(&last))?;
        self.conclude(&plan, &choices, &runs, &out)
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let (given, file) = self.configured.read_with_text()?;
        let config = with_holdouts(&given).map_err(Failure::request)?;
        let in_file = tuned_axes(&file).map_err(Failure::request)?;
        let grid = match (self.grid.as_slice(), in_file.is_empty()) {
            ([], true) => vec![Axis::of(GRID).map_err(Failure::request)?],
            ([], false) => in_file,
            (given, true) => {
                given.iter().map(|text| Axis::of(text)).collect::<Result<_, _>>().map_err(Failure::request)?
            }
            (_, false) => {
                return Err(Failure::Request(anyhow!(
                    "the grid is given twice, by --grid and by the [tune] table of the configuration; leave one of them out"
                )));
            }
        };
        let tuned = swept(&grid).map_err(Failure::request)?;
        self.configured.refuse(&tuned, "is tuned")?;
        let seeds_of_result = seeds(&self.seeds, &config).map_err(Failure::Request)?;
        refuse_seed(&self.seeds, &self.configured)?;
        let first = config.with_seed(FIRST_TUNING_SEED);
        let tuning_seeds = seeds(&self.tuning_seeds, &first).map_err(|error| {
            Failure::Request(anyhow!(error.to_string().replace("--seeds", "--tuning-seeds")))
        })?;
        if let Some(&seed) = tuning_seeds.iter().find(|seed| seeds_of_result.contains(seed)) {
            return Err(Failure::request(TuningError::SharedSeed(seed)));
        }
        let strategies =
            candidates(&config, &self.strategies, &grid, &tuning_seeds).map_err(Failure::request)?;
        let evaluation = EvaluationOptions::of(&config).map_err(Failure::request)?;
        let ignored = self.ignored(&given, &file, &grid, &strategies)?;
        if !self.output.quiet && !self.output.json {
            if given.get("split.holdout") != config.get("split.holdout") {
                eprint_line(format_args!(
                    "note: split.holdout = {HOLDOUT}: every client holds out a fifth of its samples, to choose by"
                ));
            }
            let left_out = strategies.iter().flat_map(TunedStrategy::notes);
            ignored.into_iter().chain(left_out).for_each(|note| eprint_line(format_args!("note: {note}")));
        }
        Ok(Plan { config, grid, seeds: seeds_of_result, tuning_seeds, strategies, evaluation })
    }

    /// Notes on what is ignored.
    fn ignored(
        &self,
        given: &Config,
        file: &str,
        grid: &[Axis],
        strategies: &[TunedStrategy],
    ) -> Result<Vec<String>, Failure> {
        let mut notes = ignored::strategies(self.configured.set(), given, &self.strategies, "tune")?;
        let candidates = strategies.iter().flat_map(|strategy| &strategy.candidates);
        let configs: Vec<Config> = candidates.map(|candidate| candidate.config.clone()).collect();
        ignored::refuse_idle_lists(grid, &configs)?;
        notes.extend(ignored::checked((&self.configured, file), "tune", &configs, Purpose::Tuning)?);
        // The configurations of the candidates have a value of their own.
        let test = given.changes_key("evaluation.test");
        notes.extend(
            test.then(|| "evaluation.test is ignored: only the final runs read the test set".to_owned()),
        );
        Ok(notes)
    }

    /// The chosen values of each strategy.
    fn search(&self, plan: &Plan, out: &Path, sweep: &Sweep<'_>) -> Result<Vec<Choice>, Failure> {
        let mut search = Search::new(&plan.strategies, self.halving, out);
        if !self.quiet() {
            let candidates: Vec<String> = { plan.strategies.iter() }
                .map(|strategy| format!("{} {}", strategy.candidates.len(), strategy.name))
                .collect();
            eprint_line(format_args!(
                "tuning on the hold-outs: {} with {}, {} rounds in all",
                candidates.join(", "),
                plural(plan.tuning_seeds.len(), "seed"),
                search.planned_rounds()
            ));
        }
        if let Some(factor) = self.halving.filter(|_| !self.quiet() && search.steps() < 2) {
            eprint_line(format_args!(
                "note: --halving {factor} has no effect: a {factor}th of the rounds is too short, or there are at most {factor} candidates"
            ));
        }
        while let Some(cells) = search.next_cells().map_err(failure)? {
            let statuses = self.run(sweep, &cells);
            search.judge(&cells, &statuses).map_err(failure)?;
        }
        search.choices().map_err(failure)
    }

    /// The names of the strategies and the directories of their final runs.
    fn final_runs(
        &self,
        plan: &Plan,
        choices: &[Choice],
        out: &Path,
        sweep: &Sweep<'_>,
    ) -> Result<Vec<(String, PathBuf)>, Failure> {
        folder(out)?;
        let values = plan.seeds.iter().map(|&seed| vec![("seed".to_owned(), Value::Whole(seed))]).collect();
        let axis = Axis { path: "seed".to_owned(), line: 0, choices: values };
        let (mut names, mut all) = (Vec::new(), Vec::new());
        for choice in choices {
            let own = cells(&choice.config, std::slice::from_ref(&axis)).map_err(Failure::request)?;
            names.extend(own.iter().map(|_| choice.strategy.clone()));
            all.extend(own);
        }
        if !self.quiet() {
            eprint_line(format_args!("final runs on the test set: {}", plural(all.len(), "run")));
        }
        let statuses = self.run(sweep, &all);
        for (cell, status) in all.iter().zip(&statuses) {
            if let RunStatus::Failed(error) = status {
                let (label, seed) = (&cell.experiment.run.strategy.label, cell.experiment.seed);
                return Err(Failure::Work(anyhow!("{label} with seed {seed}: {error}")));
            }
        }
        match statuses.len() - summaries(&statuses).count() {
            0 => usable(summaries(&statuses))?,
            _ => return Err(unfinished(&statuses)),
        }
        Ok(names.into_iter().zip(all.iter().map(|cell| out.join(&cell.folder))).collect())
    }

    fn run(&self, sweep: &Sweep<'_>, cells: &[Cell]) -> Vec<RunStatus> {
        let cells: Vec<&Cell> = cells.iter().collect();
        let progress = SweepProgress::new(&cells, self.quiet());
        let statuses = sweep.run(&cells, &|place, event| progress.show(place, event));
        progress.finish();
        statuses
    }

    /// Writes the report and prints the result.
    fn conclude(
        &self,
        plan: &Plan,
        choices: &[Choice],
        runs: &[(String, PathBuf)],
        out: &Path,
    ) -> Result<(), Failure> {
        let tuned: BTreeSet<String> = swept(&plan.grid).map_err(Failure::request)?;
        let mut collection = Collection::of_tuned(runs, &plan.config, &tuned).map_err(Failure::work)?;
        let notes = tuning_notes(choices, plan.evaluation.metric, plan.tuning_seeds.len());
        let notes: Vec<String> =
            notes.into_iter().chain(plan.strategies.iter().flat_map(TunedStrategy::notes)).collect();
        let edges = edge_notes(choices, &plan.grid);
        let notes = [notes, edges.clone()].concat();
        collection.settings.iter_mut().for_each(|setting| setting.notes.extend(notes.clone()));
        let names: Vec<String> = choices.iter().map(|choice| choice.strategy.clone()).collect();
        let options = ReportOptions {
            summary: SummaryOptions { baseline: names[0].clone(), ..SummaryOptions::default() },
            order: names,
            without_timing: false,
            title: Some(title(&plan.config).unwrap_or_else(|| "Comparison of tuned strategies".to_owned())),
        };
        let mut findings = Report::new(collection, &options);
        findings.parts.iter_mut().for_each(|part| part.commands = vec![self.command(out)]);
        write(out, &findings.files()).map_err(Failure::Work)?;
        let page = out.join("report.html");
        let part = &findings.parts[0];
        let view = View {
            metric: plan.evaluation.metric.name(),
            tuning_seeds: &plan.tuning_seeds,
            tuning: choices,
            seeds: &plan.seeds,
            summary: part.rows.iter().map(|row| &row.line).collect(),
            report: &page,
        };
        self.output.answer(&view, || {
            let edges: String = edges.iter().map(|note| format!("{note}\n")).collect();
            tuning_table(choices, plan.evaluation.metric) + &edges + "\n" + &result_text(part, &page)
        })?;
        if self.open { open(&page) } else { Ok(()) }
    }

    /// The command that gives the same result.
    fn command(&self, out: &Path) -> String {
        let mut text = format!(
            "fedtvd tune {}--strategies {}",
            self.configured.arguments(),
            quoted(&self.strategies.join(","))
        );
        self.grid.iter().for_each(|axis| text += &format!(" --grid {}", quoted(axis)));
        text += &format!(" --seeds {} --tuning-seeds {}", quoted(&self.seeds), quoted(&self.tuning_seeds));
        if let Some(factor) = self.halving {
            text += &format!(" --halving {factor}");
        }
        text + &format!(" --out {}", quoted(&out.display().to_string()))
    }

    fn quiet(&self) -> bool {
        self.output.quiet || self.output.json
    }
}

impl Plan {
    /// runs/tune-HASH, by what is tuned.
    fn folder(&self) -> PathBuf {
        let cells =
            self.strategies.iter().flat_map(|strategy| &strategy.candidates).flat_map(|own| &own.cells);
        let folders: String = cells.map(|cell| format!("{}\n", cell.folder)).collect();
        Path::new("runs").join(format!("tune-{}", &sha256(folders.as_bytes())[..8]))
    }
}

/// The kind of failure of a search.
fn failure(error: SearchError) -> Failure {
    match &error {
        SearchError::Failed { error: why, .. } if why.request() => Failure::request(error),
        _ => Failure::work(error),
    }
}
