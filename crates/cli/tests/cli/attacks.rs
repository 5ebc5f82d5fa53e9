//! Clients that lie, on the command line.

use crate::federation::{Process, call, same_results};
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
        let scale =
            spec.scale.filter(|scale| *scale > 0.0).map_or(String::new(), |scale| format!(" ({scale})"));
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
fn a_run_whose_model_an_attack_destroyed_can_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let answer = run(&out, &["attack.kind=scale", "attack.scale=1e38", "attack.clients=3", "cohort.liars=2"]);
    assert_eq!(answer.code, 1, "{}", answer.err);
    assert!(answer.err.contains("loss not finite") && answer.err.contains("client 0"), "{}", answer.err);
    let rounds = std::fs::read_to_string(out.join("rounds.jsonl")).unwrap();
    assert!(rounds.contains("\"loss\":null"), "the loss is not a number: {rounds}");
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
            &["attack.kind=alie", "attack.clients=10"],
            "attack.kind = alie is computed from a round's honest clients, and all 5 clients of a round lie; alie needs one that does \
             not",
        ),
        (
            &["attack.kind=inner-product", "attack.clients=5", "cohort.liars=5"],
            "attack.kind = inner-product is computed from a round's honest clients, and all 5 clients of a round lie; inner-product needs one that does not",
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

/// Four sites with the data of a split, and a roster of them.
struct Sites {
    folder: tempfile::TempDir,
}

const SPLIT: [&str; 10] = [
    "--set",
    "split.clients=4",
    "--set",
    "split.alpha=0.5",
    "--set",
    "split.holdout=0.1",
    "--set",
    "model.name=logistic",
    "--set",
    "strategy.mode=hardened",
];

impl Sites {
    fn new() -> Self {
        let sites = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        let (export, out) = (sites.path("sites"), sites.path("split"));
        call(&[&["split", "--quiet", "--export", &export, "--out", &out], &SPLIT[..6]].concat());
        std::fs::write(sites.path("roster"), "0\n1\n2\n3\n").expect("the folder is ours");
        let open = "statistics = [\"distance\", \"histogram\"]\n";
        std::fs::write(sites.path("site.toml"), open).expect("the folder is ours");
        sites
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// A federation in which client 0 lies.
    fn federation(&self, name: &str, serve: &[&str], lie: &[&str]) -> Ended {
        let (out, roster, state) = (self.path(name), self.path("roster"), self.path("state"));
        let policy = self.path("site.toml");
        let plain = ["serve", "--plaintext", "--listen", "127.0.0.1:0", "--out", &out, "--roster", &roster];
        let mut server = Process::start(&[&plain[..], serve].concat());
        let log = server.listening();
        let at = format!("@{out}/federation/address");
        let clients: Vec<Process> = (0..4)
            .map(|client| {
                let (data, number) = (self.path(&format!("sites/client-00{client}")), client.to_string());
                let join =
                    ["join", &at, &data, "--plaintext", &number, "--state", &state, "--policy", &policy];
                Process::start(&[&join[..], if client == 0 { lie } else { &[] }].concat())
            })
            .collect();
        let mut clients = clients.into_iter().map(Process::ends);
        let liar = clients.next().expect("there are four");
        clients.for_each(|(code, said)| assert_eq!(code, Some(0), "{said}"));
        server.succeeds();
        Ended { out, log: log.join().expect("reading a log does not panic"), liar }
    }
}

/// A federation that has ended.
struct Ended {
    /// Its run directory.
    out: String,
    /// The server's log.
    log: String,
    /// The liar's exit code and standard error.
    liar: (Option<i32>, String),
}

#[test]
fn a_client_that_lies_sends_the_bytes_of_a_liar_in_a_simulation() {
    let sites = Sites::new();
    for (attack, strategy, settings, lie) in [
        ("scale", "scaffold", &[][..], &[][..]),
        ("sign-flip", "fedadam", &["attack.scale=2.5"], &["--attack-scale", "2.5"]),
        ("gaussian", "fedtvd+geometric-median", &[], &[]),
        ("false-tvd", "fedtvd", &[], &[]),
        ("vast-reach", "fednova", &["attack.size=50000"], &["--attack-size", "50000"]),
        ("nan", "uniform", &[], &[]),
        ("label-flip", "fedtvd+balanced", &[], &[]),
    ] {
        let name = format!("strategy.name={strategy}");
        let common =
            ["--set", "rounds=2", "--set", "cohort.fraction=1", "--set", "local.epochs=1", "--set", &name];
        let common = [&SPLIT[..], &common].concat();
        let simulated = sites.path(&format!("simulated-{attack}"));
        let kind = format!("attack.kind={attack}");
        let mut run = [&["run", "--quiet", "--out", &simulated, "--set", &kind], &common[..]].concat();
        settings.iter().for_each(|setting| run.extend(["--set", setting]));
        call(&run);
        let lie = [&["--attack", attack], lie].concat();
        let Ended { out, log, liar } = sites.federation(&format!("federated-{attack}"), &common, &lie);
        same_results(&simulated, &out);
        // A client all of whose work was refused has failed.
        let refused = attack == "nan";
        assert_eq!(liar.0, Some(i32::from(refused)), "{attack}: {}", liar.1);
        assert_eq!(
            liar.1.contains("the server refused all of this client's work (2 times)"),
            refused,
            "{}",
            liar.1
        );
        let named = log.contains("round 2: client 0: update rejected: the change of the model has norm ");
        assert_eq!(named, attack == "scale", "{attack}: {log}");
    }
}

#[test]
fn a_false_histogram_shifts_the_reference_of_a_federation_as_of_a_simulation() {
    let sites = Sites::new();
    let settings = ["rounds=1", "cohort.fraction=1", "local.epochs=1", "labels.reference=aggregated"];
    let mut common = SPLIT.to_vec();
    settings.iter().for_each(|setting| common.extend(["--set", setting]));
    let simulated = sites.path("simulated");
    let kind = ["--set", "attack.kind=false-histogram", "--set", "strategy.name=fedtvd+balanced"];
    call(&[&["run", "--quiet", "--out", &simulated], &common[..], &kind].concat());
    let serve = [&common[..], &kind[2..]].concat();
    let Ended { out, liar, .. } = sites.federation("federated", &serve, &["--attack", "false-histogram"]);
    assert_eq!(liar.0, Some(0), "{}", liar.1);
    same_results(&simulated, &out);
}

#[test]
fn a_client_says_that_it_lies_and_refuses_an_impossible_lie() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table.csv").display().to_string();
    std::fs::write(&table, "label,a\n0,1\n1,2\n0,3\n1,4\n0,5\n1,6\n0,7\n1,8\n0,9\n1,10\n").unwrap();
    let join = |more: &[&str]| fedtvd(&[&["join", "nowhere", &table, "--plaintext", "0"], more].concat());
    let answer = join(&["--attack", "scale", "--attack-scale", "-1"]);
    let message = "fedtvd: attack.scale = -1 is not allowed; it must be 0 or more\n";
    assert_eq!((answer.code, answer.err.as_str()), (2, message));
    let answer = join(&["--attack", "sign-flop"]);
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("sign-flip"), "{}", answer.err);
    assert_eq!(join(&["--attack-scale", "2"]).code, 2, "a scale without an attack");
    for name in ["alie", "inner-product"] {
        let answer = join(&["--attack", name]);
        let message = format!(
            "fedtvd: --attack {name} needs the updates of the other clients, and a client knows only its own; use \
             attack.kind={name} in a simulation\n"
        );
        assert_eq!((answer.code, answer.err), (2, message));
    }
    let help = fedtvd(&["join", "--help"]).out;
    assert!(help.contains("- gaussian:") && !help.contains("- alie:"), "{help}");
    let at = "127.0.0.1:1x";
    let answer = fedtvd(&["join", at, &table, "--plaintext", "0", "--attack", "sign-flip"]);
    let said = "this client lies to the server (sign-flip, scale 1): its change of the model is reversed, and multiplied by";
    assert!(answer.err.starts_with(said), "{}", answer.err);
}
