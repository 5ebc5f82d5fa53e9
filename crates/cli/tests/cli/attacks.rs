//! Clients that lie, on the command line.

use crate::program::{Answer, fedtvd};
use fedtvd_run::attack::ALL;
use std::path::Path;

/// A small run with these settings.
fn run(out: &Path, settings: &[&str]) -> Answer {
    let out = out.display().to_string();
    let mut arguments = vec!["run", "--out", &out];
    let common = ["rounds=2", "clients=10", "model.name=logistic", "fraction=0.5"];
    common.iter().chain(settings).for_each(|setting| arguments.extend(["--set", setting]));
    fedtvd(&arguments)
}

#[test]
fn the_documentation_lists_every_attack() {
    let page = include_str!("../../../../docs/attacks.md");
    let mut table = "| `attack.kind` | acts on | what a liar does |\n|---|---|---|\n".to_owned();
    for spec in ALL {
        let places: Vec<String> = spec.places().iter().map(ToString::to_string).collect();
        let scale = spec.scale.map_or(String::new(), |scale| format!(" ({scale})"));
        table += &format!("| `{}` | {} | {}{scale} |\n", spec.name, places.join(", "), spec.about);
    }
    assert!(
        page.contains(&format!("\n\n{table}\n")),
        "docs/attacks.md is stale; its table should be:\n{table}"
    );
}

#[test]
fn a_run_with_liars_says_so_with_the_scale_that_applies_and_can_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let answer = run(&out, &["attack.kind=sign-flip", "attack.clients=3", "cohort.liars=2"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let note = "note: 3 clients lie, 2 per round (sign-flip, scale 1)\n";
    assert!(answer.err.contains(note), "{}", answer.err);
    let verdict = fedtvd(&["verify", &out.display().to_string(), "--json", "--quiet"]);
    assert!(verdict.out.contains("\"same_bits\": true"), "{} {}", verdict.out, verdict.err);
}

#[test]
fn liars_that_are_impossible_are_an_invalid_request() {
    let folder = tempfile::tempdir().unwrap();
    for (settings, message) in [
        (
            &["attack.kind=huge", "attack.clients=11"][..],
            "attack.clients = 11 is more than the 10 clients of this split",
        ),
        (
            &["attack.kind=huge", "attack.clients=8", "cohort.liars=6"],
            "cohort.liars = 6 is more than the number of clients per round, 5",
        ),
        (
            &["attack.kind=false-evaluation"],
            "attack.kind = false-evaluation acts on evaluations by clients, and in a simulation the server evaluates; use \
             fedtvd join --attack false-evaluation in a federation whose server has no test set",
        ),
    ] {
        let out = folder.path().join("refused");
        let answer = run(&out, settings);
        assert_eq!(
            (answer.code, answer.err.lines().last()),
            (2, Some(format!("fedtvd: {message}").as_str()))
        );
        assert!(!out.exists(), "nothing was started");
    }
}

#[test]
fn a_server_refuses_simulated_liars() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("federation").display().to_string();
    let serve = ["serve", "--plaintext", "--listen", "127.0.0.1:0", "--out", &out];
    let answer = fedtvd(&[&serve[..], &["--set", "attack.kind=scale"]].concat());
    let message = "attack.kind is for simulations; in a federation, a client lies with fedtvd join --attack";
    assert_eq!((answer.code, answer.err), (2, format!("fedtvd: {message}\n")));
}
