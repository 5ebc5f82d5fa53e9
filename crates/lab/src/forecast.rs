//! How long a grid will take: a few steps of each model are timed, the rest is arithmetic.

use crate::grid::Cell;
use fedtvd_core::round::cohort_size;
use fedtvd_data::set::Places;
use fedtvd_run::estimate::estimate;
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::Means;

/// What can be said before a grid runs.
pub struct Forecast {
    /// How long the cells will take that can be timed, on all workers.
    pub seconds: f64,
    /// Why some cannot, once for each reason.
    pub unknown: Vec<String>,
}

/// Times each pair of data set and model once.
pub fn forecast(cells: &[&Cell], places: &Places, workers: usize) -> Forecast {
    let key = |cell: &Cell| {
        let e = &cell.experiment;
        format!("{:?} {} {:?} {}", e.data, e.model, e.layers, e.run.local.batch)
    };
    let mut keys: Vec<String> = Vec::new();
    let mut forecast = Forecast { seconds: 0.0, unknown: Vec::new() };
    for cell in cells {
        if keys.contains(&key(cell)) {
            continue;
        }
        keys.push(key(cell));
        let alike: Vec<&&Cell> = cells.iter().filter(|other| key(other) == key(cell)).collect();
        match timed(cell, places) {
            Ok(pace) => {
                let seconds: f64 = alike.iter().map(|cell| pace.seconds(cell)).sum();
                forecast.seconds += seconds / workers.min(alike.len()).max(1) as f64;
            }
            Err(why) if !forecast.unknown.contains(&why) => forecast.unknown.push(why),
            Err(_) => {}
        }
    }
    forecast
}

/// How fast one thread is with a model on a data set.
struct Pace {
    train_per_second: f64,
    evaluate_per_second: f64,
    train_rows: usize,
    test_rows: usize,
}

impl Pace {
    fn seconds(&self, cell: &Cell) -> f64 {
        let e = &cell.experiment;
        let share = cohort_size(e.run.fraction, e.split.clients) as f64 / e.split.clients as f64;
        let trained = share * self.train_rows as f64 * f64::from(e.run.local.epochs);
        let round = trained / self.train_per_second + self.test_rows as f64 / self.evaluate_per_second;
        round * f64::from(e.rounds)
    }
}

fn timed(cell: &Cell, places: &Places) -> Result<Pace, String> {
    let data = Data::load(&cell.experiment.data, places).map_err(|error| error.to_string())?;
    let setup = Setup::new(&cell.experiment, &data).map_err(|error| error.to_string())?;
    let estimate =
        estimate(&cell.experiment, &setup, Means::workers(1)).map_err(|error| error.to_string())?;
    Ok(Pace {
        train_per_second: estimate.train_per_second,
        evaluate_per_second: estimate.evaluate_per_second,
        train_rows: setup.samples.train_rows(),
        test_rows: setup.samples.test_rows().len(),
    })
}
