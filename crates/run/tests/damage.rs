//! After damage to a checkpoint some rounds are recomputed, but the result does not change.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_data::set::Places;
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::runner::{End, Runner};
use fedtvd_run::setup::Data;
use fedtvd_run::simulation::Resources;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn config() -> Config {
    let mut config = Config::default().with_strategy("scaffold");
    for setting in ["clients=8", "fraction=0.5", "model.name=logistic", "epochs=1", "rounds=6"] {
        config.set(setting).unwrap();
    }
    config
}

fn started(out: &Path) -> Runner {
    let config = config();
    let data = Data::load(&Experiment::of(&config).unwrap().data, &Places::new(None)).unwrap();
    Runner::start(&config, &data, out, Resources::workers(1)).unwrap()
}

fn resumed(out: &Path) -> Runner {
    Runner::resume(out, &Places::new(None), Resources::workers(2)).unwrap().unwrap()
}

/// Runs until this many rounds are done, and saves.
fn stop_after(runner: Runner, rounds: u32) {
    let stop = AtomicBool::new(false);
    let end = runner.run(&stop, &mut |line| stop.store(line.round == rounds, Ordering::Relaxed)).unwrap();
    assert!(matches!(end, End::Stopped(done) if done == rounds));
}

fn finish(runner: Runner) -> Vec<u8> {
    let End::Done(summary) = runner.run(&AtomicBool::new(false), &mut |_| {}).unwrap() else { panic!() };
    fs::read(summary.model).unwrap()
}

#[test]
fn damage_to_any_file_of_the_newest_checkpoint_falls_back_to_the_previous_one_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let whole = finish(started(&folder.path().join("whole")));
    let out = folder.path().join("run");
    stop_after(started(&out), 2);
    stop_after(resumed(&out), 4);
    let newest = out.join("checkpoint/round-000004");
    let names: Vec<_> = fs::read_dir(&newest).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.len() > 4, "state, index and memories of several clients: {names:?}");
    for name in names {
        let copy = folder.path().join(format!("without-{}", name.display()));
        // Hard links are copied as hard links.
        let copied = std::process::Command::new("cp").arg("-a").arg(&out).arg(&copy).status().unwrap();
        assert!(copied.success());
        let file = copy.join("checkpoint/round-000004").join(&name);
        let mut bytes = fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
        fs::write(&file, &bytes).unwrap();
        let runner = resumed(&copy);
        assert_eq!(runner.rounds_done(), 3, "{}", name.display());
        let [note] = runner.notes() else { panic!("{:?}", runner.notes()) };
        assert!(note.contains("round-000004") && note.ends_with("the checkpoint is skipped"), "{note}");
        // Later checkpoints do not reuse files of the damaged one.
        stop_after(runner, 5);
        let runner = resumed(&copy);
        assert_eq!((runner.rounds_done(), runner.notes().len()), (5, 0));
        assert_eq!(finish(runner), whole, "{}", name.display());
    }
}
