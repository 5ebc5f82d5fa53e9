//! The hospital example of the federation guide, on the real files in `FEDTVD_DATA` or on made-up ones.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::{Command, Output};

/// The commands of the guide's section, without the download.
fn commands() -> String {
    let page = include_str!("../../../../docs/federation.md");
    let section =
        page.split_once("### The four hospitals of `heart`").unwrap().1.split_once("\n## ").unwrap().0;
    let blocks = section.split("\n```text\n").skip(1).map(|block| block.split_once("\n```").unwrap().0);
    let lines: Vec<String> = blocks.map(str::to_owned).collect();
    lines.join("\n").replace("fedtvd data fetch heart\n", "")
}

/// Four files in the form of the real ones: no names, 1 or 1.0, ? for missing, and no cholesterol in Switzerland.
fn make_up(folder: &Path) {
    let folder = folder.join("heart-disease");
    std::fs::create_dir_all(&folder).unwrap();
    for (hospital, name) in ["cleveland", "hungarian", "switzerland", "va"].into_iter().enumerate() {
        let patient = |row: usize| {
            let n = row * 31 + hospital * 7;
            let sick = usize::from(n % 60 + 10 * (n % 2) > 35);
            let end = if hospital == 0 { ".0" } else { "" };
            let chol = if hospital == 2 { 0 } else { 180 + n % 100 };
            let ca = if hospital == 0 { (n % 4).to_string() } else { "?".to_owned() };
            let (age, sex, cp, slope) = (30 + n % 60, n % 2, 1 + n % 4, 1 + n % 3);
            let (pressure, rate, thal) = (100 + n % 70, 100 + n % 90, [3, 6, 7][n % 3]);
            format!(
                "{age},{sex}{end},{cp}{end},{pressure},{chol},{},{},{rate},{},{}.5,{slope}{end},{ca},{thal}{end},{}\n",
                n % 2,
                n % 3,
                (n / 2) % 2,
                n % 4,
                sick * (1 + n % 4)
            )
        };
        let rows: String = (0..80).map(patient).collect();
        std::fs::write(folder.join(format!("processed.{name}.data")), rows).unwrap();
    }
}

fn bash(script: &str, folder: &Path, data: &Path) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_fedtvd"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(folder).env("PATH", path).env("FEDTVD_DATA", data);
    command.output().unwrap()
}

#[test]
fn the_hospital_example_of_the_guide_runs_from_the_schema_to_predictions() {
    let folder = tempfile::tempdir().unwrap();
    let made_up = folder.path().join("made-up");
    let real = std::env::var_os("FEDTVD_DATA").map(std::path::PathBuf::from);
    let real = real.filter(|data| data.join("heart-disease/processed.va.data").is_file());
    if real.is_none() {
        eprintln!("the files are made up: FEDTVD_DATA names no folder with heart-disease");
        make_up(&made_up);
    }
    let data = real.clone().unwrap_or(made_up);
    let output = bash(&format!("set -e\n{}", commands()), folder.path(), &data);
    let (said, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{err}");
    assert!(said.contains("note: chol: fewer than 10 values; no statistics of them are sent"), "{said}");
    let text = std::fs::read_to_string(folder.path().join("predictions.csv")).unwrap();
    let rows = if real.is_some() { 200 } else { 80 };
    assert_eq!(text.lines().count(), rows + 1);
    assert!(
        text.starts_with("age,sex,cp,")
            && text.lines().next().unwrap().ends_with(",num,prediction,p_0,p_disease")
    );
    assert!(said.contains(&format!("on {rows} samples of ")), "{said}");
    agrees_with_pytorch(folder.path(), &data, &text);
}

/// Compares with PyTorch's predictions of the same rows; skipped if there is no PyTorch.
fn agrees_with_pytorch(folder: &Path, data: &Path, ours: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let venv = std::env::var_os("FEDTVD_VENV").map_or(root.join("bench/.venv"), std::path::PathBuf::from);
    let own = venv.join("bin/python");
    let python = if own.is_file() { own.display().to_string() } else { "python3".to_owned() };
    let found = Command::new(&python).args(["-c", "import torch, safetensors, tomllib"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "SKIPPED: PyTorch's predictions ({python} has no torch, safetensors and tomllib; see bench/venv.sh)"
        );
        return;
    }
    let output = Command::new(python)
        .arg(root.join("docs/predict_with_pytorch.py"))
        .args([folder.join("hearts-run/model.safetensors"), data.join("heart-disease/processed.va.data")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs = String::from_utf8(output.stdout).unwrap();
    let numbers = |line: &str| -> Vec<f64> { line.rsplit(',').take(2).map(|p| p.parse().unwrap()).collect() };
    assert_eq!(ours.lines().count(), theirs.lines().count());
    for (our, their) in ours.lines().zip(theirs.lines()).skip(1) {
        // Six digits are printed; sums in another order differ in the last one or two.
        let close = numbers(our).iter().zip(numbers(their)).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(close, "{our} / {their}");
    }
}
