//! `fedtvd compare`: strategies on the same splits, initial models and cohorts.

use crate::commands::report::{open, write};
use crate::commands::sweep::{default_folder, unfinished, usable};
use crate::host::{GridNews, News, host};
use crate::ignored::{self, Purpose};
use crate::request::{
    Configured, DeviceOption, Failure, Output, eprint_line, folder, plural, title, workers_on,
};
use crate::terminal::comparison_progress::ComparisonProgress;
use crate::terminal::watch::stop_flag;
use anyhow::anyhow;
use clap::Args;
use fedtvd_lab::experiments::comparison::{Comparison, Population};
use fedtvd_lab::experiments::grid::Cell;
use fedtvd_lab::experiments::sweep::{Event, RunStatus, Sweep};
use fedtvd_lab::figures::{MARKS, curves_text};
use fedtvd_lab::report::compact_table::{compact_legend, compact_table};
use fedtvd_lab::report::findings::{Report, ReportOptions, SettingReport};
use fedtvd_lab::report::heading::{heading_of_config, samples};
use fedtvd_lab::runs::collection::Collection;
use fedtvd_lab::stats::row::StrategySummary;
use fedtvd_lab::stats::summary::{SummaryOptions, mean_curve};
use fedtvd_run::configuration::{Config, Value};
use fedtvd_run::directory::Summary;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Compare strategies on the same data splits, initial models and selections of clients.
#[derive(Args)]
#[command(after_help = "\
Repeat the same command to resume after an interruption. Finished runs in the folder are reused, including those of a
sweep or another comparison.")]
pub(crate) struct Compare {
    #[command(flatten)]
    configured: Configured,
    /// Strategies, separated by commas; the first one is the baseline
    #[arg(long, value_delimiter = ',', default_value = "fedavg,uniform,fedtvd,fedtvd+balanced")]
    strategies: Vec<String>,
    /// Number of seeds, starting with that of the configuration, or a list such as 3,7
    #[arg(long, default_value = "5")]
    seeds: String,
    /// Number of rounds [default: from the configuration]
    #[arg(long)]
    rounds: Option<u64>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    #[command(flatten)]
    device: DeviceOption,
    /// Folder for runs and report [default: runs/compare-HASH]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Leave out timing and machine from the report
    #[arg(long)]
    no_timing: bool,
    /// Open the HTML page in a browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct View<'a> {
    runs: &'a [Summary],
    summary: &'a [&'a StrategySummary],
    report: &'a Path,
}

impl Compare {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let (mut config, file) = self.configured.read_with_text()?;
        if let Some(rounds) = self.rounds {
            self.configured.refuse(&["rounds".to_owned()].into(), "is given by --rounds")?;
            config.set(&format!("rounds={rounds}")).map_err(Failure::request)?;
        }
        let seeds = seeds(&self.seeds, &config).map_err(Failure::Request)?;
        if config.get("evaluation.test") == Value::Flag(false) {
            return Err(Failure::Request(anyhow!(
                "evaluation.test = false: compare reports accuracies on the test set; fedtvd tune chooses on the clients' hold-outs"
            )));
        }
        refuse_seed(&self.seeds, &self.configured)?;
        let device = self.device.device()?;
        let workers = workers_on(&device, self.workers)?;
        let comparison = Comparison::new(&config, &self.strategies, &seeds).map_err(Failure::request)?;
        let ignored = self.ignored(&config, &file)?;
        let out = self.out.clone().unwrap_or_else(|| default_folder("compare", comparison.first_seed()));
        let places = self.configured.places();
        let stop = stop_flag()?;
        let sweep = Sweep::new(&out, &places, workers, stop).on(device);
        let population = comparison.population(&sweep).map_err(Failure::request)?;
        folder(&out)?;
        let quiet = self.output.quiet || self.output.json;
        let notes = ignored.iter().chain(&population.notes);
        if let Some(host) = host() {
            notes.for_each(|note| (host.tell)(News::Note(note)));
        } else if !quiet {
            eprint_line(format_args!("{}\n", heading(&config, &comparison, &population)));
            notes.for_each(|note| eprint_line(format_args!("note: {note}")));
        }
        let progress = ComparisonProgress::new(&comparison, quiet);
        let cells: Vec<&Cell> = comparison.cells().iter().collect();
        let news = GridNews::new(&cells);
        let statuses = sweep.run(&cells, &|place, event| {
            // A comparison needs all of its runs.
            if let Event::Ends(RunStatus::Failed(_)) = event {
                stop.store(true, Ordering::Relaxed);
            }
            news.tell(place, &event);
            progress.show(place, &event);
        });
        progress.finish();
        let summaries = finished(&comparison, &statuses, &out)?;
        self.conclude(&config, &comparison, &summaries, &out)
    }

    /// Notes on what is ignored.
    fn ignored(&self, config: &Config, file: &str) -> Result<Vec<String>, Failure> {
        let mut notes = ignored::strategies(self.configured.set(), config, &self.strategies, "compare")?;
        let configs: Vec<Config> =
            self.strategies.iter().map(|name| config.with_strategy_beside(name)).collect();
        notes.extend(ignored::checked((&self.configured, file), "compare", &configs, Purpose::Run)?);
        Ok(notes)
    }

    /// Writes the report and prints the result.
    fn conclude(
        &self,
        config: &Config,
        comparison: &Comparison,
        summaries: &[Summary],
        out: &Path,
    ) -> Result<(), Failure> {
        let directories: Vec<PathBuf> = summaries.iter().map(|run| PathBuf::from(&run.directory)).collect();
        let mut damaged = None;
        let collection = Collection::read(&directories, &mut |error| {
            damaged.get_or_insert(error.to_string());
        });
        if let Some(why) = damaged {
            return Err(Failure::Work(anyhow!(why)));
        }
        let summary =
            SummaryOptions { baseline: comparison.labels()[0].clone(), ..SummaryOptions::default() };
        let options = ReportOptions {
            summary,
            order: comparison.labels().to_vec(),
            without_timing: self.no_timing,
            title: title(config),
        };
        let findings = Report::new(collection.map_err(Failure::work)?, &options);
        write(out, &findings.files()).map_err(Failure::Work)?;
        let page = out.join("report.html");
        let part = &findings.parts[0];
        let lines: Vec<&StrategySummary> = part.rows.iter().map(|row| &row.line).collect();
        let view = View { runs: summaries, summary: &lines, report: &page };
        self.output.answer(&view, || text(part, summaries, &page))?;
        if self.open {
            open(&page)?;
        }
        usable(summaries.iter())
    }
}

/// The summaries of all runs by strategy and seed; fails if a run failed or is unfinished.
fn finished(comparison: &Comparison, statuses: &[RunStatus], out: &Path) -> Result<Vec<Summary>, Failure> {
    let mut done = Vec::new();
    for (place, (cell, status)) in comparison.cells().iter().zip(statuses).enumerate() {
        match status {
            RunStatus::Done(summary) => {
                // The folder may have been moved since the run finished.
                let directory = out.join(&cell.folder);
                let model = directory.join("model.safetensors").display().to_string();
                let directory = directory.display().to_string();
                let summary = Summary { directory, model, ..(**summary).clone() };
                done.push((comparison.strategy(place), summary));
            }
            RunStatus::Failed(error) => {
                let (label, seed) = (&cell.experiment.run.strategy.label, cell.experiment.seed);
                let sentence = anyhow!("{label} with seed {seed}: {error}");
                let failure = if error.request() { Failure::Request } else { Failure::Work };
                return Err(failure(sentence));
            }
            RunStatus::Stopped(_) | RunStatus::Elsewhere => {}
        }
    }
    match statuses.len() - done.len() {
        0 => {
            done.sort_by_key(|(strategy, _)| *strategy);
            Ok(done.into_iter().map(|(_, summary)| summary).collect())
        }
        _ => Err(unfinished(statuses)),
    }
}

/// The verdict of the page.
fn verdict(part: &SettingReport, seeds: usize) -> String {
    match seeds {
        1 => "One seed is not enough to compare strategies; use --seeds 5.".to_owned(),
        _ => part.verdict.clone(),
    }
}

/// More seeds than any comparison needs; guards against typing errors.
const MOST_SEEDS: u64 = 1000;

/// `5` is five seeds starting with the configuration's, `3,7` is a list.
pub(crate) fn seeds(text: &str, config: &Config) -> anyhow::Result<Vec<u64>> {
    let wrong = || anyhow!("--seeds {text} is neither a number of seeds above 0 nor a list such as 3,7");
    let many = |count| anyhow!("--seeds {count} is too many; at most {MOST_SEEDS} seeds are allowed");
    let numbers: Vec<u64> =
        text.split(',').map(|seed| seed.trim().parse()).collect::<Result<_, _>>().map_err(|_| wrong())?;
    let seeds: Vec<u64> = match (numbers.as_slice(), config.get("seed")) {
        ([0], _) => return Err(wrong()),
        ([count], _) if *count > MOST_SEEDS => return Err(many(*count)),
        ([count], Value::Whole(first)) => (first..first.saturating_add(*count)).collect(),
        (list, _) if list.len() as u64 > MOST_SEEDS => return Err(many(list.len() as u64)),
        _ => numbers,
    };
    if let Some(largest) = seeds.iter().max() {
        config.clone().set(&format!("seed={largest}"))?;
    }
    Ok(seeds)
}

/// Refuses a seed of the configuration beside a list of seeds.
pub(crate) fn refuse_seed(seeds: &str, configured: &Configured) -> Result<(), Failure> {
    let listed = seeds.contains(',');
    configured.refuse(&listed.then(|| "seed".to_owned()).into_iter().collect(), "is given by --seeds")
}

fn heading(config: &Config, comparison: &Comparison, population: &Population) -> String {
    let Population { clients, mean_tvd, sizes: [least, most], .. } = population;
    format!(
        "{}\n{} per client, mean total variation distance (TVD) of labels {mean_tvd:.2}",
        heading_of_config(&config.with_model_for(population.shape), *clients, comparison.seeds()),
        samples(*least as u64, *most as u64)
    )
}

fn text(part: &SettingReport, runs: &[Summary], page: &Path) -> String {
    let mut text = table_and_legend(part);
    part.setting.notes.iter().chain(&part.test_set).for_each(|note| text += &format!("{note}\n"));
    text += &curves_and_verdict(part);
    let collapsed = runs.iter().filter(|run| run.collapsed.is_some()).count();
    if collapsed > 0 {
        let _ = writeln!(text, "{collapsed} of {} collapsed", plural(runs.len(), "run"));
    }
    let _ = writeln!(text, "Page:  {}      (--open)", page.display());
    text + "Next:  fedtvd weights   ·   fedtvd init > mine.toml\n"
}

/// The result of a comparison without its notes.
pub(crate) fn result_text(part: &SettingReport, page: &Path) -> String {
    let notes = part.collapsed.iter().chain(&part.missed).chain(&part.test_set);
    let notes: String = notes.map(|note| format!("{note}\n")).collect();
    let page = format!("Page:  {}      (--open)\n", page.display());
    table_and_legend(part) + &notes + &curves_and_verdict(part) + &page
}

fn table_and_legend(part: &SettingReport) -> String {
    compact_table(part, &MARKS) + &compact_legend(part) + "\n"
}

fn curves_and_verdict(part: &SettingReport) -> String {
    let means: Vec<Vec<Option<f64>>> =
        part.setting.strategies.iter().map(|strategy| mean_curve(&strategy.records)).collect();
    format!("{}{}\n", curves_text(&means, 70, 14), verdict(part, part.setting.seeds().len()))
}
