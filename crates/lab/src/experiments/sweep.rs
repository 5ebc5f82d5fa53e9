//! Runs the cells of a grid, several at a time, each into its own run directory: what is done stays done, what was
//! interrupted is resumed, what failed is tried again. Sweeps, comparisons and reproductions all run by it.

use crate::experiments::grid::Cell;
use fedtvd_core::round::RoundRecord;
use fedtvd_data::set::Places;
use fedtvd_run::RunError;
use fedtvd_run::configuration::Experiment;
use fedtvd_run::directory::{DirectoryError, RunDirectory, Summary};
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::{Data, Setup, SetupError};
use fedtvd_run::simulation::Resources;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How a cell stands when a sweep ends.
#[derive(Clone, Debug)]
pub enum Standing {
    /// Done, now or before.
    Done(Box<Summary>),
    /// Interrupted after so many rounds.
    Stopped(u32),
    /// Another process is at it.
    Elsewhere,
    /// It failed, and is tried again next time.
    Failed(Arc<RunError>),
}

impl Standing {
    /// How a run stands by what is in its directory alone; one that cannot be read has not begun.
    pub fn found(directory: &Path) -> Self {
        let Ok(run) = RunDirectory::open(directory) else { return Self::Stopped(0) };
        match run.summary() {
            Ok(Some(summary)) => Self::Done(Box::new(summary)),
            _ => Self::Stopped(run.lines().map_or(0, |lines| lines.len() as u32)),
        }
    }
}

/// What happens while a sweep runs; `place` is the cell's.
pub enum Event<'a> {
    /// A cell starts, or is resumed after some rounds; there may be notes.
    Begins(u32, &'a [String]),
    /// A round is done.
    Round(&'a RoundRecord),
    /// A cell ends.
    Ends(&'a Standing),
}

/// Where and with what a sweep runs.
pub struct Sweep<'a> {
    out: &'a Path,
    places: &'a Places,
    workers: usize,
    stop: &'a AtomicBool,
    shared: Mutex<Shared>,
}

/// What cells share: every data set, and the last split. Cells of one seed follow each other, so that each split is
/// made once and only one is kept.
#[derive(Default)]
struct Shared {
    data: BTreeMap<String, Data>,
    setup: Option<(String, Arc<Setup>)>,
}

impl<'a> Sweep<'a> {
    /// Runs go into folders below `out`, on this many threads; data sets are looked for in `places`. It stops after the
    /// current rounds once `stop` is set.
    pub fn new(out: &'a Path, places: &'a Places, workers: usize, stop: &'a AtomicBool) -> Self {
        Self { out, places, workers, stop, shared: Mutex::default() }
    }

    /// Runs some cells of a grid; standings come in their order.
    ///
    /// Each run has one thread, so that no core waits for the slowest client of a round; where there are fewer runs
    /// than threads, they share them.
    pub fn run(&self, cells: &[&Cell], show: &(dyn Fn(usize, Event<'_>) + Sync)) -> Vec<Standing> {
        let at_once = self.workers.clamp(1, cells.len().max(1));
        let resources = Resources::workers((self.workers / at_once).max(1));
        let (next, standings) = (AtomicUsize::new(0), Mutex::new(vec![Standing::Stopped(0); cells.len()]));
        let pull = || {
            while let Some((place, cell)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|place| Some((place, *cells.get(place)?)))
            {
                let standing = self.cell(cell, resources, &|event| show(place, event));
                show(place, Event::Ends(&standing));
                standings.lock().unwrap_or_else(PoisonError::into_inner)[place] = standing;
            }
        };
        std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(pull))));
        standings.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn cell(&self, cell: &Cell, resources: Resources, show: &dyn Fn(Event<'_>)) -> Standing {
        match self.attempt(cell, &self.out.join(&cell.folder), resources, show) {
            Ok(standing) => standing,
            // The run's directory is locked while a process writes into it; a moment earlier it may just have begun.
            Err(RunError::Directory(DirectoryError::Busy(_) | DirectoryError::Taken(_))) => {
                Standing::Elsewhere
            }
            Err(error) => Standing::Failed(Arc::new(error)),
        }
    }

    fn attempt(
        &self,
        cell: &Cell,
        directory: &Path,
        resources: Resources,
        show: &dyn Fn(Event<'_>),
    ) -> Result<Standing, RunError> {
        let begun = directory.join("manifest.json").is_file();
        if begun && let Some(summary) = RunDirectory::open(directory)?.summary()? {
            return Ok(Standing::Done(Box::new(summary)));
        }
        if self.stop.load(Ordering::Relaxed) {
            return Ok(Standing::found(directory));
        }
        let runner = if begun {
            match Runner::resume(directory, self.places, resources)? {
                Ok(runner) => runner,
                Err(summary) => return Ok(Standing::Done(Box::new(summary))),
            }
        } else {
            let setup = self.setup(&cell.experiment)?;
            Runner::start_with(&cell.config, cell.experiment.clone(), setup, directory, resources)?
        };
        show(Event::Begins(runner.rounds_done(), runner.notes()));
        Ok(match runner.run(self.stop, &mut |line| show(Event::Round(line)))? {
            End::Done(summary) => Standing::Done(Box::new(summary)),
            End::Stopped(rounds) => Standing::Stopped(rounds),
        })
    }

    /// Data, split and model of an experiment, shared with the experiments that have the same.
    pub fn setup(&self, experiment: &Experiment) -> Result<Arc<Setup>, SetupError> {
        let Experiment { data, split, split_seed, holdout, reference, model, layers, .. } = experiment;
        let key = format!("{:?}", (data, split, split_seed, holdout, reference, model, layers));
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, setup)) = shared.setup.as_ref().filter(|(own, _)| *own == key) {
            return Ok(Arc::clone(setup));
        }
        let set = format!("{data:?}");
        if !shared.data.contains_key(&set) {
            shared.data.insert(set.clone(), Data::load(data, self.places)?);
        }
        let setup = Arc::new(Setup::new(experiment, &shared.data[&set])?);
        shared.setup = Some((key, Arc::clone(&setup)));
        Ok(setup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::grid::cells;
    use fedtvd_run::configuration::{Config, axes};

    #[test]
    fn a_run_stands_as_its_directory_says() {
        let text = "rounds = 3\nsplit.clients = 20\nlocal.epochs = 1\nmodel.name = \"logistic\"\n[sweep]\nseed = [1]\n";
        let grid = cells(&Config::parse(text).unwrap(), &axes(text).unwrap()).unwrap();
        let cells: Vec<&Cell> = grid.iter().collect();
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join(&grid[0].folder);
        let (places, stop) = (Places::new(None), AtomicBool::new(false));
        let sweep = Sweep::new(folder.path(), &places, 1, &stop);
        assert!(matches!(Standing::found(&directory), Standing::Stopped(0)), "nothing is there yet");
        let stop_after_two = |_, event: Event<'_>| {
            stop.store(matches!(event, Event::Round(line) if line.round == 2), Ordering::Relaxed);
        };
        sweep.run(&cells, &stop_after_two);
        assert!(
            matches!(Standing::found(&directory), Standing::Stopped(2)),
            "{:?}",
            Standing::found(&directory)
        );
        stop.store(true, Ordering::Relaxed);
        let standings = sweep.run(&cells, &|_, _| {});
        assert!(matches!(standings[..], [Standing::Stopped(2)]), "a stop forgets no rounds: {standings:?}");
        stop.store(false, Ordering::Relaxed);
        sweep.run(&cells, &|_, _| {});
        let Standing::Done(summary) = Standing::found(&directory) else { panic!("it is done") };
        assert_eq!((summary.rounds, summary.seed), (3, 1));
        std::fs::write(directory.join("manifest.json"), "{").unwrap();
        assert!(
            matches!(Standing::found(&directory), Standing::Stopped(0)),
            "what cannot be read has not begun"
        );
    }
}
