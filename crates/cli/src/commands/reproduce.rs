//! `fedtvd reproduce`: the paper's experiments, with its results beside ours.

use crate::commands::compare::seeds;
use crate::commands::report::write;
use crate::commands::sweep::{run, summaries, usable};
use crate::commands::theory;
use crate::ignored::{self, Purpose};
use crate::output::dry_run::DryRun;
use crate::request::{DeviceOption, Failure, Output, eprint_line, quoted, refuse, workers_on};
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use fedtvd_data::set::{Places, known};
use fedtvd_lab::experiments::deviations::deviations;
use fedtvd_lab::experiments::grid::Cell;
use fedtvd_lab::experiments::preset::{self, Preset};
use fedtvd_lab::experiments::reproduction::{PaperRow, csv, markdown, rows};
use fedtvd_lab::experiments::shard::Shard;
use fedtvd_lab::experiments::sweep::RunStatus;
use fedtvd_lab::figures::{figure_table, paper_figures};
use fedtvd_lab::report::slug::slug;
use fedtvd_lab::runs::collection::Collection;
use fedtvd_lab::runs::setting::shown;
use fedtvd_run::configuration::Config;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Run an experiment of the FedTVD paper and compare the results with it.
#[derive(Args)]
pub(crate) struct Reproduce {
    /// The experiment
    #[arg(value_enum)]
    experiment: Which,
    /// Data sets, separated by commas; the model depends on the data set [default: the paper's]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    dataset: Vec<String>,
    /// Strategies, separated by commas [default: the paper's, and further baselines and variants]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    strategies: Vec<String>,
    /// Number of seeds, or a list such as 3,7
    #[arg(long, default_value = "5")]
    seeds: String,
    /// Number of rounds [default: 300, as in the paper]
    #[arg(long)]
    rounds: Option<u64>,
    /// Change a key of the protocol, such as local.epochs=3, or model.name if there is one data set; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Folder with data sets [default: $FEDTVD_DATA]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder for the runs; finished runs in it are reused
    #[arg(long, value_name = "DIR", default_value = "runs/reproduce")]
    out: PathBuf,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    #[command(flatten)]
    device: DeviceOption,
    /// Run only shard I of N, starting at 0; the table includes all finished shards
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Show what would be run and the estimated time, without running it
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Which {
    /// Table 2: three data sets and models, Dirichlet alpha 0.1, 0.5, 1.0 and IID
    Skew,
    /// Table 3: CIFAR-10, alpha 0.1, 100 and 200 clients, 10, 20 and 50 % of them per round
    Participation,
    /// Table 4: CIFAR-10, alpha 0.1 and 1.0, lambda (share of label quality in the weights) from 0 to 1
    Lambda,
    /// Figures 1 to 5 as SVG, with the runs that they need
    Figures,
    /// The convergence bound and the claim about gradient dissimilarity, on a convex problem
    Theory,
}

#[derive(Serialize)]
struct View<'a> {
    experiment: String,
    table: u32,
    rows: &'a [PaperRow],
    departures: &'a [String],
    directory: &'a Path,
}

impl Reproduce {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let preset = match self.experiment {
            Which::Skew => Preset::Skew,
            Which::Participation => Preset::Participation,
            Which::Lambda => Preset::Lambda,
            Which::Figures => Preset::Figures,
            Which::Theory => return self.theory(),
        };
        let mut keys = preset.keys().map_err(Failure::request)?;
        if let [_] = self.dataset.as_slice() {
            // Only with a single data set is the model unambiguous.
            keys.remove("model.name");
        }
        refuse(&self.set, |path| keys.contains(path), "is varied by the experiment")?;
        let config = self.protocol()?;
        let departures = self.deviations(&config);
        let grid = self.grid(preset, &config)?;
        let configs: Vec<Config> = grid.iter().map(|cell| cell.config.clone()).collect();
        ignored::refuse_idle(&self.set, &configs, Purpose::Grid)?;
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        let all: Vec<&Cell> = grid.iter().collect();
        let own: Vec<&Cell> =
            all.iter().enumerate().filter(|(place, _)| shard.has(*place)).map(|(_, cell)| *cell).collect();
        let places = Places::new(self.data.clone());
        let device = self.device.device()?;
        let workers = workers_on(&device, self.workers)?;
        let outlook = || DryRun::new(self.name(), &own, |cell| self.done(cell), &self.out, &places, workers);
        if self.dry_run {
            let outlook = outlook();
            return self.output.answer(&outlook, || outlook.text() + &outlook.listing());
        }
        if !self.output.quiet && !self.output.json {
            eprint_line(outlook().text().trim_end());
        }
        let statuses = run(&own, &self.out, &places, (device, Some(workers)), self.output)?;
        let here = rows(preset, &own, &statuses, false);
        let incomplete = here.iter().filter(|row| row.missing.is_some()).count();
        // The table covers the whole grid, including shards that other processes have finished.
        let mut statuses = statuses.into_iter();
        let status = |(place, cell): (usize, &&Cell)| {
            let done_here = if shard.has(place) { statuses.next() } else { None };
            done_here.unwrap_or_else(|| RunStatus::found(&self.out.join(&cell.folder)))
        };
        let statuses: Vec<RunStatus> = all.iter().enumerate().map(status).collect();
        let rows = rows(preset, &all, &statuses, departures.is_empty());
        self.keep(&rows, &departures)?;
        let drawn = if preset == Preset::Figures { self.draw(&all)? } else { String::new() };
        let (table, directory) = (preset.table(), self.out.as_path());
        let view = View { experiment: self.name(), table, rows: &rows, departures: &departures, directory };
        self.output.answer(&view, || self.text(&rows, &departures) + &drawn)?;
        match incomplete {
            0 => usable(summaries(&statuses)),
            some => Err(Failure::Work(anyhow!(
                "{some} of {} rows are incomplete; repeat the command to resume",
                here.len()
            ))),
        }
    }

    /// Runs the theory experiment, which has no training runs.
    fn theory(&self) -> Result<(), Failure> {
        for (given, option) in [
            (self.dry_run, "--dry-run"),
            (!self.strategies.is_empty(), "--strategies"),
            (self.shard.is_some(), "--shard"),
            (self.workers.is_some(), "--workers"),
            (self.device.given(), "--device"),
            (self.dataset.len() > 1, "a second --dataset"),
        ] {
            if given {
                return Err(Failure::Request(anyhow!(
                    "reproduce theory has no training runs and does not accept {option}"
                )));
            }
        }
        if self.rounds == Some(0) {
            return Err(Failure::Request(anyhow!("--rounds 0 is not allowed; it must be a number above 0")));
        }
        let idle = |path: &str| {
            matches!(path, "split.alpha" | "split.kind")
                || !(path.starts_with("data.") || path.starts_with("split."))
        };
        refuse(
            &self.set,
            idle,
            "is not used by the theory experiment, which uses keys of data and other keys of split",
        )?;
        let mut config = self.protocol()?;
        if let Some(set) = self.dataset.first() {
            config.set(&format!("data.set={set}")).map_err(Failure::request)?;
        }
        ignored::refuse_idle(&self.set, std::slice::from_ref(&config), Purpose::Grid)?;
        let seeds = seeds(&self.seeds, &config).map_err(Failure::Request)?;
        theory::answer(&config, &seeds, self.rounds, &Places::new(self.data.clone()), &self.out, self.output)
    }

    /// The paper's protocol with the requested changes.
    fn protocol(&self) -> Result<Config, Failure> {
        if self.rounds.is_some() {
            refuse(&self.set, |path| path == "rounds", "is given by --rounds")?;
        }
        let mut config = preset::protocol();
        for setting in &self.set {
            config.set(setting).map_err(Failure::request)?;
        }
        if let Some(rounds) = self.rounds.filter(|_| !matches!(self.experiment, Which::Theory)) {
            config.set(&format!("rounds={rounds}")).map_err(Failure::request)?;
        }
        Ok(config)
    }

    /// How that deviates from the paper's protocol.
    fn deviations(&self, config: &Config) -> Vec<String> {
        let (papers, own) = (self.dataset.first().map(|set| preset::model(set)), config.get("model.name"));
        let other = config.paths().iter().any(|path| path == "model.name");
        let model = papers.filter(|papers| other && shown(&own) != *papers);
        let model = model.map(|papers| format!("model.name = {} ({papers})", shown(&own)));
        model.into_iter().chain(deviations(config)).collect()
    }

    /// The requested runs.
    fn grid(&self, preset: Preset, config: &Config) -> Result<Vec<Cell>, Failure> {
        let named = |asked: &[String], own: Vec<String>| if asked.is_empty() { own } else { asked.to_vec() };
        let datasets = named(&self.dataset, preset.datasets().iter().map(|set| (*set).to_owned()).collect());
        for set in &datasets {
            known(set).with_context(|| format!("--dataset {set}")).map_err(Failure::Request)?;
        }
        let strategies = named(&self.strategies, preset.strategies());
        let seeds = seeds(&self.seeds, config).map_err(Failure::Request)?;
        preset.cells(config, &datasets, &strategies, &seeds).map_err(Failure::request)
    }

    fn done(&self, cell: &Cell) -> bool {
        self.out.join(&cell.folder).join("summary.json").is_file()
    }

    fn name(&self) -> String {
        self.experiment.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// The name of the table's file without extension; it includes the data sets if they are not the paper's.
    fn file(&self) -> String {
        match self.dataset.join(" ") {
            none if none.is_empty() => self.name(),
            named => format!("{}-{}", self.name(), slug(&named)),
        }
    }

    /// Writes the table beside the runs.
    fn keep(&self, rows: &[PaperRow], departures: &[String]) -> Result<(), Failure> {
        for (end, text) in [("md", page(rows, departures)), ("csv", csv(rows))] {
            let path = self.out.join(format!("{}.{end}", self.file()));
            std::fs::write(&path, text)
                .with_context(|| format!("writing {}", path.display()))
                .map_err(Failure::Work)?;
        }
        Ok(())
    }

    /// Draws the paper's figures from the finished runs, with a table of their content.
    fn draw(&self, cells: &[&Cell]) -> Result<String, Failure> {
        let done = cells.iter().filter(|cell| self.done(cell)).map(|cell| self.out.join(&cell.folder));
        let directories: Vec<PathBuf> = done.collect();
        if directories.is_empty() {
            return Ok(String::new());
        }
        let collection =
            Collection::read(&directories, &mut |error| eprintln!("fedtvd: run left out: {error}"));
        let drawn = paper_figures(&collection.map_err(Failure::work)?);
        let table = figure_table(&drawn);
        let mut files: Vec<(String, String)> =
            drawn.into_iter().map(|one| (format!("figures/{}", one.file), one.svg)).collect();
        files.push(("what-the-figures-show.md".to_owned(), table.clone()));
        write(&self.out, &files).map_err(Failure::Work)?;
        Ok(format!("\n{table}"))
    }

    fn text(&self, rows: &[PaperRow], departures: &[String]) -> String {
        let out = quoted(&self.out.display().to_string());
        let page = page(rows, departures);
        format!("{page}\nTable:  {out}/{}.md\nReport: fedtvd report {out}\n", self.file())
    }
}

/// The table with its source and protocol.
fn page(rows: &[PaperRow], departures: &[String]) -> String {
    let source = "paper: Selo, Kundroo, Kim, FGCS 2025, five runs; accuracy: mean of the last 10 rounds, or of all rounds of a shorter run";
    let protocol = match departures {
        [] => "protocol: the paper's".to_owned(),
        some => format!(
            "not the paper's protocol, so no difference is shown (paper's values in parentheses): {}",
            some.join(", ")
        ),
    };
    format!("{}\n{source}\n\n{protocol}\n", markdown(rows))
}
