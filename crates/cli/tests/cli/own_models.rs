//! Models of which a part stays at each client, and models that clients use themselves, on the command line.

use crate::program::fedtvd;
use serde_json::Value;

const SMALL: [&str; 10] = [
    "--set",
    "rounds=2",
    "--set",
    "clients=6",
    "--set",
    "fraction=0.5",
    "--set",
    "split.holdout=0.2",
    "--set",
    "epochs=1",
];

#[test]
fn a_model_without_its_batch_norms_is_explained_and_each_clients_own_model_is_evaluated() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("run").display().to_string();
    let strategy = ["--set", "strategy.name=fedbn", "--set", "model.name=lenet-bn"];
    let run = fedtvd(&[["run", "--quiet", "--out", &out].as_slice(), &SMALL, &strategy].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("without the batch norms of each client; fedtvd evaluate"), "{}", run.out);
    let model = format!("{out}/model.safetensors");
    for (subcommand, input) in [("evaluate", out.as_str()), ("evaluate", model.as_str())] {
        let answer = fedtvd(&[subcommand, input]);
        assert_eq!(answer.code, 2);
        let said = "has only what clients share: under fedbn the batch norms stay at each client";
        assert!(answer.err.contains(said) && answer.err.contains("--clients"), "{}", answer.err);
    }
    let answer = fedtvd(&["evaluate", &out, "--clients", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let found: Value = serde_json::from_str(&answer.out).expect("a document");
    let kept = std::fs::read_to_string(format!("{out}/clients.json")).expect("the clients' results");
    assert_eq!(found["clients"], serde_json::from_str::<Value>(&kept).expect("a document"));
    assert_eq!(found["mean"], found["personal"]["mean"]);
    let text = fedtvd(&["evaluate", &out, "--clients"]);
    assert!(text.out.starts_with("accuracy of clients' own models over 6 clients"), "{}", text.out);
    let earlier = fedtvd(&["evaluate", &out, "--clients", "--round", "1"]);
    assert!(
        earlier.code == 2 && earlier.err.contains("not for round 1; leave --round out"),
        "{}",
        earlier.err
    );
}

#[test]
fn a_clients_own_model_stands_beside_the_shared_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("run").display().to_string();
    let run = fedtvd(
        &[["run", "--quiet", "--out", &out, "--set", "strategy.name=balanced+prior"].as_slice(), &SMALL]
            .concat(),
    );
    assert!(run.code == 0 && run.out.contains("own models of clients: mean "), "{}{}", run.out, run.err);
    let answer = fedtvd(&["evaluate", &out, "--clients"]);
    assert!(answer.out.contains("\naccuracy of clients' own models over 6 clients"), "{}", answer.out);
    assert!(answer.out.contains("  own model\n"), "{}", answer.out);
}
