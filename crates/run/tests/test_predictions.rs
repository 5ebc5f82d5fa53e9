//! The file with the final model's predictions on the test set.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_data::set::Places;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::{RunDirectory, TestPredictions};
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::Data;
use fedtvd_run::simulation::Resources;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn run(out: &Path, workers: usize) -> (Option<f64>, RunDirectory) {
    let mut config = Config::default();
    for setting in ["clients=8", "fraction=0.5", "model.name=logistic", "epochs=1", "rounds=2"] {
        config.set(setting).unwrap();
    }
    let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
    let runner = Runner::start(&config, &data, out, Resources::workers(workers)).unwrap();
    let End::Done(summary) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
    (summary.accuracy, RunDirectory::open(out).unwrap())
}

#[test]
fn a_finished_run_has_a_prediction_for_each_test_row_that_gives_its_last_accuracy() {
    let folder = tempfile::tempdir().unwrap();
    let (accuracy, directory) = run(&folder.path().join("one"), 1);
    let TestPredictions { labels, predictions } = directory.predictions().unwrap().unwrap();
    assert_eq!((labels.len(), predictions.len()), (2000, 2000));
    let right = labels.iter().zip(&predictions).filter(|(label, prediction)| label == prediction).count();
    assert_eq!(accuracy, Some(right as f64 / 2000.0));
    let (_, other) = run(&folder.path().join("three"), 3);
    let bytes = |directory: &RunDirectory| std::fs::read(directory.file("predictions.npy")).unwrap();
    assert_eq!(bytes(&directory), bytes(&other), "the number of workers does not matter");
    // 128 bytes of header, then a byte for each label and prediction.
    assert_eq!(bytes(&directory).len(), 128 + 2 * 2000);
}

#[test]
fn predictions_come_back_also_of_many_classes_and_a_damaged_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (_, directory) = run(&folder.path().join("run"), 1);
    let path = directory.file("predictions.npy");
    let many = TestPredictions { labels: vec![3, 999], predictions: vec![256, 0] };
    std::fs::write(&path, many.to_bytes()).unwrap();
    assert_eq!(directory.predictions().unwrap(), Some(many.clone()));
    std::fs::write(&path, &many.to_bytes()[..100]).unwrap();
    let error = directory.predictions().unwrap_err().to_string();
    assert!(error.contains("predictions.npy is damaged"), "{error}");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(directory.predictions().unwrap(), None);
}
