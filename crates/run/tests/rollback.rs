//! A simulation that goes back to an earlier round computes the same bits again, and its record says so.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::round::RoundRecord;
use fedtvd_data::set::Places;
use fedtvd_run::RunError;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::Data;
use fedtvd_run::simulation::Resources;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn started(out: &Path, strategy: &str, rounds: u32) -> Runner {
    let mut config = Config::default().with_strategy(strategy);
    for setting in ["clients=8", "fraction=0.5", "model.name=logistic", "epochs=1"] {
        config.set(setting).unwrap();
    }
    config.set(&format!("rounds={rounds}")).unwrap();
    let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
    Runner::start(&config, &data, out, Resources::workers(1)).unwrap()
}

fn resumed(out: &Path) -> Runner {
    Runner::resume(out, &Places::new(None), Resources::workers(1)).unwrap().unwrap()
}

fn from(out: &Path, round: u32) -> Result<Runner, RunError> {
    Ok(Runner::resume_with(out, &Places::new(None), Resources::workers(2), Some(round), &[])?.unwrap())
}

fn stop_after(runner: Runner, rounds: u32) {
    let stop = AtomicBool::new(false);
    let end = runner.run(&stop, &mut |line| stop.store(line.round == rounds, Ordering::Relaxed)).unwrap();
    assert!(matches!(end, End::Stopped(done) if done == rounds));
}

fn finish(runner: Runner) -> Vec<u8> {
    let End::Done(summary) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
    fs::read(summary.model).unwrap()
}

/// The lines of a run without what depends on time or the rollback, and the rounds after a rollback.
fn lines(out: &Path) -> (Vec<RoundRecord>, Vec<(u32, u32)>) {
    let lines = RunDirectory::open(out).unwrap().lines().unwrap();
    let marked = lines.iter().filter_map(|line| Some((line.round, line.rolled_back_from?))).collect();
    let plain = |line| RoundRecord { seconds: 0.0, rolled_back_from: None, ..line };
    (lines.into_iter().map(plain).collect(), marked)
}

#[test]
fn a_finished_run_from_an_earlier_round_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for strategy in ["fedtvd+balanced", "scaffold", "fedadam"] {
        let out = folder.path().join(strategy);
        let whole = finish(started(&out, strategy, 6));
        let (before, _) = lines(&out);
        for round in [4, 2, 0] {
            let runner = from(&out, round).unwrap();
            assert_eq!(runner.rounds_done(), round);
            assert!(finish(runner) == whole, "{strategy} from round {round}");
            assert_eq!(lines(&out), (before.clone(), vec![(round + 1, 6)]), "{strategy} from round {round}");
        }
        for record in ["0001-from-6-to-4", "0002-from-6-to-2", "0003-from-6-to-0"] {
            assert!(
                fs::read(out.join("rolled-back").join(record).join("model.safetensors")).unwrap() == whole
            );
        }
    }
}

#[test]
fn an_unfinished_run_goes_back_and_a_crash_before_the_next_round_does_not_hide_it() {
    let folder = tempfile::tempdir().unwrap();
    let whole = finish(started(&folder.path().join("whole"), "scaffold", 6));
    let out = folder.path().join("run");
    stop_after(started(&out, "scaffold", 6), 5);
    drop(from(&out, 2).unwrap());
    let runner = resumed(&out);
    assert_eq!(runner.rounds_done(), 2);
    stop_after(runner, 3);
    assert!(finish(resumed(&out)) == whole);
    assert_eq!(lines(&out).1, [(3, 5)]);
}

#[test]
fn the_state_that_a_run_is_in_needs_no_rollback() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    stop_after(started(&out, "fedavg", 6), 5);
    finish(from(&out, 5).unwrap());
    let done = Runner::resume_with(&out, &Places::new(None), Resources::workers(1), Some(6), &[]).unwrap();
    assert_eq!(done.err().unwrap().rounds, 6);
    assert!(!out.join("rolled-back").exists() && lines(&out).1.is_empty());
}

#[test]
fn a_long_run_keeps_every_nth_round_and_names_those_it_can_go_back_to() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    finish(started(&out, "fedavg", 25));
    let Err(error) = from(&out, 4) else { panic!("there is no checkpoint of round 4") };
    let sentence = "has no usable checkpoint of round 4; available rounds: 0, 3, 6, 9, 12, 15, 18, 21, 24";
    assert!(error.to_string().ends_with(sentence) && error.request(), "{error}");
    assert!(out.join("summary.json").is_file());
}

#[test]
fn a_run_that_another_process_works_on_is_not_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    finish(started(&out, "fedavg", 2));
    let lock = RunDirectory::open(&out).unwrap().lock().unwrap();
    let Err(error) = from(&out, 1) else { panic!("the run is in use") };
    assert!(error.to_string().contains("another fedtvd process is working on this run"), "{error}");
    drop(lock);
    assert_eq!(from(&out, 1).unwrap().rounds_done(), 1);
}
