//! `fedtvd run`, `resume`, `verify` and `evaluate` on the command line, also after kills.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::program::fedtvd;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const SMALL: [&str; 8] =
    ["--set", "rounds=6", "--set", "clients=20", "--set", "fraction=0.3", "--set", "model.name=logistic"];

fn run(out: &Path, more: &[&str]) -> crate::program::Answer {
    fedtvd(&[["run", "--quiet", "--out", out.to_str().unwrap()].as_slice(), &SMALL, more].concat())
}

fn model(run: &Path) -> Vec<u8> {
    std::fs::read(run.join("model.safetensors")).unwrap()
}

#[test]
fn a_run_directory_holds_everything_and_its_model_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let answer = run(&out, &["--json", "--set", "evaluation.details=true"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let summary: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!((&summary["strategy"], &summary["rounds"]), (&"fedtvd".into(), &6.into()));
    for file in ["config.toml", "manifest.json", "partition.json", "rounds.jsonl", "summary.json"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let lines = std::fs::read_to_string(out.join("rounds.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    let weights: f64 =
        line["clients"].as_array().unwrap().iter().map(|c| c["weight"].as_f64().unwrap()).sum();
    assert!((weights - 1.0).abs() < 1e-12 && line["class_accuracy"].as_array().unwrap().len() == 10);
    let evaluated = fedtvd(&["evaluate", out.to_str().unwrap(), "--json"]);
    let evaluated: serde_json::Value = serde_json::from_str(&evaluated.out).unwrap();
    assert_eq!(evaluated["accuracy"], summary["accuracy"]);
    let again = run(&out, &[]);
    assert_eq!((again.code, again.out.as_str()), (2, ""));
    assert!(again.err.contains("already holds a run"), "{}", again.err);
}

#[test]
fn a_run_with_a_natural_split_saves_the_owners_names_and_notes_rows_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("wards.csv");
    let row =
        |n: usize| format!("{},{},{}\n", n, ["north", "south"][n % 2], ["0", "1", "1.0", "?"][n / 2 % 4]);
    std::fs::write(&table, (0..80).fold("x,ward,label\n".to_owned(), |text, n| text + &row(n))).unwrap();
    let (out, set) = (folder.path().join("run"), format!("data.set={}", table.display()));
    let natural = ["--set", &set, "--set", "data.group=ward", "--set", "split.kind=natural"];
    let base = ["run", "--out", out.to_str().unwrap(), "--set", "rounds=1", "--set", "fraction=1"];
    let answer = fedtvd(&[base.as_slice(), &["--set", "model.name=logistic"], &natural].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(
        answer.err.contains("note: label: 20 of 80 are missing; these rows are left out"),
        "{}",
        answer.err
    );
    let saved = std::fs::read_to_string(out.join("partition.json")).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(saved["names"], serde_json::json!(["north", "south"]));
}

#[test]
fn the_predictions_match_the_confusion_matrix() {
    let folder = tempfile::tempdir().unwrap();
    let (out, file) = (folder.path().join("run"), folder.path().join("predictions.csv"));
    assert_eq!(run(&out, &[]).code, 0);
    let answer =
        fedtvd(&["evaluate", out.to_str().unwrap(), "--json", "--predictions", file.to_str().unwrap()]);
    let view: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let mut confusion = vec![vec![0u64; 10]; 10];
    let text = std::fs::read_to_string(file).unwrap();
    let header = text.lines().next().unwrap();
    assert!(header.starts_with("row,label,prediction,label_name,prediction_name,p_T-shirt"), "{header}");
    for (row, line) in (12_000..).zip(text.lines().skip(1)) {
        let numbers: Vec<usize> = line.split(',').take(3).map(|number| number.parse().unwrap()).collect();
        assert_eq!(numbers[0], row);
        confusion[numbers[1]][numbers[2]] += 1;
    }
    assert_eq!(serde_json::to_value(confusion).unwrap(), view["confusion"]);
}

#[test]
fn a_run_in_use_or_unfinished_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let text = out.to_str().unwrap();
    let long = ["--set", "rounds=100000"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_fedtvd"))
        .args([["run", "--log", "json", "--out", text].as_slice(), &SMALL, &long].concat())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut first).unwrap();
    let busy = fedtvd(&["resume", text]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(busy.code, 2);
    assert!(
        busy.err.ends_with("another fedtvd process is working on this run; wait until it ends, or stop it\n"),
        "{}",
        busy.err
    );
    let early = fedtvd(&["evaluate", text]);
    assert_eq!(
        (early.code, early.err),
        (
            2,
            format!(
                "fedtvd: {text} has no model yet: the run is unfinished; to resume it: fedtvd resume {text}\n"
            )
        )
    );
}

/// Strategies with and without memories, and one with every option of local training.
fn cases() -> [(&'static str, &'static [&'static str]); 4] {
    [("fedtvd+balanced", &[]), ("scaffold", &[]), ("fedadam", &[]), ("fedprox", &TRAINING)]
}

const TRAINING: [&str; 16] = [
    "--set",
    "local.optimizer=adam",
    "--set",
    "local.lr=0.003",
    "--set",
    "local.weight_decay=0.01",
    "--set",
    "local.clip=0.5",
    "--set",
    "local.label_smoothing=0.1",
    "--set",
    "local.schedule=cosine",
    "--set",
    "local.cosine_rounds=100",
    "--set",
    "local.warmup=3",
];

#[test]
fn any_number_of_workers_gives_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    for (strategy, options) in cases() {
        let set = format!("strategy.name={strategy}");
        let models = ["1", "2", "7"].map(|workers| {
            let out = folder.path().join(format!("{strategy}-{workers}"));
            assert_eq!(run(&out, &[&["--workers", workers, "--set", &set], options].concat()).code, 0);
            model(&out)
        });
        assert!(models[0] == models[1] && models[1] == models[2], "{strategy}");
    }
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    for (strategy, options) in cases() {
        let set = format!("strategy.name={strategy}");
        let set = [&["--set", &set], options].concat();
        let whole = folder.path().join(format!("{strategy}-whole"));
        assert_eq!(run(&whole, &set).code, 0);
        let out = folder.path().join(format!("{strategy}-killed"));
        let killed = |verb: &[&str], milliseconds| {
            let mut child = Command::new(env!("CARGO_BIN_EXE_fedtvd"))
                .args(verb)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(milliseconds));
            child.kill().unwrap();
            child.wait().unwrap();
        };
        let text = out.to_str().unwrap();
        killed(&[["run", "--out", text].as_slice(), &SMALL, &set].concat(), 400);
        for milliseconds in [150, 400, 300] {
            if out.join("manifest.json").exists() {
                killed(&["resume", text], milliseconds);
            }
        }
        let last = if out.join("manifest.json").exists() {
            fedtvd(&["resume", "--quiet", text])
        } else {
            run(&out, &set)
        };
        assert_eq!(last.code, 0, "{}", last.err);
        assert_eq!(model(&out), model(&whole), "{strategy}");
    }
}

#[test]
fn verify_names_the_arithmetic_that_differs_and_does_not_compare_bits_then() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    assert_eq!(run(&out, &[]).code, 0);
    let manifest = out.join("manifest.json");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    json["fingerprint"]["kernels"] = 99.into();
    std::fs::write(&manifest, json.to_string()).unwrap();
    let text = out.to_str().unwrap();
    let spoken = fedtvd(&["verify", text, "--rounds", "1", "--quiet"]);
    let start = "1 round recomputed with other arithmetic (kernels of version 99, here ";
    assert!(spoken.code == 0 && spoken.out.starts_with(start), "{}", spoken.out);
    let json = fedtvd(&["verify", text, "--rounds", "1", "--quiet", "--json"]);
    let verdict: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&verdict["same_bits"], &verdict["same_fingerprint"]),
        (&serde_json::Value::Null, &false.into())
    );
    assert!(verdict["difference"].as_str().unwrap().starts_with("kernels of version 99, here "));
}

#[test]
fn verify_finds_the_same_bits_or_names_the_first_difference() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    assert_eq!(run(&out, &[]).code, 0);
    let text = out.to_str().unwrap();
    let same = fedtvd(&["verify", text, "--json", "--quiet"]);
    let verdict: serde_json::Value = serde_json::from_str(&same.out).unwrap();
    assert_eq!((same.code, &verdict["same_bits"]), (0, &true.into()));
    let path = out.join("rounds.jsonl");
    let lines = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines[3]["model_hash"] = "0".into();
    lines[3]["tensor_hashes"][1] = "0".into();
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let parted = fedtvd(&["verify", text, "--rounds", "2-5", "--quiet"]);
    assert_eq!(parted.code, 1);
    assert_eq!(parted.err, "fedtvd: round 4 differs, first in fc.bias\n");
    lines[1]["accuracy"] = 0.99.into();
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let polished = fedtvd(&["verify", text, "--rounds", "1-3", "--quiet"]);
    assert_eq!(polished.err, "fedtvd: round 2 differs, first in the recorded accuracy or loss\n");
    let file = out.join("model.safetensors");
    let mut bytes = model(&out);
    let last = bytes.len() - 1;
    bytes[last] ^= 0x01;
    std::fs::write(&file, &bytes).unwrap();
    let swapped = fedtvd(&["verify", text, "--rounds", "1", "--quiet"]);
    let sentence = format!(
        "fedtvd: {} is not the model of round 6: fc.weight differs from what rounds.jsonl recorded\n",
        file.display()
    );
    assert_eq!((swapped.code, swapped.err), (1, sentence));
    let missing = fedtvd(&["verify", text, "--rounds", "9"]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""));
    assert!(missing.err.contains("round 9 was not run"), "{}", missing.err);
    for (rounds, wrong) in [("1-4000000000", "4000000000"), ("3,x", "x"), ("0", "0")] {
        let refused = fedtvd(&["verify", text, "--rounds", rounds]);
        let sentence =
            format!("fedtvd: --rounds {rounds}: \"{wrong}\" is not a round; write rounds such as 3,7-9\n");
        assert_eq!((refused.code, refused.err), (2, sentence));
    }
}

#[test]
fn changed_data_and_foreign_directories_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = fedtvd(&["resume", folder.path().to_str().unwrap()]);
    assert_eq!(empty.code, 2);
    assert!(empty.err.contains("holds no run: it has no config.toml"), "{}", empty.err);
    let out = folder.path().join("run");
    // Files left by a kill before the manifest was written do not prevent a new run.
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("config.toml"), "seed = 1\n").unwrap();
    assert_eq!(run(&out, &[]).code, 0);
    std::fs::remove_file(out.join("summary.json")).unwrap();
    let path = out.join("manifest.json");
    let manifest = std::fs::read_to_string(&path).unwrap();
    let value: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let checksum = value["data_checksum"].as_str().unwrap();
    std::fs::write(&path, manifest.replace(checksum, "0123")).unwrap();
    let changed = fedtvd(&["resume", out.to_str().unwrap()]);
    assert_eq!(changed.code, 1);
    let sentence = "the data set fmnist-mini changed since the run began: its hash was 0123 and is ";
    assert!(changed.err.contains(sentence), "{}", changed.err);
    std::fs::write(&path, manifest.replace("\"format\": 1", "\"format\": 99")).unwrap();
    let foreign = fedtvd(&["resume", out.to_str().unwrap()]);
    assert!(foreign.err.contains("version 99 of the run directory"), "{}", foreign.err);
}

#[test]
fn ignored_settings_are_noted_unless_quiet() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let text = "rounds = 1\nmodel.name = \"logistic\"\nstrategy.name = \"fedprox\"\n\
                split = { clients = 10, file = \"saved.json\" }\n[sweep]\nseed = [1, 2]\n";
    std::fs::write(place("grid.toml"), text).unwrap();
    let file = "note: split.file = saved.json is ignored: it has no effect with split.kind = dirichlet\n";
    let strategy =
        "note: compare ignores strategy.name = fedprox of the configuration and uses fedavg, uniform\n";
    let sweep = |name: &str| {
        format!("note: {name} ignores the [sweep] table of the configuration; use fedtvd sweep\n")
    };
    let calls: [(&[&str], Vec<String>); 3] = [
        (&["run"], vec![sweep("run"), file.to_owned()]),
        (
            &["compare", "--strategies", "fedavg,uniform", "--seeds", "1"],
            vec![sweep("compare"), strategy.to_owned(), file.to_owned()],
        ),
        (&["split"], vec![file.to_owned()]),
    ];
    for (call, notes) in calls {
        let out = place(call[0]);
        let answer = fedtvd(&[call, &[&place("grid.toml"), "--out", &out]].concat());
        assert_eq!(answer.code, 0, "{call:?}: {}", answer.err);
        assert!(notes.iter().all(|note| answer.err.contains(note.as_str())), "{call:?}: {}", answer.err);
        let quiet = fedtvd(&[call, &[&place("grid.toml"), "--quiet", "--out", &format!("{out}-2")]].concat());
        assert_eq!((quiet.code, quiet.err.as_str()), (0, ""), "{call:?}");
    }
}
