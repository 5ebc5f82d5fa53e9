//! Certificates: concurrent changes of their list, renewal, revocation, and keys made at sites.

use crate::federation::{Process, call};
use crate::page::{same_fields, shown};
use crate::program::fedtvd;
use serde_json::Value;
use std::time::{Duration, Instant};

/// All entries of the list.
fn listed(certs: &str) -> Vec<Value> {
    let answer = fedtvd(&["certs", "list", "--json", "--certs", certs]);
    serde_json::from_str(&answer.out).unwrap_or_else(|_| panic!("{}", answer.err))
}

/// Lets the first certificate of the list expire.
fn expire_first(certs: &str) {
    let path = std::path::Path::new(certs).join("clients.toml");
    let list = std::fs::read_to_string(&path).expect("the list can be read");
    let expires = format!("expires = {}", listed(certs)[0]["expires"]);
    std::fs::write(path, list.replacen(&expires, "expires = \"2026-01-01T00:00:00Z\"", 1))
        .expect("the list can be written");
}

/// Waits, at most a minute.
fn until(what: &str, holds: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < limit, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn sixteen_processes_that_issue_and_revoke_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let certs = folder.path().join("certs").display().to_string();
    call(&["certs", "init", "--certs", &certs]);
    let leaving: Vec<String> = (0..8).map(|number| format!("leaving-{number}")).collect();
    let mut issue = vec!["certs", "issue", "--certs", &certs];
    issue.extend(leaving.iter().map(String::as_str));
    call(&issue);
    std::thread::scope(|scope| {
        for name in &leaving {
            let (certs, new) = (&certs, name.replace("leaving", "new"));
            scope.spawn(move || call(&["certs", "issue", "--certs", certs, &new]));
            scope.spawn(move || call(&["certs", "revoke", "--certs", certs, name]));
        }
    });
    let list = listed(&certs);
    let named = |start: &str, revoked: bool| {
        let found = |entry: &&Value| {
            entry["name"].as_str().unwrap().starts_with(start) && entry["revoked"] == revoked
        };
        list.iter().filter(found).count()
    };
    assert_eq!((named("leaving", true), named("new", false), list.len()), (8, 8, 16));
    let mut numbers: Vec<u64> = list.iter().map(|entry| entry["id"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..16).collect::<Vec<_>>());
}

#[test]
fn revoking_a_name_after_the_renewal_of_its_expired_certificate_revokes_the_valid_one() {
    let folder = tempfile::tempdir().unwrap();
    let certs = folder.path().join("certs").display().to_string();
    call(&["certs", "init", "--certs", &certs]);
    call(&["certs", "issue", "--certs", &certs, "rome"]);
    expire_first(&certs);
    call(&["certs", "issue", "--certs", &certs, "rome"]);
    let answer = fedtvd(&["certs", "revoke", "--certs", &certs, "rome", "--json"]);
    let told: Vec<Value> = serde_json::from_str(&answer.out).unwrap();
    same_fields("certs revoke", &shown("certs list"), &Value::from(told.clone()));
    let revoked: Vec<Value> = listed(&certs).iter().map(|entry| entry["revoked"].clone()).collect();
    assert_eq!(revoked, [true, true]);
    let serials = |list: &[Value]| list.iter().map(|entry| entry["serial"].clone()).collect::<Vec<_>>();
    assert_eq!(serials(&told), serials(&listed(&certs)));
}

#[test]
fn a_serial_number_revokes_one_certificate_and_what_matches_nothing_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let certs = folder.path().join("certs").display().to_string();
    call(&["certs", "init", "--certs", &certs]);
    call(&["certs", "issue", "--certs", &certs, "rome", "--max-size", "500"]);
    // The second certificate overlaps with the first, with the same number and limit.
    call(&["certs", "issue", "--certs", &certs, "rome"]);
    let list = listed(&certs);
    assert_eq!((&list[1]["id"], &list[1]["max_size"]), (&Value::from(0), &Value::from(500)));
    let first = list[0]["serial"].as_str().unwrap();
    let revoke = |which: &[&str]| fedtvd(&[&["certs", "revoke", "--certs", &certs], which].concat());
    let answer = revoke(&["--serial", first]);
    assert!(answer.code == 0 && answer.out.contains(first), "{} {}", answer.out, answer.err);
    let revoked: Vec<Value> = listed(&certs).iter().map(|entry| entry["revoked"].clone()).collect();
    assert_eq!(revoked, [true, false]);
    for nothing in [&["--serial", first][..], &["--serial", "5f"], &["--serial", ""], &["oslo"], &[]] {
        assert_eq!(revoke(nothing).code, 2, "{nothing:?}");
    }
    assert_eq!(revoke(&["rome"]).code, 0);
    assert_eq!(revoke(&["rome"]).code, 2);
    let other = fedtvd(&["certs", "issue", "--certs", &certs, "oslo", "--id", "0"]);
    assert!(other.code == 2 && other.err.contains("belongs to rome"), "{}", other.err);
}

#[test]
fn a_list_without_serial_numbers_is_read_and_its_certificates_can_be_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let certs = folder.path().join("certs").display().to_string();
    call(&["certs", "init", "--certs", &certs]);
    let old = "[[client]]\nname = \"rome\"\nid = 3\nfingerprint = \"5f\"\nmax_size = 9\nexpires = \"2999-12-31\"\nrevoked = false\n";
    std::fs::write(folder.path().join("certs/clients.toml"), old).unwrap();
    call(&["certs", "issue", "--certs", &certs, "rome"]);
    let list = listed(&certs);
    assert_eq!((&list[0]["serial"], &list[1]["id"]), (&Value::Null, &Value::from(3)));
    call(&["certs", "revoke", "--certs", &certs, "rome"]);
    assert!(listed(&certs).iter().all(|entry| entry["revoked"] == true));
}

#[test]
fn no_certificate_is_made_that_has_expired_already() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let certs = place("certs");
    let days = |call: &[&str], days: &str| fedtvd(&[call, &["--certs", &certs, "--days", days]].concat());
    assert_eq!(days(&["certs", "init"], "0").code, 2);
    call(&["certs", "init", "--certs", &certs]);
    call(&["join", "--request", "rome", "--identity", &place("site")]);
    let request = place("site/request.pem");
    for call in
        [&["certs", "sign", &request][..], &["certs", "issue", "oslo"], &["certs", "server", "--host", "a.b"]]
    {
        for wrong in ["0", "-1", "36501"] {
            let answer = days(call, wrong);
            assert!(answer.code == 2 && answer.err.contains("1..=36500"), "{call:?} {wrong}: {}", answer.err);
        }
    }
    assert!(listed(&certs).is_empty());
    assert_eq!(days(&["certs", "sign", &request], "1").code, 0);
}

#[test]
fn a_name_does_not_get_the_key_of_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (certs, site) = (place("certs"), place("site"));
    call(&["certs", "init", "--certs", &certs]);
    let request = |name: &str| fedtvd(&["join", "--request", name, "--identity", &site]);
    assert_eq!(request("rom").code, 0);
    let corrected = request("rome");
    assert!(corrected.code == 0 && corrected.out.contains("replaces the one for rom"), "{}", corrected.out);
    call(&["certs", "sign", "--certs", &certs, &place("site/request.pem")]);
    std::fs::copy(place("certs/signed/rome/cert.pem"), place("site/cert.pem")).unwrap();
    // At the site.
    let before = std::fs::read(place("site/request.pem")).unwrap();
    let refused = request("oslo");
    assert!(refused.code == 2 && refused.err.contains("certificate of rome"), "{}", refused.err);
    assert_eq!(std::fs::read(place("site/request.pem")).unwrap(), before);
    assert_eq!(request("rome").code, 0, "a renewal");
    // At the operator.
    std::fs::remove_file(place("site/cert.pem")).unwrap();
    assert_eq!(request("oslo").code, 0);
    let sign = || fedtvd(&["certs", "sign", "--certs", &certs, &place("site/request.pem")]);
    let refused = sign();
    assert!(refused.code == 2 && refused.err.contains("is that of rome"), "{}", refused.err);
    assert_eq!(listed(&certs).len(), 1);
    // A site may change its name: then its earlier certificate is not valid any more.
    call(&["certs", "revoke", "--certs", &certs, "rome"]);
    assert_eq!(sign().code, 0);
}

#[test]
fn a_site_makes_its_key_and_the_operator_signs_its_request() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (certs, site) = (place("certs"), place("site"));
    call(&["certs", "init", "--certs", &certs]);
    let made = fedtvd(&["join", "--request", "rome", "--identity", &site, "--json"]);
    let made: Value = serde_json::from_str(&made.out).unwrap_or_else(|_| panic!("{}", made.err));
    same_fields("join --request", &shown("join --request"), &made);
    let request = place("site/request.pem");
    let signed = fedtvd(&["certs", "sign", "--certs", &certs, &request, "--json"]);
    let signed: Value = serde_json::from_str(&signed.out).unwrap_or_else(|_| panic!("{}", signed.err));
    same_fields("certs sign", &shown("certs sign"), &signed);
    assert_eq!((&signed[0]["key_hash"], &signed[0]["renews"]), (&made["key_hash"], &Value::from(false)));
    assert!(!folder.path().join("certs/signed/rome/key.pem").exists());
    assert_eq!(listed(&certs)[0]["serial"], signed[0]["serial"]);
    // Nothing is signed if one of the requests is wrong, and the message names the file.
    std::fs::write(place("wrong.pem"), "rome").unwrap();
    let answer = fedtvd(&["certs", "sign", "--certs", &certs, &request, &place("wrong.pem")]);
    assert!(answer.code == 2 && answer.err.contains("wrong.pem"), "{}", answer.err);
    assert_eq!(listed(&certs).len(), 1);
    let again = fedtvd(&["certs", "sign", "--certs", &certs, &request]);
    assert!(again.code == 0 && again.out.contains("it had a valid certificate"), "{}", again.out);
    for wrong in
        [&["--request", "rome"][..], &["--request", "../rome", "--identity", &site], &["--identity", &site]]
    {
        assert_eq!(fedtvd(&[&["join"], wrong].concat()).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_request_with_another_public_key_than_the_site_named_is_not_signed() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let certs = place("certs");
    call(&["certs", "init", "--certs", &certs]);
    let key = |site: &str| {
        let made = fedtvd(&["join", "--request", "rome", "--identity", &place(site), "--json"]);
        let made: Value = serde_json::from_str(&made.out).unwrap_or_else(|_| panic!("{}", made.err));
        made["key_hash"].as_str().unwrap().to_owned()
    };
    let (own, strange) = (key("site"), key("stranger"));
    let sign = |options: &[&str]| fedtvd(&[&["certs", "sign", "--certs", &certs], options].concat());
    let refused = sign(&[&place("stranger/request.pem"), "--key", &own]);
    assert!(refused.code == 2 && refused.err.contains(&strange), "{}", refused.err);
    let two = sign(&[&place("site/request.pem"), &place("stranger/request.pem"), "--key", &own]);
    assert!(two.code == 2 && listed(&certs).is_empty(), "{}", two.err);
    let signed = sign(&[&place("site/request.pem"), "--key", &own.to_uppercase()]);
    assert!(signed.code == 0, "{}", signed.err);
    // The printed serial number is enough to revoke this certificate and no other.
    let serial = signed.out.lines().find_map(|line| line.trim().strip_prefix("serial number ")).unwrap();
    let stranger = sign(&[&place("stranger/request.pem")]);
    assert_eq!(stranger.code, 0, "{}", stranger.err);
    call(&["certs", "revoke", "--certs", &certs, "--serial", serial]);
    let revoked: Vec<Value> = listed(&certs).iter().map(|entry| entry["revoked"].clone()).collect();
    assert_eq!(revoked, [true, false]);
}

#[test]
fn a_running_client_whose_certificate_expires_continues_with_the_renewed_one() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (certs, out) = (place("certs"), place("run"));
    let split = ["--set", "split.clients=2", "--set", "split.holdout=0.1"];
    call(
        &[&["split", "--quiet", "--export", &place("sites"), "--out", &place("split")], &split[..]].concat(),
    );
    call(&["certs", "init", "--certs", &certs]);
    call(&["certs", "issue", "--certs", &certs, "rome", "oslo"]);
    std::fs::write(place("roster"), "rome\noslo\n").unwrap();
    let settings =
        ["rounds=2", "local.epochs=1", "model.name=logistic", "strategy.mode=paper", "cohort.fraction=1"];
    let settings = settings.map(|setting| ["--set", setting]).concat();
    let serve =
        ["serve", "--listen", "127.0.0.1:0", "--out", &out, "--certs", &certs, "--roster", &place("roster")];
    let mut server = Process::start(&[&serve[..], &settings, &split].concat());
    server.listening();
    let (at, identity) =
        (format!("@{out}/federation/address"), |name: &str| place(&format!("certs/clients/{name}")));
    let rome = Process::start(&["join", &at, &place("sites/client-000"), "--identity", &identity("rome")]);
    let status = || fedtvd(&["serve", "--status", "--json", "--out", &out, "--certs", &certs]).out;
    // Not by its name alone: the server waits for it from the start.
    until("the client is connected", || status().contains("\"name\": \"rome\""));
    // It waits for the other client, with a certificate that expires while the renewed one is in its folder.
    call(&["certs", "issue", "--certs", &certs, "rome"]);
    expire_first(&certs);
    let log = || std::fs::read_to_string(place("run/federation/log.jsonl")).unwrap();
    until("the client is refused", || log().contains("\"expired\""));
    let oslo = Process::start(&["join", &at, &place("sites/client-001"), "--identity", &identity("oslo")]);
    until("the run is complete", || folder.path().join("run/model.safetensors").exists());
    rome.succeeds();
    oslo.succeeds();
    server.succeeds();
}
