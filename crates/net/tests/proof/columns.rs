//! Statistics of tables' columns: checked when they arrive, combined when all are there, fixed from then on.

use crate::puppet::code;
use crate::stage::{Stage, config};
use fedtvd_data::set::Places;
use fedtvd_data::table::Schema;
use fedtvd_net::federation::{Options, prepare};
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
    let options = || Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
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
    ] {
        assert_eq!(code(zero.link.columns(told(&run, bad)).await.map(drop)), "columns-invalid", "{bad:?}");
    }
    let mut one = running.puppet(&stage, 1).await;
    let first = tokio::spawn({
        let told = told(&run, &good);
        async move { (zero.link.columns(told).await.unwrap(), zero) }
    });
    let (few, rest) = ((0, 0.0, 0.0), (50, 150.0, 5000.0));
    let complete = one.link.columns(told(&run, &[few, rest])).await.unwrap();
    let (same, mut zero) = first.await.unwrap();
    assert_eq!(complete, same);
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
async fn more_rows_than_a_certificate_lists_are_refused_in_paper_mode_and_capped_in_hardened_mode() {
    let stage = Stage::new(3);
    let good = [(50, 40.0, 5000.0), (50, 130.0, 5000.0)];
    let vast = [(1_000_000, 100.0, 0.0), (1_000_000, 430.0, 0.0)];
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
            // All three count as 50 rows: (40 + 40 + 100) / 3 and (130 + 130 + 430) / 3.
            let complete: Schema = lie.await.unwrap().parse().unwrap();
            assert_eq!(complete, zero.unwrap().parse().unwrap());
            assert_eq!(complete, one.unwrap().parse().unwrap());
            let open: Schema = SCHEMA.parse().unwrap();
            let centres = open.standards_in(&complete).unwrap().into_iter().map(|standard| standard.centre);
            let close = centres.zip([60.0, 230.0]).all(|(is, should)| (is - should).abs() < 1e-9);
            assert!(close, "{complete:?}");
        }
        tokio::task::block_in_place(|| running.stop());
    }
}
