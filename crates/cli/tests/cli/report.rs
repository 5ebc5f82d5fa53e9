//! `fedtvd report` on the command line, with small runs.

use crate::program::fedtvd;
use std::collections::BTreeMap;
use std::path::Path;

const GRID: &str = "\
rounds = 4
[model]
name = \"logistic\"
[split]
clients = 10
[evaluation]
details = true
[sweep]
\"strategy.name\" = [\"fedavg\", \"fedtvd+balanced\"]
seed = [1, 2]
split = [{ alpha = 0.1 }, { kind = \"iid\" }]
";

fn sweep(grid: &Path, out: &Path, more: &[&str]) {
    let (grid, out) = (grid.display().to_string(), out.display().to_string());
    let answer = fedtvd(&[&["sweep", &grid, "--out", &out, "--quiet"], more].concat());
    // All runs of the shard are finished.
    assert_eq!(answer.code, 0, "{}", answer.err);
}

/// Every file of a report and the text on stdout.
fn report(runs: &[&Path], out: &Path) -> BTreeMap<String, String> {
    let runs: Vec<String> = runs.iter().map(|path| path.display().to_string()).collect();
    let place = out.display().to_string();
    let mut call = vec!["report", "--no-timing", "--quiet", "--out", &place];
    call.extend(runs.iter().map(String::as_str));
    let answer = fedtvd(&call);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let mut files = BTreeMap::from([("stdout".to_owned(), answer.out)]);
    for folder in [out.to_owned(), out.join("figures")] {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                let text = std::fs::read_to_string(&path).expect("a text file");
                files.insert(path.strip_prefix(out).expect("below it").display().to_string(), text);
            }
        }
    }
    files
}

#[test]
fn a_sharded_and_a_killed_sweep_have_the_report_of_an_uninterrupted_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let grid = path("grid.toml");
    std::fs::write(&grid, GRID).expect("the grid is written");
    sweep(&grid, &path("through"), &[]);
    sweep(&grid, &path("first"), &["--shard", "0/2"]);
    sweep(&grid, &path("second"), &["--shard", "1/2", "--workers", "1"]);
    for milliseconds in [30, 60] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_fedtvd"))
            .args(["sweep", &grid.display().to_string(), "--quiet", "--out"])
            .arg(path("killed"))
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the program starts");
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
    }
    sweep(&grid, &path("killed"), &[]);
    let through = report(&[&path("through")], &path("report of one"));
    assert_eq!(through.len(), 7 + 1 + 2 * 9, "{:?}", through.keys());
    assert_eq!(through, report(&[&path("second"), &path("first")], &path("report of two")));
    assert_eq!(through, report(&[&path("killed")], &path("report of a killed one")));
    assert!(through["report.html"].contains("split.kind = iid"));
}

#[test]
fn unfinished_and_damaged_runs_are_named_and_left_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let place = |name: &str| path(name).display().to_string();
    for name in ["done", "open", "damaged"] {
        let small = ["--set", "rounds=2", "--set", "clients=10", "--set", "model.name=logistic"];
        let answer = fedtvd(&[&["run", "--quiet", "--out", &place(name)], small.as_slice()].concat());
        assert_eq!(answer.code, 0, "{}", answer.err);
    }
    std::fs::remove_file(path("open/summary.json")).expect("it was there");
    std::fs::write(path("damaged/rounds.jsonl"), "{\n").expect("it can be written");
    let root = folder.path().display().to_string();
    let answer = fedtvd(&["report", &root, "--quiet"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(
        answer.err.starts_with("fedtvd: run left out: ")
            && answer.err.contains("damaged/rounds.jsonl is damaged"),
        "{}",
        answer.err
    );
    assert!(
        answer.out.contains("Left out because unfinished: fedtvd with seed 1 (2 of 2 rounds)."),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("Left out because unreadable: 1 run."), "{}", answer.out);
    let (table, done) = (place("done/rounds.jsonl"), place("done"));
    let answer = fedtvd(&["report", &done, "--out", &table]);
    assert_eq!(answer.code, 2);
    assert_eq!(answer.err, format!("fedtvd: --out {table} is a file; it must be a folder\n"));
    assert!(path("report/report.html").is_file(), "the report is beside the runs");
}

#[test]
fn invalid_requests_exit_with_2() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let empty = folder.path().display().to_string();
    let refusals: &[(&[&str], String)] = &[
        (
            &["missing"],
            "missing cannot be searched for runs: No such file or directory (os error 2)".to_owned(),
        ),
        (
            &[&empty],
            format!(
                "there is no run below {empty}; a run directory has a manifest.json, and \"fedtvd run\" creates one"
            ),
        ),
        (
            &[&empty, "--target", "80"],
            "--target 80 is not an accuracy; it must be from 0 to 1, such as 0.8".to_owned(),
        ),
    ];
    for (arguments, sentence) in refusals {
        let answer = fedtvd(&[&["report"], *arguments].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}: {}", answer.err);
        assert_eq!(answer.err, format!("fedtvd: {sentence}\n"), "{arguments:?}");
    }
}
