//! What is given and has no effect is an error on the command line and a note in a file, for every subcommand.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::program::{Answer, fedtvd};
use std::path::Path;
use tempfile::TempDir;

/// A folder with a small configuration that trains for one round.
fn ground() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let small = "rounds = 1\nmodel.name = \"logistic\"\nsplit.clients = 10\nlocal.epochs = 2\n";
    std::fs::write(folder.path().join("small.toml"), small).unwrap();
    let axes = "[sweep]\n\"strategy.name\" = [\"fedavg\", \"uniform\"]\n";
    std::fs::write(folder.path().join("sweep.toml"), format!("{small}{axes}")).unwrap();
    folder
}

/// Calls the program with the place of files and results below the folder.
fn call(folder: &TempDir, arguments: &str) -> Answer {
    let place = |name: &str| folder.path().join(name).display().to_string();
    let words = arguments.split_whitespace().map(|word| match word.strip_prefix('@') {
        Some(name) => place(name),
        None => word.to_owned(),
    });
    let words: Vec<String> = words.collect();
    fedtvd(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn refused(folder: &TempDir, cases: &[(&str, &str)]) {
    for (arguments, sentence) in cases {
        let answer = call(folder, arguments);
        assert_eq!(answer.code, 2, "{arguments}: {}", answer.err);
        assert!(answer.err.contains(sentence), "{arguments}: {}", answer.err);
    }
}

fn noted(folder: &TempDir, cases: &[(&str, &str)]) {
    for (arguments, sentence) in cases {
        let answer = call(folder, arguments);
        assert_eq!(answer.code, 0, "{arguments}: {}", answer.err);
        let note = format!("note: {sentence}\n");
        assert_eq!(answer.err.matches(&note).count(), 1, "{arguments}: {}", answer.err);
    }
}

#[test]
fn a_setting_on_the_command_line_without_effect_is_refused_by_every_subcommand_that_trains() {
    let folder = ground();
    let shards = "--set split.shards=3 has no effect with split.kind = dirichlet";
    refused(
        &folder,
        &[
            ("run @small.toml --out @a --set split.shards=3", shards),
            ("run @small.toml --out @a --set split.kind=iid --set split.min_size=3", "with split.kind = iid"),
            ("run @small.toml --out @a --set attack.clients=1", "with attack.kind = none"),
            ("run @small.toml --out @a --set cohort.extra=2", "in a simulation, which has no late clients"),
            (
                "run @small.toml --out @a --set evaluation.metric=loss",
                "without split.holdout, stop.target or",
            ),
            ("run @small.toml --out @a --set data.label=sick", ": fmnist-mini is not a CSV file"),
            ("run @small.toml --out @a --set data.test=0.5", ": fmnist-mini has test samples of its own"),
            ("run @small.toml --out @a --set local.epochs=1 --set epoch_decay=0.9", "with local.epochs = 1"),
            ("compare @small.toml --seeds 1 --out @b --set split.shards=3", shards),
            (
                "compare @small.toml --seeds 1 --out @b --set strategy.name=fedavg",
                "--set strategy.name=fedavg has no effect: compare uses --strategies",
            ),
            (
                "compare @small.toml --strategies fedavg,uniform --seeds 1 --out @b --set strategy.lambda=0.3",
                "--set strategy.lambda=0.3 has no effect: none of fedavg, uniform takes strategy.lambda",
            ),
            ("compare @small.toml --rounds 1 --out @b --set rounds=2", "rounds is given by --rounds"),
            ("compare @small.toml --seeds 3,4 --out @b --set seed=2", "seed is given by --seeds"),
            ("sweep @sweep.toml --out @c --set split.shards=3", shards),
            ("sweep @sweep.toml --out @c --set strategy.mu=0.3", "none of fedavg, uniform takes strategy.mu"),
            ("tune @small.toml --strategies fedavg --out @d --set split.shards=3", shards),
            (
                "tune @small.toml --strategies fedavg --out @d --set strategy.mu=1",
                "none of fedavg takes strategy.mu",
            ),
            (
                "tune @small.toml --strategies fedavg --out @d --set evaluation.test=false",
                "the tuning runs do not",
            ),
            (
                "tune @small.toml --strategies fedavg --out @d --grid attack.scale=1,2",
                "the list of attack.scale",
            ),
            ("reproduce skew --dataset fmnist-mini --dry-run --out @e --set split.shards=3", shards),
            ("reproduce theory --dataset fmnist-mini --out @e --set split.shards=3", shards),
            (
                "reproduce skew --dataset fmnist-mini --dry-run --out @e --rounds 2 --set rounds=3",
                "by --rounds",
            ),
            ("serve @small.toml --plaintext --roster @nobody --out @f --set split.shards=3", shards),
        ],
    );
}

#[test]
fn an_option_without_effect_is_refused_by_subcommands_that_do_not_train() {
    let folder = ground();
    assert_eq!(call(&folder, "run @small.toml --quiet --out @run").code, 0);
    assert_eq!(call(&folder, "split @small.toml --quiet --out @split --export @sites").code, 0);
    let join = "join 127.0.0.1:1 @sites/client-000 --plaintext 1 --give-up 1";
    refused(
        &folder,
        &[
            ("split @small.toml --out @a --set split.beta=1", "with split.kind = dirichlet"),
            ("evaluate @run --set local.lr=1", "local.lr is not used to evaluate a model"),
            ("evaluate @run --set data.label=sick", ": fmnist-mini is not a CSV file"),
            ("weights --set strategy.name=fedavg", "strategy.name is given by --strategy"),
            ("weights --set mode=hardened --set strategy.screen=3", "strategy.screen is for updates"),
            ("init --site --set rounds=3", "cannot be used with"),
            (&format!("{join} --label sick"), "--label has no effect: "),
            (&format!("{join} --columns age"), "--columns has no effect: "),
            (&format!("{join} --test 0.3"), "--test has no effect: "),
            (
                &format!("{join} --attack nan --attack-scale 2"),
                "--attack-scale has no effect with --attack nan",
            ),
            (
                &format!("{join} --attack scale --attack-size 2"),
                "--attack-size has no effect with --attack scale",
            ),
            ("join --request rome --identity @id --test 0.3", "cannot be used with"),
            ("serve --plaintext --certs @certs --roster @nobody --out @f", "cannot be used with"),
            ("serve --status --roster @nobody --out @f", "cannot be used with"),
        ],
    );
}

#[test]
fn what_a_file_has_in_vain_is_noted_once_by_every_subcommand() {
    let folder = ground();
    let add = |name: &str, text: &str| {
        let small = std::fs::read_to_string(folder.path().join("small.toml")).unwrap();
        std::fs::write(folder.path().join(name), small + text).unwrap();
    };
    add(
        "other.toml",
        "split.shards = 3\ndata.label = \"sick\"\ncohort.extra = 2\nevaluation.metric = \"loss\"\n",
    );
    add(
        "sweep_other.toml",
        "split.shards = 3\ncohort.extra = 2\n[strategy]\nmu = 1\n[sweep]\n\"strategy.name\" = [\"fedavg\"]\n",
    );
    add("tables.toml", "[tune]\n\"local.lr\" = [0.1]\n[sweep]\n\"strategy.name\" = [\"fedavg\"]\n");
    add("tested.toml", "evaluation.test = false\n");
    let shards = "split.shards = 3 is ignored: it has no effect with split.kind = dirichlet";
    let extra = "cohort.extra = 2 is ignored: it has no effect in a simulation, which has no late clients";
    let label = "data.label = sick has no effect: fmnist-mini is not a CSV file";
    let metric = "evaluation.metric = loss is ignored: it has no effect without split.holdout, stop.target or stop.patience";
    let compare = "compare --strategies fedavg --seeds 1";
    let tune = "tune --strategies fedavg --seeds 1 --tuning-seeds 1 --grid local.lr=0.1";
    let table = |subcommand: &str, table: &str| {
        format!("{subcommand} ignores the [{table}] table of the configuration; use fedtvd {table}")
    };
    noted(
        &folder,
        &[
            ("run @other.toml --out @run1", shards),
            ("run @other.toml --out @run2", extra),
            ("run @other.toml --out @run3", label),
            ("run @other.toml --out @run4", metric),
            ("run @tables.toml --out @run5", &table("run", "tune")),
            (&format!("{compare} @other.toml --out @compare"), shards),
            (&format!("{compare} @other.toml --out @compare"), extra),
            (&format!("{compare} @other.toml --out @compare"), label),
            (&format!("{compare} @tables.toml --out @compare2"), &table("compare", "tune")),
            ("sweep @sweep_other.toml --out @sweep", shards),
            ("sweep @sweep_other.toml --out @sweep", extra),
            ("sweep @sweep_other.toml --out @sweep", "strategy.mu is ignored: none of fedavg takes it"),
            ("sweep @tables.toml --out @sweep2", &table("sweep", "tune")),
            (&format!("{tune} @other.toml --out @tune"), shards),
            (
                &format!("{tune} @other.toml --out @tune"),
                "data.label = sick is ignored: fmnist-mini is not a CSV file",
            ),
            (
                &format!("{tune} @tested.toml --out @tune2"),
                "evaluation.test is ignored: only the final runs read the test set",
            ),
            ("split @tables.toml --out @split", &table("split", "sweep")),
            (
                "split @small.toml --out @split --set rounds=3 --set data.flip=true",
                "rounds, data.flip: a split does not depend on it",
            ),
            ("split @other.toml --out @split", shards),
            ("evaluate @run1 @tables.toml", &table("evaluate", "sweep")),
        ],
    );
    let split = call(&folder, "split @other.toml --out @split");
    assert!(!split.err.contains("cohort.extra"), "a split has no cohorts: {}", split.err);
    // Hold-outs give the metric something to choose.
    let tuned = call(&folder, &format!("{tune} @other.toml --out @tune"));
    assert!(tuned.code == 0 && !tuned.err.contains("evaluation.metric"), "{}", tuned.err);
}

#[test]
fn a_data_folder_in_which_nothing_is_looked_for_is_noted() {
    let folder = ground();
    let note = format!(
        "--data {} is ignored: fmnist-mini is embedded in the program",
        folder.path().join("sets").display()
    );
    noted(
        &folder,
        &[
            ("run @small.toml --out @run --data @sets", &note),
            ("resume @run --data @sets", &note),
            ("verify @run --data @sets", &note),
            ("evaluate @run --data @sets", &note),
            ("compare @small.toml --strategies fedavg --seeds 1 --out @compare --data @sets", &note),
            ("sweep @sweep.toml --out @sweep --data @sets", &note),
        ],
    );
}

#[test]
fn a_printed_configuration_and_that_of_a_run_are_accepted_without_a_note() {
    let folder = ground();
    let init = call(&folder, "init --set rounds=1 --set model.name=logistic --set clients=10").out;
    std::fs::write(folder.path().join("init.toml"), init).unwrap();
    for arguments in [
        "run @init.toml --log text --out @run",
        "run @run/config.toml --out @again",
        "run @run/config.toml --set split.kind=iid --out @iid",
        "compare @run/config.toml --strategies fedavg,fedtvd --seeds 1 --out @compare",
        "split @run/config.toml --out @split",
    ] {
        let answer = call(&folder, arguments);
        assert_eq!(answer.code, 0, "{arguments}: {}", answer.err);
        assert!(!answer.err.contains("note:"), "{arguments}: {}", answer.err);
    }
    assert!(Path::new(&folder.path().join("again")).is_dir());
}

#[test]
fn the_command_of_a_report_leaves_out_what_a_comparison_refuses() {
    let folder = ground();
    let small = std::fs::read_to_string(folder.path().join("small.toml")).unwrap();
    let layers = "model.layers = [\"flatten\", \"linear\"]\ncohort.extra = 2\nevaluation.metric = \"loss\"\n";
    std::fs::write(folder.path().join("idle.toml"), small + layers).unwrap();
    assert_eq!(call(&folder, "run @idle.toml --quiet --out @run").code, 0);
    assert_eq!(call(&folder, "report @run --quiet --out @report").code, 0);
    let report = std::fs::read_to_string(folder.path().join("report/report.md")).unwrap();
    let command = report.lines().find(|line| line.starts_with("fedtvd compare")).unwrap();
    let expected = "fedtvd compare --strategies fedtvd --seeds 1 --set rounds=1 --set split.clients=10 --set local.epochs=2 \
                    --set 'model.layers=[\"flatten\", \"linear\"]'";
    assert_eq!(command, expected);
}
