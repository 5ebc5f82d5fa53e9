//! `fedtvd split` on the command line.

use crate::program::fedtvd;
use serde_json::Value;
use std::path::Path;

fn split(folder: &Path, arguments: &[&str]) -> Value {
    let out = folder.to_str().expect("the folder's name is text");
    let answer = fedtvd(&[&["split", "--json", "--out", out], arguments].concat());
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    serde_json::from_str(&answer.out).expect("--json gives one JSON document")
}

#[test]
fn json_has_the_documented_fields() {
    let folder = tempfile::tempdir().unwrap();
    let view = split(folder.path(), &["--set", "clients=5"]);
    assert_eq!(view["clients"].as_array().map(Vec::len), Some(5));
    let client = &view["clients"][0];
    let counts: u64 = client["counts"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    assert_eq!(client["client"], 0);
    assert_eq!(client["size"], counts);
    assert!(client["tvd"].is_f64() && view["mean_tvd"].is_f64() && view["size_cv"].is_f64());
    assert!(view["size_tvd_correlation"].is_f64());
    assert_eq!(view["hash"].as_str().map(str::len), Some(64));
}

#[test]
fn the_split_depends_on_its_seed_and_not_on_that_of_the_cohorts() {
    let folder = tempfile::tempdir().unwrap();
    let hash = |arguments: &[&str]| split(folder.path(), arguments)["hash"].clone();
    let first = hash(&[]);
    let cohort = folder.path().join("cohort.toml");
    std::fs::write(&cohort, "cohort.seed = 99\n").unwrap();
    assert_eq!(hash(&[cohort.to_str().unwrap()]), first);
    assert_eq!(hash(&["--set", "seed=7", "--set", "split.seed=1"]), first);
    assert_ne!(hash(&["--set", "split.seed=2"]), first);
}

#[test]
fn a_chosen_rank_correlation_is_reached_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    for asked in [0.8, -0.8] {
        let set = format!("split.correlation={asked}");
        let view = split(folder.path(), &["--set", "split.kind=correlated", "--set", &set]);
        assert_eq!(view["asked_rank_correlation"], asked);
        let rank = view["size_tvd_rank_correlation"].as_f64().unwrap();
        assert!((rank - asked).abs() <= 0.02, "{asked}: {rank}");
        let note = view["notes"][0].as_str().unwrap();
        assert!(
            note.starts_with(&format!("rank correlation of size and TVD: requested {asked}, achieved ")),
            "{note}"
        );
    }
}

#[test]
fn a_saved_partition_is_the_same_split_again() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = split(folder.path(), &["--set", "split.kind=shards"]);
    let path = format!("split.file={}", folder.path().join("partition.json").display());
    let again = tempfile::tempdir().unwrap();
    let saved = split(again.path(), &["--set", "split.kind=file", "--set", &path]);
    assert_eq!(saved["clients"], drawn["clients"]);
    assert_eq!(saved["hash"], drawn["hash"]);
}

#[test]
fn held_out_rows_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let iid = ["--set", "split.kind=iid", "--set", "clients=10"];
    let whole = split(folder.path(), &iid);
    let part = split(folder.path(), &[iid.as_slice(), &["--set", "split.holdout=0.15"]].concat());
    assert_eq!((&whole["clients"][3]["size"], &part["clients"][3]["size"]), (&1200.into(), &1020.into()));
    // Another hold-out gives another split of the same partition.
    assert_ne!(whole["hash"], part["hash"]);
    let more = split(folder.path(), &[iid.as_slice(), &["--set", "split.holdout=0.2"]].concat());
    assert_ne!(more["hash"], part["hash"]);
    let saved = std::fs::read_to_string(folder.path().join("partition.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&saved).unwrap()["hash"], whole["hash"]);
}

#[test]
fn charts_and_folders_of_clients_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let answer = fedtvd(&[
        "split",
        "--quiet",
        "--set",
        "clients=4",
        "--out",
        &path("out"),
        "--plot",
        &path("a.svg"),
        "--plot",
        &path("a.PNG"),
        "--export",
        &path("sites"),
    ]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("mean TVD") && answer.out.contains("hash"), "{}", answer.out);
    assert!(std::fs::read_to_string(path("a.svg")).unwrap().starts_with("<svg"));
    assert_eq!(std::fs::read(path("a.PNG")).unwrap()[1..4], *b"PNG");
    assert!(Path::new(&path("sites/partition.json")).is_file());
    // The folder of a client can be used as a data set.
    let own = format!("data.set={}", path("sites/client-003"));
    let site = split(folder.path(), &["--set", &own, "--set", "split.kind=iid", "--set", "clients=1"]);
    let whole = split(folder.path(), &["--set", "clients=4"]);
    assert_eq!(site["clients"][0]["counts"], whole["clients"][3]["counts"]);
}

#[test]
fn clients_are_not_exported_beside_those_of_another_split() {
    let folder = tempfile::tempdir().unwrap();
    let (sites, other) = (folder.path().join("sites"), folder.path().join("other"));
    let sites = sites.to_str().unwrap();
    // --export and --out can be the same folder.
    split(Path::new(sites), &["--set", "clients=4", "--export", sites]);
    let before = std::fs::read(format!("{sites}/partition.json")).unwrap();
    let saved: Value = serde_json::from_slice(&before).unwrap();
    assert_eq!(saved["clients"].as_array().map(Vec::len), Some(4));
    let arguments = ["split", "--set", "clients=3", "--export", sites, "--out", other.to_str().unwrap()];
    let answer = fedtvd(&arguments);
    assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{}", answer.err);
    assert!(answer.err.contains("already contains client-000"), "{}", answer.err);
    assert!(!other.exists() && std::fs::read(format!("{sites}/partition.json")).unwrap() == before);
}

#[test]
fn invalid_requests_exit_with_2() {
    let refusals: &[(&[&str], &str)] = &[
        (&["--plot", "x.jpg"], "--plot x.jpg must end in .svg or .png"),
        (&["--set", "split.kind=natural"], "this data set has no natural owners"),
        (&["--set", "split.kind=file"], "split.kind = \"file\" needs split.file"),
        (
            &["--set", "clients=7000"],
            "7000 clients with at least 2 rows each need 14000 rows, but there are 12000",
        ),
        (
            &["--set", "labels.reference=[0.5,0.5]"],
            "labels.reference has 2 numbers, but there are 10 classes",
        ),
        (&["--set", "data.imbalance=0"], "data.imbalance = 0 is not allowed"),
        (
            &["--data", "/nowhere", "--set", "data.set=cifar100"],
            "cifar100 is not on this machine: looked for",
        ),
    ];
    for (arguments, sentence) in refusals {
        let answer = fedtvd(&[&["split"], *arguments].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}: {}", answer.err);
        assert!(answer.err.starts_with(&format!("fedtvd: {sentence}")), "{arguments:?}: {}", answer.err);
    }
}
