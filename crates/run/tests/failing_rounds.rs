//! Runs whose rounds fail: what is written, what a resumed run writes, and when a server stops.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::round::RoundRecord;
use fedtvd_data::set::Places;
use fedtvd_run::RunError;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::directory::{Checkpoints, RunDirectory, Summary};
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::{Resources, Workers, simulation};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn config(changes: &[&str]) -> Config {
    let mut config = Config::default();
    for change in [&["split.clients=20", "cohort.fraction=0.3", "local.epochs=1"], changes].concat() {
        config.set(change).unwrap();
    }
    config
}

fn started(config: &Config, path: &Path) -> Runner {
    let data = Data::load(&Experiment::of(config).unwrap().data, &Places::new(None)).unwrap();
    Runner::start(config, &data, path, Resources::workers(2)).unwrap()
}

/// Runs until the end, or until a round is finished.
fn run(runner: Runner, until: u32) -> Result<End, RunError> {
    let stop = AtomicBool::new(false);
    runner.run(&stop, &mut |line| stop.store(line.round >= until, Ordering::Relaxed))
}

fn done(end: Result<End, RunError>) -> Summary {
    match end.unwrap() {
        End::Done(summary) => summary,
        End::Stopped(rounds) => panic!("stopped after round {rounds}"),
    }
}

fn lines(path: &Path) -> Vec<RoundRecord> {
    RunDirectory::open(path).unwrap().lines().unwrap()
}

#[test]
fn a_resumed_run_writes_the_alarms_and_the_verdict_of_one_that_was_not_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole", "broken"].map(|name| folder.path().join(name));
    // The first rounds spoil the model.
    let config = config(&["rounds=6", "local.lr=1000"]);
    let expected = done(run(started(&config, &whole), 6));
    assert!(matches!(run(started(&config, &broken), 2).unwrap(), End::Stopped(2)));
    let resumed = Runner::resume(&broken, &Places::new(None), Resources::workers(1)).unwrap();
    let summary = done(run(resumed.unwrap(), 6));
    let alarms = |path: &Path| lines(path).into_iter().map(|line| line.alarm).collect::<Vec<_>>();
    assert_eq!(alarms(&broken), alarms(&whole));
    assert!(alarms(&whole)[0].as_ref().unwrap().contains(" of 6 updates failed, first: client "));
    assert_eq!(alarms(&whole)[5], None, "the loss of the first rounds is now the usual one");
    assert_eq!(
        (summary.collapsed, summary.alarms, summary.failed),
        (expected.collapsed, expected.alarms, expected.failed)
    );
}

#[test]
fn the_summary_of_an_earlier_version_gets_its_verdict_from_the_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let summary = done(run(started(&config(&["rounds=2", "local.lr=1e12"]), &out), 2));
    let path = out.join("summary.json");
    let mut value: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for field in ["collapsed", "alarms", "updates", "failed_updates", "first_failure"] {
        assert!(value.as_object_mut().unwrap().remove(field).is_some(), "{field}");
    }
    std::fs::write(&path, value.to_string()).unwrap();
    assert_eq!(RunDirectory::open(&out).unwrap().summary().unwrap().unwrap(), summary);
}

#[test]
fn a_simulation_whose_rounds_change_nothing_ends_and_has_collapsed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let summary =
        done(run(started(&config(&["rounds=12", "cohort.absent=1", "model.name=logistic"]), &out), 12));
    assert_eq!((summary.rounds, summary.failed.updates, summary.alarms), (12, 0, 0));
    assert_eq!(
        summary.collapsed.unwrap(),
        "the model was unchanged in the last 10 rounds: 0 of 1 needed updates were accepted"
    );
}

/// A server over simulated clients none of which answers, with the state of its directory.
fn server(config: &Config, path: &Path) -> Runner {
    let experiment = Experiment::of(config).unwrap();
    let data = Data::load(&experiment.data, &Places::new(None)).unwrap();
    let setup = Arc::new(Setup::new(&experiment, &data).unwrap());
    let trainers = Workers::on_cpu(&setup, 1).unwrap().trainers;
    let mut rounds = simulation(&experiment, &setup, trainers, 1 << 20).unwrap();
    let directory = RunDirectory::open(path).unwrap();
    let saved = Checkpoints::new(directory.file("checkpoint"), experiment.rounds)
        .find(&setup.layout, lines(path).len() as u32)
        .unwrap();
    if let Some(checkpoint) = saved.checkpoint {
        rounds.restore(checkpoint.state, checkpoint.memories);
    }
    Runner::over(directory, experiment, rounds, saved.checkpoints).unwrap()
}

#[test]
fn a_server_stops_after_ten_unchanged_rounds_and_a_restart_gets_another_ten() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let config = config(&["rounds=29", "cohort.absent=1", "model.name=logistic"]);
    // Makes the directory.
    drop(started(&config, &out));
    for round in [10, 20] {
        let error = run(server(&config, &out), u32::MAX).unwrap_err();
        assert!(!error.request());
        let sentence = error.to_string();
        let start = format!(
            "stopped after round {round}, the state is saved: 10 rounds in a row left the model unchanged"
        );
        assert!(sentence.starts_with(&start), "{sentence}");
        assert!(sentence.contains("because 0 of 1 needed updates were accepted"), "{sentence}");
        assert_eq!(lines(&out).len(), round);
    }
    assert_eq!(done(run(server(&config, &out), u32::MAX)).rounds, 29, "nine more rounds are its last");
}
