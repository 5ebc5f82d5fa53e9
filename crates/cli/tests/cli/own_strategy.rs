//! A program that registers a strategy of its own, the one of the example, is the whole command.

use crate::program::fedtvd;
use fedtvd_cli::{Called, Host, call};
use fedtvd_core::strategy::register;
use std::sync::atomic::AtomicBool;

#[expect(dead_code, reason = "its main function is that of a program")]
#[path = "../../examples/own_strategy.rs"]
mod example;

fn called(arguments: &[&str]) -> Called {
    static NEVER: AtomicBool = AtomicBool::new(false);
    call(arguments.iter().map(Into::into), Host { stop: &NEVER, tell: Box::new(|_| {}) })
}

#[test]
fn a_program_with_a_strategy_of_its_own_lists_runs_and_verifies_it_and_others_report_it() {
    register(example::root()).expect("it keeps the contract");
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("run").display().to_string();
    let list: serde_json::Value = serde_json::from_str(&called(&["strategies"]).document).expect("JSON");
    let last = list.as_array().and_then(|list| list.last()).expect("a list");
    assert_eq!((&last["name"], &last["params"]), (&"root".into(), &serde_json::json!([])));
    let small =
        ["rounds=2", "clients=20", "fraction=0.2", "model.name=logistic", "strategy.name=root+balanced"];
    let set: Vec<String> = small.iter().map(|setting| format!("--set={setting}")).collect();
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let run = called(&[&["run", "--out", &place], &set[..]].concat());
    assert_eq!(run.failure, None);
    let verified: serde_json::Value =
        serde_json::from_str(&called(&["verify", &place]).document).expect("JSON");
    assert_eq!(verified["same_bits"], true);
    let refused = fedtvd(&["verify", &place]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("made with the strategy root, which is not one of fedtvd itself"),
        "{}",
        refused.err
    );
    let report = fedtvd(&["report", &place]);
    assert!(report.code == 0 && report.out.contains("root+balanced"), "{}{}", report.out, report.err);
}
