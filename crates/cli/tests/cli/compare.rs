//! `fedtvd compare` on the command line, with a few rounds of a small model.

use crate::program::{Answer, fedtvd};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const SMALL: [&str; 9] =
    ["compare", "--rounds", "2", "--seeds", "2", "--set", "model.name=logistic", "--set", "clients=20"];

/// Runs compare with a temporary output folder.
fn compare(more: &[&str]) -> (tempfile::TempDir, Answer) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let answer = fedtvd(&[SMALL.as_slice(), &["--out", &out], more].concat());
    (folder, answer)
}

#[test]
fn four_strategies_give_a_table_and_a_self_contained_page() {
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
fn the_terminal_and_the_page_have_the_same_verdict() {
    let (folder, answer) = compare(&["--quiet"]);
    let page = std::fs::read_to_string(folder.path().join("out/report.html")).expect("the page is there");
    let said = page.split("<p class=\"verdict\">").nth(1).and_then(|rest| rest.split("</p>").next());
    let said = said.expect("the page has a verdict");
    assert!(said.contains("fedavg") && answer.out.lines().any(|line| line == said), "{said}: {}", answer.out);
}

#[test]
fn json_has_every_run_and_the_summary_and_is_reproducible() {
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
fn a_parameter_is_passed_to_every_strategy_that_has_it() {
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
fn invalid_requests_exit_with_2() {
    let refusals: &[(&[&str], &str)] = &[
        (&["--seeds", "0"], "--seeds 0 is neither a number of seeds above 0 nor a list such as 3,7"),
        (&["--seeds", "1000000000000"], "--seeds 1000000000000 is too many; at most 1000 seeds are allowed"),
        (
            &["--seeds", "3,9223372036854775808"],
            "seed = 9223372036854775808 is not allowed; it must be a whole number",
        ),
        (&["--workers", "1000000"], "--workers 1000000 is too large; it must be at most 1024"),
        (&["--rounds", "0"], "rounds = 0 is not allowed; it must be a whole number from 1 to 1000000"),
        (&["--set", "data.set=cifar1"], "data.set = \"cifar1\" is neither a data set nor a path"),
        (&["--strategies", "fedavg,fedtvd+uniform"], "fedtvd and uniform both change the clients' weights"),
        (&["--strategies", "fedavg,fedtvd,fedtvd:lambda=0.5"], "fedtvd is listed twice; list each strategy"),
        (&["--seeds", "3,7,3"], "seed 3 is listed twice; list each strategy and each seed once"),
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

/// Starts a comparison, sends this signal when `runs` of its runs have ended, and returns its output.
fn stopped(signal: &str, runs: usize, out: &Path) -> Answer {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fedtvd"))
        .args(LONGER)
        .args(["--workers", "1", "--out", &out.display().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines().map_while(Result::ok);
    let ended = lines.by_ref().filter(|line| line.contains(" seeds  ")).take(runs).count();
    assert_eq!(ended, runs);
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let err = lines.collect::<Vec<_>>().join("\n");
    let code = child.wait().expect("it has run").code().unwrap_or(-1);
    Answer { code, out: String::new(), err }
}

const LONGER: [&str; 10] = [
    "compare",
    "--no-timing",
    "--rounds",
    "6",
    "--seeds",
    "2",
    "--set",
    "model.name=logistic",
    "--set",
    "clients=20",
];

/// All files of a comparison's report.
fn report(out: &Path) -> Vec<(String, Vec<u8>)> {
    let names = ["report.html", "report.md", "table.csv", "curves.csv", "table.tex", "figures/accuracy.svg"];
    names.map(|name| (name.to_owned(), std::fs::read(out.join(name)).expect(name))).to_vec()
}

#[test]
fn a_comparison_that_was_killed_and_interrupted_resumes_to_the_same_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [whole, broken] = ["whole", "broken"].map(|name| folder.path().join(name));
    let undisturbed =
        fedtvd(&[LONGER.as_slice(), &["--quiet", "--out", &whole.display().to_string()]].concat());
    assert_eq!(undisturbed.code, 0, "{}", undisturbed.err);
    stopped("-KILL", 1, &broken);
    let interrupted = stopped("-INT", 3, &broken);
    assert_eq!(interrupted.code, 1, "{}", interrupted.err);
    let last = interrupted.err.lines().last().expect("it says how to continue").to_owned();
    assert!(
        last.starts_with("fedtvd: ") && last.ends_with(" unfinished; repeat the command to resume"),
        "{last}"
    );
    assert!(!broken.join("report.html").exists(), "an unfinished comparison has no page");
    let again = fedtvd(&[LONGER.as_slice(), &["--quiet", "--out", &broken.display().to_string()]].concat());
    assert_eq!((again.code, again.err.as_str()), (0, ""));
    assert!(report(&whole) == report(&broken), "the report does not depend on interruptions");
    let without_folder =
        |text: &str| text.lines().filter(|line| !line.starts_with("Page:")).collect::<String>();
    assert_eq!(without_folder(&undisturbed.out), without_folder(&again.out));
}

#[test]
fn the_same_command_finds_its_folder_again_and_runs_nothing_twice() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let call = |seeds: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_fedtvd"))
            .args(["compare", "--rounds", "2", "--set", "model.name=logistic", "--set", "clients=20"])
            .args(["--json", "--seeds", seeds])
            .current_dir(folder.path())
            .output()
            .expect("the program starts");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).expect("--json gives one JSON document")
    };
    let first = call("2");
    assert_eq!(call("2"), first, "times and all: nothing ran again");
    let three = call("3");
    assert_eq!(three["report"], first["report"], "more seeds go into the same folder");
    assert_eq!((&three["runs"][0], &three["runs"][4]), (&first["runs"][0], &first["runs"][3]));
    let grid = "rounds = 2\nmodel.name = \"logistic\"\nsplit.clients = 20\n[sweep]\nseed = [1, 2]\n";
    std::fs::write(folder.path().join("grid.toml"), grid).expect("the grid is written");
    let out = first["report"].as_str().and_then(|page| page.strip_suffix("/report.html")).expect("a page");
    let output = Command::new(env!("CARGO_BIN_EXE_fedtvd"))
        .args(["sweep", "grid.toml", "--json", "--out", out])
        .current_dir(folder.path())
        .output()
        .expect("the program starts");
    let swept: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(swept["cells"][0]["directory"], first["runs"][4]["directory"], "a sweep shares fedtvd's runs");
}

#[test]
fn a_damaged_run_is_an_error_and_not_left_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let call = || fedtvd(&[SMALL.as_slice(), &["--json", "--out", &out]].concat());
    let view: serde_json::Value = serde_json::from_str(&call().out).expect("one JSON document");
    let run = Path::new(view["runs"][0]["directory"].as_str().expect("a path")).join("rounds.jsonl");
    std::fs::write(&run, "").expect("it is there");
    let answer = call();
    assert_eq!((answer.code, answer.out.as_str()), (1, ""));
    assert!(answer.err.contains("is damaged: it has 0 rounds and its summary says 2"), "{}", answer.err);
}
