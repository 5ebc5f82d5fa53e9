//! Runs that collapse on the command line: what is printed, and the exit codes.

use crate::program::{Answer, fedtvd};
use serde_json::Value;
use std::path::Path;

/// A few rounds of a small federation.
const SMALL: [&str; 6] = ["--set", "rounds=3", "--set", "clients=20", "--set", "fraction=0.3"];

fn run(out: &Path, more: &[&str]) -> Answer {
    fedtvd(&[["run", "--out", &out.display().to_string()].as_slice(), &SMALL, more].concat())
}

fn document(answer: &Answer) -> Value {
    serde_json::from_str(&answer.out).unwrap_or_else(|error| panic!("{error}: {} {}", answer.out, answer.err))
}

const WHY: &str = "18 of 18 updates in the last 3 rounds failed, first: client ";

#[test]
fn a_run_whose_updates_all_fail_exits_with_1_and_says_why() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("run");
    let answer = run(&out, &["--set", "local.lr=1e12"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    let last = answer.err.lines().last().unwrap_or_default();
    let sentence = "fedtvd: the run collapsed, its result cannot be used: ";
    assert!(last.starts_with(&format!("{sentence}{WHY}")) && last.contains("became NaN"), "{last}");
    let alarms = answer.err.lines().filter(|line| line.starts_with("alarm: round ")).count();
    assert_eq!(alarms, 3, "{}", answer.err);
    assert!(answer.out.contains("\n18 of 18 updates failed, first: round 1, client "), "{}", answer.out);
    assert!(answer.out.contains("\n3 rounds with an alarm; "), "{}", answer.out);
    let again = fedtvd(&["resume", "--quiet", "--json", &out.display().to_string()]);
    assert_eq!((again.code, again.err.lines().count()), (1, 1), "only the reason: {}", again.err);
    let summary = document(&again);
    assert!(summary["collapsed"].as_str().is_some_and(|why| why.starts_with(WHY)), "{summary}");
    assert_eq!((&summary["updates"], &summary["failed_updates"]), (&18.into(), &18.into()));
}

#[test]
fn quiet_hides_alarms_and_json_lines_have_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let broken = ["--set", "local.lr=1e12"];
    let quiet = run(&folder.path().join("quiet"), &[broken.as_slice(), &["--quiet", "--json"]].concat());
    assert_eq!((quiet.code, quiet.err.lines().count()), (1, 1), "{}", quiet.err);
    assert_eq!(document(&quiet)["alarms"], 3);
    let log = run(&folder.path().join("log"), &[broken.as_slice(), &["--log", "json"]].concat());
    let lines: Vec<Value> =
        log.err.lines().take(3).filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(lines.len(), 3, "{}", log.err);
    assert!(lines.iter().all(|line| line["alarm"].as_str().is_some_and(|alarm| alarm.contains("6 of 6"))));
}

#[test]
fn failed_updates_are_mentioned_in_progress_and_in_the_summary() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let answer = run(&folder.path().join("run"), &["--set", "local.lr=1000"]);
    let failed = |text: &str| text.lines().any(|line| line.contains(" updates failed, first: "));
    assert!(failed(&answer.out), "{}", answer.out);
    assert!(failed(&answer.err), "{}", answer.err);
}

#[test]
fn an_honest_run_has_no_alarm() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let answer = run(&folder.path().join("run"), &["--json"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let summary = document(&answer);
    assert_eq!((&summary["collapsed"], &summary["alarms"]), (&Value::Null, &0.into()));
    assert_eq!((&summary["updates"], &summary["failed_updates"]), (&18.into(), &0.into()));
    assert!(!answer.err.contains("alarm") && !answer.err.contains("failed"), "{}", answer.err);
}

/// With the default learning rate, each step overshoots by a factor of 10,000.
const BROKEN: &str = "fedprox:mu=1000000";

#[test]
fn a_comparison_marks_a_collapsed_strategy_and_does_not_run_it_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let compare = |strategies: &str, more: &[&str]| {
        let call = ["compare", "--seeds", "2", "--strategies", strategies, "--out", &out, "--workers", "1"];
        fedtvd(&[call.as_slice(), &SMALL, more].concat())
    };
    let both = format!("fedavg,{BROKEN}");
    let answer = compare(&both, &[]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let note = format!("\n† {BROKEN}: 2 of 2 seeds collapsed: 1, 2 (seed 1: ");
    assert!(answer.out.contains(&note), "{}", answer.out);
    assert!(answer.out.contains(&format!("{BROKEN} collapsed in 2 of 2 seeds")), "{}", answer.out);
    assert!(answer.out.contains("\n2 of 4 runs collapsed\n"), "{}", answer.out);
    assert!(answer.err.contains(&format!("\n{BROKEN} seed 2: collapsed: ")), "{}", answer.err);
    assert!(answer.err.contains(&format!("\n{BROKEN} seed 1: alarm: round ")), "{}", answer.err);
    let view = document(&compare(&both, &["--json"]));
    assert_eq!((&view["summary"][0]["collapsed"], &view["summary"][1]["collapsed"]), (&0.into(), &2.into()));
    assert!(view["runs"][2]["collapsed"].is_string(), "{view}");
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("the page is there");
    assert!(page.contains(note.trim_start()), "the page says it too");
    let all = compare(BROKEN, &["--json"]);
    assert_eq!(all.code, 1);
    assert!(
        all.err.starts_with(&format!("fedtvd: all 2 runs collapsed, first: {BROKEN} with seed 1: ")),
        "{}",
        all.err
    );
    assert_eq!(document(&all)["runs"][0], view["runs"][2], "times and all: it was not run again");
}

#[test]
fn a_sweep_counts_a_collapsed_run_as_finished_and_marks_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [grid, broken] =
        ["grid.toml", "broken.toml"].map(|name| folder.path().join(name).display().to_string());
    std::fs::write(&grid, "[sweep]\n\"local.lr\" = [0.01, 1e12]\n").expect("the grid is written");
    std::fs::write(&broken, "[sweep]\n\"local.lr\" = [1e12]\n").expect("the grid is written");
    let out = folder.path().join("out").display().to_string();
    let sweep = |grid: &str, more: &[&str]| {
        fedtvd(&[["sweep", grid, "--out", &out, "--quiet"].as_slice(), &SMALL, more].concat())
    };
    let answer = sweep(&grid, &[]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(
        answer.out.starts_with(&format!("fedtvd seed 1, local.lr = 1000000000000.0: collapsed: {WHY}")),
        "{}",
        answer.out
    );
    assert!(
        answer.out.contains("\n2 runs finished (1 collapsed), 0 failed, 0 unfinished\n"),
        "{}",
        answer.out
    );
    let view = document(&sweep(&grid, &["--json"]));
    assert_eq!((&view["done"], &view["collapsed"]), (&2.into(), &1.into()));
    assert_eq!((&view["cells"][1]["state"], &view["cells"][0]["collapsed"]), (&"done".into(), &Value::Null));
    assert!(view["cells"][1]["collapsed"].is_string());
    let alone = sweep(&broken, &[]);
    assert_eq!(alone.code, 1);
    assert!(
        alone.err.starts_with("fedtvd: the only run collapsed, first: fedtvd with seed 1: "),
        "{}",
        alone.err
    );
}
