//! Verdicts agree with the interval that is shown, and there are none below three seeds.

use crate::report;
use crate::runs::run;
use fedtvd_lab::report::findings::Report;
use fedtvd_lab::runs::record::Record;
use fedtvd_lab::stats::verdict::VersusBaseline;

/// fedavg, and strategies that differ from it by these amounts in each seed.
fn differing(strategies: &[(&str, &[f64])]) -> Report {
    let seeds = strategies[0].1.len();
    let records = (0..seeds).flat_map(|place| {
        let seed = place as u64 + 1;
        let others = strategies.iter().map(move |(name, by)| run(name, seed, &[0.5 + by[place]], &[]));
        std::iter::once(run("fedavg", seed, &[0.5], &[])).chain(others).collect::<Vec<Record>>()
    });
    report(records.collect())
}

/// The ends of the interval in the column of differences, as printed.
fn shown(report: &Report, row: usize) -> Option<[f64; 2]> {
    let column = report.parts[0]
        .table
        .columns
        .iter()
        .find(|column| column.head == "vs fedavg")
        .expect("the column has intervals");
    let inside = column.cells[row].text.split_once('[')?.1.trim_end_matches(']');
    let (low, high) = inside.split_once(", ").expect("the column has intervals");
    Some([low.parse().expect("the column has intervals"), high.parse().expect("the column has intervals")])
}

#[test]
fn two_seeds_have_no_verdict_and_no_interval() {
    let report = differing(&[("fedtvd", &[0.1, 0.1001])]);
    assert!(
        !report.verdict.contains("better") && !report.verdict.contains("significant"),
        "{}",
        report.verdict
    );
    assert_eq!(shown(&report, 1), None);
}

#[test]
fn an_interval_that_excludes_0_is_significant_and_one_that_contains_0_is_not() {
    // The interval of the first strategy alone is [+0.3, +9.2]; together with two others it contains 0.
    let noise: [f64; 3] = [0.01, -0.02, 0.015];
    let three = differing(&[("fedtvd", &[0.047, 0.065, 0.029]), ("uniform", &noise), ("fedprox", &noise)]);
    let alone = differing(&[("fedtvd", &[0.047, 0.065, 0.029])]);
    let clear = differing(&[("fedtvd", &[0.047, 0.048, 0.046]), ("uniform", &noise), ("fedprox", &noise)]);
    for report in [&three, &alone, &clear] {
        for (place, row) in report.parts[0].rows.iter().enumerate().skip(1) {
            let [low, high] = shown(report, place).unwrap();
            let significant = row.versus_baseline() != Some(VersusBaseline::NotSignificant);
            assert_eq!(low > 0.0 || high < 0.0, significant, "{} {low} {high}", row.line.strategy);
        }
    }
    let first = |report: &Report| {
        report.parts[0].rows.iter().find(|row| row.line.strategy == "fedtvd").unwrap().clone()
    };
    assert_eq!(first(&three).versus_baseline(), Some(VersusBaseline::NotSignificant));
    assert_eq!(first(&alone).versus_baseline(), Some(VersusBaseline::Better));
    assert_eq!(first(&clear).versus_baseline(), Some(VersusBaseline::Better));
    assert!(first(&three).line.low.unwrap() > 0.0, "the single interval stays in CSV and JSON");
}

#[test]
fn the_p_value_that_is_shown_is_below_5_per_cent_exactly_if_the_interval_excludes_0() {
    for step in 0..200 {
        let by = 0.0005 * f64::from(step);
        let report = differing(&[
            ("fedtvd", &[by + 0.01, by - 0.013, by + 0.004, by]),
            ("uniform", &[-by, 0.02 - by, -by, 0.011 - by]),
        ]);
        for row in &report.parts[0].rows[1..] {
            let significant = row.versus_baseline() != Some(VersusBaseline::NotSignificant);
            assert_eq!(row.line.p_bonferroni.unwrap() < 0.05, significant, "{row:?}");
        }
    }
}

#[test]
fn holms_p_and_the_single_interval_are_on_the_page_and_in_the_csv() {
    let noise: [f64; 3] = [0.01, -0.02, 0.015];
    let files = differing(&[("fedtvd", &[0.047, 0.065, 0.029]), ("uniform", &noise)]).files();
    let text = |name: &str| files.iter().find(|(own, _)| own == name).unwrap().1.as_str();
    assert!(
        text("report.html").contains(">p (Holm)<") && text("report.html").contains(">single 95 % interval<")
    );
    assert!(!text("report.md").contains("Holm |") && !text("table.tex").contains("Holm"));
    let head = text("table.csv").lines().next().unwrap();
    for column in ["low", "high", "p", "p_holm", "simultaneous_low", "simultaneous_high", "p_bonferroni"] {
        assert!(head.split(',').any(|own| own == column), "{column}: {head}");
    }
}
