//! How long a run lasts: stopping early, evaluating every n-th round, extending a finished run.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::model::Params;
use fedtvd_core::round::RoundRecord;
use fedtvd_data::set::Places;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::{RunDirectory, Summary};
use fedtvd_run::extend;
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::Data;
use fedtvd_run::simulation::Resources;
use fedtvd_run::verify::verify;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A small configuration with these settings.
fn config(settings: &[&str]) -> Config {
    let mut config = Config::default();
    let small = ["clients=8", "fraction=0.5", "model.name=logistic", "epochs=1", "split.holdout=0.2"];
    small.iter().chain(settings).for_each(|setting| config.set(setting).unwrap());
    config
}

fn started(out: &Path, settings: &[&str]) -> Runner {
    let config = config(settings);
    let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
    Runner::start(&config, &data, out, Resources::workers(2)).unwrap()
}

fn finished(runner: Runner) -> Summary {
    let End::Done(summary) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
    summary
}

fn resumed(out: &Path) -> Runner {
    Runner::resume(out, &Places::new(None), Resources::workers(1)).unwrap().unwrap()
}

/// What must be equal: the model after every round, and the final one.
fn bits(out: &Path) -> (Vec<String>, Vec<u8>) {
    let lines = RunDirectory::open(out).unwrap().lines().unwrap();
    let hashes = lines.into_iter().map(|line| line.model_hash).collect();
    (hashes, std::fs::read(out.join("model.safetensors")).unwrap())
}

fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    (folder, one, other)
}

#[test]
fn an_extended_run_has_the_bits_of_a_longer_one() {
    let (_folder, short, long) = folder();
    for strategy in ["strategy.name=scaffold", "strategy.name=fedadam"] {
        let _ = (std::fs::remove_dir_all(&short), std::fs::remove_dir_all(&long));
        let every = "evaluation.every=4";
        finished(started(&short, &[strategy, every, "rounds=6"]));
        extend(&short, &["rounds=13".to_owned()]).unwrap();
        let summary = finished(resumed(&short));
        assert_eq!((summary.rounds, summary.stopped), (13, None));
        finished(started(&long, &[strategy, every, "rounds=13"]));
        assert_eq!(bits(&short), bits(&long), "{strategy}");
        let text = |out: &Path| std::fs::read_to_string(out.join("config.toml")).unwrap();
        assert_eq!(text(&short), text(&long));
        let lines = |out: &Path| -> Vec<RoundRecord> {
            let lines = RunDirectory::open(out).unwrap().lines().unwrap();
            lines.into_iter().map(|line| RoundRecord { seconds: 0.0, ..line }).collect()
        };
        assert_eq!(lines(&short), lines(&long), "round 6 is no longer the last one, so it is not evaluated");
        let verdict = verify(&short, &Places::new(None), Resources::workers(1), None, &mut |_| {}).unwrap();
        assert_eq!(verdict.same_bits, Some(true));
    }
}

#[test]
fn a_run_is_not_shortened_below_its_finished_rounds_and_keeps_its_other_keys() {
    let (_folder, out, _) = folder();
    finished(started(&out, &["rounds=3"]));
    let refusal = |setting: &str| extend(&out, &[setting.to_owned()]).unwrap_err().to_string();
    assert_eq!(
        refusal("rounds=2"),
        "rounds = 2, but 3 rounds are finished; \"fedtvd resume RUN --from ROUND\" goes back to an earlier one"
    );
    assert_eq!(
        refusal("local.lr=1"),
        "local.lr cannot change after a run was started; only rounds, stop.target, stop.patience can"
    );
    let sooner = refusal("stop.target=0.01");
    assert!(
        sooner.starts_with("the run would have stopped after round 1, and 3 rounds are finished: "),
        "{sooner}"
    );
    assert!(RunDirectory::open(&out).unwrap().summary().unwrap().is_some(), "a refusal changes nothing");
}

#[test]
fn a_refused_extension_leaves_a_finished_run_as_it_was() {
    let (_folder, out, _) = folder();
    finished(started(&out, &["rounds=3"]));
    let files =
        || ["config.toml", "summary.json", "rounds.jsonl"].map(|name| std::fs::read(out.join(name)).unwrap());
    let before = files();
    let settings = ["rounds=9".to_owned()];
    let places = Places::new(None);
    assert!(Runner::resume_with(&out, &places, Resources::workers(1), Some(99), &settings).is_err());
    assert!(files() == before, "there is no round 99");
    let partition = out.join("manifest.json");
    let manifest = std::fs::read_to_string(&partition).unwrap();
    std::fs::write(&partition, manifest.replace("\"data_checksum\": \"", "\"data_checksum\": \"0")).unwrap();
    assert!(Runner::resume_with(&out, &places, Resources::workers(1), None, &settings).is_err());
    assert!(files() == before, "the data changed");
}

#[test]
fn a_run_goes_back_and_gets_another_length_at_once() {
    let (_folder, out, other) = folder();
    finished(started(&out, &["rounds=12"]));
    let settings = ["rounds=8".to_owned()];
    let runner = Runner::resume_with(&out, &Places::new(None), Resources::workers(1), Some(4), &settings)
        .unwrap()
        .unwrap();
    assert_eq!(finished(runner).rounds, 8);
    finished(started(&other, &["rounds=8"]));
    assert_eq!(bits(&out), bits(&other));
}

#[test]
fn while_a_run_is_extended_its_former_end_does_not_count_as_its_result() {
    let (_folder, out, _) = folder();
    finished(started(&out, &["rounds=3"]));
    let directory = RunDirectory::open(&out).unwrap();
    assert!(directory.model().unwrap().is_some() && directory.predictions().unwrap().is_some());
    extend(&out, &["rounds=5".to_owned()]).unwrap();
    assert!(directory.model().unwrap().is_none() && directory.predictions().unwrap().is_none());
    assert!(directory.client_results().unwrap().is_none());
}

#[test]
fn a_run_without_the_test_set_makes_no_predictions_for_it_also_if_it_is_extended() {
    let (_folder, out, _) = folder();
    finished(started(&out, &["rounds=2", "evaluation.test=false"]));
    extend(&out, &["rounds=4".to_owned()]).unwrap();
    finished(resumed(&out));
    assert!(!out.join("predictions.npy").exists());
}

#[test]
fn a_finished_run_whose_model_is_gone_computes_it_again() {
    let (_folder, out, _) = folder();
    finished(started(&out, &["rounds=3"]));
    let model = std::fs::read(out.join("model.safetensors")).unwrap();
    std::fs::remove_file(out.join("model.safetensors")).unwrap();
    finished(resumed(&out));
    assert!(std::fs::read(out.join("model.safetensors")).unwrap() == model);
}

#[test]
fn a_rollback_leaves_no_best_model_of_a_discarded_round() {
    let (_folder, out, _) = folder();
    let first = finished(started(&out, &["rounds=10"]));
    let best = first.best.unwrap();
    assert!(best.round > 5, "{best:?}");
    let runner = Runner::resume_with(
        &out,
        &Places::new(None),
        Resources::workers(1),
        Some(5),
        &["rounds=5".to_owned()],
    );
    let runner = runner.unwrap().unwrap();
    assert!(!out.join("best.safetensors").exists(), "before the next round, too");
    let summary = finished(runner);
    let best = summary.best.unwrap();
    assert!(best.round <= 5);
    match best.model {
        Some(model) => {
            let (_other, shorter, _) = folder();
            finished(started(&shorter, &[&format!("rounds={}", best.round)]));
            assert!(
                std::fs::read(model).unwrap() == std::fs::read(shorter.join("model.safetensors")).unwrap()
            );
        }
        None => assert!(!out.join("best.safetensors").exists()),
    }
}

#[test]
fn patience_stops_a_run_and_the_best_model_is_kept_also_through_a_restart() {
    let (_folder, whole, parts) = folder();
    let settings = ["rounds=60", "stop.patience=4", "local.lr=0.5"];
    let summary = finished(started(&whole, &settings));
    let best = summary.best.clone().unwrap();
    assert_eq!(summary.rounds, best.round + 4, "{summary:?}");
    assert!(summary.rounds < 60);
    let lines = RunDirectory::open(&whole).unwrap().lines().unwrap();
    let values: Vec<f64> = lines.iter().map(|line| line.validation.unwrap().accuracy).collect();
    assert_eq!(best.value, values.iter().copied().fold(0.0, f64::max));
    assert_eq!(best.value, values[best.round as usize - 1]);
    assert_eq!(best.test_accuracy, lines[best.round as usize - 1].accuracy);
    // Interrupted after every second round.
    let mut runner = started(&parts, &settings);
    let again = loop {
        let stop = AtomicBool::new(false);
        let mut left = 2;
        let end = runner.run(&stop, &mut |_| {
            left -= 1;
            stop.store(left == 0, Ordering::Relaxed);
        });
        match end.unwrap() {
            End::Done(summary) => break summary,
            End::Stopped(_) => runner = resumed(&parts),
        }
    };
    assert_eq!((again.rounds, &again.stopped), (summary.rounds, &summary.stopped));
    assert_eq!(bits(&parts), bits(&whole));
    let model = |out: &Path| std::fs::read(out.join("best.safetensors")).unwrap();
    assert_eq!(model(&parts), model(&whole));
    // It is the model of that round.
    let (_other, shorter, _) = folder();
    finished(started(&shorter, &[&format!("rounds={}", best.round), "local.lr=0.5"]));
    assert_eq!(std::fs::read(shorter.join("model.safetensors")).unwrap(), model(&whole));
    // With more patience the run continues.
    extend(&whole, &["stop.patience=0".to_owned(), format!("rounds={}", summary.rounds + 2)]).unwrap();
    assert_eq!(finished(resumed(&whole)).rounds, summary.rounds + 2);
}

#[test]
fn a_model_is_evaluated_every_nth_round_and_after_the_last_one() {
    let (_folder, out, _) = folder();
    let summary = finished(started(&out, &["rounds=14", "evaluation.every=4"]));
    let lines = RunDirectory::open(&out).unwrap().lines().unwrap();
    let evaluated: Vec<u32> =
        lines.iter().filter(|line| line.accuracy.is_some()).map(|line| line.round).collect();
    assert_eq!(evaluated, [4, 8, 12, 14]);
    // Of the last ten rounds, 8, 12 and 14 were evaluated.
    let mean = [7, 11, 13].map(|place: usize| lines[place].accuracy.unwrap()).iter().sum::<f64>() / 3.0;
    assert_eq!(summary.last10_accuracy, Some(mean));
}

#[test]
fn a_run_starts_from_a_file_that_it_keeps_a_copy_of() {
    let (folder, first, second) = folder();
    finished(started(&first, &["rounds=3"]));
    let file = folder.path().join("start.safetensors");
    std::fs::copy(first.join("model.safetensors"), &file).unwrap();
    let start = format!("model.start={}", file.display());
    let runner = started(&second, &["rounds=2", &start]);
    assert_eq!(runner.notes(), Vec::<String>::new());
    let stop = AtomicBool::new(false);
    runner.run(&stop, &mut |_| stop.store(true, Ordering::Relaxed)).unwrap();
    std::fs::remove_file(&file).unwrap();
    finished(resumed(&second));
    // Without a single step, the model is the one of the file.
    let still = folder.path().join("still");
    std::fs::copy(first.join("model.safetensors"), &file).unwrap();
    finished(started(&still, &["rounds=1", "cohort.absent=1", &start]));
    let model = |out: &Path| std::fs::read(out.join("model.safetensors")).unwrap();
    assert_eq!(model(&still), model(&first));
    let verdict = verify(&second, &Places::new(None), Resources::workers(1), None, &mut |_| {}).unwrap();
    assert_eq!(verdict.same_bits, Some(true));
}

#[test]
fn a_start_with_another_head_is_noted_and_one_that_does_not_fit_is_refused() {
    let (folder, first, second) = folder();
    finished(started(&first, &["rounds=1"]));
    let layout = {
        let config = config(&[]);
        let experiment = Experiment::of(&config).unwrap();
        let data = Data::load(&experiment.data, &Places::new(None)).unwrap();
        fedtvd_run::setup::Setup::new(&experiment, &data).unwrap()
    };
    let file = folder.path().join("model.safetensors");
    let mut network = layout.model.network().unwrap().clone();
    network.classes = 3;
    for layer in &mut network.layers {
        if let fedtvd_core::model::Layer::Linear { out, .. } = layer {
            *out = 3;
        }
    }
    let narrow = std::sync::Arc::new(fedtvd_core::model::Layout::of(&network).unwrap());
    std::fs::write(&file, Params::initial(narrow, 1).to_safetensors()).unwrap();
    let start = format!("model.start={}", file.display());
    let runner = started(&second, &["rounds=1", &start]);
    assert!(runner.notes()[0].contains("has another width"), "{:?}", runner.notes());
    std::fs::write(&file, b"not a model").unwrap();
    let config = config(&[&start]);
    let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
    let error =
        Runner::start(&config, &data, &folder.path().join("third"), Resources::workers(1)).err().unwrap();
    assert!(error.to_string().starts_with("model.start: "), "{error}");
    assert!(error.request());
}
