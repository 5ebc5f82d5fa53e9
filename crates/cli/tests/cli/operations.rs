//! What an operator does with a server that runs: stop it, reload it, look at it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::federation::{Process, call, commands, script_succeeds};
use crate::page::{same_fields, shown};
use crate::program::fedtvd;
use std::fs;
use std::io::{BufReader, Lines, Write as _};
use std::path::Path;
use std::process::ChildStderr;

/// The options of a server on a free port that waits for clients which never come.
const IDLE: [&str; 7] =
    ["serve", "--listen", "127.0.0.1:0", "--set", "model.name=logistic", "--set", "rounds=2"];

/// Reads the log up to a line with these words.
fn until(lines: &mut Lines<BufReader<ChildStderr>>, words: &str) -> String {
    let found = lines.map_while(Result::ok).find(|line| line.contains(words));
    found.unwrap_or_else(|| panic!("the log never says {words}"))
}

#[test]
fn a_server_that_is_asked_to_stop_says_how_to_resume_and_exits_with_0() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run").display().to_string();
    for signal in ["TERM", "INT"] {
        let mut server = Process::start(&[&IDLE[..], &["--plaintext", "--out", &out]].concat());
        let (_, mut lines) = server.until_it_listens();
        server.signal(signal);
        let said = until(&mut lines, "stopped");
        assert_eq!(
            said,
            format!(
                "note: stopped after round 0 of 2; its model and all acknowledged updates are saved in {out}; to resume: \
                 fedtvd serve {out} with the same options"
            )
        );
        assert_eq!(server.ends().0, Some(0), "{signal}");
    }
    let mut resumed = Process::start(&["serve", &out, "--plaintext", "--listen", "127.0.0.1:0", "--json"]);
    drop(resumed.listening());
    resumed.signal("TERM");
    let answer = serde_json::from_str(&resumed.answers()).unwrap();
    same_fields("serve, stopped", &shown("serve, stopped"), &answer);
}

#[test]
fn a_hangup_makes_a_server_read_its_clients_again_and_reopen_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (out, certs) = (place("run"), place("certs"));
    call(&["certs", "init", "--certs", &certs]);
    call(&["certs", "issue", "--certs", &certs, "berlin", "paris"]);
    let mut server = Process::start(&[&IDLE[..], &["--out", &out, "--certs", &certs]].concat());
    let (_, mut lines) = server.until_it_listens();
    let log = Path::new(&out).join("federation/log.jsonl");
    fs::rename(&log, folder.path().join("old.jsonl")).unwrap();
    call(&["certs", "revoke", "--certs", &certs, "paris"]);
    server.signal("HUP");
    let said = until(&mut lines, "reload");
    assert_eq!(said, "note: reload: the list of clients has 1 valid, 0 expired and 1 revoked certificates");
    let moved = || fs::read_to_string(&log).is_ok_and(|text| text.contains("reload: the list"));
    assert!(moved());
    // A list that cannot be read changes nothing.
    fs::write(Path::new(&certs).join("clients.toml"), "client = 7").unwrap();
    server.signal("HUP");
    until(&mut lines, "reload: the previous list of clients remains in force");
    let status = fedtvd(&["serve", "--status", "--out", &out, "--certs", &certs]);
    assert_eq!(status.code, 0, "{}", status.err);
    server.signal("TERM");
    until(&mut lines, "stopped");
    assert_eq!(server.ends().0, Some(0));
}

#[test]
fn a_hangup_before_a_server_listens_does_not_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (out, roster) = (place("run"), place("roster"));
    // The server waits for somebody who writes its roster.
    assert!(std::process::Command::new("mkfifo").arg(&roster).status().unwrap().success());
    let options = ["--plaintext", "--out", &out, "--roster", &roster];
    let mut server = Process::start(&[&IDLE[..], &options].concat());
    let mut writer = fs::OpenOptions::new().write(true).open(&roster).unwrap();
    server.signal("HUP");
    writer.write_all(b"0\n1\n2\n").unwrap();
    drop(writer);
    let (_, mut lines) = server.until_it_listens();
    server.signal("TERM");
    until(&mut lines, "stopped");
    assert_eq!(server.ends().0, Some(0));
}

/// Two sites without certificates, and the options of a server that waits for both of them.
fn two_sites(folder: &Path) -> Vec<String> {
    let sites = folder.join("sites").display().to_string();
    let split = folder.join("split").display().to_string();
    let settings = ["--set", "split.clients=2", "--set", "split.holdout=0.1"];
    call(&[&["split", "--quiet", "--export", &sites, "--out", &split], &settings[..]].concat());
    let options = ["--plaintext", "--least", "2", "--set", "strategy.mode=paper"];
    IDLE.iter().chain(&options).chain(&settings).map(|option| (*option).to_owned()).collect()
}

/// A server with these options in a run directory, its log, and the address for clients.
fn serve(options: &[String], out: &str) -> (Process, Lines<BufReader<ChildStderr>>, String) {
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.extend(["--out", out]);
    let mut server = Process::start(&options);
    let (_, lines) = server.until_it_listens();
    (server, lines, format!("@{out}/federation/address"))
}

#[test]
fn a_client_that_worked_for_a_copy_of_a_server_does_not_go_back_to_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let options = two_sites(folder.path());
    let (data, state) = (place("sites/client-000"), place("state"));
    let join = |address: &str, words: &str| {
        let mut client = Process::start(&["join", address, &data, "--plaintext", "0", "--state", &state]);
        until(&mut client.errors(), words)
    };
    let (original, mut log, original_at) = serve(&options, &place("run"));
    join(&original_at, "joined as 0");
    let refused = fedtvd(&["serve", &place("run"), "--plaintext", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("another server is using"), "{}", refused.err);
    let (from, to) = (place("run"), place("copy"));
    assert!(std::process::Command::new("cp").args(["-r", &from, &to]).status().unwrap().success());
    let (_copy, _log, copy_at) = serve(&options, &to);
    join(&copy_at, "joined as 0");
    let said = join(&original_at, "trying again");
    assert!(said.contains("this server was started before another one of run"), "{said}");
    until(&mut log, "refused [outdated-server] 0 127.0.0.1");
    // The operator decides which of them is right by restarting it.
    original.signal("TERM");
    assert_eq!(original.ends().0, Some(0));
    let (_original, _log, original_at) = serve(&options, &from);
    join(&original_at, "joined as 0");
}

/// Everything below a folder, and the folder itself.
fn tree(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![folder.to_owned()];
    if folder.is_dir() {
        fs::read_dir(folder).unwrap().for_each(|entry| found.extend(tree(&entry.unwrap().path())));
    }
    found
}

#[test]
fn runs_certificates_and_states_can_be_read_by_their_owner_only_whatever_the_umask_is() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let script = "set -e; umask 0
        fedtvd certs init --certs parent/certs
        fedtvd certs issue --certs parent/certs berlin
        fedtvd certs server --certs parent/certs --host localhost
        fedtvd run --quiet --set rounds=1 --set model.name=logistic --out parent/simulated
        fedtvd split --quiet --set split.clients=1 --set split.holdout=0.1 --export sites --out split
        fedtvd serve --quiet --certs parent/certs --listen 127.0.0.1:0 --out parent/run --set rounds=1 --set local.epochs=1 \\
            --set model.name=logistic --set strategy.name=fedprox --set strategy.mode=paper &
        fedtvd join @parent/run/federation/address sites/client-000 --identity parent/certs/clients/berlin --state parent/state
        wait";
    script_succeeds(script, folder.path());
    for name in ["certs", "simulated", "run", "state"] {
        let all = tree(&folder.path().join("parent").join(name));
        assert!(all.len() > 1, "{name}");
        for path in all {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        }
    }
    // Folders above them belong to the user.
    let mode = fs::metadata(folder.path().join("parent")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o777);
}

#[test]
fn evaluating_an_unfinished_federation_says_how_to_look_at_it_or_to_continue_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = two_sites(folder.path());
    let out = folder.path().join("run").display().to_string();
    let (server, _log, _) = serve(&options, &out);
    let evaluated = fedtvd(&["evaluate", &out]);
    let advice = format!("its server is running; to see how far it is: fedtvd serve --status --out {out}\n");
    assert_eq!((evaluated.code, evaluated.err), (2, format!("fedtvd: {out} has no model yet: {advice}")));
    server.signal("TERM");
    assert_eq!(server.ends().0, Some(0));
    let advice = format!(
        "the federation is unfinished; to resume it: fedtvd serve {out} with the options of its server\n"
    );
    assert_eq!(fedtvd(&["evaluate", &out]).err, format!("fedtvd: {out} has no model yet: {advice}"));
}

#[test]
fn the_audit_log_of_a_federation_is_unbroken_and_a_changed_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run").display().to_string();
    let script = "set -e
        fedtvd certs init
        fedtvd certs issue berlin
        fedtvd split --quiet --set split.clients=1 --set split.holdout=0.1 --export sites --out split
        fedtvd serve --quiet --listen 127.0.0.1:0 --out run --set rounds=2 --set local.epochs=1 \\
            --set model.name=logistic --set strategy.mode=paper &
        fedtvd join @run/federation/address sites/client-000 --identity certs/clients/berlin
        wait";
    script_succeeds(script, folder.path());
    let answer = fedtvd(&["audit", &out, "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let view: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    same_fields("audit", &shown("audit"), &view);
    assert_eq!((&view["accepted"]["0"], &view["events"]["model"]), (&2.into(), &2.into()));
    let head = view["head"].as_str().unwrap();
    assert_eq!(fedtvd(&["audit", &out, "--head", head]).code, 0);
    let path = folder.path().join("run/federation/audit.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let accepted = text.lines().position(|line| line.contains("\"accepted\"")).unwrap();
    let line = text.lines().nth(accepted).unwrap();
    let entry: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(entry["certificate"].as_str().unwrap().len(), 64);
    assert_eq!(entry["event"], "accepted");
    assert!(entry["peer"].as_str().unwrap().starts_with("127.0.0.1:") && entry["hash"] != entry["update"]);
    assert_eq!(entry["update"].as_str().unwrap().len(), 64);
    fs::write(&path, text.replace(line, &line.replace("\"client\":0", "\"client\":1"))).unwrap();
    let broken = fedtvd(&["audit", &out]);
    assert_eq!(broken.code, 1);
    assert!(broken.err.contains(&format!("line {} was changed", accepted + 1)), "{}", broken.err);
    fs::write(&path, text.lines().map(|line| format!("{line}\n")).skip(1).collect::<String>()).unwrap();
    assert!(fedtvd(&["audit", &out]).err.contains("line 1 does not follow line 0"));
}

#[test]
fn a_server_whose_audit_log_cannot_be_opened_does_not_start_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run").display().to_string();
    let audit = folder.path().join("run/federation/audit.jsonl");
    fs::create_dir_all(&audit).unwrap();
    let refused = fedtvd(&[&IDLE[..], &["--plaintext", "--out", &out, "--quiet"]].concat());
    assert_eq!(refused.code, 1, "{}", refused.err);
    assert!(
        refused.err.contains("opening the audit log") && refused.err.contains("audit.jsonl"),
        "{}",
        refused.err
    );
    assert!(!folder.path().join("run/manifest.json").exists());
    fs::remove_dir(&audit).unwrap();
    let mut server = Process::start(&[&IDLE[..], &["--plaintext", "--out", &out]].concat());
    drop(server.until_it_listens());
    server.signal("TERM");
    assert_eq!(server.ends().0, Some(0));
    assert!(audit.is_file());
}

/// Sends bytes to an address; what comes back.
fn exchange(address: &str, request: &[u8]) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    // A server that has seen enough closes before everything is sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn metrics_and_health_are_answered_and_hostile_requests_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let mut options = two_sites(folder.path());
    options.extend(["--metrics", "127.0.0.1:0"].map(str::to_owned));
    let (server, mut log, at) = serve(&options, &place("run"));
    let said = until(&mut log, "metrics and health at");
    let address = said.rsplit_once("http://").unwrap().1;
    let data = place("sites/client-000");
    let _client = Process::start(&["join", &at, &data, "--plaintext", "0", "--state", &place("state")]);
    until(&mut log, "client 0 (0) enrolled");
    let metrics = exchange(address, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    for line in [
        "\nfedtvd_round 1\n",
        "\nfedtvd_rounds_planned 2\n",
        "\nfedtvd_clients_enrolled 1\n",
        "\nfedtvd_clients_connected 1\n",
        "\nfedtvd_updates_accepted_total 0\n",
        "\n# TYPE fedtvd_refused_total counter\n",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let health = || exchange(address, b"GET /health HTTP/1.0\r\n\r\n");
    assert!(health().ends_with("\r\n\r\nok\n"), "{}", health());
    // Connections that say nothing hold up nobody else for long, and go away by themselves.
    let silent: Vec<_> = (0..20).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    let first = |request: &[u8]| exchange(address, request).lines().next().unwrap_or("").to_owned();
    assert_eq!(first(b"POST /health HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
    drop(silent);
    assert_eq!(first(b"GET /../../etc/passwd HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
    assert_eq!(first(b"\x16\x03\x01\x02\x00\r\n\r\n"), "HTTP/1.1 400 Bad Request");
    assert_eq!(exchange(address, b"HEAD /health HTTP/1.1\r\n\r\n").matches("ok").count(), 0);
    let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &vec![b'a'; 1 << 20]].concat();
    let refused = first(&long);
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 431"), "{refused}");
    assert!(health().starts_with("HTTP/1.1 200"));
    server.signal("TERM");
    assert_eq!(server.ends().0, Some(0));
}

#[test]
fn the_commands_of_the_operations_guide_end_with_a_model_and_an_unbroken_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "set -e\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n{}",
        commands(include_str!("../../../../docs/operations.md"))
    );
    let said = script_succeeds(&script, folder.path());
    // The last two answers are those of audit and evaluate.
    let (before, last) = said.rsplit_once("head: ").unwrap();
    assert!(before.contains("no line was changed, removed, inserted or moved"), "{said}");
    assert!(last.contains("accuracy") && last.contains("samples of"), "{said}");
    let text = fs::read_to_string(folder.path().join("run/federation/audit.jsonl")).unwrap();
    for words in
        ["reload: the list of clients has 3 valid", "\"event\":\"rolled-back\"", "stopped after round"]
    {
        assert!(text.contains(words), "{words}");
    }
}
