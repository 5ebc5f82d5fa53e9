//! Mistakes of somebody who joins or watches a federation for the first time.

use crate::federation::call;
use crate::program::fedtvd;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_join_says_which_file_is_missing_or_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (certs, site, data) = (place("certs"), place("rome"), place("data.csv"));
    std::fs::write(&data, "age,label\n1,a\n").unwrap();
    let join = |data: &str| {
        let call = ["join", "127.0.0.1:1", data, "--identity", &site, "--check"];
        let answer = fedtvd(&call);
        (answer.code, answer.err)
    };
    call(&["certs", "init", "--certs", &certs]);
    call(&["join", "--request", "rome", "--identity", &site]);
    let (code, said) = join(&data);
    assert!(code == 2 && said.contains("not yet the operator's answer"), "{said}");
    call(&["certs", "sign", "--certs", &certs, &place("rome/request.pem")]);
    for name in ["cert.pem", "ca.pem"] {
        std::fs::copy(place(&format!("certs/signed/rome/{name}")), place(&format!("rome/{name}"))).unwrap();
    }
    for missing in [place("dat.csv"), place("data")] {
        let (code, said) = join(&missing);
        let sentence = format!("there is no {missing}; DATA is this site's data");
        assert!(code == 2 && said.contains(&sentence) && !said.contains("fmnist"), "{said}");
    }
    // Nobody listens, and everything at the site is right.
    let (code, said) = join(&data);
    assert!(code == 1 && !said.contains("note: "), "{said}");
    std::fs::set_permissions(place("rome/key.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let note = format!(
        "note: other users of this machine may read {site}/key.pem (mode 644); chmod 600 {site}/key.pem"
    );
    let (_, said) = join(&data);
    assert!(said.contains(&note), "{said}");
    call(&["join", "--request", "rome", "--identity", &place("other")]);
    std::fs::copy(place("other/key.pem"), place("rome/key.pem")).unwrap();
    let (code, said) = join(&data);
    assert!(
        code == 2 && said.contains(&format!("{site}/cert.pem and {site}/key.pem do not belong together")),
        "{said}"
    );
}

#[test]
fn revoking_nothing_says_what_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let certs = folder.path().join("certs").display().to_string();
    call(&["certs", "init", "--certs", &certs]);
    let answer = fedtvd(&["certs", "revoke", "--certs", &certs]);
    assert!(answer.code == 2 && answer.err.contains("--serial HEX"), "{}", answer.err);
}

#[test]
fn a_schema_that_is_not_there_is_named_without_a_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (out, schema) = (folder.path().join("run").display().to_string(), "data.schema=no/schema.toml");
    let answer = fedtvd(&["serve", "--plaintext", "--listen", "127.0.0.1:0", "--out", &out, "--set", schema]);
    assert!(
        answer.code == 2 && answer.err.contains("no/schema.toml cannot be read: No such file"),
        "{}",
        answer.err
    );
}
