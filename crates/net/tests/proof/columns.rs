//! Statistics of tables' columns: checked when they arrive, combined when all are there, fixed from then on.

use crate::puppet::code;
use crate::stage::{Stage, config};
use fedtvd_data::table::Schema;
use fedtvd_net::federation::Options;
use fedtvd_net::wire::{ColumnStatistic, ColumnStatistics};

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

#[tokio::test(flavor = "multi_thread")]
async fn false_statistics_are_refused_and_true_ones_fix_the_schema_for_good() {
    let stage = Stage::new(2);
    let schema = stage.path("schema.toml");
    std::fs::write(&schema, SCHEMA).unwrap();
    let named = format!("data.schema={}", schema.display());
    let config =
        config(&["data.set=/no/table.csv", &named, "model.name=logistic", "cohort.fraction=1", "rounds=2"]);
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
