//! A federation of processes gives the same bytes as a simulation.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::page::{same_fields, shown};
use crate::program::fedtvd;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;

/// A running process, which is killed when this is dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_fedtvd"))
            .args(arguments)
            .env_remove("FEDTVD_DATA")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Reads the log until the server listens; a thread reads the rest, so that the server never blocks on a full pipe,
    /// and returns it.
    pub(crate) fn listening(&mut self) -> JoinHandle<String> {
        let (_, lines) = self.until_it_listens();
        std::thread::spawn(move || lines.map_while(Result::ok).map(|line| line + "\n").collect())
    }

    /// What the server says until it listens.
    pub(crate) fn says_until_it_listens(mut self) -> String {
        self.until_it_listens().0
    }

    /// Reads the log until the server listens; returns what it read, and the reader of the rest.
    pub(crate) fn until_it_listens(&mut self) -> (String, Lines<BufReader<ChildStderr>>) {
        let mut lines = BufReader::new(self.0.stderr.take().unwrap()).lines();
        let mut heard = Vec::new();
        loop {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {heard:?}")).unwrap();
            let found = line.starts_with("listening on ");
            heard.push(line);
            if found {
                break;
            }
        }
        (heard.join("\n"), lines)
    }

    /// Waits for its successful end; what it wrote to stdout.
    pub(crate) fn answers(mut self) -> String {
        let answer = std::io::read_to_string(self.0.stdout.take().unwrap()).unwrap();
        self.succeeds();
        answer
    }

    /// The lines of its log.
    #[cfg(unix)]
    pub(crate) fn errors(&mut self) -> Lines<BufReader<ChildStderr>> {
        BufReader::new(self.0.stderr.take().unwrap()).lines()
    }

    /// Sends a signal, such as TERM.
    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    pub(crate) fn succeeds(self) {
        let (code, said) = self.ends();
        assert_eq!(code, Some(0), "{said}");
    }

    /// Waits for its end; its exit code, and its standard error if nobody else reads it.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let said = self.0.stderr.take().map(|stderr| std::io::read_to_string(stderr).unwrap());
        (self.0.wait().unwrap().code(), said.unwrap_or_default())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fails unless two runs have the same model and the same rounds.
pub(crate) fn same_results(simulated: &str, federated: &str) {
    let models = |out: &str| -> Vec<(String, Vec<u8>)> {
        let names =
            std::fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("model")).collect();
        names.sort();
        names
            .into_iter()
            .map(|name| (name.clone(), std::fs::read(Path::new(out).join(name)).unwrap()))
            .collect()
    };
    assert!(models(simulated) == models(federated) && !models(federated).is_empty(), "{federated}");
    let lines = |out: &str| {
        let text = std::fs::read_to_string(Path::new(out).join("rounds.jsonl")).unwrap();
        let line = |line: &str| {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            // All else is the same, the bytes that were sent among it: a simulation counts what would be.
            line.as_object_mut().unwrap().remove("seconds").unwrap();
            // The server of a federation with a test set asks nobody for an evaluation.
            line.as_object_mut().unwrap().remove("validation");
            // Nor does it see the models that clients use themselves.
            line.as_object_mut().unwrap().remove("personal");
            for client in line["clients"].as_array_mut().unwrap() {
                client.as_object_mut().unwrap().remove("tvd");
            }
            line
        };
        text.lines().map(line).collect::<Vec<_>>()
    };
    assert_eq!(lines(simulated), lines(federated), "{federated}");
}

pub(crate) fn call(arguments: &[&str]) {
    let answer = fedtvd(arguments);
    assert_eq!(answer.code, 0, "{arguments:?}: {}", answer.err);
}

/// Ten sites with the data of a split, a certificate authority and a roster.
fn sites(folder: &Path, settings: &[&str]) -> Vec<String> {
    let place = |name: &str| folder.join(name).display().to_string();
    call(&[&["split", "--quiet", "--export", &place("sites"), "--out", &place("split")], settings].concat());
    call(&["certs", "init", "--certs", &place("certs")]);
    let names: Vec<String> = (0..10).map(|client| format!("client-{client:03}")).collect();
    let mut issue = vec!["certs".to_owned(), "issue".to_owned(), "--certs".to_owned(), place("certs")];
    issue.extend(names.iter().cloned());
    call(&issue.iter().map(String::as_str).collect::<Vec<_>>());
    std::fs::write(folder.join("roster"), names.join("\n")).unwrap();
    let list = fedtvd(&["certs", "list", "--certs", &place("certs"), "--json"]);
    same_fields("certs list", &shown("certs list"), &serde_json::from_str(&list.out).unwrap());
    names
}

/// What a site would agree to, by the policy beside its certificate and by a narrower one.
fn agreements(server: &str, data: &str, identity: &str, state: &str) {
    let policy = fedtvd(&["init", "--site"]);
    std::fs::write(Path::new(identity).join("site.toml"), &policy.out).unwrap();
    let narrow = Path::new(identity).join("narrow.toml").display().to_string();
    std::fs::write(&narrow, "epochs = 0\nmin-samples = 1000000\n").unwrap();
    let join = ["join", server, data, "--identity", identity, "--state", state, "--dry-run"];
    let agreed = fedtvd(&[&join[..], &["--json"]].concat());
    let view: serde_json::Value =
        serde_json::from_str(&agreed.out).unwrap_or_else(|_| panic!("{}", agreed.err));
    same_fields("join --dry-run", &shown("join --dry-run"), &view);
    assert_eq!((agreed.code, view["refused"].as_array().unwrap().len()), (0, 0), "{}", agreed.err);
    let refused = fedtvd(&[&join[..], &["--policy", &narrow]].concat());
    assert_eq!(refused.code, 1, "{}", refused.out);
    for part in
        [" epochs (epochs = 0)", "(min-samples = 1000000)", "it would send:\n  - at enrolment: number of"]
    {
        assert!(refused.out.contains(part), "{}", refused.out);
    }
    assert!(refused.out.contains("It would send nothing but the reason"), "{}", refused.out);
    assert!(!refused.out.contains("a model of 0 values"), "{}", refused.out);
    let check = ["join", server, data, "--identity", identity, "--state", state, "--check"];
    assert_eq!(fedtvd(&check).code, 0);
    let refused = fedtvd(&[&check[..], &["--policy", &narrow]].concat());
    assert!(refused.code == 1 && refused.out.contains("(min-samples = 1000000)"), "{}", refused.out);
    assert!(!refused.out.contains("can take part"), "{}", refused.out);
}

#[test]
fn ten_processes_over_tls_give_the_bytes_of_a_simulation() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let split = [
        "--set",
        "split.clients=10",
        "--set",
        "split.alpha=0.5",
        "--set",
        "split.holdout=0.1",
        "--set",
        "seed=3",
        // The sites have images of their own kind each, as the simulation's clients do.
        "--set",
        "split.shift=rotation",
    ];
    let names = sites(folder.path(), &split);
    let common =
        [&split[..], &["--set", "rounds=3", "--set", "cohort.fraction=0.6", "--set", "local.epochs=1"]]
            .concat();
    let options = [
        "--set",
        "local.optimizer=adamw",
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
        "local.cosine_rounds=10",
        "--set",
        "local.warmup=1",
    ];
    // Hardened mode refuses strategies with several models.
    let paper = ["--set", "strategy.mode=paper"];
    // Two layers: the three rounds are a cycle in which the network grows, and the first round of the next one.
    let small = [
        "--set",
        r#"model.layers=["flatten", "linear 12", "relu", "linear"]"#,
        "--set",
        "cohort.fraction=1",
        "--set",
        "split.alpha=0.5",
    ];
    let cases = [
        ("fedtvd+balanced", &[][..]),
        ("scaffold", &[][..]),
        ("feddyn", &[][..]),
        ("fedadam", &[][..]),
        ("fedprox", &options[..]),
        ("ifca+balanced", &paper[..]),
        ("cfl:warmup=0:eps1=100:eps2=0+fedtvd", &paper[..]),
        ("fedrep", &["--set", "strategy.head_epochs=1"]),
        ("fedala", &["--set", "strategy.mixing_epochs=2"]),
        ("fedadap+fednova", &["--set", "strategy.stop_patience=1"]),
        ("fedma:label_counts=false", &small[..]),
    ];
    for (strategy, options) in cases {
        let name = format!("strategy.name={strategy}");
        let settings = [&common[..], &["--set", &name], options].concat();
        let (simulated, federated) =
            (place(&format!("simulated-{strategy}")), place(&format!("federated-{strategy}")));
        let (certs, roster) = (place("certs"), place("roster"));
        let serve =
            ["serve", "--listen", "127.0.0.1:0", "--out", &federated, "--certs", &certs, "--roster", &roster];
        let mut server = Process::start(&[&serve, &settings[..]].concat());
        server.listening();
        let status = fedtvd(&["serve", "--status", "--json", "--out", &federated, "--certs", &certs]);
        let status = serde_json::from_str(&status.out).unwrap_or_else(|_| panic!("{}", status.err));
        same_fields("serve --status", &shown("serve --status"), &status);
        let server_at = format!("@{federated}/federation/address");
        let state = place("state");
        agreements(&server_at, &place("sites/client-000"), &place("certs/clients/client-000"), &state);
        let clients: Vec<Process> = names
            .iter()
            .map(|name| {
                let (data, identity) =
                    (place(&format!("sites/{name}")), place(&format!("certs/clients/{name}")));
                // Several sites can keep their state in one folder.
                Process::start(&["join", &server_at, &data, "--identity", &identity, "--state", &state])
            })
            .collect();
        clients.into_iter().for_each(Process::succeeds);
        server.succeeds();
        // The server wrote what it runs by, hardened mode among it, into the run's own configuration.
        call(&["run", &format!("{federated}/config.toml"), "--quiet", "--out", &simulated]);
        let config = std::fs::read_to_string(format!("{federated}/config.toml")).unwrap();
        let hardened = options != paper;
        assert_eq!(
            config.contains("mode = \"hardened\"") && config.contains("quorum = 3"),
            hardened,
            "{config}"
        );
        same_results(&simulated, &federated);
    }
    let sent = std::fs::read_to_string(place("state/sent.jsonl")).unwrap();
    let lines = |message: &str| -> Vec<&str> {
        sent.lines().filter(|line| line.contains(&format!("\"message\":\"{message}\""))).collect()
    };
    for (message, words) in [
        ("Enrol", "size of the hold-out: "),
        ("Upload", "announcement of the update of round 1"),
        ("Upload", "the trained model"),
        ("Hello", "version"),
    ] {
        assert!(lines(message).iter().any(|line| line.contains(words)), "{:?}", lines(message));
    }
    assert!(!sent.contains("of each class"), "no label counts left");
    // The run directory of a federation can be verified like any other.
    let federated = place("federated-scaffold");
    let verdict = fedtvd(&["verify", &federated, "--json", "--quiet"]);
    assert!(verdict.out.contains("\"same_bits\": true"), "{} {}", verdict.out, verdict.err);
    call(&["evaluate", &federated, "--quiet"]);
    let ended = fedtvd(&["serve", "--status", "--out", &federated, "--certs", &place("certs")]);
    assert!(ended.code == 1 && ended.err.contains("is finished after round 3"), "{}", ended.err);
    // A finished federation is not run again.
    let (certs, roster) = (place("certs"), place("roster"));
    let again = ["serve", "--quiet", "--out", &federated, "--certs", &certs, "--roster", &roster];
    call(&[&again[..], &["--listen", "127.0.0.1:0", "--farewell", "0"]].concat());
}

#[test]
fn a_server_whose_log_is_closed_runs_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let split = ["--set", "split.clients=2", "--set", "split.holdout=0.1"];
    call(
        &[&["split", "--quiet", "--export", &place("sites"), "--out", &place("split")], &split[..]].concat(),
    );
    let out = place("run");
    let serve = ["serve", "--plaintext", "--listen", "127.0.0.1:0", "--out", &out];
    let settings = ["rounds=1", "local.epochs=1", "model.name=logistic", "strategy.mode=paper"];
    let settings = settings.map(|setting| ["--set", setting]).concat();
    let mut server = Process::start(&[&serve[..], &settings[..], &split].concat());
    drop(server.until_it_listens());
    let (at, data) = (format!("@{out}/federation/address"), place("sites/client-000"));
    let client = Process::start(&["join", &at, &data, "--plaintext", "0"]);
    server.succeeds();
    client.succeeds();
}

/// Runs a script of commands in a folder; its standard output.
#[cfg(unix)]
pub(crate) fn script_succeeds(script: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_fedtvd"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("FEDTVD_DATA")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The commands in a document, in order.
pub(crate) fn commands(page: &str) -> String {
    let blocks = page.split("\n```sh\n").skip(1).map(|block| block.split_once("\n```").unwrap().0);
    blocks.collect::<Vec<_>>().join("\n")
}

#[cfg(unix)]
#[test]
fn the_commands_of_the_federation_guide_end_with_the_model_of_a_simulation() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("set -e\n{}", commands(include_str!("../../../../docs/federation.md")));
    script_succeeds(&script, folder.path());
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (toml, out) = (place("run/config.toml"), place("simulated"));
    let answer = fedtvd(&["run", &toml, "--quiet", "--out", &out]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let model = |out: &str| std::fs::read(Path::new(out).join("model.safetensors")).unwrap();
    assert!(model(&out) == model(&place("run")));
}
