//! Statistics of tables' columns: checked when they arrive, combined when all are there, fixed from then on.

use crate::puppet::code;
use crate::stage::{Stage, config};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_data::set::Places;
use fedtvd_data::table::Schema;
use fedtvd_net::client::ConnectionError;
use fedtvd_net::federation::{Event, Options, prepare};
use fedtvd_net::wire::{ColumnStatistic, ColumnStatistics};
use fedtvd_run::configuration::Config;
use std::sync::Arc;

const SCHEMA: &str = r#"
[label]
column = "sick"
classes = ["no", "yes"]
[[column]]
name = "age"
kind = "number"
bounds = [0, 100]
[[column]]
name = "bp"
kind = "number"
"#;

fn told(run: &str, columns: &[(u64, f64, f64)]) -> ColumnStatistics {
    let column = |&(count, mean, squares): &(u64, f64, f64)| ColumnStatistic { count, mean, squares };
    ColumnStatistics { run: run.to_owned(), size: 100, columns: columns.iter().map(column).collect() }
}

/// A federation over tables with this schema.
fn configured(stage: &Stage, mode: &str) -> Config {
    let schema = stage.path("schema.toml");
    std::fs::write(&schema, SCHEMA).unwrap();
    let (named, mode) = (format!("data.schema={}", schema.display()), format!("strategy.mode={mode}"));
    let set = ["data.set=/no/table.csv", "model.name=logistic", "cohort.fraction=1", "rounds=2"];
    config(&[&set[..], &[named.as_str(), mode.as_str()]].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn false_statistics_are_refused_and_true_ones_fix_the_schema_for_good() {
    let stage = Stage::new(2);
    let config = configured(&stage, "paper");
    let names = || [(1, "paris".to_owned())].into();
    let options =
        || Options { roster: Some([0, 1].into()), workers: 1, names: names(), ..Options::default() };
    let running = stage.serve("run", &config, options());
    let mut zero = running.puppet(&stage, 0).await;
    let run = zero.welcome.run.clone();
    let open: Schema = zero.welcome.schema.parse().unwrap();
    assert_eq!(open.open().count(), 2);
    let good = [(50, 40.0, 5000.0), (50, 130.0, 5000.0)];
    for bad in [
        &good[..1],
        &[(9, 40.0, 1.0), good[1]],
        &[(101, 40.0, 1.0), good[1]],
        &[(50, 140.0, 1.0), good[1]],
        &[good[0], (50, f64::NAN, 1.0)],
        &[good[0], (50, 1.0, -1.0)],
        &[good[0], (100, 1e300, 0.0)],
    ] {
        assert_eq!(code(zero.link.columns(told(&run, bad)).await.map(drop)), "columns-invalid", "{bad:?}");
    }
    let status = running.coordinator.status();
    assert_eq!((status.phase.as_str(), &status.waiting_for), ("columns", &vec![0, 1]));
    let mut one = running.puppet(&stage, 1).await;
    let early = one.enrolment(&[10, 10], &Reference::uniform(2), Ask::Distance);
    assert_eq!(code(one.link.enrol(early).await), "schema-open");
    assert_eq!(running.coordinator.status().waiting_for, [0, 1]);
    let first = tokio::spawn({
        let told = told(&run, &good);
        async move { (zero.link.columns(told).await.unwrap(), zero) }
    });
    let note =
        "client-0 sent the statistics of its columns; waiting for the statistics of the columns of paris";
    tokio::task::block_in_place(|| {
        stage.until(|event| matches!(event, Event::Note { note: said } if said == note).then_some(()));
    });
    let text = running.coordinator.status().text();
    assert!(text.contains("\nwaiting for the statistics of the columns of paris\n"), "{text}");
    // The one that waits is not the one that is waited for.
    assert_eq!(running.coordinator.status().waiting_for, [1]);
    let (few, rest) = ((0, 0.0, 0.0), (50, 150.0, 5000.0));
    let complete = one.link.columns(told(&run, &[few, rest])).await.unwrap();
    let (same, mut zero) = first.await.unwrap();
    assert_eq!(complete, same);
    assert_eq!(running.coordinator.status().waiting_for, [0, 1], "now for their enrolment");
    assert_eq!(running.coordinator.status().phase, "gathering");
    // Client 1 has too few ages: those of client 0 count alone. Pressures: 130 and 150, each with a variance of 100.
    for line in ["centre = 40.0\nscale = 10.0\n", "centre = 140.0\nscale = 14.14213562373"] {
        assert!(complete.contains(line), "{complete}");
    }
    // What a client tells later changes nothing, and a restarted server still has it.
    assert_eq!(zero.link.columns(told(&run, &[rest, rest])).await.unwrap(), complete);
    drop((zero, one));
    tokio::task::block_in_place(|| running.stop());
    let again = stage.serve("run", &config, options());
    assert_eq!(again.puppet(&stage, 0).await.welcome.schema, complete);
    tokio::task::block_in_place(|| again.stop());
}

#[test]
fn a_schema_without_centres_and_scales_needs_a_roster() {
    let stage = Stage::new(1);
    let start = |schema: &str, out: &str| {
        let config = configured(&stage, "paper");
        std::fs::write(stage.path("schema.toml"), schema).unwrap();
        let options = Options { least: Some(1), workers: 1, ..Options::default() };
        prepare(Some(&config), &Places::new(None), &stage.path(out), options, Arc::new(|_| {})).map(drop)
    };
    assert_eq!(
        start(SCHEMA, "open").unwrap_err().to_string(),
        "a schema without all centres and scales needs to know all clients before the first round; name them with \
         --roster FILE"
    );
    let complete = SCHEMA.replace("kind = \"number\"", "kind = \"number\"\ncentre = 1.0\nscale = 1.0");
    start(&complete, "complete").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_that_give_no_centre_are_the_operators_matter_and_no_clients_end() {
    let stage = Stage::new(2);
    let config = configured(&stage, "paper");
    let options = || Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config, options());
    let (mut zero, mut one) = (running.puppet(&stage, 0).await, running.puppet(&stage, 1).await);
    let run = zero.welcome.run.clone();
    let lacking = told(&run, &[(50, 40.0, 5000.0), (0, 0.0, 0.0)]);
    let (first, second) = tokio::join!(zero.link.columns(lacking.clone()), one.link.columns(lacking));
    for refused in [first, second] {
        let Err(ConnectionError::Refused { code, why, passing }) = refused else { panic!("{refused:?}") };
        assert!(code == "standards-failed" && passing && why.contains("column \"bp\""), "{code}: {why}");
    }
    let note = stage.until(|event| match event {
        Event::Note { note } if note.starts_with("round 1 cannot begin") => Some(note.clone()),
        _ => None,
    });
    assert!(note.contains("column \"bp\": no client has 10 values") && note.contains("[0, 1]"), "{note}");
    let status = running.coordinator.status();
    let line = "\nround 1 cannot begin: column \"bp\": no client has 10 values";
    assert!(status.problem.is_some() && status.text().contains(line), "{}", status.text());
    drop((zero, one));
    tokio::task::block_in_place(|| running.stop());
    // Nothing of it is in the run directory: the same run begins with other statistics.
    let again = stage.serve("run", &config, options());
    let (mut zero, mut one) = (again.puppet(&stage, 0).await, again.puppet(&stage, 1).await);
    let good = told(&run, &[(50, 40.0, 5000.0), (50, 130.0, 5000.0)]);
    let (first, second) = tokio::join!(zero.link.columns(good.clone()), one.link.columns(good));
    assert!(first.unwrap().contains("centre = 130.0") && second.is_ok());
    assert_eq!(again.coordinator.status().problem, None);
    drop((zero, one));
    tokio::task::block_in_place(|| again.stop());
}

#[tokio::test(flavor = "multi_thread")]
async fn more_rows_than_a_certificate_lists_are_refused_in_paper_mode_and_capped_in_hardened_mode() {
    let stage = Stage::new(3);
    let good = [(50, 40.0, 5000.0), (50, 130.0, 5000.0)];
    let vast = [(1_000_000, 100.0, 0.0), (1_000_000, 1e30, 0.0)];
    for mode in ["paper", "hardened"] {
        let options = Options { roster: Some([0, 1, 2].into()), workers: 1, ..Options::default() };
        let running = stage.serve(mode, &configured(&stage, mode), options);
        let mut liar = running.puppet(&stage, 2).await;
        let run = liar.welcome.run.clone();
        let vast = ColumnStatistics { size: 1_000_000, ..told(&run, &vast) };
        if mode == "paper" {
            assert_eq!(code(liar.link.columns(vast).await.map(drop)), "size-above-listed");
        } else {
            let lie = tokio::spawn(async move { liar.link.columns(vast).await.unwrap() });
            let (mut zero, mut one) = (running.puppet(&stage, 0).await, running.puppet(&stage, 1).await);
            let (zero, one) =
                tokio::join!(zero.link.columns(told(&run, &good)), one.link.columns(told(&run, &good)));
            // All three count as 50 rows, and no mean is farther from the others than 6 deviations of 10:
            // (40 + 40 + 100) / 3 and (130 + 130 + 190) / 3.
            let complete: Schema = lie.await.unwrap().parse().unwrap();
            assert_eq!(complete, zero.unwrap().parse().unwrap());
            assert_eq!(complete, one.unwrap().parse().unwrap());
            let open: Schema = SCHEMA.parse().unwrap();
            let centres = open.standards_in(&complete).unwrap().into_iter().map(|standard| standard.centre);
            let close = centres.zip([60.0, 150.0]).all(|(is, should)| (is - should).abs() < 1e-9);
            assert!(close, "{complete:?}");
            let note = stage.until(|event| match event {
                Event::Note { note } if note.contains("limited") => Some(note.clone()),
                _ => None,
            });
            assert!(note.starts_with("column \"bp\": the mean or deviation of client 2 is far"), "{note}");
        }
        tokio::task::block_in_place(|| running.stop());
    }
}
