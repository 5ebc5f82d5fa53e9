//! What the summary of a run says.

use fedtvd_data::set::Places;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::Data;
use fedtvd_run::simulation::Resources;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn the_summary_averages_the_accuracies_of_the_last_ten_rounds_also_of_a_resumed_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut config = Config::default();
    for setting in ["clients=8", "fraction=0.5", "model.name=logistic", "epochs=1", "rounds=14"] {
        config.set(setting).unwrap();
    }
    let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
    let runner = Runner::start(&config, &data, &out, Resources::workers(1)).unwrap();
    let stop = AtomicBool::new(false);
    runner.run(&stop, &mut |line| stop.store(line.round == 12, Ordering::Relaxed)).unwrap();
    let runner = Runner::resume(&out, &Places::new(None), Resources::workers(1)).unwrap().unwrap();
    assert_eq!(runner.rounds_done(), 12);
    let End::Done(summary) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
    let lines = RunDirectory::open(&out).unwrap().lines().unwrap();
    let accuracies: Vec<f64> = lines.iter().map(|line| line.accuracy.unwrap()).collect();
    assert_eq!((summary.rounds, accuracies.len()), (14, 14));
    assert_eq!(summary.accuracy, accuracies.last().copied());
    // The same sum in the same order, so the same bits.
    assert_eq!(summary.last10_accuracy, Some(accuracies[4..].iter().sum::<f64>() / 10.0));
}
