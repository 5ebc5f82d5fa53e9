//! `docs/security.md` names the tests that show its promises.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;
use std::path::Path;

/// All Rust sources of the project in one text.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let _ = writeln!(text, "{}", std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_security_page_names_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut text = String::new();
    for entry in std::fs::read_dir(crates).unwrap() {
        for part in ["src", "tests"] {
            let folder = entry.as_ref().unwrap().path().join(part);
            if folder.is_dir() {
                sources(&folder, &mut text);
            }
        }
    }
    let page = include_str!("../../../../docs/security.md");
    let promises = page.split_once("\n## Promises\n").unwrap().1.split_once("\n## ").unwrap().0;
    let named: Vec<&str> = promises.split('`').skip(1).step_by(2).filter(|name| name.contains('_')).collect();
    assert!(named.len() > 15, "{named:?}");
    for name in named {
        let exists = match name.strip_prefix("crates/") {
            Some(path) => crates.join(path).exists(),
            None if name.ends_with(".sh") => crates.parent().unwrap().join(name).is_file(),
            None => text.contains(&format!("fn {name}()")),
        };
        assert!(exists, "docs/security.md names {name}, which does not exist");
    }
}
