//! Runs the cells of a grid, several at a time, each into its own run directory: what is done stays done, what was
//! interrupted goes on, what failed is tried again.

use crate::grid::Cell;
use fedtvd_core::record::RoundRecord;
use fedtvd_data::set::Places;
use fedtvd_run::directory::{DirectoryError, RunDirectory};
use fedtvd_run::runner::{End, RunError, Runner};
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::Resources;
use fedtvd_run::summary::Summary;
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
    Failed(String),
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
    /// A cell starts, or goes on after some rounds; there may be notes.
    Begins(u32, &'a [String]),
    /// A round is done.
    Round(&'a RoundRecord),
    /// A cell ends.
    Ends(&'a Standing),
}

/// Where and with what a sweep runs.
pub struct Sweep<'a> {
    /// The folder of all run directories.
    pub out: &'a Path,
    /// Where data sets are looked for.
    pub places: &'a Places,
    /// How many threads.
    pub workers: usize,
    /// Set when it is to stop after the current rounds.
    pub stop: &'a AtomicBool,
}

impl Sweep<'_> {
    /// Runs some cells of a grid; standings come in their order.
    ///
    /// Each run has one thread, so that no core waits for the slowest client of a round; where there are fewer runs
    /// than threads, they share them.
    pub fn run(&self, cells: &[&Cell], show: &(dyn Fn(usize, Event<'_>) + Sync)) -> Vec<Standing> {
        let at_once = self.workers.clamp(1, cells.len().max(1));
        let resources = Resources::workers((self.workers / at_once).max(1));
        let data = Mutex::new(BTreeMap::new());
        let (next, standings) = (AtomicUsize::new(0), Mutex::new(vec![Standing::Stopped(0); cells.len()]));
        let pull = || {
            while let Some((place, cell)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|place| Some((place, *cells.get(place)?)))
            {
                let standing = self.cell(cell, resources, &data, &|event| show(place, event));
                show(place, Event::Ends(&standing));
                standings.lock().unwrap_or_else(PoisonError::into_inner)[place] = standing;
            }
        };
        std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(pull))));
        standings.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn cell(&self, cell: &Cell, resources: Resources, data: &Shelf, show: &dyn Fn(Event<'_>)) -> Standing {
        match self.attempt(cell, &self.out.join(&cell.folder), resources, data, show) {
            Ok(standing) => standing,
            // The run's directory is locked while a process writes into it; a moment earlier it may just have begun.
            Err(RunError::Directory(DirectoryError::Busy(_) | DirectoryError::Taken(_))) => {
                Standing::Elsewhere
            }
            Err(error) => Standing::Failed(error.to_string()),
        }
    }

    fn attempt(
        &self,
        cell: &Cell,
        directory: &Path,
        resources: Resources,
        data: &Shelf,
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
            let setup = Arc::new(Setup::new(&cell.experiment, &self.data(cell, data)?)?);
            Runner::start_with(&cell.config, cell.experiment.clone(), setup, directory, resources)?
        };
        show(Event::Begins(runner.rounds_done(), runner.notes()));
        Ok(match runner.run(self.stop, &mut |line| show(Event::Round(line)))? {
            End::Done(summary) => Standing::Done(Box::new(summary)),
            End::Stopped(rounds) => Standing::Stopped(rounds),
        })
    }

    /// The cell's data set, read once for all cells that use it.
    fn data(&self, cell: &Cell, shelf: &Shelf) -> Result<Data, RunError> {
        let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
        let options = &cell.experiment.data;
        let key = format!("{options:?}");
        if let Some(data) = shelf.get(&key) {
            return Ok(data.clone());
        }
        let data = Data::load(options, self.places)?;
        shelf.insert(key, data.clone());
        Ok(data)
    }
}

/// Data sets by what was asked for.
type Shelf = Mutex<BTreeMap<String, Data>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::cells;
    use fedtvd_run::axes::axes;
    use fedtvd_run::config::Config;

    #[test]
    fn a_run_stands_as_its_directory_says() {
        let text = "rounds = 3\nsplit.clients = 20\nlocal.epochs = 1\nmodel.name = \"logistic\"\n[sweep]\nseed = [1]\n";
        let grid = cells(&Config::parse(text).unwrap(), &axes(text).unwrap()).unwrap();
        let cells: Vec<&Cell> = grid.iter().collect();
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join(&grid[0].folder);
        let (places, stop) = (Places::new(None), AtomicBool::new(false));
        let sweep = Sweep { out: folder.path(), places: &places, workers: 1, stop: &stop };
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
