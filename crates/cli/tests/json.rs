//! `docs/json.md` is true: the fields that it shows are those that the program prints.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod program;

use program::fedtvd;
use serde_json::Value;

/// The example of a section of the page.
fn shown(section: &str) -> Value {
    let page = include_str!("../../../docs/json.md");
    let body =
        page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}")).1;
    let block = body.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
    serde_json::from_str(block).unwrap()
}

/// Fails where two values do not have the same fields; what is null or empty on one side says nothing.
fn same_fields(path: &str, shown: &Value, printed: &Value) {
    match (shown, printed) {
        (Value::Object(shown), Value::Object(printed)) => {
            let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(shown), names(printed), "fields of {path}");
            shown
                .iter()
                .for_each(|(name, value)| same_fields(&format!("{path}.{name}"), value, &printed[name]));
        }
        (Value::Array(shown), Value::Array(printed)) => {
            if let (Some(shown), Some(printed)) = (shown.first(), printed.first()) {
                same_fields(&format!("{path}[0]"), shown, printed);
            }
        }
        _ => {}
    }
}

#[test]
fn the_page_of_fields_is_true() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (runs, run, split) = (place("runs"), place("run"), place("split"));
    let small = ["--set", "rounds=2", "--set", "clients=20", "--set", "model.name=logistic"];
    let with_small =
        |call: &[&str]| -> Vec<String> { call.iter().chain(&small).map(ToString::to_string).collect() };
    let plain = |call: &[&str]| -> Vec<String> { call.iter().map(ToString::to_string).collect() };
    let grid = place("grid.toml");
    std::fs::write(&grid, "[sweep]\nseed = [1, 2]\n").unwrap();
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
        ("weights", plain(&["weights"])),
        ("strategies", plain(&["strategies"])),
        ("models", plain(&["models"])),
        ("split", plain(&["split", "--set", "clients=20", "--out", &split])),
        ("data list", plain(&["data", "list"])),
        ("init", plain(&["init"])),
        ("sweep", with_small(&["sweep", &grid, "--out", &place("sweep")])),
        ("reproduce", {
            let call =
                ["reproduce", "skew", "--dataset", "fmnist-mini", "--strategies", "fedavg", "--seeds", "1"];
            with_small(&[call.as_slice(), &["--out", &place("paper")]].concat())
        }),
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
