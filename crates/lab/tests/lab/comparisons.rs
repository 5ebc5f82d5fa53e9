//! Accuracies, differences over seeds, and verdicts.

use crate::runs::{grid, run};
use crate::{report, report_with, summary_options};
use fedtvd_lab::runs::record::Record;
use fedtvd_lab::stats::summary::{Deviation, SummaryOptions};

#[test]
fn differences_are_paired_over_the_seeds_that_both_have() {
    let records = vec![
        run("fedavg", 1, &[0.5, 0.6], &[]),
        run("fedavg", 2, &[0.1, 0.2], &[]),
        run("fedavg", 4, &[0.3, 0.4], &[]),
        run("fedavg", 5, &[0.3, 0.4], &[]),
        run("fedtvd", 1, &[0.6, 0.7], &[]),
        run("fedtvd", 2, &[0.2, 0.3], &[]),
        run("fedtvd", 3, &[0.9, 0.9], &[]),
        run("fedtvd", 5, &[0.4, 0.5], &[]),
    ];
    let report = report(records);
    let [first, second] = report.parts[0].rows.as_slice() else { panic!("two rows") };
    assert_eq!((first.line.difference, first.line.wins, first.pairs), (None, None, None));
    // Every round of every shared seed is 0.1 better, so the interval has no width.
    let [low, high] = [second.line.low.unwrap(), second.line.high.unwrap()];
    assert!((low - 0.1).abs() < 1e-12 && (high - 0.1).abs() < 1e-12, "{low} {high}");
    assert_eq!(
        (second.line.wins, second.pairs, second.seeds.len(), second.line.p.map(|p| p < 1e-9)),
        (Some(3), Some(3), 4, Some(true))
    );
    // fedavg ends at 0.35 on average; its mean curve is 0.3, 0.4, that of fedtvd 0.53, 0.6.
    assert_eq!((first.line.rounds_to_target, second.line.rounds_to_target), (Some(2), Some(1)));
}

#[test]
fn a_target_can_be_set() {
    let summary = SummaryOptions { target: Some(0.6), ..summary_options() };
    let rows = &report_with(grid(), summary).parts[0].rows;
    // Mean curves: fedavg 0.2, 0.55; fedtvd 0.3, 0.65.
    assert_eq!((rows[0].line.rounds_to_target, rows[1].line.rounds_to_target), (None, Some(2)));
}

#[test]
fn both_deviations_are_those_of_the_golden_file() {
    let golden: serde_json::Value =
        serde_json::from_str(include_str!("../golden/metric_last_rounds.json")).unwrap();
    let last = golden["L"].as_u64().unwrap() as usize;
    let records = || -> Vec<Record> {
        let seeds = golden["acc"].as_array().unwrap().iter();
        let curves = seeds
            .map(|curve| curve.as_array().unwrap().iter().map(|a| a.as_f64().unwrap()).collect::<Vec<_>>());
        // The golden file's last rounds are fewer than ours, so the run has no others.
        curves.zip(1..).map(|(curve, seed)| run("fedavg", seed, &curve[curve.len() - last..], &[])).collect()
    };
    for (deviation, mean, std) in [
        (Deviation::Seeds, "def_A_per_seed_mean_then_std", "std_ddof1"),
        (Deviation::Rounds, "def_B_fedeasy_analysis_py", "std"),
    ] {
        let line =
            &report_with(records(), SummaryOptions { deviation, ..summary_options() }).parts[0].rows[0].line;
        let mean_of = line.mean.unwrap();
        assert!((mean_of - golden[mean]["mean"].as_f64().unwrap()).abs() < 1e-12, "{mean_of}");
        assert!((line.std.unwrap() - golden[mean][std].as_f64().unwrap()).abs() < 1e-12, "{:?}", line.std);
    }
}

#[test]
fn there_is_a_corrected_test_from_three_seeds_on_and_a_bootstrap_from_six() {
    let many = |count: u64| {
        let of = |seed: u64| {
            let noise = 0.01 * (seed % 3) as f64;
            vec![
                run("fedavg", seed, &[0.5], &[]),
                run("uniform", seed, &[0.5 + noise - 0.005], &[]),
                run("fedtvd", seed, &[0.6 + noise], &[]),
            ]
        };
        report((1..=count).flat_map(of).collect())
    };
    let five = &many(5).parts[0];
    assert!(five.rows.iter().skip(1).all(|row| row.p_holm.is_some() && row.bootstrap_low.is_none()));
    assert!(many(2).parts[0].rows.iter().all(|row| row.p_holm.is_none() && row.line.low.is_none()));
    let six = &many(6).parts[0];
    let [_, uniform, fedtvd] = six.rows.as_slice() else { panic!("three rows") };
    // Holm doubles the smaller of two p-values.
    assert!((fedtvd.p_holm.unwrap() / fedtvd.line.p.unwrap() - 2.0).abs() < 1e-12);
    assert_eq!(uniform.p_holm, uniform.line.p);
    assert!((uniform.line.p_bonferroni.unwrap() / uniform.line.p.unwrap() - 2.0).abs() < 1e-12);
    assert!(fedtvd.bootstrap_low.unwrap() > 0.09 && fedtvd.bootstrap_high.unwrap() < 0.13);
    assert_eq!(
        six.verdict,
        "fedtvd (+11.0 points) is significantly better than fedavg; no significant difference between fedavg and uniform (6 seeds, assuming that differences between seeds are about normal)."
    );
}

#[test]
fn the_verdict_says_when_nothing_is_significant() {
    let one = report(vec![run("fedavg", 1, &[0.5], &[]), run("fedtvd", 1, &[0.9], &[])]);
    assert_eq!(one.verdict, "One seed is not enough to compare strategies.");
    let alone = report(vec![run("fedavg", 1, &[0.5], &[])]);
    assert_eq!(
        alone.verdict,
        "fedavg reaches 50.0 % accuracy (1 seed); there is no other strategy to compare it with."
    );
    let few = (1..=3).flat_map(|seed| {
        [run("fedavg", seed, &[0.5], &[]), run("fedtvd", seed, &[0.6 + 0.001 * seed as f64], &[])]
    });
    assert_eq!(
        report(few.collect()).verdict,
        "fedtvd (+10.2 points) is significantly better than fedavg (3 seeds, assuming that differences between seeds are about normal)."
    );
    let noisy = [(1, 0.5), (2, 0.6), (3, 0.4)].into_iter();
    let noisy =
        noisy.flat_map(|(seed, a)| [run("fedavg", seed, &[0.5], &[]), run("fedtvd", seed, &[a], &[])]);
    assert_eq!(
        report(noisy.collect()).verdict,
        "No significant difference between fedavg and fedtvd (3 seeds, assuming that differences between seeds are about normal)."
    );
}

#[test]
fn strategies_with_fewer_seeds_are_noted_and_not_ranked() {
    let mut records: Vec<Record> = (1..=4)
        .flat_map(|seed| {
            let noise = 0.01 * seed as f64;
            [run("fedavg", seed, &[0.5 + noise], &[]), run("uniform", seed, &[0.48 + 2.0 * noise], &[])]
        })
        .collect();
    let all = report(records.clone());
    assert!(all.parts[0].table.columns[0].cells.iter().all(|cell| cell.rank.is_some()));
    assert!(all.parts[0].setting.notes.is_empty());
    records.push(run("fedtvd", 1, &[0.60], &[]));
    records.push(run("fedtvd", 2, &[0.62], &[]));
    let two = [run("fedprox", 1, &[0.60], &[]), run("fedprox", 2, &[0.62], &[])];
    let notes = &report([records.clone(), two.to_vec()].concat()).parts[0].setting.notes;
    assert!(
        matches!(notes.as_slice(), [note] if note.starts_with("fedtvd and fedprox: only 2 of 4 seeds")),
        "{notes:?}"
    );
    let part = &report(records).parts[0];
    assert_eq!(
        part.setting.notes,
        [
            "fedtvd: only 2 of 4 seeds (1, 2). Accuracy is the mean over these seeds, differences are over the seeds shared with the baseline."
        ]
    );
    let texts: Vec<&str> = part.table.columns[0].cells.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(texts, ["52.50 ± 1.29 (4)", "53.00 ± 2.58 (4)", "61.00 ± 1.41 (2)"]);
    assert!(part.table.columns[0].cells.iter().all(|cell| cell.rank.is_none()));
    assert!(
        part.verdict.starts_with("No significant difference between fedavg and uniform; too few seeds to compare fedtvd (2 to 4 seeds, "),
        "{}",
        part.verdict
    );
    // Fewer seeds do not mean another split.
    assert!(
        part.heading.contains("2 to 4 of 4 seeds") && part.heading.contains("same split"),
        "{}",
        part.heading
    );
}
