//! What a report says about runs that collapsed, raised alarms or lost updates.

use crate::report;
use crate::runs::{run, run_of};
use fedtvd_core::round::{ClientFailure, Screened};
use fedtvd_lab::report::compact_table::compact_table;
use fedtvd_lab::report::findings::Report;
use fedtvd_lab::report::json::Document;
use fedtvd_lab::runs::record::Record;

const WHY: &str = "accuracy back at chance level (10.0 %) from round 7 on, after 60.0 %";

fn collapsed(strategy: &str, seed: u64) -> Record {
    let mut record = run(strategy, seed, &[0.6, 0.1], &[]);
    record.summary.collapsed = Some(WHY.to_owned());
    record
}

/// Five seeds, with these seeds of fedtvd and of fedavg collapsed.
fn five(fedtvd: &[u64], fedavg: &[u64]) -> Report {
    let seeds = |strategy: &str, broken: &[u64], accuracy: f64| {
        let one = |seed: u64| match broken.contains(&seed) {
            true => collapsed(strategy, seed),
            false => run(strategy, seed, &[0.3, accuracy + 0.001 * seed as f64], &[]),
        };
        (1..=5).map(one).collect::<Vec<_>>()
    };
    report([seeds("fedavg", fedavg, 0.5), seeds("uniform", &[], 0.4), seeds("fedtvd", fedtvd, 0.52)].concat())
}

fn file(report: &Report, name: &str) -> String {
    report.files().into_iter().find(|(own, _)| own == name).expect(name).1
}

#[test]
fn a_collapsed_strategy_is_neither_better_nor_worse_in_the_verdict() {
    assert_eq!(
        five(&[1, 4], &[]).verdict,
        "uniform (-5.0 points) is significantly worse than fedavg; fedtvd collapsed in 2 of 5 seeds (5 seeds, assuming \
         that differences between seeds are about normal)."
    );
    let baseline = five(&[], &[2]).verdict;
    assert!(baseline.contains("; fedavg, the baseline, collapsed in 1 of 5 seeds"), "{baseline}");
    let alone = report(vec![collapsed("fedavg", 1), run("fedavg", 2, &[0.5], &[])]).verdict;
    assert!(
        alone.contains("; fedavg, the baseline, collapsed in 1 of 2 seeds; there is no other"),
        "{alone}"
    );
    let one = report(vec![collapsed("fedavg", 1), collapsed("fedtvd", 1)]).verdict;
    assert_eq!(
        one,
        "One seed is not enough to compare strategies; fedavg, the baseline, collapsed in 1 of 1 seed; fedtvd collapsed in 1 of \
         1 seed."
    );
}

#[test]
fn several_settings_say_in_how_many_a_strategy_collapsed() {
    let at = |alpha: &str, strategy: &str, seed: u64, broken: bool| {
        let mut record = run(strategy, seed, &[0.3, 0.5], &[alpha]);
        record.summary.collapsed = broken.then(|| WHY.to_owned());
        record
    };
    let runs = ["split.alpha=0.1", "split.alpha=0.5"].into_iter().flat_map(|alpha| {
        [1, 2, 3].into_iter().flat_map(move |seed| {
            let harsh = alpha.ends_with("0.1");
            [at(alpha, "fedavg", seed, harsh && seed == 2), at(alpha, "fedtvd", seed, harsh)]
        })
    });
    let report = report(runs.collect());
    assert_eq!(
        report.verdict,
        "Compared with fedavg in 2 settings: fedtvd not significantly different in 1 and collapsed in 1; fedavg itself \
         collapsed in 1 (assuming that differences between seeds are about normal)."
    );
    let latex = file(&report, "table.tex");
    let note = "$^\\dagger$ fedtvd: 3 of 3 seeds collapsed: 1, 2, 3 (seed 1: accuracy back at chance level (10.0 \\%) from round 7 on";
    assert!(latex.contains(note) && latex.contains(", split.alpha = 0.1"), "{latex}");
}

#[test]
fn every_table_marks_a_strategy_with_collapsed_seeds_and_says_why() {
    let report = five(&[1, 4], &[]);
    let note = format!("† fedtvd: 2 of 5 seeds collapsed: 1, 4 (seed 1: {WHY})");
    let marked = |text: &str, label: &str, mark: &str| {
        let line = text.lines().find(|line| line.contains(label)).unwrap_or_default().to_owned();
        line.contains(mark)
    };
    let (markdown, page) = (file(&report, "report.md"), file(&report, "report.html"));
    for (text, label) in [(&markdown, "| fedtvd"), (&page, "fedtvd</th>")] {
        assert!(text.contains(&note) && marked(text, label, "†"), "{text}");
    }
    assert!(!marked(&markdown, "| uniform", "†"), "{markdown}");
    let compact = compact_table(&report.parts[0], &[]);
    assert!(marked(&compact, "fedtvd", "†") && !marked(&compact, "uniform", "†"), "{compact}");
    let latex = file(&report, "table.tex");
    assert!(
        latex.contains("$^\\dagger$} & ") && latex.contains("\\footnotesize $^\\dagger$ fedtvd: 2 of 5"),
        "{latex}"
    );
    let csv = file(&report, "table.csv");
    let place = csv.lines().next().unwrap_or_default().split(',').position(|name| name == "collapsed");
    let mut lines = csv.lines().map(|line| line.split(',').nth(place.expect("a column")));
    assert_eq!(lines.next(), Some(Some("collapsed")));
    assert_eq!(lines.collect::<Vec<_>>(), [Some("0"), Some("0"), Some("2")], "{csv}");
    let json = serde_json::to_value(Document::new(&report, &[])).expect("it is plain data");
    let row = &json["settings"][0]["strategies"][2];
    assert_eq!((&row["strategy"], &row["collapsed"]), (&"fedtvd".into(), &2.into()));
    assert_eq!(json["settings"][0]["notes"][0], note.as_str());
}

#[test]
fn alarms_and_failed_updates_are_noted_and_counted_for_each_client() {
    let record = run_of("fedavg", 1, &[0.5, 0.6], &[], |lines| {
        lines[1].alarm = Some("1 of 2 updates failed".to_owned());
        lines[1].clients[0].failure = Some(ClientFailure::Training("NaN".to_owned()));
        let screened = Screened { part: "weights".to_owned(), norm: 5.0, bound: 1.0, factor: 0.5 };
        lines[0].clients[0].screened = Some(screened);
        lines[1].clients[1].failure = Some(ClientFailure::Absent);
    });
    let report = report(vec![record]);
    assert_eq!(
        report.parts[0].setting.notes,
        [
            "fedavg: 1 of 3 updates failed, 1 round with an alarm, first: seed 1, round 2: 1 of 2 updates failed"
        ]
    );
    let row = &report.parts[0].rows[0];
    assert_eq!((row.line.collapsed, row.alarms, row.updates, row.failed_updates), (0, 1, 3, 1));
    let csv = file(&report, "clients.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines[0],
        "setting,strategy,seed,client,size,tvd,weight,selected,absent,failed,scaled,smallest_factor,first_failure,\
         holdout,holdout_accuracy,holdout_loss"
    );
    assert_eq!(lines[1], ",fedavg,1,3,40,0.1,0.25,2,0,1,1,0.5,training failed: NaN,,,");
    assert_eq!(lines[3], ",fedavg,1,5,120,0.6,0.75,1,1,0,0,,,,,");
    let json = serde_json::to_value(Document::new(&report, &[])).expect("it is plain data");
    let clients = json["settings"][0]["clients"].as_array().expect("a list");
    assert_eq!(clients.len(), 1, "the others have nothing to report: {clients:?}");
    assert_eq!((&clients[0]["client"], &clients[0]["failed"]), (&3.into(), &1.into()));
    let page = file(&report, "report.html");
    assert!(
        page.contains("Clients with failed, rejected or scaled-down updates") && page.contains("5.00e-1")
    );
    let quiet = file(&crate::report(vec![run("fedavg", 1, &[0.5], &[])]), "report.html");
    assert!(!quiet.contains("Clients with failed"), "nothing to show");
}

#[test]
fn a_rejected_update_has_failed_and_was_not_scaled_down() {
    let record = run_of("scaffold", 1, &[0.5], &[], |lines| {
        let screened = Screened { part: "control".to_owned(), norm: 5.0, bound: 1.0, factor: 0.0 };
        lines[0].clients[0].failure = Some(screened.clone().into());
        lines[0].clients[0].screened = Some(screened);
    });
    let rejected = &record.client_updates[&3];
    assert_eq!((rejected.failed, rejected.scaled, rejected.smallest_factor), (1, 0, None));
}

#[test]
fn failed_updates_without_an_alarm_are_noted_with_the_first_reason() {
    let record = run_of("fedavg", 1, &[0.5], &[], |lines| {
        let healthy = lines[0].clients[0].clone();
        lines[0].clients.push(healthy);
        lines[0].clients[1].failure = Some(ClientFailure::Twice);
    });
    assert_eq!(
        report(vec![record]).parts[0].setting.notes,
        ["fedavg: 1 of 3 updates failed, first: seed 1, round 1, client 4: two different answers to one job"]
    );
}

#[test]
fn a_run_of_an_earlier_version_shows_the_alarms_that_it_would_have_raised() {
    let record = run_of("fedavg", 1, &[0.5], &[], |lines| lines[0].loss = None);
    assert_eq!(record.alarms, [(1, "the loss is not finite".to_owned())]);
}
