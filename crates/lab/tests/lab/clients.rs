//! Per-client accuracy in reports: measured on hold-outs, or estimated.

use crate::report;
use crate::runs::run;
use fedtvd_core::round::Spread;
use fedtvd_lab::runs::record::Record;
use fedtvd_run::directory::ClientResult;

/// A run with hold-outs: clients 3 and 9, of which 9 was never selected.
fn held_out(strategy: &str) -> Record {
    let result = |client, accuracy| ClientResult {
        client,
        size: 40,
        tvd: 0.1,
        holdout: 10,
        accuracy,
        loss: Some(1.5),
        personal: None,
    };
    let mut record = run(strategy, 1, &[0.5], &["split.holdout=0.2"]);
    record.client_results = Some(vec![result(3, 0.75), result(9, 0.25)]);
    (record.clients, record.clients_measured) =
        (Some(Spread { mean: 0.5, deviation: 0.25, worst_decile: 0.25 }), true);
    record
}

#[test]
fn accuracies_on_hold_outs_are_in_the_table_of_clients_also_of_clients_that_were_never_selected() {
    let report = report(vec![held_out("fedavg"), held_out("fedtvd")]);
    let files = report.files();
    let text = |name: &str| {
        files.iter().find(|(own, _)| own == name).map(|(_, text)| text.as_str()).unwrap_or_default()
    };
    let lines: Vec<&str> = text("clients.csv").lines().filter(|line| line.starts_with(",fedavg")).collect();
    assert!(
        lines.iter().any(|line| line.starts_with(",fedavg,1,3,40,") && line.ends_with(",10,0.75,1.5")),
        "{lines:?}"
    );
    assert!(lines.contains(&",fedavg,1,9,40,0.1,,0,0,0,0,,,10,0.25,1.5"), "{lines:?}");
    let figure = text("figures/clients.svg");
    assert!(
        figure.contains("mean 50.0 %, SD 25.0, worst tenth 25.0 %"),
        "the picture says what it shows: {figure}"
    );
    assert!(text("report.html").contains("accuracy on the client's own hold-out"));
}

#[test]
fn measured_and_estimated_accuracies_are_not_averaged_together() {
    let estimated = || {
        let mut record = run("fedavg", 2, &[0.5], &["split.holdout=0.2"]);
        record.clients = Some(Spread { mean: 0.9, deviation: 0.1, worst_decile: 0.7 });
        record
    };
    let rows = |records| report(records).parts[0].rows.clone();
    let mixed = &rows(vec![held_out("fedavg"), estimated()])[0];
    assert_eq!((mixed.client_mean, mixed.clients_measured), (None, false));
    let measured = &rows(vec![held_out("fedavg")])[0];
    assert_eq!((measured.client_mean, measured.clients_measured), (Some(0.5), true));
}
