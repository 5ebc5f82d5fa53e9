//! `evaluate --round`, `resume --from` and `serve --rollback` on the command line.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::federation::{Process, call};
use crate::program::fedtvd;
use serde_json::Value;
use std::fs;
use std::path::Path;

const SMALL: [&str; 8] =
    ["--set", "rounds=25", "--set", "clients=20", "--set", "fraction=0.3", "--set", "model.name=logistic"];

fn run(out: &str) {
    let answer = fedtvd(&[["run", "--quiet", "--out", out].as_slice(), &SMALL].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
}

fn lines(out: &str) -> Vec<Value> {
    let text = fs::read_to_string(Path::new(out).join("rounds.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Answers to `evaluate --round`.
fn evaluated(out: &str, round: &str) -> Result<Value, String> {
    let answer = fedtvd(&["evaluate", out, "--json", "--round", round]);
    if answer.code == 0 { Ok(serde_json::from_str(&answer.out).unwrap()) } else { Err(answer.err) }
}

#[test]
fn the_models_of_kept_rounds_can_be_evaluated_and_others_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run").display().to_string();
    run(&out);
    let lines = lines(&out);
    // 25 rounds: every third is kept, and the final model is that of the last round.
    for round in [3, 12, 24, 25] {
        let view = evaluated(&out, &round.to_string()).unwrap();
        assert_eq!((&view["accuracy"], &view["round"]), (&lines[round - 1]["accuracy"], &round.into()));
    }
    let available = "3, 6, 9, 12, 15, 18, 21, 24";
    let missing = |round: u32, last: &str| {
        format!(
            "fedtvd: {out} has no usable checkpoint of round {round}; available rounds: {available}{last}\n"
        )
    };
    assert_eq!(evaluated(&out, "4"), Err(missing(4, ", 25")));
    let file = format!("{out}/model.safetensors");
    let sentence = format!("fedtvd: --round 3 needs a run directory; {file} is not a directory\n");
    assert_eq!(evaluated(&file, "3"), Err(sentence));
    fs::remove_file(Path::new(&out).join("summary.json")).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(evaluated(&out, "25"), Err(missing(25, "")));
    let advice = format!(
        "fedtvd: {out} has no model yet: the run is unfinished; to resume it: fedtvd resume {out}; to evaluate the model after \
         round 24: fedtvd evaluate {out} --round 24\n"
    );
    assert_eq!(fedtvd(&["evaluate", &out]).err, advice);
}

#[test]
fn a_run_resumed_from_an_earlier_round_ends_with_the_same_model_and_records_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run").display().to_string();
    run(&out);
    let model = || fs::read(Path::new(&out).join("model.safetensors")).unwrap();
    let (whole, before) = (model(), fs::read_to_string(Path::new(&out).join("rounds.jsonl")).unwrap());
    let refused = fedtvd(&["resume", &out, "--quiet", "--from", "4"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("available rounds: 0, 3, 6"), "{}", refused.err);
    let answer = fedtvd(&["resume", &out, "--quiet", "--from", "12"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(model() == whole);
    let marked = |line: &Value| Some((line["round"].as_u64()?, line["rolled_back_from"].as_u64()?));
    assert_eq!(lines(&out).iter().filter_map(marked).collect::<Vec<_>>(), [(13, 25)]);
    let discarded = fs::read_to_string(format!("{out}/rolled-back/0001-from-25-to-12/rounds.jsonl")).unwrap();
    assert!(before.ends_with(&discarded) && discarded.lines().count() == 13);
    let verdict = fedtvd(&["verify", &out, "--quiet", "--json"]);
    assert!(verdict.out.contains("\"same_bits\": true"), "{}", verdict.out);
}

/// Serves to the end, with two clients.
fn federated(folder: &Path, serve: &[&str]) {
    let out = folder.join("run").display().to_string();
    let mut server = Process::start(&[serve, &["--plaintext", "--listen", "127.0.0.1:0"]].concat());
    server.listening();
    let at = format!("@{out}/federation/address");
    let client = |number: u32| {
        let data = folder.join(format!("sites/client-{number:03}")).display().to_string();
        Process::start(&["join", &at, &data, "--plaintext", &number.to_string()])
    };
    [0, 1].map(client).into_iter().for_each(Process::succeeds);
    server.succeeds();
}

#[test]
fn a_finished_federation_rolled_back_is_computed_as_a_simulation_would() {
    for strategy in ["fedtvd", "scaffold"] {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).display().to_string();
        let split = ["--set", "split.clients=2", "--set", "split.alpha=0.5", "--set", "split.holdout=0.1"];
        call(
            &[&["split", "--quiet", "--export", &place("sites"), "--out", &place("split")], &split[..]]
                .concat(),
        );
        fs::write(place("roster"), "0\n1\n").unwrap();
        let (out, roster, name) = (place("run"), place("roster"), format!("strategy.name={strategy}"));
        let settings = ["--set", "rounds=3", "--set", "epochs=1", "--set", "fraction=1", "--set", &name];
        let model =
            ["--set", "model.name=logistic", "--set", "mode=paper", "--out", &out, "--roster", &roster];
        federated(folder.path(), &[&["serve"], &split[..], &settings, &model].concat());
        let hashes = || lines(&out).iter().map(|line| line["model_hash"].clone()).collect::<Vec<_>>();
        let before = hashes();
        let simulation = fedtvd(&["resume", &out, "--from", "1"]);
        assert_eq!(simulation.code, 2);
        assert!(simulation.err.contains("holds a federation"), "{}", simulation.err);
        federated(folder.path(), &["serve", &out, "--rollback", "1"]);
        // Only clients with state of their own begin again from zero, and so end with another model.
        assert_eq!(hashes()[0], before[0], "{strategy}");
        assert_eq!(hashes() == before, strategy == "fedtvd");
        assert_eq!(lines(&out)[1]["rolled_back_from"], 3);
        let verdict = fedtvd(&["verify", &out, "--json", "--quiet"]);
        assert!(verdict.out.contains("\"same_bits\": true"), "{strategy}: {} {}", verdict.out, verdict.err);
        let one = fedtvd(&["verify", &out, "--json", "--quiet", "--rounds", "3"]);
        assert!(one.out.contains("\"same_bits\": true"), "{strategy}: {} {}", one.out, one.err);
        assert_eq!(evaluated(&out, "2").unwrap()["accuracy"], lines(&out)[1]["accuracy"]);
        fs::remove_file(format!("{out}/summary.json")).unwrap();
        fs::remove_file(format!("{out}/model.safetensors")).unwrap();
        let advice = fedtvd(&["evaluate", &out]).err;
        assert!(
            advice.contains(&format!(
                "to resume it: fedtvd serve {out} with the options of its server; to evaluate"
            )),
            "{advice}"
        );
    }
}

#[test]
fn the_run_directory_of_a_server_is_named_once_and_holds_a_federation() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let refused = |arguments: &[&str]| {
        let answer = fedtvd(&[&["serve", "--plaintext", "--listen", "127.0.0.1:0"], arguments].concat());
        assert_eq!(answer.code, 2);
        answer.err
    };
    let (run, other) = (place("run"), place("other"));
    fs::create_dir(&run).unwrap();
    let two = format!("fedtvd: {run} and --out {other} are two run directories; name one of them\n");
    assert_eq!(refused(&[&run, "--out", &other]), two);
    assert_eq!(refused(&[&run]), format!("fedtvd: {run} holds no run: it has no config.toml\n"));
    let nothing = format!("fedtvd: {other} holds no federation that could be rolled back\n");
    assert_eq!(refused(&["--out", &other, "--rollback", "3"]), nothing);
    assert!(!Path::new(&other).exists());
}
