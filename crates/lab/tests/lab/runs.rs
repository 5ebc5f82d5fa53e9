//! Synthetic runs for tests of reports.

use fedtvd_core::round::{ClientRecord, RoundRecord, Spread};
use fedtvd_lab::runs::record::Record;
use fedtvd_run::collapse::{Detector, FailedUpdates};
use fedtvd_run::configuration::Config;
use fedtvd_run::directory::{Fingerprint, Manifest, Summary};

/// A finished run with these changes to the default configuration and this accuracy in each round.
pub(crate) fn run(strategy: &str, seed: u64, accuracy: &[f64], changes: &[&str]) -> Record {
    run_of(strategy, seed, accuracy, changes, |_| {})
}

/// The same with changed rounds, and what they show about a collapse.
pub(crate) fn run_of(
    strategy: &str,
    seed: u64,
    accuracy: &[f64],
    changes: &[&str],
    change: impl FnOnce(&mut [RoundRecord]),
) -> Record {
    let mut config = Config::default().with_strategy(strategy).with_seed(seed);
    for change in changes {
        config.set(change).expect("tests set keys that exist");
    }
    // As read from a run directory.
    let config = Config::parse(&config.resolved()).expect("what is printed reads back");
    let details = changes.contains(&"evaluation.details=true");
    let mut lines: Vec<RoundRecord> =
        accuracy.iter().zip(1..).map(|(&accuracy, round)| line(round, accuracy, details)).collect();
    change(&mut lines);
    let failed = Detector::of(&lines).failed_updates();
    let summary = Summary { failed, ..summary(strategy, seed, accuracy.len() as u32) };
    let manifest = manifest(strategy, seed);
    Record::new(config, manifest, summary, &lines).expect("every round has an accuracy")
}

/// Two strategies at two alphas, two seeds each.
pub(crate) fn grid() -> Vec<Record> {
    let mut records = Vec::new();
    for alpha in ["split.alpha=0.5", "split.alpha=0.1"] {
        for seed in [2, 1] {
            records.push(run("fedtvd", seed, &[0.3, 0.5 + 0.1 * seed as f64], &[alpha]));
            records.push(run("fedavg", seed, &[0.2, 0.4 + 0.1 * seed as f64], &[alpha]));
        }
    }
    records
}

fn line(round: u32, accuracy: f64, details: bool) -> RoundRecord {
    let weights = [(3, 40, 0.1, 0.25), (round + 3, 120, 0.6, 0.75)];
    let client = |(client, size, tvd, weight)| ClientRecord {
        branch: None,
        client,
        size,
        tvd: Some(tvd),
        statistic: fedtvd_core::labels::Statistic::Nothing,
        quality_share: None,
        size_share: None,
        weight: Some(weight),
        steps: None,
        norm: None,
        distance: None,
        screened: None,
        first_loss: None,
        last_loss: None,
        forgot: false,
        entered_weight: None,
        failure: None,
    };
    RoundRecord {
        branches: Vec::new(),
        round,
        accuracy: Some(accuracy),
        loss: Some(1.0 - accuracy),
        chance: Some(0.1),
        balanced: None,
        macro_f1: None,
        missed_classes: None,
        classes: Some(10),
        median_accuracy: None,
        median_loss: None,
        validation: None,
        personal: None,
        seconds: 0.5,
        bytes_up: 1000,
        bytes_down: 2000,
        model_hash: format!("{accuracy}"),
        tensor_hashes: Vec::new(),
        effective_clients: Some(1.6),
        drift: None,
        roster: Some(2),
        unchanged: None,
        discarded: false,
        alarm: None,
        rolled_back_from: None,
        extra: None,
        class_accuracy: details.then(|| vec![Some(accuracy), None]),
        client_accuracy: details.then_some(Spread { mean: accuracy, deviation: 0.1, worst_decile: 0.2 }),
        clients: weights.map(client).to_vec(),
    }
}

fn manifest(strategy: &str, seed: u64) -> Manifest {
    let word = |word: &str| word.to_owned();
    Manifest {
        format: 1,
        version: word("0.1.0"),
        fingerprint: Fingerprint {
            architecture: word("a"),
            instructions: word("i"),
            kernels: 1,
            caches: vec![word("L1")],
            device: None,
        },
        strategy: word(strategy),
        data_checksum: word("data"),
        split_hash: format!("split {seed}"),
        schema_hash: String::new(),
        start_hash: String::new(),
        rules: Default::default(),
        model_source: String::new(),
    }
}

fn summary(strategy: &str, seed: u64, rounds: u32) -> Summary {
    Summary {
        strategy: strategy.to_owned(),
        seed,
        rounds,
        accuracy: Some(0.0),
        last10_accuracy: Some(0.0),
        last10_validation: None,
        last10_personal: None,
        client_accuracy: None,
        best: None,
        stopped: None,
        last10_balanced_accuracy: None,
        last10_macro_f1: None,
        last10_loss: None,
        missed_classes: None,
        collapsed: None,
        alarms: 0,
        failed: FailedUpdates::default(),
        seconds: 1.0,
        images_per_second: 1.0,
        peak_memory_bytes: None,
        split_hash: String::new(),
        directory: format!("place of {strategy} {seed}"),
        model: String::new(),
    }
}
