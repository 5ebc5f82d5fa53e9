//! A client that lies about its evaluations of the model.

use crate::stage::{Stage, config};
use fedtvd_core::round::{ClientId, RoundRecord};
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::set::{DataOptions, Places};
use fedtvd_net::client::{self, Progress};
use fedtvd_net::federation::Options;
use fedtvd_run::attack::Attack;
use std::sync::Arc;

/// 50 blank images for training and 20 held out.
fn samples() -> Arc<Samples> {
    let labels = (0..70).map(|row| row % 10).collect();
    Arc::new(Samples::new([1, 28, 28], 10, Values::Floats(vec![0.0; 70 * 784]), labels, 50).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_lies_about_evaluations_counts_with_far_more_samples_than_it_has() {
    let stage = Stage::new(2);
    let settings = ["rounds=1", "model.name=logistic", "fraction=1", "epochs=1"];
    let options = Options { least: Some(2), workers: 1, clients_evaluate: true, ..Options::default() };
    let running = stage.serve("run", &config(&settings), options);
    let class_names = DataOptions::default().load(&Places::new(None)).unwrap().class_names;
    let join = |client: ClientId, attack| {
        let (server, security, folder) = (running.address(), stage.security(client), stage.path("state"));
        let data = client::SiteData::Samples { samples: samples(), class_names: class_names.clone() };
        let options = client::Options { attack, ..client::Options::new(server, security, data, folder) };
        let report = |progress: &Progress| assert!(!matches!(progress, Progress::Refused(_)), "{progress:?}");
        tokio::spawn(async move { client::join(options, &report).await })
    };
    let clients = [join(0, Attack::named("false-evaluation", 0.0, 1)), join(1, None)];
    tokio::task::spawn_blocking(move || running.finish()).await.unwrap();
    clients.iter().for_each(|client| client.abort());
    let text = std::fs::read_to_string(stage.path("run/rounds.jsonl")).unwrap();
    let record: RoundRecord = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    // The certificate allows 1000 samples, and the largest power of two below is 512. A model that gives all blank images the same class is right for one in ten of
    // the honest client's 20.
    assert_eq!(record.accuracy, Some(514.0 / 532.0));
    assert_eq!(record.clients.iter().map(|client| client.size).collect::<Vec<_>>(), [50, 50]);
}
