//! Estimates how long a grid takes, from the measured time of a few steps of each model.

use crate::experiments::grid::Cell;
use fedtvd_core::round::cohort_size;
use fedtvd_data::set::Places;
use fedtvd_run::estimate::estimate;
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::Resources;
use std::collections::BTreeMap;

/// The estimated duration of a grid.
pub struct Forecast {
    /// Seconds that each cell takes on one thread, or why that cannot be estimated.
    pub cells: Vec<Result<f64, String>>,
}

/// Measures each pair of data set and model once.
pub fn forecast(cells: &[&Cell], places: &Places) -> Forecast {
    let key = |cell: &Cell| {
        let e = &cell.experiment;
        format!("{:?} {} {:?} {}", e.data, e.model, e.layers, e.run.local.batch)
    };
    let mut throughputs: BTreeMap<String, Result<Throughput, String>> = BTreeMap::new();
    let seconds = |cell: &&Cell| {
        let throughput = throughputs.entry(key(cell)).or_insert_with(|| timed(cell, places));
        throughput.as_ref().map(|throughput| throughput.seconds(cell)).map_err(Clone::clone)
    };
    Forecast { cells: cells.iter().map(seconds).collect() }
}

impl Forecast {
    /// Duration of all cells that can be estimated on this many threads; `None` if none of them can.
    pub fn seconds(&self, workers: usize) -> Option<f64> {
        let timed: Vec<f64> = self.cells.iter().filter_map(|cell| cell.as_ref().ok().copied()).collect();
        if timed.is_empty() && !self.cells.is_empty() {
            return None;
        }
        let shared = timed.iter().sum::<f64>() / workers.min(timed.len()).max(1) as f64;
        Some(timed.iter().copied().fold(shared, f64::max))
    }

    /// The reasons why cells cannot be estimated, with the number of cells.
    pub fn untimed(&self) -> Vec<(&str, usize)> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for why in self.cells.iter().filter_map(|cell| cell.as_ref().err()) {
            match counts.iter_mut().find(|(known, _)| known == why) {
                Some((_, count)) => *count += 1,
                None => counts.push((why, 1)),
            }
        }
        counts
    }
}

/// Throughput of one thread with a model on a data set.
struct Throughput {
    train_per_second: f64,
    evaluate_per_second: f64,
    train_rows: usize,
    test_rows: usize,
}

impl Throughput {
    fn seconds(&self, cell: &Cell) -> f64 {
        let e = &cell.experiment;
        let share = cohort_size(e.run.fraction, e.split.clients) as f64 / e.split.clients as f64;
        let trained = share * self.train_rows as f64 * f64::from(e.run.local.epochs);
        let round = trained / self.train_per_second + self.test_rows as f64 / self.evaluate_per_second;
        round * f64::from(e.rounds)
    }
}

fn timed(cell: &Cell, places: &Places) -> Result<Throughput, String> {
    let data = Data::load(&cell.experiment.data, places).map_err(|error| error.to_string())?;
    let setup = Setup::new(&cell.experiment, &data).map_err(|error| error.to_string())?;
    let estimate =
        estimate(&cell.experiment, &setup, Resources::workers(1)).map_err(|error| error.to_string())?;
    Ok(Throughput {
        train_per_second: estimate.train_per_second,
        evaluate_per_second: estimate.evaluate_per_second,
        train_rows: setup.samples.train_rows(),
        test_rows: setup.samples.test_rows().len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_the_runs_and_no_run_is_shorter_than_itself() {
        let forecast = |seconds: &[f64]| Forecast { cells: seconds.iter().copied().map(Ok).collect() };
        assert_eq!(forecast(&[2.0, 2.0, 4.0]).seconds(2), Some(4.0));
        assert_eq!(
            forecast(&[1.0, 1.0, 10.0]).seconds(2),
            Some(10.0),
            "one thread has the longest to itself"
        );
        assert_eq!(forecast(&[3.0]).seconds(8), Some(3.0));
        assert_eq!(forecast(&[]).seconds(2), Some(0.0), "nothing is left to do");
    }

    #[test]
    fn what_cannot_be_timed_takes_no_time_of_its_own_and_is_counted_by_its_reason() {
        let lost = |why: &str| Err(why.to_owned());
        let some =
            Forecast { cells: vec![lost("no cifar10"), Ok(2.0), lost("no fmnist"), lost("no cifar10")] };
        assert_eq!((some.seconds(1), some.untimed()), (Some(2.0), vec![("no cifar10", 2), ("no fmnist", 1)]));
        assert_eq!(Forecast { cells: vec![lost("no cifar10")] }.seconds(1), None, "not 0 seconds");
    }
}
