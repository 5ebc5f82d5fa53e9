//! How runs are grouped into settings, and which are left out.

use crate::runs::{grid, run};
use crate::{report, summary_options};
use fedtvd_lab::report::findings::{Report, ReportOptions};
use fedtvd_lab::report::heading::heading;
use fedtvd_lab::runs::collection::Collection;
use fedtvd_lab::runs::record::Unfinished;

#[test]
fn runs_that_differ_only_in_strategy_and_seed_are_one_setting() {
    let report = report(grid());
    let titles: Vec<&str> = report.parts.iter().map(|part| part.setting.title.as_str()).collect();
    assert_eq!(titles, ["split.alpha = 0.1", "split.alpha = 0.5"]);
    let labels: Vec<&str> = report.parts[0].rows.iter().map(|row| row.line.strategy.as_str()).collect();
    assert_eq!(labels, ["fedavg", "fedtvd"]);
    assert_eq!(report.parts[0].setting.seeds(), [1, 2]);
}

#[test]
fn settings_are_sorted_by_their_values() {
    let alphas = ["split.alpha=10", "split.alpha=0.5", "split.alpha=1", "split.kind=iid"];
    let report = report(alphas.iter().map(|alpha| run("fedavg", 1, &[0.5], &[alpha])).collect());
    let titles: Vec<&str> = report.parts.iter().map(|part| part.setting.title.as_str()).collect();
    let dirichlet = |alpha: &str| format!("split.kind = dirichlet, split.alpha = {alpha}");
    assert_eq!(titles[..3], [dirichlet("0.5"), dirichlet("1"), dirichlet("10")]);
    assert_eq!(titles[3], "split.kind = iid");
}

#[test]
fn a_key_without_influence_does_not_separate_settings() {
    let alike = ["split.alpha=0.1", "split.alpha=1"]
        .map(|alpha| run("fedavg", 1, &[0.5], &["split.kind=iid", alpha]))
        .to_vec();
    let report = report(alike);
    assert_eq!((report.parts.len(), report.parts[0].rows[0].seeds.len()), (1, 1));
}

#[test]
fn liars_are_a_setting_of_their_own_that_its_heading_describes() {
    let attacks = [&[][..], &["attack.clients=5"], &["attack.kind=sign-flip", "attack.clients=2"]];
    let report = report(attacks.map(|attack| run("fedavg", 1, &[0.5], attack)).to_vec());
    let titles: Vec<&str> = report.parts.iter().map(|part| part.setting.title.as_str()).collect();
    // Without an attack, the number of liars has no influence.
    assert_eq!(titles, ["attack.kind = sign-flip", "attack.kind = none"]);
    let headings: Vec<String> = report.parts.iter().map(|part| heading(&part.setting)).collect();
    assert!(!headings[1].contains("clients lie"), "{headings:?}");
    assert!(headings[0].contains(" · 2 clients lie (sign-flip, scale 1) · "), "{headings:?}");
}

#[test]
fn a_seed_that_is_set_in_only_one_setting_is_in_the_titles() {
    let report = report(vec![run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.6], &["split.seed=7"])]);
    let titles: Vec<&str> = report.parts.iter().map(|part| part.setting.title.as_str()).collect();
    assert_eq!(titles, ["split.seed = 7", "split.seed follows seed"]);
}

#[test]
fn a_duplicate_run_is_used_once() {
    let same = [run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.5], &["name=\"again\""])].to_vec();
    let once = report(same);
    assert_eq!(
        (once.parts[0].rows[0].seeds.as_slice(), once.parts[0].setting.notes.len()),
        ([1].as_slice(), 0)
    );
    let other = report([run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.6], &[])].to_vec());
    assert!(
        other.parts[0].setting.notes[0].contains("fedavg with seed 1 was run twice"),
        "{:?}",
        other.parts[0].setting.notes
    );
}

#[test]
fn of_duplicates_the_run_with_details_is_used() {
    for turned in [false, true] {
        let mut records =
            vec![run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.5], &["evaluation.details=true"])];
        if turned {
            records.reverse();
        }
        assert_eq!(report(records).parts[0].rows[0].worst_decile, Some(0.2));
    }
}

#[test]
fn different_splits_with_the_same_seed_are_noted() {
    let mut records = vec![run("fedavg", 7, &[0.5], &[]), run("fedtvd", 7, &[0.5], &[])];
    records[1].manifest.split_hash = "another".to_owned();
    let report = report(records);
    assert!(
        report.parts[0].setting.notes[0].starts_with("The runs with seed 7 do not all have the same split")
    );
    assert!(!report.parts[0].heading.contains("same split"), "{}", report.parts[0].heading);
}

#[test]
fn unfinished_runs_are_named_and_left_out() {
    let left = Unfinished { strategy: "fedtvd".to_owned(), seed: 3, done: 12, rounds: 50 };
    let collection = Collection::of(vec![run("fedavg", 1, &[0.5], &[])], vec![left], 0);
    let report =
        Report::new(collection, &ReportOptions { summary: summary_options(), ..ReportOptions::default() });
    assert_eq!(report.notes, ["Left out because unfinished: fedtvd with seed 3 (12 of 50 rounds)."]);
}

#[test]
fn a_hardened_run_is_a_separate_strategy_with_its_own_command() {
    let report =
        report(vec![run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.6], &["strategy.mode=hardened"])]);
    let part = &report.parts[0];
    assert_eq!(report.labels, ["fedavg", "fedavg (hardened)"]);
    assert_eq!(
        part.commands,
        [
            "fedtvd compare --strategies fedavg --seeds 1",
            "fedtvd compare --strategies fedavg --seeds 1 --set strategy.mode=hardened"
        ]
    );
}

#[test]
fn strategies_can_be_selected_and_unknown_ones_are_refused() {
    let mut collection = Collection::of(grid(), Vec::new(), 0);
    let refusal = collection.keep(&["fedprox".to_owned()]).unwrap_err().to_string();
    assert_eq!(refusal, "no run has the strategy fedprox; available: fedavg, fedtvd");
    collection.keep(&["fedtvd".to_owned()]).unwrap();
    assert_eq!(collection.labels(), ["fedtvd"]);
}

#[test]
fn the_heading_of_a_federation_names_its_sites_and_no_split() {
    let mut record = run("fedavg", 1, &[0.5], &["data.set=\"\"", "cohort.fraction=1"]);
    record.manifest.split_hash = String::new();
    let heading = report(vec![record]).parts[0].heading.clone();
    assert!(
        heading.starts_with("data of the sites · 2 clients, 2 per round · a federation · lenet"),
        "{heading}"
    );
    assert!(!heading.contains("same split") && !heading.contains("Dirichlet"), "{heading}");
}
