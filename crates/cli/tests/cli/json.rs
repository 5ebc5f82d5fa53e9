//! `docs/json.md` shows the fields that the program prints.

use crate::page::{same_fields, shown};
use crate::program::fedtvd;

#[test]
fn the_documented_fields_are_those_printed() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (runs, run, split) = (place("runs"), place("run"), place("split"));
    let small = ["--set", "rounds=2", "--set", "clients=20", "--set", "model.name=logistic"];
    let with_small =
        |call: &[&str]| -> Vec<String> { call.iter().chain(&small).map(ToString::to_string).collect() };
    let plain = |call: &[&str]| -> Vec<String> { call.iter().map(ToString::to_string).collect() };
    let grid = place("grid.toml");
    std::fs::write(&grid, "[sweep]\nseed = [1, 2]\n").unwrap();
    let held_out = place("held-out");
    let call = with_small(&["run", "--out", &held_out, "--quiet", "--set", "split.holdout=0.3"]);
    assert_eq!(fedtvd(&call.iter().map(String::as_str).collect::<Vec<_>>()).code, 0);
    let table = place("table.csv");
    std::fs::write(&table, "age,label\n1,a\n2,b\n").unwrap();
    let calls = [
        (
            "compare",
            with_small(&["compare", "--seeds", "2", "--strategies", "fedavg,fedtvd", "--out", &runs]),
        ),
        ("report", plain(&["report", &runs])),
        ("run", with_small(&["run", "--out", &run])),
        ("run --dry-run", with_small(&["run", "--dry-run"])),
        ("verify", plain(&["verify", &run])),
        ("evaluate", plain(&["evaluate", &run])),
        ("evaluate --clients", plain(&["evaluate", &held_out, "--clients"])),
        ("weights", plain(&["weights"])),
        ("strategies", plain(&["strategies"])),
        ("models", plain(&["models"])),
        ("split", plain(&["split", "--set", "clients=20", "--out", &split])),
        ("data list", plain(&["data", "list"])),
        ("data schema", plain(&["data", "schema", &table])),
        ("init", plain(&["init"])),
        ("sweep", with_small(&["sweep", &grid, "--out", &place("sweep")])),
        (
            "tune",
            with_small(&["tune", "--seeds", "2", "--grid", "local.lr=0.01,0.1", "--out", &place("tune")]),
        ),
        ("reproduce", {
            let call =
                ["reproduce", "skew", "--dataset", "fmnist-mini", "--strategies", "fedavg", "--seeds", "1"];
            plain(&[call.as_slice(), &["--rounds", "1", "--out", &place("paper")]].concat())
        }),
        (
            "reproduce --dry-run",
            plain(&["reproduce", "lambda", "--dataset", "fmnist-mini", "--seeds", "1", "--dry-run"]),
        ),
    ];
    for (section, call) in calls {
        let call: Vec<&str> = call.iter().map(String::as_str).chain(["--json", "--quiet"]).collect();
        let answer = fedtvd(&call);
        assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{section}");
        same_fields(section, &shown(section), &serde_json::from_str(&answer.out).unwrap());
    }
    let lines = std::fs::read_to_string(folder.path().join("run/rounds.jsonl")).unwrap();
    same_fields(
        "rounds.jsonl",
        &shown("rounds.jsonl"),
        &serde_json::from_str(lines.lines().next().unwrap()).unwrap(),
    );
}
