//! What an operator does with a server that runs: stop it, reload it, look at it.
#![cfg(unix)]

use crate::federation::{Process, call};
use crate::page::{same_fields, shown};
use crate::program::fedtvd;
use std::fs;
use std::io::{BufReader, Lines};
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
        let mut lines = server.until_it_listens();
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
    let (code, answer) = resumed.answers();
    assert_eq!(code, Some(0));
    let answer = serde_json::from_str(&answer).unwrap();
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
    let mut lines = server.until_it_listens();
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
