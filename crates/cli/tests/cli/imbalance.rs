//! A problem with classes of 80, 15 and 5 % whose rarest class is never predicted: obvious in every output.

use crate::program::fedtvd;
use std::fmt::Write as _;
use std::path::Path;

/// 600 patients. `x` tells the ill from the others, and nothing tells the dying from the well.
fn patients(folder: &Path) -> String {
    let mut text = "x,y,state\n".to_owned();
    for row in 0..600_u32 {
        let state = match row % 20 {
            0..16 => "well",
            16..19 => "ill",
            _ => "dying",
        };
        // Digits that look random and do not depend on the state.
        let noise = f64::from(row.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24);
        let x = if state == "ill" { 5.0 } else { 0.0 };
        let _ = writeln!(text, "{:.3},{:.3},{state}", x + noise, 1.0 - noise);
    }
    let path = folder.join("patients.csv");
    std::fs::write(&path, text).expect("the table is written");
    path.display().to_string()
}

fn sentence(text: &str) -> &str {
    let found = text.lines().find(|line| line.contains("never predicted correctly"));
    found.unwrap_or_else(|| panic!("no such sentence in {text}"))
}

#[test]
fn a_class_that_is_never_predicted_is_named_by_run_compare_report_and_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let set = format!("data.set={}", patients(folder.path()));
    let data: Vec<&str> =
        ["data.label=state", "rounds=16", "clients=4", "split.kind=iid", "cohort.fraction=1", &set]
            .into_iter()
            .flat_map(|key| ["--set", key])
            .collect();
    let call = |first: &[&str], out: &str| {
        let answer = fedtvd(&[first, &["--quiet", "--out", out], &data[..]].concat());
        assert_eq!(answer.code, 0, "{}", answer.err);
        answer.out
    };
    let run = call(&["run"], &place("run"));
    let said = "class \"dying\" (5.0 % of the test samples) is never predicted correctly";
    let accuracies = ": accuracy 95.0 %, balanced accuracy 66.7 %";
    assert_eq!(sentence(&run), format!("{said}{accuracies}"));
    // F1 is 2 · 96 / 198, 1 and 0.
    assert!(run.contains("balanced accuracy 66.67 %, macro F1 65."), "{run}");
    let compared = call(&["compare", "--strategies", "fedavg,uniform", "--seeds", "3"], &place("all"));
    let both: Vec<&str> = compared.lines().filter(|line| line.contains(said)).collect();
    assert_eq!(
        both,
        [format!("‡ {said} by fedavg{accuracies}"), format!("‡ {said} by uniform{accuracies}")],
        "{compared}"
    );
    let row = compared.lines().find(|line| line.starts_with("o fedavg")).expect("a row");
    assert!(row.contains(" 66.7‡ ") && row.contains("95.0 ± 0.0"), "{compared}");
    let report = fedtvd(&["report", &place("all"), "--quiet"]);
    assert!(report.out.contains(&format!("‡ {said} by fedavg{accuracies}")), "{}", report.out);
    let page = std::fs::read_to_string(folder.path().join("all/report.html")).expect("the page is there");
    assert!(page.replace("&quot;", "\"").contains(&format!("‡ {said} by fedavg{accuracies}")), "{page}");
    let lines = std::fs::read_to_string(folder.path().join("run/rounds.jsonl")).expect("rounds");
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().expect("a round")).expect("JSON");
    assert_eq!(last["missed_classes"].as_array().map(Vec::len), Some(1), "{last}");
    assert!(last["class_accuracy"].is_null(), "without evaluation.details");
}
