//! Runs the cells of a grid in parallel, each in its own run directory. Finished runs are kept, interrupted ones are
//! resumed, failed ones are tried again. Sweeps, comparisons and reproductions all use it.

use crate::experiments::grid::Cell;
use fedtvd_core::round::RoundRecord;
use fedtvd_data::set::{LoadError, Places};
use fedtvd_run::backend::Device;
use fedtvd_run::configuration::{Config, Experiment, Value};
use fedtvd_run::directory::{DirectoryError, RunDirectory, Summary};
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::{Data, Setup, SetupError};
use fedtvd_run::simulation::Resources;
use fedtvd_run::{RunError, same_inputs};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The status of a cell's run when a sweep ends.
#[derive(Clone, Debug)]
pub enum RunStatus {
    /// Finished, now or earlier.
    Done(Box<Summary>),
    /// Stopped after this many rounds.
    Stopped(u32),
    /// Another process is running it.
    Elsewhere,
    /// Failed; the next sweep tries again.
    Failed(Arc<RunError>),
}

impl RunStatus {
    /// The status according to the run directory; an unreadable one counts as not started.
    pub fn found(directory: &Path) -> Self {
        let Ok(run) = RunDirectory::open(directory) else { return Self::Stopped(0) };
        match run.summary() {
            Ok(Some(summary)) => Self::Done(Box::new(summary)),
            _ => Self::Stopped(run.lines().map_or(0, |lines| lines.len() as u32)),
        }
    }
}

/// Progress of a cell.
pub enum Event<'a> {
    /// The cell starts, or resumes after this many rounds, with notes.
    Begins(u32, &'a [String]),
    /// A round is finished.
    Round(&'a RoundRecord),
    /// The cell ends.
    Ends(&'a RunStatus),
}

/// The executor of a grid.
pub struct Sweep<'a> {
    out: &'a Path,
    places: &'a Places,
    workers: usize,
    device: Device,
    stop: &'a AtomicBool,
    shared: Mutex<Shared>,
}

/// What cells share: all data sets, and the last split. Cells of one seed follow each other, so most of them find theirs
/// although only the last one is kept.
#[derive(Default)]
struct Shared {
    data: BTreeMap<String, Data>,
    setup: Option<(String, Arc<Setup>)>,
}

impl<'a> Sweep<'a> {
    /// Writes runs to folders below `out`, using `workers` threads and the data sets in `places`. Once `stop` is set, it
    /// stops after the current rounds.
    pub fn new(out: &'a Path, places: &'a Places, workers: usize, stop: &'a AtomicBool) -> Self {
        Self { out, places, workers, device: Device::default(), stop, shared: Mutex::default() }
    }

    /// The same on this device instead of the CPU.
    pub fn on(self, device: Device) -> Self {
        Self { device, ..self }
    }

    /// Runs cells and returns their statuses in the same order; `show` gets a cell's index and its progress.
    ///
    /// Each run has one thread, so no core waits for the slowest client of a round; if there are fewer runs than threads,
    /// each run gets several.
    pub fn run(&self, cells: &[&Cell], show: &(dyn Fn(usize, Event<'_>) + Sync)) -> Vec<RunStatus> {
        let at_once = self.workers.clamp(1, cells.len().max(1));
        let resources = Resources::on(self.device.clone(), (self.workers / at_once).max(1));
        let (next, statuses) = (AtomicUsize::new(0), Mutex::new(vec![RunStatus::Stopped(0); cells.len()]));
        let pull = || {
            while let Some((place, cell)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|place| Some((place, *cells.get(place)?)))
            {
                let status = self.cell(cell, &resources, &|event| show(place, event));
                show(place, Event::Ends(&status));
                statuses.lock().unwrap_or_else(PoisonError::into_inner)[place] = status;
            }
        };
        std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(pull))));
        statuses.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn cell(&self, cell: &Cell, resources: &Resources, show: &dyn Fn(Event<'_>)) -> RunStatus {
        match self.attempt(cell, &self.out.join(&cell.folder), resources, show) {
            Ok(status) => status,
            // A process that writes to a run directory locks it; shortly before, the directory may exist without a lock.
            Err(RunError::Directory(DirectoryError::Busy(_) | DirectoryError::Taken(_))) => {
                RunStatus::Elsewhere
            }
            Err(error) => RunStatus::Failed(Arc::new(error)),
        }
    }

    fn attempt(
        &self,
        cell: &Cell,
        directory: &Path,
        resources: &Resources,
        show: &dyn Fn(Event<'_>),
    ) -> Result<RunStatus, RunError> {
        let begun = directory.join("manifest.json").is_file();
        if begun {
            same_length(cell, &RunDirectory::open(directory)?)?;
        }
        if begun && let Some(summary) = self.finished(cell, &RunDirectory::open(directory)?)? {
            return Ok(RunStatus::Done(Box::new(summary)));
        }
        if self.stop.load(Ordering::Relaxed) {
            return Ok(RunStatus::found(directory));
        }
        let runner = if begun {
            match Runner::resume(directory, self.places, resources.clone())? {
                Ok(runner) => runner,
                Err(summary) => return Ok(RunStatus::Done(Box::new(summary))),
            }
        } else {
            let setup = self.setup(&cell.experiment)?;
            Runner::start_with(&cell.config, cell.experiment.clone(), setup, directory, resources.clone())?
        };
        show(Event::Begins(runner.rounds_done(), runner.notes()));
        Ok(match runner.run(self.stop, &mut |line| show(Event::Round(line)))? {
            End::Done(summary) => RunStatus::Done(Box::new(summary)),
            End::Stopped(rounds) => RunStatus::Stopped(rounds),
        })
    }

    /// The summary of a finished run; fails if its data, schema or split have changed since. If the data are not here, they
    /// cannot be compared.
    fn finished(&self, cell: &Cell, run: &RunDirectory) -> Result<Option<Summary>, RunError> {
        let Some(summary) = run.summary()? else { return Ok(None) };
        if !self.stop.load(Ordering::Relaxed) {
            match self.setup(&cell.experiment) {
                Err(SetupError::Load(LoadError::Missing(_) | LoadError::Unknown { .. })) => {}
                setup => same_inputs(run, &cell.experiment, setup?.as_ref())?,
            }
        }
        Ok(Some(summary))
    }

    /// Data, split and model of an experiment, cached for experiments with the same.
    pub fn setup(&self, experiment: &Experiment) -> Result<Arc<Setup>, SetupError> {
        let Experiment { data, split, split_seed, holdout, reference, model, layers, liars, .. } = experiment;
        let model = (model, layers, experiment.model_chosen);
        // The mode caps what clients tell about a table's columns, liars may flip their labels, and a strategy may keep a part
        // of the model at the clients.
        let (mode, sharing) = (experiment.run.mode, &experiment.run.strategy.sharing);
        let key = format!("{:?}", (data, split, split_seed, holdout, reference, model, mode, liars, sharing));
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

/// Fails if a run is longer than its cell says, since it was extended: its folder is named after another length.
fn same_length(cell: &Cell, run: &RunDirectory) -> Result<(), RunError> {
    let Value::Whole(rounds) = Config::parse(&run.config()?)?.get("rounds") else { return Ok(()) };
    let expected = cell.experiment.rounds;
    if rounds == u64::from(expected) || !cell.names_its_folder() {
        return Ok(());
    }
    Err(RunError::Extended { path: run.path().display().to_string(), rounds, expected })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::grid::cells;
    use fedtvd_run::configuration::axes;

    #[test]
    fn runs_that_share_data_do_not_share_what_stays_at_the_clients() {
        let layers = "layers = [\"flatten\", \"linear 8\", \"relu\", \"linear\"]";
        for strategies in [["fedavg", "fedper"], ["fedper", "fedavg"]] {
            let text = format!(
                "rounds = 1\nsplit.clients = 20\nlocal.epochs = 1\n[model]\n{layers}\n[sweep]\nstrategy.name = {strategies:?}\n"
            );
            let grid = cells(&Config::parse(&text).unwrap(), &axes(&text).unwrap()).unwrap();
            let (folder, places, stop) =
                (tempfile::tempdir().unwrap(), Places::new(None), AtomicBool::new(false));
            let statuses = Sweep::new(folder.path(), &places, 1, &stop)
                .run(&grid.iter().collect::<Vec<_>>(), &|_, _| {});
            for (status, strategy) in statuses.iter().zip(strategies) {
                let RunStatus::Done(summary) = status else { panic!("{strategy}: {status:?}") };
                // There is no whole model for the server to evaluate.
                assert_eq!(summary.accuracy.is_some(), strategy == "fedavg", "{strategy}");
            }
        }
    }

    #[test]
    fn the_status_of_a_run_is_read_from_its_directory() {
        let text = "rounds = 3\nsplit.clients = 20\nlocal.epochs = 1\nmodel.name = \"logistic\"\n[sweep]\nseed = [1]\n";
        let grid = cells(&Config::parse(text).unwrap(), &axes(text).unwrap()).unwrap();
        let cells: Vec<&Cell> = grid.iter().collect();
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join(&grid[0].folder);
        let (places, stop) = (Places::new(None), AtomicBool::new(false));
        let sweep = Sweep::new(folder.path(), &places, 1, &stop);
        assert!(matches!(RunStatus::found(&directory), RunStatus::Stopped(0)), "not started");
        let stop_after_two = |_, event: Event<'_>| {
            stop.store(matches!(event, Event::Round(line) if line.round == 2), Ordering::Relaxed);
        };
        sweep.run(&cells, &stop_after_two);
        assert!(
            matches!(RunStatus::found(&directory), RunStatus::Stopped(2)),
            "{:?}",
            RunStatus::found(&directory)
        );
        stop.store(true, Ordering::Relaxed);
        let statuses = sweep.run(&cells, &|_, _| {});
        assert!(
            matches!(statuses[..], [RunStatus::Stopped(2)]),
            "a stop keeps finished rounds: {statuses:?}"
        );
        stop.store(false, Ordering::Relaxed);
        sweep.run(&cells, &|_, _| {});
        let RunStatus::Done(summary) = RunStatus::found(&directory) else { panic!("it is done") };
        assert_eq!((summary.rounds, summary.seed), (3, 1));
        std::fs::write(directory.join("manifest.json"), "{").unwrap();
        assert!(
            matches!(RunStatus::found(&directory), RunStatus::Stopped(0)),
            "an unreadable run counts as not started"
        );
    }
}
