//! The files of a report: page, tables, figures and captions.

use crate::runs::{grid, run, run_of};
use crate::{report, report_with, summary_options};
use fedtvd_core::round::{MissedClass, RoundRecord};
use fedtvd_lab::report::compact_table::{compact_legend, compact_table};
use fedtvd_lab::report::findings::{Report, ReportOptions};
use fedtvd_lab::runs::collection::Collection;
use fedtvd_lab::stats::summary::{Deviation, SummaryOptions};

#[test]
fn a_report_without_timing_does_not_depend_on_where_when_or_in_which_order_runs_were_made() {
    let mut moved = grid();
    moved.reverse();
    for record in &mut moved {
        record.summary.directory = "elsewhere".to_owned();
        record.summary.seconds = 77.0;
        record.manifest.fingerprint.architecture = "other".to_owned();
    }
    assert_eq!(report(grid()).files(), report(moved).files());
}

#[test]
fn a_report_of_runs_from_different_kernels_says_so() {
    let page = |records| {
        let files = report(records).files();
        files.into_iter().find(|(name, _)| name == "report.md").unwrap().1
    };
    let mut records = grid();
    let sentence = "The runs were not computed with the same arithmetic";
    assert!(!page(grid()).contains(sentence));
    let all = records.len();
    records[0].manifest.fingerprint.kernels = 2;
    let mixed = page(records);
    let counts = format!("{} of {all} with a (i, kernels 1) and 1 of {all} with a (i, kernels 2)", all - 1);
    assert!(mixed.contains(sentence) && mixed.contains(&counts), "{mixed}");
}

#[test]
fn the_title_of_a_report_does_not_depend_on_the_names_of_its_runs() {
    let called = |names: [&str; 2], title: Option<&str>| {
        let [one, two] = names.map(|name| format!("name={name}"));
        let runs = vec![run("fedavg", 1, &[0.5], &[&one]), run("fedtvd", 1, &[0.6], &[&two])];
        let title = title.map(str::to_owned);
        Report::new(Collection::of(runs, Vec::new(), 0), &ReportOptions { title, ..ReportOptions::default() })
            .files()
    };
    assert_eq!(called(["a", "a"], None), called(["a", "b"], None));
    let page =
        |files: Vec<(String, String)>| files.into_iter().find(|(name, _)| name == "report.md").unwrap().1;
    assert!(page(called(["a", "a"], Some("mine"))).starts_with("# mine\n"));
}

#[test]
fn timing_has_its_own_section_or_is_left_out() {
    let options = ReportOptions { summary: summary_options(), ..ReportOptions::default() };
    let with = Report::new(Collection::of(grid(), Vec::new(), 0), &options).files();
    let without = report(grid()).files();
    let text =
        |files: &[(String, String)], name: &str| files.iter().find(|(own, _)| own == name).unwrap().1.clone();
    for name in ["report.md", "report.html"] {
        assert!(text(&with, name).contains("Timing") && !text(&without, name).contains("Timing"), "{name}");
    }
}

#[test]
fn several_settings_share_a_verdict_and_a_table_that_shows_what_was_not_run() {
    let mut records = grid();
    for alpha in ["split.alpha=0.5", "split.alpha=0.1"] {
        records.push(run("fedtvd", 3, &[0.3, 0.8], &[alpha]));
        records.push(run("fedavg", 3, &[0.2, 0.7], &[alpha]));
    }
    records.push(run("uniform", 1, &[0.1, 0.1], &["split.alpha=0.5"]));
    let report = report(records);
    assert_eq!(
        report.verdict,
        "Compared with fedavg in 2 settings: uniform with too few seeds in 1; fedtvd significantly better in 2 (assuming that \
         differences between seeds are about normal)."
    );
    let files = report.files();
    let text = |name: &str| files.iter().find(|(own, _)| own == name).unwrap().1.as_str();
    assert!(text("report.md").contains("| uniform  |           not run |"), "{}", text("report.md"));
    assert!(text("table.tex").contains("strategy & split.alpha = 0.1 & split.alpha = 0.5 \\\\"));
    assert!(text("table.tex").contains("\\textbf{50.00 $\\pm$ 5.00}"), "{}", text("table.tex"));
}

#[test]
fn curves_have_a_line_per_run_and_a_column_per_round() {
    let files =
        report(vec![run("fedavg", 1, &[0.25, 0.5], &[]), run("fedtvd", 1, &[0.125, 0.75], &[])]).files();
    let curves = &files.iter().find(|(name, _)| name == "curves.csv").unwrap().1;
    assert_eq!(curves, "setting,strategy,seed,1,2\n,fedavg,1,0.25,0.5\n,fedtvd,1,0.125,0.75\n");
}

#[test]
fn the_page_loads_nothing_and_contains_no_paths() {
    let files = report(grid()).files();
    let page = &files.iter().find(|(name, _)| name == "report.html").unwrap().1;
    assert!(!page.contains("http") && !page.contains("place of") && page.contains("<polyline"));
    assert_eq!(page.matches("<section").count(), 2);
    let kinds = ["curves", "bubbles"].map(|kind| page.matches(&format!("class=\"{kind}\"")).count());
    // Accuracy, loss and effective clients, and the bubbles, in each of two settings.
    assert_eq!(kinds, [6, 2]);
    for (name, text) in files.iter().filter(|(name, _)| name.starts_with("figures/")) {
        assert!(text.starts_with("<svg xmlns=") && text.ends_with("</svg>\n"), "{name}");
    }
}

#[test]
fn a_missing_figure_is_explained() {
    let part = &report(vec![run("fedavg", 1, &[0.5], &[])]).parts[0];
    assert!(part.missing.iter().any(|why| why.contains("evaluation.details=true")), "{:?}", part.missing);
    assert!(part.missing.iter().any(|why| why.contains("drift")), "{:?}", part.missing);
    let told = &report(vec![run("fedavg", 1, &[0.5], &["evaluation.details=true"])]).parts[0];
    assert!(told.figures.iter().any(|figure| figure.name == "classes"));
}

#[test]
fn the_table_has_per_client_accuracy_with_its_spread_and_worst_tenth() {
    let report = report(vec![run("fedavg", 1, &[0.5, 0.7], &["evaluation.details=true"])]);
    let row = &report.parts[0].rows[0];
    assert_eq!((row.client_mean, row.client_deviation, row.worst_decile), (Some(0.6), Some(0.1), Some(0.2)));
    let files = report.files();
    let text = &files.iter().find(|(name, _)| name == "report.md").unwrap().1;
    let heads: Vec<&str> =
        text.lines().find(|line| line.starts_with("| strategy")).unwrap().split('|').collect();
    let place = |head: &str| heads.iter().position(|cell| cell.trim() == head);
    assert_eq!(place("per-client accuracy").map(|place| place + 1), place("spread"), "{heads:?}");
}

#[test]
fn the_median_of_the_clients_accuracies_stands_beside_the_accuracy_where_clients_evaluate() {
    let judged = |medians: [Option<f64>; 2]| {
        let change = |lines: &mut [RoundRecord]| {
            lines.iter_mut().zip(medians).for_each(|(line, median)| line.median_accuracy = median);
        };
        report(vec![run_of("fedavg", 1, &[0.5, 0.7], &[], change)])
    };
    let file =
        |report: &Report, name: &str| report.files().into_iter().find(|(own, _)| own == name).unwrap().1;
    let all = judged([Some(0.3), Some(0.5)]);
    assert_eq!(all.parts[0].rows[0].median_accuracy, Some(0.4));
    assert!(file(&all, "report.md").contains("| strategy | accuracy | median over clients |"));
    assert!(file(&all, "table.csv").lines().next().unwrap().contains(",median_accuracy,"));
    for partly in [[None, None], [None, Some(0.5)]] {
        assert!(!file(&judged(partly), "report.md").contains("median over clients"), "{partly:?}");
    }
}

#[test]
fn all_files_of_a_report_have_different_names() {
    let correlated = |correlation: &str| {
        run("fedavg", 1, &[0.5], &["split.kind=correlated", &format!("split.correlation={correlation}")])
    };
    let signs = report(vec![correlated("-0.8"), correlated("0.8")]);
    // Both titles consist of characters that are left out of file names.
    let folders =
        report(["data.set=/a b", "data.set=/a-b"].map(|set| run("fedavg", 1, &[0.5], &[set])).to_vec());
    for report in [signs, folders] {
        let mut names: Vec<String> = report.files().into_iter().map(|(name, _)| name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}

#[test]
fn the_bubbles_have_a_button_for_each_of_their_strategies() {
    // No seed is shared by all: that of the first strategy is drawn, which uniform lacks.
    let runs = [("fedavg", 1), ("fedtvd", 1), ("uniform", 2)];
    let files = report(runs.map(|(name, seed)| run(name, seed, &[0.5], &[])).to_vec()).files();
    let page = &files.iter().find(|(name, _)| name == "report.html").unwrap().1;
    let buttons = page.matches("data-column=").count();
    let weights = page.split("data-w=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert_eq!((buttons, weights.split(' ').count()), (2, 2), "{weights}");
    assert!(page.contains("data-column=\"1\" data-s=\"2\""), "the second button is fedtvd's");
}

#[test]
fn column_descriptions_name_the_target_and_the_requested_standard_deviation() {
    let about = |summary: SummaryOptions| {
        let columns = report_with(grid(), summary).parts.remove(0).table.columns;
        let of = |head: &str| columns.iter().find(|column| column.head == head).unwrap().about.clone();
        (of("rounds"), of("accuracy"))
    };
    let (rounds, accuracy) =
        about(SummaryOptions { target: Some(0.57), deviation: Deviation::Rounds, ..summary_options() });
    assert_eq!(rounds, "rounds until the mean accuracy reaches 57.00 %");
    assert!(accuracy.ends_with("averaged over these rounds"), "{accuracy}");
    assert!(about(summary_options()).1.ends_with("mean and standard deviation over seeds"));
    let natural = report(vec![run("fedavg", 1, &[0.5], &["split.kind=natural", "cohort.fraction=0.57"])]);
    let heading = &natural.parts[0].heading;
    assert!(heading.contains(" 57 % of the clients per round"), "{heading}");
}

#[test]
fn special_characters_do_not_break_markdown() {
    let path = "data.set=\"a|b\"";
    let mut records = grid();
    records.extend(["fedavg", "fedtvd"].map(|name| run(name, 1, &[0.2, 0.4], &[path])));
    let options = ReportOptions { summary: summary_options(), ..ReportOptions::default() };
    let mut report = Report::new(Collection::of(records, Vec::new(), 0), &options);
    report.name = "mine | *new*\n# yours".to_owned();
    let page = fedtvd_lab::report::markdown::page(&report);
    assert!(page.starts_with("# mine \\| \\*new\\* # yours\n\n"), "{page}");
    assert!(page.contains("\n## data.set = a\\|b"), "{page}");
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let tables = page.split("\n\n").filter(|block| block.starts_with('|'));
    for table in tables {
        let counts: Vec<usize> = table.lines().filter(|line| line.starts_with('|')).map(bars).collect();
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}\n{table}");
    }
}

#[test]
fn the_compact_table_fits_80_columns() {
    let labels = ["fedavg", "uniform", "fedtvd", "fedtvd+balanced"];
    let runs = (1..=10).flat_map(|seed| {
        labels.map(|label| {
            let better = if label == "fedtvd+balanced" { 0.3 + 0.01 * (seed % 3) as f64 } else { 0.0 };
            let mut record = run(label, seed, &[0.2, 0.5 + better + 0.02 * (seed % 2) as f64], &[]);
            (record.balanced_accuracy, record.macro_f1) = (Some(1.0 / 3.0), Some(0.289));
            record.missed_classes = Some(vec![MissedClass { class: 2, share: 0.05 }]);
            record
        })
    });
    let report = report(runs.collect());
    let part = &report.parts[0];
    let table = compact_table(part, &['o', '+', 'x', '#']) + &compact_legend(part);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].contains("vs fedavg") && lines[1].contains("strategy"), "{table}");
    assert!(lines[2].starts_with("o fedavg ") && lines[5].starts_with("# fedtvd+balanced "), "{table}");
    assert!(lines[5].contains(" 33.3‡   28.9  0.490  +15.5 [") && lines[5].ends_with("  2"), "{table}");
    let without_marks = compact_table(part, &[]);
    assert!(without_marks.lines().nth(2).is_some_and(|line| line.starts_with("fedavg ")), "{without_marks}");
}
