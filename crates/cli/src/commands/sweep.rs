//! `fedtvd sweep CONFIG`: all combinations of the lists in its `[sweep]` table.

use crate::host::GridNews;
use crate::ignored::{self, Purpose};
use crate::request::{
    Configured, DeviceOption, Failure, Output, eprint_line, folder, plural, quoted, title, workers_on,
};
use crate::terminal::sweep_progress::SweepProgress;
use crate::terminal::watch::stop_flag;
use anyhow::anyhow;
use clap::Args;
use fedtvd_data::set::Places;
use fedtvd_lab::experiments::grid::{Cell, cells, swept};
use fedtvd_lab::experiments::shard::Shard;
use fedtvd_lab::experiments::sweep::{RunStatus, Sweep as Runs};
use fedtvd_lab::report::slug::slug;
use fedtvd_run::backend::Device;
use fedtvd_run::configuration::{Axis, Config, axes};
use fedtvd_run::directory::{Summary, sha256};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Run all combinations of the lists in a configuration's sweep table.
#[derive(Args)]
#[command(after_help = "\
Example configuration:

    rounds = 100
    [sweep]
    \"strategy.name\" = [\"fedavg\", \"fedtvd\", \"fedtvd+balanced\"]
    seed = [1, 2, 3]
    split = [{ alpha = 0.1 }, { alpha = 1.0 }, { kind = \"iid\" }]

Runs with the same seed have the same split and initial model, and the same cohorts unless a strategy selects its own, so
differences are paired. Repeat the same command to resume after an interruption: finished runs are kept, also those that
collapsed; failed runs are tried again.")]
pub(crate) struct Sweep {
    #[command(flatten)]
    configured: Configured,
    /// Folder for the runs [default: runs/NAME-HASH]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of threads, and of runs at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    #[command(flatten)]
    device: DeviceOption,
    /// Run only shard I of N, starting at 0, to distribute the runs over processes or machines
    #[arg(long, value_name = "I/N", conflicts_with_all = ["shards", "list"])]
    shard: Option<Shard>,
    /// Like --shard, with the index from SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX
    #[arg(long, value_name = "N", conflicts_with = "list")]
    shards: Option<usize>,
    /// Print one command per run for a job scheduler, without running anything
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct View<'a> {
    directory: &'a Path,
    done: usize,
    failed: usize,
    left: usize,
    collapsed: usize,
    cells: Vec<CellView<'a>>,
}

#[derive(Serialize)]
struct CellView<'a> {
    strategy: &'a str,
    seed: u64,
    setting: &'a [String],
    directory: PathBuf,
    state: &'static str,
    rounds: Option<u32>,
    failure: Option<String>,
    last10_accuracy: Option<f64>,
    collapsed: Option<&'a str>,
}

impl Sweep {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let (config, text) = self.configured.read_with_text()?;
        let axes = axes(&text).map_err(Failure::request)?;
        if axes.is_empty() {
            return Err(Failure::Request(anyhow!(
                "the configuration has no [sweep] table; fedtvd sweep --help shows an example"
            )));
        }
        let keys = swept(&axes).map_err(Failure::request)?;
        self.configured.refuse(&keys, "is set by the [sweep] table")?;
        let grid = cells(&config, &axes).map_err(Failure::request)?;
        let ignored = self.ignored(&config, &text, &axes, &grid)?;
        let out = self.out.clone().unwrap_or_else(|| sweep_folder(&config, &grid));
        if self.list {
            return self.output.answer(&self.commands(&out, grid.len()), || {
                self.commands(&out, grid.len())
                    .iter()
                    .fold(String::new(), |text, command| text + command + "\n")
            });
        }
        if !self.output.quiet {
            ignored.iter().for_each(|note| eprint_line(format_args!("note: {note}")));
        }
        let shard = self.part()?;
        let own: Vec<&Cell> =
            grid.iter().enumerate().filter(|(place, _)| shard.has(*place)).map(|(_, cell)| cell).collect();
        let statuses =
            run(&own, &out, &self.configured.places(), (self.device.device()?, self.workers), self.output)?;
        conclude(&own, &statuses, &out, title(&config), self.output)
    }

    /// Notes on what is ignored.
    fn ignored(
        &self,
        config: &Config,
        text: &str,
        axes: &[Axis],
        grid: &[Cell],
    ) -> Result<Vec<String>, Failure> {
        let settings = || axes.iter().flat_map(|axis| &axis.choices).flatten();
        let names = settings().filter(|(path, _)| path == "strategy.name").map(|(_, name)| name.bare());
        let names: Vec<String> = names.collect();
        let mut notes = Vec::new();
        if !names.is_empty() {
            let paths: Vec<String> = swept(axes).map_err(Failure::request)?.into_iter().collect();
            ignored::refuse_untaken(&paths, &names)?;
            notes.extend(ignored::parameters(self.configured.set(), config, &names)?);
        }
        let configs: Vec<Config> = grid.iter().map(|cell| cell.config.clone()).collect();
        ignored::refuse_idle_lists(axes, &configs)?;
        notes.extend(ignored::checked((&self.configured, text), "sweep", &configs, Purpose::Grid)?);
        Ok(notes)
    }

    fn part(&self) -> Result<Shard, Failure> {
        match (self.shard, self.shards) {
            (Some(shard), _) => Ok(shard),
            (None, Some(count)) => Shard::scheduled(count, |name| std::env::var(name).ok())
                .map_err(|why| Failure::Request(anyhow!(why))),
            (None, None) => Ok(Shard::WHOLE),
        }
    }

    /// One command per run, with as many shards as runs.
    fn commands(&self, out: &Path, count: usize) -> Vec<String> {
        let common = format!(
            "fedtvd sweep {}--out {}",
            self.configured.arguments(),
            quoted(&out.display().to_string())
        );
        let threads = self.workers.map_or(String::new(), |workers| format!(" --workers {workers}"));
        let threads = threads + &self.device.argument();
        (0..count).map(|index| format!("{common} --shard {index}/{count}{threads}")).collect()
    }
}

/// Runs cells and shows progress.
pub(crate) fn run(
    cells: &[&Cell],
    out: &Path,
    places: &Places,
    (device, workers): (Device, Option<usize>),
    output: Output,
) -> Result<Vec<RunStatus>, Failure> {
    folder(out)?;
    let progress = SweepProgress::new(cells, output.quiet || output.json);
    let sweep = Runs::new(out, places, workers_on(&device, workers)?, stop_flag()?).on(device);
    let news = GridNews::new(cells);
    let statuses = sweep.run(cells, &|place, event| {
        news.tell(place, &event);
        progress.show(place, event);
    });
    progress.finish();
    Ok(statuses)
}

/// runs/NAME-HASH with the name of the configuration.
fn sweep_folder(config: &Config, grid: &[Cell]) -> PathBuf {
    let name = title(config).map(folder_name).filter(|name| !name.is_empty());
    default_folder(name.as_deref().unwrap_or("sweep"), grid)
}

/// runs/NAME-HASH, the same for the same cells.
pub(crate) fn default_folder(name: &str, cells: &[Cell]) -> PathBuf {
    let folders: String = cells.iter().map(|cell| cell.folder.as_str()).collect();
    Path::new("runs").join(format!("{name}-{}", &sha256(folders.as_bytes())[..8]))
}

/// The name, changed only if it would lead out of the parent folder.
fn folder_name(name: String) -> String {
    match name.contains(['/', '\\']) || name.starts_with('.') {
        true => slug(&name).trim_start_matches(['.', '-']).to_owned(),
        false => name,
    }
}

/// Prints the status of all cells; fails if a run failed or is unfinished.
fn conclude(
    cells: &[&Cell],
    statuses: &[RunStatus],
    out: &Path,
    title: Option<String>,
    output: Output,
) -> Result<(), Failure> {
    let views: Vec<CellView<'_>> =
        cells.iter().zip(statuses).map(|(cell, status)| CellView::new(cell, status, out)).collect();
    let count = |state: &str| views.iter().filter(|view| view.state == state).count();
    let (done, failed) = (count("done"), count("failed"));
    let left = views.len() - done - failed;
    let collapsed = views.iter().filter(|view| view.collapsed.is_some()).count();
    let view = View { directory: out, done, failed, left, collapsed, cells: views };
    output.answer(&view, || text(&view, title.as_deref()))?;
    match (failed, left) {
        (0, 0) => usable(summaries(statuses)),
        (0, _) => Err(unfinished(statuses)),
        (failed, _) => {
            Err(Failure::Work(anyhow!("{} failed; repeat the command to try again", plural(failed, "run"))))
        }
    }
}

impl<'a> CellView<'a> {
    fn new(cell: &'a Cell, status: &'a RunStatus, out: &Path) -> Self {
        let summary: Option<&Summary> =
            if let RunStatus::Done(summary) = status { Some(summary) } else { None };
        let (state, rounds, failure) = match status {
            RunStatus::Done(summary) => ("done", Some(summary.rounds), None),
            RunStatus::Stopped(rounds) => ("stopped", Some(*rounds), None),
            RunStatus::Elsewhere => ("elsewhere", None, None),
            RunStatus::Failed(error) => ("failed", None, Some(error.to_string())),
        };
        Self {
            strategy: &cell.experiment.run.strategy.label,
            seed: cell.experiment.seed,
            setting: &cell.setting,
            directory: out.join(&cell.folder),
            state,
            rounds,
            failure,
            last10_accuracy: summary.and_then(|summary| summary.last10_accuracy),
            collapsed: summary.and_then(|summary| summary.collapsed.as_deref()),
        }
    }
}

fn text(view: &View<'_>, title: Option<&str>) -> String {
    let mut text = String::new();
    for cell in view.cells.iter().filter(|cell| cell.state != "done" || cell.collapsed.is_some()) {
        let why = cell.failure.as_deref().or(cell.collapsed);
        let what = why.map_or(String::new(), |why| format!(": {why}"));
        let setting = cell.setting.iter().map(|setting| format!(", {setting}")).collect::<String>();
        let state = match cell.state {
            "elsewhere" => "running in another process",
            "done" => "collapsed",
            state => state,
        };
        let _ = writeln!(text, "{} seed {}{setting}: {state}{what}", cell.strategy, cell.seed);
    }
    let View { done, failed, left, collapsed, .. } = view;
    let collapsed = if *collapsed == 0 { String::new() } else { format!(" ({collapsed} collapsed)") };
    let done = plural(*done, "run");
    let _ = writeln!(text, "{done} finished{collapsed}, {failed} failed, {left} unfinished");
    let out = quoted(&view.directory.display().to_string());
    let title = title.map_or(String::new(), |title| format!(" --title {}", quoted(title)));
    let _ = writeln!(text, "Runs:   {out}\nReport: fedtvd report {out}{title}");
    text
}

/// The summaries of finished runs.
pub(crate) fn summaries(statuses: &[RunStatus]) -> impl Iterator<Item = &Summary> {
    statuses.iter().filter_map(|status| match status {
        RunStatus::Done(summary) => Some(summary.as_ref()),
        _ => None,
    })
}

/// Fails if every run collapsed: then there is no result.
pub(crate) fn usable<'a>(runs: impl Iterator<Item = &'a Summary>) -> Result<(), Failure> {
    let runs: Vec<&Summary> = runs.collect();
    let reasons =
        runs.iter().map(|run| run.collapsed.as_ref()).collect::<Option<Vec<_>>>().unwrap_or_default();
    let (Some(first), Some(why)) = (runs.first(), reasons.first()) else { return Ok(()) };
    let all = if runs.len() == 1 { "the only run".to_owned() } else { format!("all {} runs", runs.len()) };
    Err(Failure::Work(anyhow!("{all} collapsed, first: {} with seed {}: {why}", first.strategy, first.seed)))
}

/// The failure of a sweep or comparison that was stopped, or whose runs are running in another process.
pub(crate) fn unfinished(statuses: &[RunStatus]) -> Failure {
    let count = |of: fn(&RunStatus) -> bool| statuses.iter().filter(|status| of(status)).count();
    let elsewhere = count(|status| matches!(status, RunStatus::Elsewhere));
    let left = count(|status| !matches!(status, RunStatus::Done(_)));
    let why = if elsewhere > 0 { format!(" ({elsewhere} in use by another process)") } else { String::new() };
    Failure::Work(anyhow!("{} unfinished{why}; repeat the command to resume", plural(left, "run")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_stays_below_its_folder_whatever_its_name() {
        let place = |name: &str| {
            let mut config = Config::default();
            config.set(&format!("name=\"{name}\"")).unwrap();
            sweep_folder(&config, &[]).parent().map(Path::to_owned)
        };
        for name in ["mine", "../../x", "/x", "..", ".", "a/b", ""] {
            assert_eq!(place(name).as_deref(), Some(Path::new("runs")), "{name}");
        }
        assert_eq!(folder_name("../../x".to_owned()), "x");
        assert_eq!(folder_name("my_sweep 2".to_owned()), "my_sweep 2");
    }
}
