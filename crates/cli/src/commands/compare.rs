//! `fedtvd compare`: strategies side by side on the same splits, initial models and cohorts.

use crate::commands::report::{open, write};
use crate::commands::sweep::{home, unfinished};
use crate::request::{Configured, Failure, Output, folder, tell, title, workers};
use crate::terminal::comparison_progress::ComparisonProgress;
use crate::terminal::watch::stop_flag;
use anyhow::anyhow;
use clap::Args;
use fedtvd_lab::experiments::comparison::{Comparison, Population};
use fedtvd_lab::experiments::grid::Cell;
use fedtvd_lab::experiments::sweep::{Event, Standing, Sweep};
use fedtvd_lab::figures::{MARKS, curves_text};
use fedtvd_lab::report::findings::{Report, Request, SettingReport};
use fedtvd_lab::report::heading::heading_of_config;
use fedtvd_lab::runs::collection::Collection;
use fedtvd_lab::stats::summary::{LAST, Question, StrategySummary, mean_curve};
use fedtvd_run::configuration::{Config, Value};
use fedtvd_run::directory::Summary;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Train several strategies side by side.
#[derive(Args)]
#[command(after_help = "\
Call it again to resume after a stop or a crash: what is done is never done again, and runs that a sweep or another
comparison left in the folder are found.")]
pub(crate) struct Compare {
    #[command(flatten)]
    configured: Configured,
    /// Strategies, separated by commas; differences are to the first one
    #[arg(long, value_delimiter = ',', default_value = "fedavg,uniform,fedtvd,fedtvd+balanced")]
    strategies: Vec<String>,
    /// How many seeds, counted up from the configuration's, or a list of seeds such as 3,7
    #[arg(long, default_value = "5")]
    seeds: String,
    /// How many rounds; the configuration's unless given
    #[arg(long)]
    rounds: Option<u64>,
    /// How many runs at a time; all cores unless given
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Folder for runs and report; runs/compare-HASH unless given, the same for the same comparison
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Leave out of the report how long runs took and on which machine
    #[arg(long)]
    no_timing: bool,
    /// Open the report page when it is written
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
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let mut config = self.configured.read()?;
        if let Some(rounds) = self.rounds {
            config.set(&format!("rounds={rounds}")).map_err(Failure::request)?;
        }
        let seeds = seeds(&self.seeds, &config).map_err(Failure::Request)?;
        let workers = workers(self.workers)?;
        let comparison = Comparison::new(&config, &self.strategies, &seeds).map_err(Failure::request)?;
        let out = self.out.clone().unwrap_or_else(|| home("compare", comparison.first_seed()));
        let places = self.configured.places();
        let stop = stop_flag()?;
        let sweep = Sweep::new(&out, &places, workers, stop);
        let population = comparison.population(&sweep).map_err(Failure::request)?;
        folder(&out)?;
        let quiet = self.output.quiet || self.output.json;
        if !quiet {
            tell(format_args!("{}\n", heading(&config, &comparison, &population)));
            population.notes.iter().for_each(|note| tell(format_args!("note: {note}")));
        }
        let progress = ComparisonProgress::new(&comparison, quiet);
        let cells: Vec<&Cell> = comparison.cells().iter().collect();
        let standings = sweep.run(&cells, &|place, event| {
            // Without this run there is no table.
            if let Event::Ends(Standing::Failed(_)) = event {
                stop.store(true, Ordering::Relaxed);
            }
            progress.show(place, &event);
        });
        progress.finish();
        let summaries = finished(&comparison, &standings, &out)?;
        self.conclude(&config, &comparison, &summaries, &out)
    }

    /// Writes the report and answers.
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
        let question = Question { baseline: comparison.labels()[0].clone(), ..Question::default() };
        let request = Request {
            question,
            order: comparison.labels().to_vec(),
            without_timing: self.no_timing,
            title: title(config),
        };
        let findings = Report::new(collection.map_err(Failure::work)?, &request);
        write(out, &findings.files()).map_err(Failure::Work)?;
        let page = out.join("report.html");
        let part = &findings.parts[0];
        let lines: Vec<&StrategySummary> = part.rows.iter().map(|row| &row.line).collect();
        let view = View { runs: summaries, summary: &lines, report: &page };
        self.output.answer(&view, || text(part, &lines, &page))?;
        if self.open { open(&page) } else { Ok(()) }
    }
}

/// The summaries of all runs, by strategy and seed; a failed run or one that is left is a failure.
fn finished(comparison: &Comparison, standings: &[Standing], out: &Path) -> Result<Vec<Summary>, Failure> {
    let mut done = Vec::new();
    for (place, (cell, standing)) in comparison.cells().iter().zip(standings).enumerate() {
        match standing {
            Standing::Done(summary) => {
                // The folder may have moved since the run ended.
                let directory = out.join(&cell.folder);
                let model = directory.join("model.safetensors").display().to_string();
                let directory = directory.display().to_string();
                let summary = Summary { directory, model, ..(**summary).clone() };
                done.push((comparison.strategy(place), summary));
            }
            Standing::Failed(error) => {
                let (label, seed) = (&cell.experiment.run.strategy.label, cell.experiment.seed);
                let sentence = anyhow!("{label} with seed {seed}: {error}");
                let failure = if error.request() { Failure::Request } else { Failure::Work };
                return Err(failure(sentence));
            }
            Standing::Stopped(_) | Standing::Elsewhere => {}
        }
    }
    match standings.len() - done.len() {
        0 => {
            done.sort_by_key(|(strategy, _)| *strategy);
            Ok(done.into_iter().map(|(_, summary)| summary).collect())
        }
        left => Err(unfinished(left)),
    }
}

/// What can be said, and what cannot: the page's sentence.
fn verdict(part: &SettingReport, seeds: usize) -> String {
    match seeds {
        1 => "One seed tells no strategies apart; use --seeds 5.".to_owned(),
        _ => part.verdict.clone(),
    }
}

/// More seeds than any comparison needs: a guard against a slip of the finger.
const MOST_SEEDS: u64 = 1000;

/// `5` means five seeds counted up from the configuration's, `3,7` those two.
pub(crate) fn seeds(text: &str, config: &Config) -> anyhow::Result<Vec<u64>> {
    let wrong = || anyhow!("--seeds {text} is neither a number of seeds above 0 nor a list such as 3,7");
    let many =
        |count| anyhow!("--seeds asks for {count} seeds; at most {MOST_SEEDS} can be compared at once");
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

fn heading(config: &Config, comparison: &Comparison, population: &Population) -> String {
    let Population { clients, mean_tvd, sizes: [least, most], .. } = population;
    format!(
        "{}\nsame split, same start, same cohorts for all · mean TVD {mean_tvd:.2} · sizes {least}–{most}",
        heading_of_config(config, *clients, comparison.seeds())
    )
}

fn text(part: &SettingReport, lines: &[&StrategySummary], page: &Path) -> String {
    let wide = lines.iter().map(|line| line.strategy.len()).max().unwrap_or(0).max(8);
    let seeds = part.setting.seeds().len();
    let first = &lines[0].strategy;
    let mut text = String::new();
    let versus = format!("vs {first} (95 %)");
    let _ = writeln!(
        text,
        "  {:wide$}  {:>11}  {versus:>21}  {:>5}  {:>6}  {:>6}  {:>7}",
        "strategy", "accuracy", "wins", "rounds", "wobble", "counted"
    );
    for (line, mark) in lines.iter().zip(MARKS.iter().cycle()) {
        let [accuracy, versus, wins, rounds, wobble, counted] = line.cells(seeds);
        let _ = writeln!(
            text,
            "{mark} {:wide$}  {accuracy:>11}  {versus:>21}  {wins:>5}  {rounds:>6}  {wobble:>6}  {counted:>7}",
            line.strategy
        );
    }
    let _ = writeln!(
        text,
        "accuracy: last {LAST} rounds, in % · rounds: until {first}'s final accuracy\n\
         wobble: deviation between the last {LAST} · counted: effective clients per round\n"
    );
    let means: Vec<Vec<f64>> =
        part.setting.strategies.iter().map(|strategy| mean_curve(&strategy.records)).collect();
    text += &curves_text(&means, 70, 14);
    let _ = writeln!(text, "{}", verdict(part, seeds));
    let _ = writeln!(text, "Page:  {}      (--open)", page.display());
    text + "Next:  fedtvd weights --counts \"30,30,30;20,40,40;10,30,70\"   ·   fedtvd init > mine.toml\n"
}
