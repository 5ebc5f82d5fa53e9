//! A model that one client destroys in a federation without a test set, whose sites disclose no more than counts.

use crate::stage::{Stage, config};
use fedtvd_core::round::{ClientId, RoundRecord};
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::set::{DataOptions, Places};
use fedtvd_net::client;
use fedtvd_net::federation::Options;
use fedtvd_run::attack::Attack;
use fedtvd_run::directory::{RunDirectory, Summary};
use std::sync::Arc;

const CLIENTS: u32 = 4;

/// 50 images for training and 20 held out; those of each class have another block of white pixels.
pub(crate) fn samples() -> Arc<Samples> {
    let labels: Vec<u32> = (0..70).map(|row| row % 10).collect();
    let pixel = |label: u32, place: usize| if place / 78 == label as usize { 1.0 } else { 0.0 };
    let images = labels.iter().flat_map(|&label| (0..784).map(move |place| pixel(label, place))).collect();
    Arc::new(Samples::new([1, 28, 28], 10, Values::Floats(images), labels, 50).unwrap())
}

/// The rounds and the summary of a federation whose first client flips the sign of its updates.
async fn attacked(mode: &str) -> (Vec<RoundRecord>, Summary) {
    let stage = Stage::new(CLIENTS as usize);
    let mode = format!("strategy.mode={mode}");
    let settings = ["rounds=8", "model.name=logistic", "fraction=1", "epochs=4", "local.lr=0.1", &mode];
    let roster = Some((0..CLIENTS).collect());
    let options = Options { roster, workers: 1, clients_evaluate: true, ..Options::default() };
    let running = stage.serve("run", &config(&settings), options);
    let class_names = DataOptions::default().load(&Places::new(None)).unwrap().class_names;
    let join = |client: ClientId| {
        let folder = stage.path(&format!("state-{client}"));
        let data = client::SiteData::Samples { samples: samples(), class_names: class_names.clone() };
        let attack = (client == 0).then(|| Attack::named("sign-flip", 20.0, 1)).flatten();
        let options = client::Options::new(running.address(), stage.security(client), data, folder);
        let options = client::Options { attack, ..options };
        tokio::spawn(async move { client::join(options, &|_| {}).await })
    };
    let clients: Vec<_> = (0..CLIENTS).map(join).collect();
    let coordinator = Arc::clone(&running.coordinator);
    tokio::task::spawn_blocking(move || running.finish()).await.unwrap();
    clients.iter().for_each(|client| client.abort());
    let run = RunDirectory::open(&stage.path("run")).unwrap();
    let (lines, summary) = (run.lines().unwrap(), run.summary().unwrap().unwrap());
    let (status, last) = (coordinator.status(), lines.last().unwrap());
    assert_eq!((status.accuracy, status.median_accuracy), (last.accuracy, last.median_accuracy));
    let median = format!(" (median of the clients {:.2} %) · ", 100.0 * last.median_accuracy.unwrap());
    assert!(status.text().contains(&median), "{}", status.text());
    (lines, summary)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destroyed_model_raises_alarms_and_is_a_collapse_though_sites_disclose_counts_only() {
    let (lines, summary) = attacked("paper").await;
    assert!(lines.iter().all(|line| line.chance.is_none() && line.balanced.is_none()), "{lines:?}");
    assert_eq!(lines[0].classes, Some(10));
    let why = summary.collapsed.unwrap();
    assert!(
        why.starts_with("no better than guessing from round ") && why.contains("with a loss of"),
        "{why}"
    );
    assert!(lines.iter().any(|line| line.alarm.is_some()) && summary.alarms > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_screening_protected_is_no_collapse_by_counts() {
    let (lines, summary) = attacked("hardened").await;
    assert!(lines[7].median_accuracy > Some(0.5), "{:?}", lines[7]);
    assert_eq!(summary.collapsed, None);
}
