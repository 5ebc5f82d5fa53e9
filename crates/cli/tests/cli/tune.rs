//! `fedtvd tune` on the command line.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::program::{Answer, fedtvd};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;

const STRATEGIES: [&str; 4] = ["fedavg", "uniform", "fedtvd", "fedtvd+balanced"];

fn tune(out: &Path, more: &[&str]) -> Answer {
    let small = ["--set", "split.clients=10", "--set", "model.name=logistic", "--set", "local.epochs=1"];
    let seeds = ["--seeds", "2", "--json"];
    fedtvd(&[&["tune", "--out", &out.display().to_string()], &small[..], &seeds, more].concat())
}

fn document(answer: &Answer) -> Value {
    assert_eq!(answer.code, 0, "{}", answer.err);
    serde_json::from_str(&answer.out).unwrap()
}

#[test]
fn the_planted_best_is_found_for_each_of_four_strategies_and_the_command_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // One learning rate learns nothing, one learns, one destroys the model.
    let options = ["--set", "rounds=8", "--grid", "local.lr=1e-6,0.02,1e38", "--set", "split.alpha=1"];
    let view = document(&tune(&out, &options));
    let choices = view["tuning"].as_array().unwrap();
    let names: Vec<&str> = choices.iter().map(|choice| choice["strategy"].as_str().unwrap()).collect();
    assert_eq!(names, STRATEGIES);
    for choice in choices {
        assert_eq!(choice["setting"][0], "local.lr = 0.02", "{choice}");
        assert_eq!(
            (&choice["candidates"], &choice["runs"], &choice["rounds"]),
            (&3.into(), &6.into(), &48.into())
        );
        assert_eq!(choice["collapsed"], 1, "{choice}");
    }
    assert_eq!(view["seeds"], serde_json::json!([1, 2]));
    assert_eq!(view["tuning_seeds"], serde_json::json!([1001, 1002]));
    for row in view["summary"].as_array().unwrap() {
        assert!(row["mean"].as_f64().unwrap() > 0.5, "{row}");
    }
    // Tuning runs never saw the test set, final runs did.
    let lines = |part: &str| -> Vec<Value> {
        let runs = std::fs::read_dir(out.join(part)).unwrap().map(|run| run.unwrap().path());
        let text: String =
            runs.map(|run| std::fs::read_to_string(run.join("rounds.jsonl")).unwrap()).collect();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert!(lines("tuning").iter().all(|line| line["accuracy"].is_null() && !line["validation"].is_null()));
    assert!(lines("final").iter().all(|line| line["accuracy"].is_f64()));
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("the best of 3 candidates by accuracy on the clients"),
        "the page says how much tuning there was"
    );
    assert!(page.contains("fedtvd tune "), "and how to repeat it");
    assert_eq!(document(&tune(&out, &options)), view, "a finished search is not run again");
}

#[test]
fn halving_chooses_the_same_with_fewer_rounds_and_resumes_after_its_runs_were_extended() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, halved) = (folder.path().join("whole"), folder.path().join("halved"));
    let strategies = ["--strategies", "fedavg,fedprox"];
    let grid =
        ["--set", "rounds=15", "--grid", "local.lr=1e-6,1e-5,0.02,1e-4", "--grid", "strategy.mu=0.01,10"];
    let options = [&strategies[..], &grid].concat();
    let all = document(&tune(&whole, &options));
    let few = document(&tune(&halved, &[&options[..], &["--halving", "3"]].concat()));
    for (all, few) in all["tuning"].as_array().unwrap().iter().zip(few["tuning"].as_array().unwrap()) {
        assert_eq!((&all["label"], &all["setting"]), (&few["label"], &few["setting"]));
        assert_eq!(all["validation"], few["validation"], "an extended run has the bits of a long one");
        assert!(few["rounds"].as_u64() < all["rounds"].as_u64(), "{few}");
    }
    assert_eq!(all["summary"], few["summary"]);
    for run in std::fs::read_dir(halved.join("tuning")).unwrap() {
        assert!(
            !run.unwrap().path().join("predictions.npy").exists(),
            "a tuning run never reads the test set"
        );
    }
    let again = document(&tune(&halved, &[&options[..], &["--halving", "3"]].concat()));
    assert_eq!(again, few);
}

/// A table of three classes whose test rows, every fifth of each class, have the features of the next class if `poisoned`.
fn table(path: &Path, poisoned: bool) {
    let mut text = String::from("a,b,c,label\n");
    for row in 0..600 {
        let (class, place) = (row % 3, row / 3);
        let shown = if poisoned && place % 5 == 4 { (class + 1) % 3 } else { class };
        let noise = f64::from((row * 7919 % 101) as u32) / 101.0 - 0.5;
        let value = |axis: usize| f64::from(u8::from(axis == shown)) * 2.0 + noise * (axis as f64 + 1.0);
        writeln!(text, "{},{},{},class{class}", value(0), value(1), value(2)).unwrap();
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_poisoned_test_set_changes_the_result_and_nothing_that_tuning_chose() {
    let folder = tempfile::tempdir().unwrap();
    let tuned = |poisoned: bool| {
        let place = folder.path().join(poisoned.to_string());
        std::fs::create_dir(&place).unwrap();
        let data = place.join("data.csv");
        table(&data, poisoned);
        let set = format!("data.set={}", data.display());
        let options =
            ["--set", &set, "--set", "rounds=6", "--set", "cohort.fraction=1", "--set", "split.kind=iid"];
        let grid = ["--grid", "local.lr=0.0001,0.01,0.1", "--grid", "local.momentum=0,0.9"];
        let view = document(&tune(&place.join("out"), &[&options[..], &grid].concat()));
        (
            std::fs::read_to_string(place.join("out/tuning.json")).unwrap(),
            view["summary"][0]["mean"].as_f64().unwrap(),
        )
    };
    let ((clean, good), (poisoned, bad)) = (tuned(false), tuned(true));
    assert!(good > 0.9 && bad < 0.3, "{good} {bad}");
    assert_eq!(clean, poisoned, "every score and choice is the same");
}

#[test]
fn a_parameter_of_a_tuned_strategy_can_be_set_whatever_the_configuration_names() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--strategies", "fedavg,fedprox", "--set", "strategy.mu=1", "--set", "rounds=1"];
    let grid = ["--tuning-seeds", "1", "--grid", "local.lr=0.1"];
    let answer = tune(&folder.path().join("out"), &[&options[..], &grid].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    let runs = std::fs::read_dir(folder.path().join("out/final")).unwrap();
    let names: Vec<String> = runs.map(|run| run.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().any(|name| name.starts_with("fedprox-mu-1-")), "{names:?}");
}

#[test]
fn a_combination_that_a_strategy_cannot_train_with_is_left_out_for_it_and_noted() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["--set", "split.clients=10", "--set", "model.name=logistic", "--set", "rounds=1"];
    let options = ["tune", "--strategies", "fedavg,scaffold", "--seeds", "1", "--tuning-seeds", "1"];
    let grid = ["--grid", "local.optimizer=sgd,adam", "--grid", "local.lr=0.001,0.01"];
    let out = folder.path().join("out");
    let answer = fedtvd(&[&options[..], &small, &grid, &["--out", &out.display().to_string()]].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    let note = "scaffold is tuned without 2 of the 4 combinations: scaffold cannot train with local.optimizer = adam";
    assert!(answer.err.contains(&format!("note: {note}")), "{}", answer.err);
    assert!(answer.err.contains("4 fedavg, 2 scaffold"), "{}", answer.err);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains(note), "the page must say so, too");
}

#[test]
fn what_cannot_be_tuned_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (options, expected) in [
        (
            &["--grid", "split.alpha=1,2"][..],
            "split.alpha cannot be tuned; all candidates train on the same split",
        ),
        (
            &["--tuning-seeds", "2,3"],
            "seed 2 is used for tuning and for the result; they must be different seeds",
        ),
        (&["--grid", "strategy.mu=1,2"], "strategy.mu has no effect: none of the strategies has it"),
        (&["--set", "local.lr=1"], "--set local.lr=1 has no effect: local.lr is tuned"),
    ] {
        let answer = tune(&folder.path().join("out"), options);
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(answer.err.contains(expected), "{}", answer.err);
    }
}
