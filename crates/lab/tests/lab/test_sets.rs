//! The uncertainty of a test set that all seeds share.

use crate::report;
use crate::runs::run;
use fedtvd_lab::report::findings::Report;
use fedtvd_lab::runs::record::Record;
use fedtvd_lab::runs::test_rows::TestRows;
use fedtvd_run::directory::TestPredictions;

/// A run whose final model classifies the first rows of a test set of 20 correctly.
fn tested(strategy: &str, seed: u64, right: usize) -> Record {
    let mut record = run(strategy, seed, &[right as f64 / 20.0], &[]);
    let labels: Vec<u32> = (0..20).map(|row| row % 2).collect();
    let predictions =
        labels.iter().enumerate().map(|(row, label)| if row < right { *label } else { 1 - label }).collect();
    record.test_rows = Some(TestRows::from(&TestPredictions { labels, predictions }));
    record
}

/// Three seeds in which fedtvd gets two more rows right.
fn three() -> Vec<Record> {
    (1..=3).flat_map(|seed| [tested("fedavg", seed, 14), tested("fedtvd", seed, 16)]).collect()
}

fn sentence(report: &Report) -> &str {
    report.parts[0].test_set.as_deref().expect("there are intervals")
}

#[test]
fn the_uncertainty_of_a_shared_test_set_makes_a_constant_difference_insignificant() {
    let report = report(three());
    let row = &report.parts[0].rows[1];
    // Two rows of 20 differ: d_i is 1 twice and else 0, so e = sqrt(2 · 0.9² + 18 · 0.1²) / 20.
    assert!((row.row_error.unwrap() - 1.8f64.sqrt() / 20.0).abs() < 1e-15, "{row:?}");
    assert!(row.seed_error.unwrap() < 1e-15 && row.line.low.unwrap() < 0.0 && row.line.p.unwrap() > 0.05);
    assert!(report.verdict.starts_with("No significant difference"), "{}", report.verdict);
    assert_eq!(
        sentence(&report),
        "All seeds share one test set of 20 samples; its uncertainty is counted in intervals, p and verdict."
    );
}

#[test]
fn a_report_says_if_the_uncertainty_of_the_test_set_is_not_counted() {
    let mut records = three();
    records[4].test_rows = None;
    let unknown = report(records);
    assert_eq!(unknown.parts[0].rows[1].row_error, None);
    let said = "The uncertainty of the test set is not counted in intervals, p and verdict: not all runs stored their predictions.";
    assert_eq!(sentence(&unknown), said);
    for name in ["report.html", "report.md"] {
        let files = unknown.files();
        assert!(files.iter().any(|(own, text)| own == name && text.contains(said)), "{name}");
    }
}

#[test]
fn test_sets_that_differ_between_seeds_are_not_counted_again() {
    let by_data = || {
        let mut records = three();
        records.iter_mut().for_each(|run| run.manifest.data_checksum = format!("data {}", run.summary.seed));
        records
    };
    let by_labels = || {
        let mut records = three();
        records
            .iter_mut()
            .flat_map(|run| run.test_rows.iter_mut().map(|rows| (run.summary.seed, rows)))
            .for_each(|(seed, rows)| rows.labels = format!("labels {seed}"));
        records
    };
    for records in [by_data(), by_labels()] {
        let report = report(records);
        assert_eq!(report.parts[0].rows[1].row_error, None);
        assert_eq!(
            sentence(&report),
            "The seeds have different test sets, so that the spread over seeds contains the uncertainty of the test set."
        );
    }
}

#[test]
fn without_intervals_nothing_is_said_about_the_test_set() {
    let report = report(three().into_iter().take(4).collect());
    assert_eq!(report.parts[0].test_set, None);
}
