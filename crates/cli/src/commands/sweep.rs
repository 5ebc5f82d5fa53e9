//! `fedtvd sweep CONFIG`: every combination of the lists in its `[sweep]` table, resumable.

use crate::request::{Configured, Failure, Output, folder, quoted, title, workers};
use crate::terminal::sweep_progress::SweepProgress;
use crate::terminal::watch::stop_flag;
use anyhow::anyhow;
use clap::Args;
use fedtvd_data::set::Places;
use fedtvd_lab::experiments::grid::{Cell, cells, swept};
use fedtvd_lab::experiments::shard::Shard;
use fedtvd_lab::experiments::sweep::{Standing, Sweep as Runs};
use fedtvd_lab::report::slug::slug;
use fedtvd_run::configuration::{Config, axes};
use fedtvd_run::directory::{Summary, sha256};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Run every combination of the lists in a configuration's sweep table.
#[derive(Args)]
#[command(after_help = "\
A configuration with a sweep:

    rounds = 100
    [sweep]
    \"strategy.name\" = [\"fedavg\", \"fedtvd\", \"fedtvd+balanced\"]
    seed = [1, 2, 3]
    split = [{ alpha = 0.1 }, { alpha = 1.0 }, { kind = \"iid\" }]

Runs of one seed share split, initial model and cohorts, so that differences are paired. Call it again to go on after
a stop or a crash: what is done is never done again, what failed is tried again.")]
pub(crate) struct Sweep {
    #[command(flatten)]
    configured: Configured,
    /// Folder for the runs; runs/NAME-HASH unless given, the same for the same sweep
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How many threads: so many runs at a time; all cores unless given
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Do only part I of N, counted from 0, so that several processes or machines share the work
    #[arg(long, value_name = "I/N", conflicts_with_all = ["shards", "list"])]
    shard: Option<Shard>,
    /// Do only the part of N that SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX says
    #[arg(long, value_name = "N", conflicts_with = "list")]
    shards: Option<usize>,
    /// Print one command per run, for any launcher, and run nothing
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
}

impl Sweep {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let (config, text) = self.configured.read_with_text()?;
        let axes = axes(&text).map_err(Failure::request)?;
        if axes.is_empty() {
            return Err(Failure::Request(anyhow!(
                "there is nothing to sweep over: the configuration has no [sweep] table; fedtvd sweep --help shows one"
            )));
        }
        let keys = swept(&axes).map_err(Failure::request)?;
        self.configured.refuse(&keys, "is set by a list of the sweep")?;
        let grid = cells(&config, &axes).map_err(Failure::request)?;
        let out = self.out.clone().unwrap_or_else(|| place(&config, &grid));
        if self.list {
            return self.output.answer(&self.commands(&out, grid.len()), || {
                self.commands(&out, grid.len())
                    .iter()
                    .fold(String::new(), |text, command| text + command + "\n")
            });
        }
        let shard = self.part()?;
        let own: Vec<&Cell> =
            grid.iter().enumerate().filter(|(place, _)| shard.has(*place)).map(|(_, cell)| cell).collect();
        let standings = run(&own, &out, &self.configured.places(), workers(self.workers)?, self.output)?;
        conclude(&own, &standings, &out, title(&config), self.output)
    }

    fn part(&self) -> Result<Shard, Failure> {
        match (self.shard, self.shards) {
            (Some(shard), _) => Ok(shard),
            (None, Some(count)) => Shard::scheduled(count, |name| std::env::var(name).ok())
                .map_err(|why| Failure::Request(anyhow!(why))),
            (None, None) => Ok(Shard::WHOLE),
        }
    }

    /// One command per run: a shard of as many as there are runs.
    fn commands(&self, out: &Path, count: usize) -> Vec<String> {
        let common = format!(
            "fedtvd sweep {}--out {}",
            self.configured.arguments(),
            quoted(&out.display().to_string())
        );
        let threads = self.workers.map_or(String::new(), |workers| format!(" --workers {workers}"));
        (0..count).map(|index| format!("{common} --shard {index}/{count}{threads}")).collect()
    }
}

/// Runs cells with a live progress.
pub(crate) fn run(
    cells: &[&Cell],
    out: &Path,
    places: &Places,
    workers: usize,
    output: Output,
) -> Result<Vec<Standing>, Failure> {
    folder(out)?;
    let progress = SweepProgress::new(cells, output.quiet || output.json);
    let sweep = Runs::new(out, places, workers, stop_flag()?);
    let standings = sweep.run(cells, &|place, event| progress.show(place, event));
    progress.finish();
    Ok(standings)
}

/// runs/NAME-HASH for a sweep with the configuration's name.
fn place(config: &Config, grid: &[Cell]) -> PathBuf {
    let name = title(config).map(folder_name).filter(|name| !name.is_empty());
    home(name.as_deref().unwrap_or("sweep"), grid)
}

/// runs/NAME-HASH: the same cells find their runs again.
pub(crate) fn home(name: &str, cells: &[Cell]) -> PathBuf {
    let folders: String = cells.iter().map(|cell| cell.folder.as_str()).collect();
    Path::new("runs").join(format!("{name}-{}", &sha256(folders.as_bytes())[..8]))
}

/// A name as it is, unless it would lead out of its folder.
fn folder_name(name: String) -> String {
    match name.contains(['/', '\\']) || name.starts_with('.') {
        true => slug(&name).trim_start_matches(['.', '-']).to_owned(),
        false => name,
    }
}

/// Says how all cells stand; one that failed or is left makes the work incomplete.
fn conclude(
    cells: &[&Cell],
    standings: &[Standing],
    out: &Path,
    title: Option<String>,
    output: Output,
) -> Result<(), Failure> {
    let views: Vec<CellView<'_>> =
        cells.iter().zip(standings).map(|(cell, standing)| CellView::new(cell, standing, out)).collect();
    let count = |state: &str| views.iter().filter(|view| view.state == state).count();
    let (done, failed) = (count("done"), count("failed"));
    let left = views.len() - done - failed;
    let view = View { directory: out, done, failed, left, cells: views };
    output.answer(&view, || text(&view, title.as_deref()))?;
    match (failed, left) {
        (0, 0) => Ok(()),
        (0, left) => Err(unfinished(left)),
        (failed, _) => Err(Failure::Work(anyhow!("{} failed; the same command tries again", runs(failed)))),
    }
}

impl<'a> CellView<'a> {
    fn new(cell: &'a Cell, standing: &'a Standing, out: &Path) -> Self {
        let summary: Option<&Summary> =
            if let Standing::Done(summary) = standing { Some(summary) } else { None };
        let (state, rounds, failure) = match standing {
            Standing::Done(summary) => ("done", Some(summary.rounds), None),
            Standing::Stopped(rounds) => ("stopped", Some(*rounds), None),
            Standing::Elsewhere => ("elsewhere", None, None),
            Standing::Failed(error) => ("failed", None, Some(error.to_string())),
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
        }
    }
}

fn text(view: &View<'_>, title: Option<&str>) -> String {
    let mut text = String::new();
    for cell in view.cells.iter().filter(|cell| cell.state != "done") {
        let what = cell.failure.as_ref().map_or(String::new(), |why| format!(": {why}"));
        let setting = cell.setting.iter().map(|setting| format!(", {setting}")).collect::<String>();
        let _ = writeln!(text, "{} seed {}{setting} {}{what}", cell.strategy, cell.seed, cell.state);
    }
    let View { done, failed, left, .. } = view;
    let _ = writeln!(text, "{} done, {failed} failed, {left} left", runs(*done));
    let out = quoted(&view.directory.display().to_string());
    let title = title.map_or(String::new(), |title| format!(" --title {}", quoted(title)));
    let _ = writeln!(text, "Runs:   {out}\nReport: fedtvd report {out}{title}");
    text
}

/// How a sweep or a comparison ends that was stopped, or whose runs another process has.
pub(crate) fn unfinished(left: usize) -> Failure {
    Failure::Work(anyhow!("{} left; the same command resumes", runs(left)))
}

/// A number of runs in words.
pub(crate) fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_stays_below_its_folder_whatever_its_name() {
        let place = |name: &str| {
            let mut config = Config::default();
            config.set(&format!("name=\"{name}\"")).unwrap();
            place(&config, &[]).parent().map(Path::to_owned)
        };
        for name in ["mine", "../../x", "/x", "..", ".", "a/b", ""] {
            assert_eq!(place(name).as_deref(), Some(Path::new("runs")), "{name}");
        }
        assert_eq!(folder_name("../../x".to_owned()), "x");
        assert_eq!(folder_name("my_sweep 2".to_owned()), "my_sweep 2");
    }
}
