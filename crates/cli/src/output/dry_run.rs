//! What `fedtvd reproduce` would run and how long it would take: told before it starts, and all that `--dry-run` answers.

use crate::commands::run::duration;
use crate::commands::sweep::runs;
use fedtvd_data::set::Places;
use fedtvd_lab::experiments::forecast::forecast;
use fedtvd_lab::experiments::grid::Cell;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What is to be run.
#[derive(Serialize)]
pub(crate) struct DryRun<'a> {
    experiment: String,
    directory: &'a Path,
    workers: usize,
    done: usize,
    left: usize,
    /// How long those take on all threads that are left and can be timed; none where there are none.
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
    /// On one thread.
    seconds: Option<f64>,
}

impl<'a> DryRun<'a> {
    /// Times what is left of some cells of an experiment.
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

    /// What the runs are, a line for each thing that they differ in.
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
        // Data sets have a line of their own, and models follow them.
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

    /// The same in words.
    pub(crate) fn text(&self) -> String {
        let Self { done, left, workers, seconds, untimed, .. } = self;
        let lost: usize = untimed.iter().map(|some| some.runs).sum();
        let time = seconds.map(|seconds| format!("about {} on {workers} threads", duration(seconds)));
        let rest = match (time, lost) {
            _ if *left == 0 => "nothing is left to run".to_owned(),
            (Some(time), 0) => format!("the others take {time}"),
            (Some(time), lost) => {
                format!("{} of the others take {time}, {lost} cannot be timed", left - lost)
            }
            (None, _) => "the others cannot be timed".to_owned(),
        };
        let mut text = format!("{}, {done} of them done; {rest}\n", runs(done + left));
        for Untimed { runs, why } in untimed {
            let _ = writeln!(text, "note: {runs} cannot be run: {why}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_told_of_what_cannot_be_timed_or_need_not_be_run() {
        let words = |left, seconds, lost: &[usize]| {
            let untimed = lost.iter().map(|&runs| Untimed { runs, why: "no data".to_owned() }).collect();
            let (experiment, directory, cells) = (String::new(), Path::new(""), Vec::new());
            DryRun { experiment, directory, workers: 2, done: 1, left, seconds, untimed, cells }.text()
        };
        assert_eq!(words(0, Some(0.0), &[]), "1 run, 1 of them done; nothing is left to run\n");
        assert_eq!(
            words(2, Some(9.0), &[]),
            "3 runs, 1 of them done; the others take about 9 s on 2 threads\n"
        );
        let none = "3 runs, 1 of them done; the others cannot be timed\nnote: 2 cannot be run: no data\n";
        assert_eq!(words(2, None, &[2]), none);
    }
}
