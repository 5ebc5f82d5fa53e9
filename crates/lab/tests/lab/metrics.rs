//! Balanced accuracy, macro F1 and loss beside accuracy, and classes that are never predicted correctly.

use crate::report;
use crate::runs::run_of;
use fedtvd_core::round::{Balanced, MissedClass, RoundRecord};
use fedtvd_lab::report::compact_table::compact_table;
use fedtvd_lab::report::findings::Report;
use fedtvd_lab::runs::record::Record;

/// Two rounds on 80/15/5 data with these missed classes in each.
fn skewed(strategy: &str, seed: u64, missed: [&[usize]; 2]) -> Record {
    let share = [0.8, 0.15, 0.05];
    let change = |lines: &mut [RoundRecord]| {
        for (line, missed) in lines.iter_mut().zip(missed) {
            line.balanced = Some(Balanced { accuracy: 0.62, classes: 3 });
            line.macro_f1 = Some(0.6);
            line.loss = Some(0.25 * f64::from(line.round));
            line.missed_classes =
                Some(missed.iter().map(|&class| MissedClass { class, share: share[class] }).collect());
        }
    };
    let mut record = run_of(strategy, seed, &[0.87, 0.89], &[], change);
    record.class_names = Some(["well", "ill", "dying"].map(str::to_owned).to_vec());
    record
}

fn file(report: &Report, name: &str) -> String {
    report.files().into_iter().find(|(own, _)| own == name).expect(name).1
}

#[test]
fn every_format_has_balanced_accuracy_macro_f1_and_loss_beside_accuracy() {
    let report = report(vec![skewed("fedavg", 1, [&[], &[]]), skewed("fedtvd", 1, [&[], &[]])]);
    let line = &report.parts[0].rows[0].line;
    assert_eq!((line.balanced_accuracy, line.macro_f1, line.loss), (Some(0.62), Some(0.6), Some(0.375)));
    let markdown = file(&report, "report.md");
    assert!(
        markdown.contains("| strategy |  accuracy | balanced accuracy | macro F1 |  loss |"),
        "{markdown}"
    );
    assert!(markdown.contains("62.00 |    60.00 | 0.375 |"), "{markdown}");
    assert!(file(&report, "table.tex").contains("accuracy & balanced accuracy & macro F1 & loss &"));
    let page = file(&report, "report.html");
    for head in ["balanced accuracy", "macro F1", "loss"] {
        assert!(page.contains(&format!(">{head}</button>")), "{head}");
    }
    for figure in ["balanced", "loss"] {
        assert!(page.contains(&format!("data-name=\"{figure}\"")), "{figure}");
        assert!(file(&report, &format!("figures/{figure}.svg")).contains("<polyline"));
    }
    let csv = file(&report, "table.csv");
    let place = |name: &str| csv.lines().next().unwrap().split(',').position(|own| own == name).unwrap();
    let fields: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(
        [fields[place("balanced_accuracy")], fields[place("macro_f1")], fields[place("loss")]],
        ["0.62", "0.6", "0.375"]
    );
    let compact = compact_table(&report.parts[0], &[]);
    assert!(compact.lines().nth(2).unwrap().contains("88.0  62.0   60.0  0.375"), "{compact}");
}

#[test]
fn runs_that_did_not_record_the_metrics_have_no_columns_for_them() {
    let old = report(vec![crate::runs::run("fedavg", 1, &[0.5], &[])]);
    let markdown = file(&old, "report.md");
    assert!(!markdown.contains("balanced accuracy |") && !markdown.contains("macro F1"), "{markdown}");
    assert!(old.parts[0].missing.iter().any(|why| why.starts_with("Balanced accuracy is not shown")));
    let compact = compact_table(&old.parts[0], &[]);
    assert!(!compact.contains("bal."), "{compact}");
}

#[test]
fn a_class_that_is_never_predicted_correctly_is_named_with_its_share_and_both_accuracies() {
    let seeds = |strategy: &'static str, missed: [&'static [usize]; 2]| {
        (1..=3).map(move |seed| skewed(strategy, seed, missed))
    };
    let mut records: Vec<Record> =
        seeds("fedavg", [&[1, 2], &[2]]).chain(seeds("uniform", [&[2], &[1]])).collect();
    records.push(skewed("fedtvd", 1, [&[1, 2], &[1, 2]]));
    records.extend((2..=3).map(|seed| skewed("fedtvd", seed, [&[], &[]])));
    let report = report(records);
    let dead = "‡ class \"dying\" (5.0 % of the test samples) is never predicted correctly by fedavg: accuracy 88.0 %, balanced \
                accuracy 62.0 %";
    let some = "‡ classes \"ill\" (15.0 % of the test samples) and \"dying\" (5.0 %) are never predicted correctly by fedtvd in 1 \
                of 3 seeds: accuracy 88.0 %, balanced accuracy 62.0 %";
    assert_eq!(
        report.parts[0].setting.notes,
        [dead, some],
        "uniform predicts each class in one of its rounds"
    );
    let page = file(&report, "report.html").replace("&quot;", "\"");
    assert!(page.contains(dead) && page.contains("62.00 ± 0.00‡"), "{page}");
    assert!(file(&report, "report.md").contains(dead));
    assert!(file(&report, "table.tex").contains("$^\\ddagger$ class"));
    let compact = compact_table(&report.parts[0], &[]);
    let marked = |label: &str| compact.lines().any(|line| line.starts_with(label) && line.contains("62.0‡"));
    assert!(marked("fedavg") && marked("fedtvd") && !marked("uniform"), "{compact}");
    let rows = &report.parts[0].rows;
    assert_eq!([&rows[0].line.missed_classes[..], &rows[1].line.missed_classes[..]], [&[2][..], &[][..]]);
}

#[test]
fn many_missed_classes_are_counted_beyond_the_first_four() {
    let change = |lines: &mut [RoundRecord]| {
        lines[0].missed_classes = Some((0..9).map(|class| MissedClass { class, share: 0.1 }).collect());
    };
    let report = report(vec![run_of("fedavg", 1, &[0.1], &[], change)]);
    assert_eq!(
        report.parts[0].setting.notes,
        [
            "‡ classes 0 (10.0 % of the test samples), 1 (10.0 %), 2 (10.0 %), 3 (10.0 %) and 5 more are never predicted \
          correctly by fedavg: accuracy 10.0 %"
        ]
    );
}
