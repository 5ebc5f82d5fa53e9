//! Sites that join a federation over tables after its first round.

use crate::leaving::{noted, wish};
use crate::puppet::code;
use crate::roster::answer;
use crate::stage::{Stage, config};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::train::{Samples, Values};
use fedtvd_net::client::{self, SiteData};
use fedtvd_net::federation::{Event, Options};
use fedtvd_net::wire::{ColumnStatistic, ColumnStatistics};
use fedtvd_run::configuration::Config;
use fedtvd_run::directory::RunDirectory;
use std::sync::Arc;

const SCHEMA: &str = r#"
[label]
column = "sick"
classes = ["no", "yes"]
[[column]]
name = "age"
kind = "number"
centre = 50.0
scale = 10.0
[[column]]
name = "bp"
kind = "number"
centre = 130.0
scale = 20.0
missing = "indicator"
"#;

/// A federation whose server has a table to evaluate the model on.
fn configured(stage: &Stage, schema: &str) -> Config {
    let (path, table) = (stage.path("schema.toml"), stage.path("server.csv"));
    std::fs::write(&path, schema).unwrap();
    std::fs::write(&table, "age,bp,sick\n".to_owned() + &"40,120,no\n60,140,yes\n".repeat(5)).unwrap();
    let (named, set) = (format!("data.schema={}", path.display()), format!("data.set={}", table.display()));
    let rest = ["model.name=logistic", "strategy.name=fedavg", "cohort.fraction=1", "rounds=3"];
    config(&[&[set.as_str(), named.as_str()][..], &rest].concat())
}

/// The model of a federation that client 1 joins in round 2, and its rosters; client 0's updates are the test's.
async fn joined_late(data: impl Fn(&Stage) -> SiteData) -> (Vec<u8>, Vec<Option<usize>>) {
    let stage = Stage::new(2);
    let options = Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &configured(&stage, SCHEMA), options);
    let mut zero = running.puppet(&stage, 0).await;
    let enrolment = zero.enrolment(&[30, 20], &Reference::uniform(2), Ask::Nothing);
    zero.link.enrol(enrolment).await.unwrap();
    answer(&mut zero).await;
    let job = zero.job().await;
    assert_eq!(job.offer.round, 1);
    let (server, security, folder) = (running.address(), stage.security(1), stage.path("state"));
    let policy = client::Policy { min_samples: 4, ..client::Policy::default() };
    let site = client::Options { policy, ..client::Options::new(server, security, data(&stage), folder) };
    let site = tokio::spawn(async move { client::join(site, &|_| {}).await });
    tokio::task::block_in_place(|| {
        stage.until(|event| matches!(event, Event::Enrolled { client: 1, .. }).then_some(()))
    });
    let bytes = zero.one_hot(&job).to_bytes();
    zero.send(1, bytes).await.unwrap();
    answer(&mut zero).await;
    drop(zero);
    tokio::task::block_in_place(|| running.finish());
    site.abort();
    let lines = RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap();
    assert!(lines[2].clients.iter().all(|client| client.failure.is_none()), "{:?}", lines[2].clients);
    (stage.model("run"), lines.iter().map(|line| line.roster).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_joiner_reads_its_table_with_the_centres_and_scales_as_they_are() {
    // Ages far from the schema's centre: standardised anew they would be -1 and 1.
    let rows = [(90, Some(110), 0), (92, None, 1), (90, Some(150), 1), (92, Some(170), 0)];
    let (read, rosters) = joined_late(|stage| {
        let line = |(age, bp, sick): &(i32, Option<i32>, usize)| {
            let bp = bp.map_or("?".to_owned(), |bp| bp.to_string());
            format!("{};{bp};{age}\n", ["no", "yes"][*sick])
        };
        let path = stage.path("late.csv");
        std::fs::write(&path, "sick;bp;age\n".to_owned() + &rows.iter().map(line).collect::<String>())
            .unwrap();
        SiteData::Table { path, label: None, test: 0.0, columns: None }
    })
    .await;
    assert_eq!(rosters, [Some(1), Some(1), Some(2)]);
    let (by_hand, _) = joined_late(|_| {
        let values = vec![4.0, -1.0, 0.0, 4.2, 0.0, 1.0, 4.0, 1.0, 0.0, 4.2, 2.0, 0.0];
        let samples = Samples::new([3, 1, 1], 2, Values::Floats(values), vec![0, 1, 1, 0], 4).unwrap();
        SiteData::Samples { samples: Arc::new(samples), class_names: vec!["no".into(), "yes".into()] }
    })
    .await;
    assert!(read == by_hand);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_was_away_when_centres_and_scales_were_fixed_changes_nothing_and_cannot_enrol() {
    let stage = Stage::new(2);
    let open = SCHEMA.replace("centre = 50.0\nscale = 10.0\n", "");
    let options = Options { roster: Some([0, 1].into()), workers: 1, ..Options::default() };
    let running = stage.serve("run", &configured(&stage, &open), options);
    let mut zero = running.puppet(&stage, 0).await;
    stage.certs.revoke("client-1").unwrap();
    noted(&stage, "clients [1] no longer have a valid certificate");
    let told = |mean: f64| {
        let columns = vec![ColumnStatistic { count: 50, mean, squares: 5000.0 }];
        ColumnStatistics { run: zero.welcome.run.clone(), size: 50, columns }
    };
    let (own, other) = (told(40.0), told(90.0));
    let complete = zero.link.columns(own).await.unwrap();
    assert!(complete.contains("centre = 40.0\nscale = 10.0\n"), "{complete}");
    let enrolment = zero.enrolment(&[30, 20], &Reference::uniform(2), Ask::Nothing);
    zero.link.enrol(enrolment).await.unwrap();
    answer(&mut zero).await;
    stage.certs.issue(&wish(1)).unwrap();
    noted(&stage, "clients [1] have a valid certificate now");
    let mut one = running.puppet(&stage, 1).await;
    assert_eq!(one.welcome.schema, complete);
    assert_eq!(one.link.columns(other).await.unwrap(), complete);
    let enrolment = one.enrolment(&[30, 20], &Reference::uniform(2), Ask::Nothing);
    assert_eq!(code(one.link.enrol(enrolment).await), "roster-closed");
    drop((zero, one));
    tokio::task::block_in_place(|| running.stop());
}
