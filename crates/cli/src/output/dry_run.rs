//! What `fedtvd reproduce` would run and how long it would take: shown before it starts, and by `--dry-run`.

use crate::commands::run::duration;
use crate::request::plural;
use fedtvd_data::set::Places;
use fedtvd_lab::experiments::forecast::forecast;
use fedtvd_lab::experiments::grid::Cell;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The runs and the estimated time.
#[derive(Serialize)]
pub(crate) struct DryRun<'a> {
    experiment: String,
    directory: &'a Path,
    workers: usize,
    done: usize,
    left: usize,
    /// Estimated time of the unfinished runs on all threads; null if it cannot be estimated.
    seconds: Option<f64>,
    untimed: Vec<Untimed>,
    cells: Vec<CellView<'a>>,
}

#[derive(Serialize)]
struct Untimed {
    runs: usize,
    why: String,
}

#[derive(Serialize)]
struct CellView<'a> {
    dataset: &'a str,
    strategy: &'a str,
    seed: u64,
    setting: &'a [String],
    directory: PathBuf,
    done: bool,
    /// Estimated time on one thread.
    seconds: Option<f64>,
}

impl<'a> DryRun<'a> {
    /// Estimates the time of the unfinished cells.
    pub(crate) fn new(
        experiment: String,
        cells: &[&'a Cell],
        done: impl Fn(&Cell) -> bool,
        directory: &'a Path,
        places: &Places,
        workers: usize,
    ) -> Self {
        let left: Vec<&Cell> = cells.iter().copied().filter(|cell| !done(cell)).collect();
        let forecast = forecast(&left, places);
        let mut times = forecast.cells.iter();
        let view = |cell: &&'a Cell| {
            let Cell { experiment, setting, folder, .. } = *cell;
            let done = done(cell);
            let seconds = if done { None } else { times.next().and_then(|time| time.as_ref().ok().copied()) };
            CellView {
                dataset: &experiment.data.set,
                strategy: &experiment.run.strategy.label,
                seed: experiment.seed,
                setting,
                directory: directory.join(folder),
                done,
                seconds,
            }
        };
        let untimed =
            forecast.untimed().into_iter().map(|(why, runs)| Untimed { runs, why: why.to_owned() }).collect();
        Self {
            experiment,
            directory,
            workers,
            done: cells.len() - left.len(),
            left: left.len(),
            seconds: forecast.seconds(workers),
            untimed,
            cells: cells.iter().map(view).collect(),
        }
    }

    /// A line each for data sets, settings, strategies and seeds.
    pub(crate) fn listing(&self) -> String {
        let line = |what: &str, of: &dyn Fn(&CellView<'_>) -> String, between: &str| {
            let mut all: Vec<String> = Vec::new();
            for word in self.cells.iter().map(of).filter(|word| !word.is_empty()) {
                if !all.contains(&word) {
                    all.push(word);
                }
            }
            format!("{what:<12}{}\n", all.join(between))
        };
        // Data sets have a separate line, and each has its model.
        let own = |setting: &[String]| {
            let named = |word: &&String| word.starts_with("data.set") || word.starts_with("model.name");
            setting.iter().filter(|word| !named(word)).cloned().collect::<Vec<_>>().join(", ")
        };
        let lines = [
            line("data sets:", &|cell| cell.dataset.to_owned(), ", "),
            line("settings:", &|cell| own(cell.setting), "; "),
            line("strategies:", &|cell| cell.strategy.to_owned(), ", "),
            line("seeds:", &|cell| cell.seed.to_string(), ", "),
        ];
        lines.concat()
    }

    /// The number of runs and the estimated time as text.
    pub(crate) fn text(&self) -> String {
        let Self { done, left, workers, seconds, untimed, .. } = self;
        let lost: usize = untimed.iter().map(|some| some.runs).sum();
        let time =
            seconds.map(|seconds| format!("about {} on {}", duration(seconds), plural(*workers, "thread")));
        let rest = match (time, lost) {
            _ if *left == 0 => "nothing left to run".to_owned(),
            (Some(time), 0) => format!("the rest takes {time}"),
            (Some(time), lost) => {
                format!("of the rest, {} take {time}, the time of {lost} cannot be estimated", left - lost)
            }
            (None, _) => "the time of the rest cannot be estimated".to_owned(),
        };
        let mut text = format!("{}, {done} finished; {rest}\n", plural(done + left, "run"));
        for Untimed { runs: count, why } in untimed {
            let _ = writeln!(text, "note: {} cannot be run: {why}", plural(*count, "run"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_shown_for_runs_that_cannot_be_estimated_or_are_finished() {
        let words = |left, seconds, lost: &[usize]| {
            let untimed = lost.iter().map(|&runs| Untimed { runs, why: "no data".to_owned() }).collect();
            let (experiment, directory, cells) = (String::new(), Path::new(""), Vec::new());
            DryRun { experiment, directory, workers: 2, done: 1, left, seconds, untimed, cells }.text()
        };
        assert_eq!(words(0, Some(0.0), &[]), "1 run, 1 finished; nothing left to run\n");
        assert_eq!(words(2, Some(9.0), &[]), "3 runs, 1 finished; the rest takes about 9 s on 2 threads\n");
        let none = "3 runs, 1 finished; the time of the rest cannot be estimated\nnote: 2 runs cannot be run: no data\n";
        assert_eq!(words(2, None, &[2]), none);
    }
}
