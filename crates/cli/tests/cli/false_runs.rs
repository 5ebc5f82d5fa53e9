//! Run directories and model files from elsewhere: damaged, made to deceive, or without end.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::program::fedtvd;
use serde_json::Value;
use std::fs;
use std::path::Path;

const SMALL: [&str; 8] =
    ["--set", "rounds=2", "--set", "clients=4", "--set", "fraction=1", "--set", "model.name=logistic"];

/// A finished run.
fn run(out: &str) {
    let answer = fedtvd(&[["run", "--quiet", "--out", out].as_slice(), &SMALL].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
}

/// Sets a field of a JSON file of the run.
fn set(out: &str, file: &str, field: &str, value: Value) {
    let path = Path::new(out).join(file);
    let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    document[field] = value;
    fs::write(path, serde_json::to_string(&document).unwrap()).unwrap();
}

#[test]
fn no_file_of_a_run_directory_sends_commands_to_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run").display().to_string();
    run(&out);
    let command = "fedavg\u{1b}[2J\u{1b}]0;title\u{7}";
    set(&out, "summary.json", "strategy", command.into());
    set(&out, "manifest.json", "strategy", command.into());
    for words in [["resume", &out], ["report", &out]] {
        let answer = fedtvd(&words);
        assert!(!(answer.out.clone() + &answer.err).contains('\u{1b}'), "{words:?}: {:?}", answer.out);
    }
    let answer = fedtvd(&["resume", &out]);
    assert!(answer.out.contains("fedavg\\u{1b}[2J"), "{}{}", answer.out, answer.err);
}

#[test]
fn a_strategy_with_a_label_of_any_length_is_reported_as_damage() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run").display().to_string();
    run(&out);
    set(&out, "manifest.json", "strategy", "x".repeat(100_000).into());
    let answer = fedtvd(&["report", &out]);
    assert_ne!(answer.code, 0);
    let why = "manifest.json is damaged: a strategy of 100000 characters; 1000 are possible";
    assert!(answer.err.contains(why), "{}", answer.err);
}

#[test]
#[cfg(unix)]
fn a_pipe_or_device_is_not_read_as_a_model_and_a_dry_run_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run").display().to_string();
    let pipe = folder.path().join("pipe").display().to_string();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_str(), "/dev/zero"] {
        let start = format!("model.start={path}");
        let begun = fedtvd(&[["run", "--out", &out, "--set", &start].as_slice(), &SMALL].concat());
        let tried = fedtvd(&[["run", "--dry-run", "--set", &start].as_slice(), &SMALL].concat());
        for answer in [begun, tried] {
            assert_eq!(answer.code, 2, "{}{}", answer.out, answer.err);
            assert!(answer.err.contains(&format!("{path}: it is not a regular file")), "{}", answer.err);
        }
        let answer = fedtvd(&[["evaluate", path].as_slice(), &SMALL[6..]].concat());
        assert_eq!(answer.code, 2, "{}", answer.err);
        assert!(answer.err.contains("it is not a regular file"), "{}", answer.err);
    }
}
