//! `fedtvd sweep` on the command line, with a small grid.

use crate::program::{Answer, fedtvd};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const GRID: &str = "\
rounds = 2
[model]
name = \"logistic\"
[split]
clients = 10
[sweep]
\"strategy.name\" = [\"fedavg\", \"fedtvd+balanced\"]
seed = [1, 2]
";

/// A folder with the configuration of the grid.
fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let grid = folder.path().join("grid.toml");
    std::fs::write(&grid, GRID).expect("the grid is written");
    (folder, grid.display().to_string())
}

fn sweep(grid: &str, out: &Path, more: &[&str]) -> Answer {
    fedtvd(&[&["sweep", grid, "--out", &out.display().to_string(), "--quiet"], more].concat())
}

fn document(answer: &Answer) -> Value {
    serde_json::from_str(&answer.out).unwrap_or_else(|error| panic!("{error}: {} {}", answer.out, answer.err))
}

/// Every model below a folder, by the name of its run directory.
fn models(out: &Path) -> Vec<(String, Vec<u8>)> {
    let runs =
        std::fs::read_dir(out).expect("the folder is there").map(|entry| entry.expect("an entry").path());
    let mut runs: Vec<PathBuf> = runs.filter(|path| path.is_dir()).collect();
    runs.sort();
    let name =
        |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    runs.iter()
        .map(|run| (name(run), std::fs::read(run.join("model.safetensors")).expect("a model")))
        .collect()
}

#[test]
fn liars_flip_their_labels_in_a_sweep_whose_runs_share_data() {
    let (folder, _) = folder();
    let grid = folder.path().join("liars.toml").display().to_string();
    let attacks = "attack = [{ kind = \"none\" }, { kind = \"label-flip\", clients = 3 }]\n";
    let text = "rounds = 1\n[model]\nname = \"logistic\"\n[split]\nclients = 10\n[cohort]\nfraction = 1.0\n[sweep]\n";
    std::fs::write(&grid, format!("{text}{attacks}")).expect("the grid is written");
    let out = folder.path().join("out");
    let answer = sweep(&grid, &out, &["--workers", "1"]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let models = models(&out);
    assert!(models.len() == 2 && models[0].1 != models[1].1, "three of ten clients lied about their labels");
}

#[test]
fn a_finished_grid_is_not_run_again() {
    let (folder, grid) = folder();
    let out = folder.path().join("out");
    let first = sweep(&grid, &out, &["--json"]);
    assert_eq!(first.code, 0, "{}", first.err);
    let view = document(&first);
    assert_eq!((&view["done"], &view["failed"], &view["left"]), (&4.into(), &0.into(), &0.into()));
    assert_eq!(view["cells"][1]["strategy"], "fedtvd+balanced");
    let written = |run: &Value| {
        let summary = Path::new(run["directory"].as_str().expect("a path")).join("summary.json");
        std::fs::metadata(summary).and_then(|data| data.modified()).expect("a summary")
    };
    let times: Vec<_> = view["cells"].as_array().expect("cells").iter().map(written).collect();
    let again = document(&sweep(&grid, &out, &["--json"]));
    assert_eq!(again, view);
    assert_eq!(again["cells"].as_array().expect("cells").iter().map(written).collect::<Vec<_>>(), times);
}

#[test]
fn all_shards_together_give_the_runs_of_one_process() {
    let (folder, grid) = folder();
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    assert_eq!(sweep(&grid, &whole, &[]).code, 0);
    for shard in ["0/3", "1/3", "2/3"] {
        assert_eq!(sweep(&grid, &parts, &["--shard", shard]).code, 0);
    }
    assert_eq!(models(&whole), models(&parts));
}

#[test]
fn the_list_has_one_command_per_run_that_a_shell_can_read() {
    let (folder, grid) = folder();
    let answer = sweep(
        &grid,
        &folder.path().join("my runs"),
        &["--list", "--workers", "2", "--set", "labels.reference=[0.5, 0.5]"],
    );
    let lines: Vec<&str> = answer.out.lines().collect();
    assert_eq!((answer.code, lines.len()), (0, 4));
    let (start, end) = ("fedtvd sweep ", "--shard 3/4 --workers 2");
    assert!(lines[3].starts_with(start) && lines[3].ends_with(end), "{}", lines[3]);
    assert!(
        lines[3].contains("--set 'labels.reference=[0.5, 0.5]'") && lines[3].contains("/my runs' "),
        "{}",
        lines[3]
    );
    assert!(!folder.path().join("my runs").exists(), "a list runs nothing");
}

#[test]
fn a_failed_run_is_reported_at_the_end_and_tried_again() {
    let (folder, grid) = folder();
    let out = folder.path().join("out");
    let view = document(&sweep(&grid, &out, &["--json", "--shard", "0/4"]));
    let run = PathBuf::from(view["cells"][0]["directory"].as_str().expect("a path"));
    // As if made by another version.
    std::fs::remove_file(run.join("summary.json")).expect("it was there");
    let manifest = std::fs::read_to_string(run.join("manifest.json")).expect("it is there");
    std::fs::write(run.join("manifest.json"), manifest.replace("\"format\": 1", "\"format\": 99"))
        .expect("written");
    let failed = sweep(&grid, &out, &[]);
    assert_eq!(failed.code, 1);
    assert!(
        failed.out.contains("fedavg seed 1: failed: ") && failed.out.contains("version 99"),
        "{}",
        failed.out
    );
    assert!(failed.out.contains("3 runs finished, 1 failed, 0 unfinished"), "{}", failed.out);
    std::fs::write(run.join("manifest.json"), manifest).expect("written");
    assert_eq!(sweep(&grid, &out, &[]).code, 0);
}

#[test]
fn invalid_requests_say_what_is_valid() {
    let (folder, grid) = folder();
    let out = folder.path().join("out");
    let cases = [
        (fedtvd(&["sweep"]), "no [sweep] table"),
        (sweep(&grid, &out, &["--shard", "4/4"]), "shards are numbered from 0 to 3"),
        (sweep(&grid, &out, &["--shards", "4"]), "SLURM_ARRAY_TASK_ID"),
        (sweep(&grid, &out, &["--shards", "0"]), "it must be at least 1"),
        (sweep(&grid, &out, &["--list", "--shard", "0/2"]), "'--list' cannot be used with '--shard"),
        (sweep(&grid, &out, &["--workers", "0"]), "at least 1"),
        (sweep(&grid, Path::new(&grid), &[]), "is a file; it must be a folder"),
    ];
    for (answer, words) in cases {
        assert!(answer.code == 2 && answer.err.contains(words), "{} {}", answer.code, answer.err);
    }
}

#[test]
fn a_run_of_another_process_is_skipped_and_reported() {
    let (folder, grid) = folder();
    let out = folder.path().join("out");
    let view = document(&sweep(&grid, &out, &["--json"]));
    let run = PathBuf::from(view["cells"][2]["directory"].as_str().expect("a path"));
    std::fs::remove_file(run.join("summary.json")).expect("it was there");
    let lines = std::fs::File::open(run.join("rounds.jsonl")).expect("it is there");
    lines.lock().expect("nobody else holds it");
    let held = sweep(&grid, &out, &[]);
    assert_eq!(held.code, 1);
    assert!(
        held.out.contains("fedavg seed 2: running in another process")
            && held.out.contains("3 runs finished, 0 failed, 1 unfinished"),
        "{}",
        held.out
    );
    lines.unlock().expect("it was held");
    assert_eq!(sweep(&grid, &out, &[]).code, 0);
}

/// Starts a sweep and kills it when this many runs have ended.
fn killed_after(ended: usize, grid: &str, out: &Path) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fedtvd"))
        .args(["sweep", grid, "--out", &out.display().to_string(), "--workers", "1"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let reached = lines.map_while(Result::ok).any(|line| line.starts_with(&format!("{ended}/")));
    child.kill().expect("it runs");
    child.wait().expect("it has run");
    assert!(reached, "{ended} runs ended");
}

/// All files of a report without timing.
fn report(runs: &Path, out: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (runs, place) = (runs.display().to_string(), out.display().to_string());
    let answer = fedtvd(&["report", &runs, "--no-timing", "--quiet", "--out", &place]);
    assert_eq!(answer.code, 0, "{}", answer.err);
    let mut folders = vec![out.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(out).expect("it is below").to_owned();
                files.push((name, std::fs::read(path).expect("a file")));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn kills_restarts_and_shards_leave_no_trace_in_the_report() {
    let (folder, grid) = folder();
    let [whole, killed, parts] = ["whole", "killed", "parts"].map(|name| folder.path().join(name));
    assert_eq!(sweep(&grid, &whole, &[]).code, 0);
    killed_after(1, &grid, &killed);
    killed_after(3, &grid, &killed);
    assert_eq!(sweep(&grid, &killed, &[]).code, 0);
    for shard in ["1/2", "0/2"] {
        assert_eq!(sweep(&grid, &parts, &["--shard", shard]).code, 0);
    }
    let expected = report(&whole, &folder.path().join("report-whole"));
    assert!(expected.len() > 5, "tables, figures and a page");
    assert!(expected == report(&killed, &folder.path().join("report-killed")), "after two kills");
    assert!(expected == report(&parts, &folder.path().join("report-parts")), "of two shards");
}

#[test]
fn a_change_of_a_swept_key_is_refused() {
    let (folder, grid) = folder();
    let answer = sweep(&grid, &folder.path().join("out"), &["--set", "seed=7"]);
    assert_eq!(answer.code, 2, "{}", answer.err);
    let sentence = "fedtvd: --set seed=7 has no effect: seed is set by the [sweep] table";
    assert!(answer.err.starts_with(sentence), "{}", answer.err);
}
