//! `fedtvd reproduce` on the command line, with the embedded data.

use crate::program::fedtvd;

/// The output and the table that is written.
fn reproduce(experiment: &str, strategies: &str) -> (String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let call = ["reproduce", experiment, "--dataset", "fmnist-mini", "--seeds", "1", "--rounds", "1"];
    let answer = fedtvd(&[call.as_slice(), &["--strategies", strategies, "--out", &out, "--quiet"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    let table = std::fs::read_to_string(folder.path().join(format!("out/{experiment}-fmnist-mini.md")))
        .expect("a table");
    (answer.out, table)
}

#[test]
fn the_papers_tables_can_be_tried_on_the_embedded_data() {
    for (experiment, settings) in [("skew", 4), ("participation", 6), ("lambda", 2)] {
        let (answer, table) = reproduce(experiment, "fedtvd");
        // A head, a rule and one row per setting.
        assert_eq!(table.lines().filter(|line| line.starts_with('|')).count(), 2 + settings, "{table}");
        assert!(table.contains("paper: Selo, Kundroo, Kim, FGCS 2025"), "{table}");
        assert!(table.contains("not the paper's protocol") && table.contains("rounds = 1 (300)"), "{table}");
        assert!(answer.starts_with(&table) && !table.contains("not run"), "{answer}");
    }
}

#[test]
fn a_missing_data_set_is_reported_with_the_paths_searched() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let call = ["reproduce", "lambda", "--seeds", "1", "--rounds", "1", "--strategies", "fedavg", "--quiet"];
    let data = folder.path().join("nothing").display().to_string();
    let answer = fedtvd(&[call.as_slice(), &["--out", &out, "--data", &data]].concat());
    assert_eq!(answer.code, 1);
    assert!(
        answer.out.contains("not run") && answer.out.contains("2 rows are incomplete: "),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("cifar10"), "{}", answer.out);
}

#[test]
fn a_dry_run_shows_the_estimated_time_and_the_runs_without_an_estimate() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (out, data) = (folder.path().join("out").display().to_string(), folder.path().display().to_string());
    let call = ["reproduce", "skew", "--dataset", "fmnist-mini,cifar100", "--seeds", "1", "--strategies"];
    let call = [call.as_slice(), &["fedavg", "--out", &out, "--data", &data, "--dry-run"]].concat();
    let answer = fedtvd(&call);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.starts_with("8 runs, 0 finished; of the rest, 4 take about "), "{}", answer.out);
    assert!(answer.out.contains(", the time of 4 cannot be estimated\n"), "{}", answer.out);
    assert!(
        answer.out.contains("note: 4 runs cannot be run: cifar100 is not on this machine"),
        "{}",
        answer.out
    );
    let settings =
        "settings:   split.alpha = 0.1; split.alpha = 0.5; split.alpha = 1.0; split.kind = \"iid\"\n";
    assert!(answer.out.contains(settings) && answer.out.ends_with("seeds:      1\n"), "{}", answer.out);
    let answer = fedtvd(&[call.as_slice(), &["--json"]].concat());
    let view: serde_json::Value = serde_json::from_str(&answer.out).expect("JSON");
    assert_eq!((&view["left"], &view["untimed"][0]["runs"]), (&8.into(), &4.into()), "{view}");
    let timed = |cell: &&serde_json::Value| cell["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0);
    let cells = view["cells"].as_array().expect("cells");
    assert!(cells.iter().filter(timed).all(|cell| cell["dataset"] == "fmnist-mini"), "{view}");
    assert_eq!((cells.len(), cells.iter().filter(timed).count()), (8, 4), "{view}");
    assert!(!folder.path().join("out").exists(), "nothing is run");
}

#[test]
fn an_unknown_data_set_is_an_invalid_request() {
    for experiment in ["skew", "theory"] {
        let answer = fedtvd(&["reproduce", experiment, "--dataset", "fminst"]);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{}", answer.err);
        assert!(
            answer.err.contains("\"fminst\" is neither a data set nor a path: use fmnist-mini"),
            "{}",
            answer.err
        );
    }
}

#[test]
fn the_papers_figures_can_be_drawn_from_the_embedded_data() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out");
    let call =
        ["reproduce", "figures", "--dataset", "fmnist-mini", "--seeds", "1", "--rounds", "2", "--quiet"];
    let place = out.display().to_string();
    let answer = fedtvd(&[call.as_slice(), &["--strategies", "fedavg,fedtvd", "--out", &place]].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    for alpha in ["0.1", "0.5", "1"] {
        for figure in [
            format!("figure-2-fmnist-mini-alpha-{alpha}.svg"),
            format!("figure-5-fmnist-mini-alpha-{alpha}.svg"),
        ] {
            let svg = std::fs::read_to_string(out.join("figures").join(&figure)).expect(&figure);
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{figure}");
            assert!(answer.out.contains(&figure), "{}", answer.out);
        }
    }
    // FedTVD's weights of the paper's three clients at temperature 1.
    assert!(answer.out.contains("fedtvd 0.341, 0.334, 0.325"), "{}", answer.out);
}

#[test]
fn a_table_includes_all_finished_shards() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let call =
        ["reproduce", "lambda", "--dataset", "fmnist-mini", "--seeds", "1", "--rounds", "1", "--quiet"];
    let part = |shard: &str| {
        let answer =
            fedtvd(&[call.as_slice(), &["--strategies", "fedavg", "--out", &out, "--shard", shard]].concat());
        assert_eq!(answer.code, 0, "{}", answer.err);
        std::fs::read_to_string(folder.path().join("out/lambda-fmnist-mini.md")).expect("a table")
    };
    let half = part("0/2");
    assert!(half.contains("1 row is incomplete: not run"), "{half}");
    let whole = part("1/2");
    assert!(!whole.contains("not run") && whole.lines().filter(|line| line.starts_with('|')).count() == 4);
}

#[test]
fn a_single_data_set_can_have_another_model() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let call = ["reproduce", "lambda", "--dataset", "fmnist-mini", "--seeds", "1", "--quiet", "--out", &out];
    let other = ["--rounds", "1", "--strategies", "fedavg", "--set", "model.name=logistic"];
    let answer = fedtvd(&[call.as_slice(), &other].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    let deviations = "no difference is shown (paper's values in parentheses): model.name = logistic (lenet), rounds = 1 (300)";
    assert!(answer.out.contains(deviations), "{}", answer.out);
}

#[test]
fn settings_without_effect_are_refused() {
    let refusals: &[(&[&str], &str)] = &[
        (
            &["skew", "--set", "model.name=mlp"],
            "--set model.name=mlp has no effect: model.name is varied by the experiment",
        ),
        (&["participation", "--set", "clients=20"], "--set clients=20 has no effect: split.clients is"),
        (&["lambda", "--set", "seed=7"], "--set seed=7 has no effect: seed is varied"),
        (&["theory", "--set", "local.lr=0.1"], "--set local.lr=0.1 has no effect: local.lr is not used"),
        (&["theory", "--set", "split.alpha=0.1"], "--set split.alpha=0.1 has no effect"),
        (&["theory", "--dry-run"], "reproduce theory has no training runs and does not accept --dry-run"),
        (&["theory", "--shard", "0/2"], "reproduce theory has no training runs and does not accept --shard"),
        (&["theory", "--rounds", "0"], "--rounds 0 is not allowed"),
    ];
    for (arguments, sentence) in refusals {
        let answer = fedtvd(&[&["reproduce"], *arguments].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}: {}", answer.err);
        assert!(answer.err.starts_with(&format!("fedtvd: {sentence}")), "{arguments:?}: {}", answer.err);
    }
}

#[test]
fn the_theory_shows_what_was_measured_and_the_constant_of_the_bound() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out").display().to_string();
    let call =
        ["reproduce", "theory", "--seeds", "1", "--rounds", "2", "--dataset", "fmnist-mini", "--quiet"];
    let answer = fedtvd(&[call.as_slice(), &["--set", "clients=10", "--out", &out]].concat());
    assert_eq!(answer.code, 0, "{}", answer.err);
    assert!(answer.out.contains("fmnist-mini\", 10 clients, seed 1."), "{}", answer.out);
    // The last round is measured, and ten clients have no cohorts of ten.
    assert!(
        answer.out.contains("| 0.1 | fedtvd | 2 |") && !answer.out.contains("| cohorts |"),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("| delta^2 | C |"), "{}", answer.out);
}
