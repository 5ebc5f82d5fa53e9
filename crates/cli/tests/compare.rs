//! `fedtvd compare`, as typed, on a few rounds of a small model.

mod program;

use program::{Answer, fedtvd};

const SMALL: [&str; 9] =
    ["compare", "--rounds", "2", "--seeds", "2", "--set", "model.name=logistic", "--set", "clients=20"];

/// Calls compare with results in a folder of its own.
fn compare(more: &[&str]) -> (tempfile::TempDir, Answer) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let answer = fedtvd(&[SMALL.as_slice(), &["--out", &out], more].concat());
    (folder, answer)
}

#[test]
fn four_strategies_end_in_a_table_and_a_page_that_needs_nothing_else() {
    let (folder, answer) = compare(&["--quiet"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("the page is there");
    assert!(page.contains("<polyline") && !page.contains("http"), "the page draws curves and loads nothing");
    for label in ["fedavg", "uniform", "fedtvd", "fedtvd+balanced"] {
        assert!(
            answer.out.lines().any(|line| line.contains(&format!(" {label} "))),
            "{label}: {}",
            answer.out
        );
    }
}

#[test]
fn the_terminal_says_what_the_page_says() {
    let (folder, answer) = compare(&["--quiet"]);
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("the page is there");
    let said = page.split("<p class=\"verdict\">").nth(1).and_then(|rest| rest.split("</p>").next());
    let said = said.expect("the page has a verdict");
    assert!(said.contains("fedavg") && answer.out.lines().any(|line| line == said), "{said}: {}", answer.out);
}

#[test]
fn json_has_every_run_and_the_summary_and_repeats() {
    let call = || {
        let (_folder, answer) = compare(&["--json"]);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""));
        serde_json::from_str::<serde_json::Value>(&answer.out).expect("--json gives one JSON document")
    };
    let view = call();
    assert_eq!(view["runs"].as_array().map(Vec::len), Some(8));
    assert_eq!(view["summary"][0]["strategy"], "fedavg");
    assert!(view["summary"][0]["difference"].is_null() && view["summary"][1]["difference"].is_f64());
    assert_eq!(view["summary"], call()["summary"], "the same seeds give the same table");
}

#[test]
fn a_parameter_goes_to_every_strategy_that_takes_it() {
    let (_folder, answer) = compare(&["--quiet", "--set", "lambda=0.25"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    for label in ["fedavg", "uniform", "fedtvd:lambda=0.25", "fedtvd:lambda=0.25+balanced"] {
        assert!(
            answer.out.lines().any(|line| line.contains(&format!(" {label} "))),
            "{label}: {}",
            answer.out
        );
    }
}

#[test]
fn wrong_requests_exit_with_2() {
    let refusals: &[(&[&str], &str)] = &[
        (&["--seeds", "0"], "--seeds 0 is neither a number of seeds above 0 nor a list such as 3,7"),
        (
            &["--seeds", "1000000000000"],
            "--seeds asks for 1000000000000 seeds; at most 1000 can be compared at once",
        ),
        (
            &["--seeds", "3,9223372036854775808"],
            "seed = 9223372036854775808 is not allowed; it must be a whole number",
        ),
        (&["--workers", "1000000"], "--workers 1000000 is too many; at most 1024 can work"),
        (&["--rounds", "0"], "rounds = 0 is not allowed; it must be a whole number from 1 to 1000000"),
        (&["--set", "data.set=cifar1"], "data.set = \"cifar1\" is no data set"),
        (&["--strategies", "fedavg,fedtvd+uniform"], "fedtvd and uniform both change the clients' weights"),
        (&["--strategies", "fedavg,fedtvd,fedtvd:lambda=0.5"], "fedtvd is named twice; each strategy"),
        (&["--seeds", "3,7,3"], "seed 3 is named twice; each strategy and each seed is compared once"),
        (&["--set", "strategy.lamda=0.3"], "fedtvd has no parameter lamda; did you mean lambda?"),
        (&["--set", "lambda=1.5"], "lambda = 1.5 is not allowed; it must be 0 to 1"),
        (&["missing.toml"], "reading missing.toml: No such file"),
    ];
    for (arguments, sentence) in refusals {
        let answer = fedtvd(&[&["compare"], *arguments].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}: {}", answer.err);
        assert!(answer.err.starts_with(&format!("fedtvd: {sentence}")), "{arguments:?}: {}", answer.err);
    }
}
