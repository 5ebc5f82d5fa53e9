//! Liars in a simulation: what they change, and that nothing else changes.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use fedtvd_core::labels::Statistic;
use fedtvd_core::round::{ClientFailure, RoundRecord, State, UpdatePart, Updates, plan};
use fedtvd_core::rules::{Rule, Settings};
use fedtvd_core::strategy;
use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_core::train::{Samples, Values};
use fedtvd_data::set::Loaded;
use fedtvd_run::attack::{ALL, Place};
use fedtvd_run::configuration::{Config, Experiment};
use fedtvd_run::rounds::Rounds;
use fedtvd_run::setup::{Data, Setup};
use fedtvd_run::simulation::{Workers, simulation};
use std::sync::Arc;

const CLIENTS: usize = 6;

/// 300 noisy 4x4 images of 4 classes: each class has its own bright row.
fn data() -> Data {
    let mut stream = Stream::at(5, Purpose::Split, 0, 0);
    let labels: Vec<u32> = (0..300).map(|i| i % 4).collect();
    let mut value = |label: u32, place: u32| f64::from(u8::from(place / 4 == label)) + 0.5 * stream.normal();
    let places = labels.iter().flat_map(|&label| (0..16).map(move |place| (label, place)));
    let values = places.map(|(label, place)| value(label, place) as f32).collect();
    let samples = Samples::new([1, 4, 4], 4, Values::Floats(values), labels, 250).unwrap();
    let samples = Arc::new(samples);
    let (class_names, normal, notes) = (Vec::new(), Vec::new(), Vec::new());
    Data::from(Loaded { samples, groups: None, class_names, normal, notes, table: None })
}

fn started(strategy: &str, settings: &[&str]) -> (Experiment, Arc<Setup>, Rounds) {
    let mut config = Config::default().with_strategy(strategy);
    let common = ["clients=6", "fraction=1", "alpha=1", "model.name=logistic", "batch=8", "epochs=2"];
    common.iter().chain(settings).for_each(|setting| config.set(setting).unwrap());
    let experiment = Experiment::of(&config).unwrap();
    let setup = Arc::new(Setup::new(&experiment, &data()).unwrap());
    let trainers = Workers::on_cpu(&setup, 1).unwrap().trainers;
    let rounds = simulation(&experiment, &setup, trainers, 1 << 20).unwrap();
    (experiment, setup, rounds)
}

fn first_round(strategy: &str, settings: &[&str]) -> RoundRecord {
    started(strategy, settings).2.round().unwrap()
}

/// The answers to the first round's jobs.
fn answers(strategy: &str, settings: &[&str]) -> (Experiment, State, Box<dyn Updates>) {
    let (experiment, _, mut rounds) = started(strategy, settings);
    let mut state = rounds.state().clone();
    for profile in rounds.fleet().gather(&state, None).unwrap().newcomers {
        state.enrol(&experiment.run, profile).unwrap();
    }
    let jobs = plan(&experiment.run, &state);
    let updates = rounds.fleet().work(&jobs).unwrap().updates;
    (experiment, state, updates)
}

fn values(updates: &dyn Updates, client: usize, part: UpdatePart<'_>, len: usize) -> Vec<f32> {
    let mut out = vec![0.0; len];
    updates.read(client, part, 0..len, &mut out).unwrap();
    out
}

/// Every attack of a simulation.
fn simulated() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|spec| !spec.places().contains(&Place::Evaluation)).map(|spec| spec.name)
}

#[test]
fn every_false_claim_passes_the_checks_of_every_strategy() {
    for spec in strategy::ALL {
        for attack in simulated() {
            for reference in ["uniform", "aggregated", "[0.7, 0.2, 0.1, 0.0]"] {
                let kind = format!("attack.kind={attack}");
                let reference = format!("labels.reference={reference}");
                // A strategy that selects clients needs some to leave out.
                let rules = (spec.build)(&Settings::defaults(spec)).rules();
                let selects = rules.contains(&Rule::Selection);
                let fraction = if selects { "cohort.fraction=0.9" } else { "cohort.fraction=1" };
                // One that keeps tensors at clients needs some to keep, and others to share.
                let shares = rules.contains(&Rule::Sharing);
                // Liars that collude imitate the honest clients of one model.
                let models = rules.contains(&Rule::Grouping);
                if models && ALL.iter().any(|spec| spec.name == attack && spec.colludes) {
                    continue;
                }
                let layers = r#"model.layers=["conv 2 2x2", "batchnorm", "flatten", "linear"]"#;
                // And one that matches hidden units needs some to match.
                let hidden = r#"model.layers=["flatten", "linear 6", "relu", "linear"]"#;
                let model = match (shares, rules.contains(&Rule::Matching)) {
                    (true, _) => layers,
                    (_, true) => hidden,
                    _ => "model.name=logistic",
                };
                let record = first_round(
                    spec.name,
                    &[
                        &kind,
                        &reference,
                        "attack.clients=2",
                        "attack.size=1003",
                        fraction,
                        model,
                        "holdout=0.2",
                    ],
                );
                let failed = record.clients.iter().filter(|client| client.failure.is_some());
                let failed: Vec<u32> = failed.map(|client| client.client).collect();
                // Only an update with NaN is refused.
                let asked = record.clients.iter().map(|client| client.client);
                let expected: Vec<u32> = asked.filter(|client| attack == "nan" && *client < 2).collect();
                assert_eq!(failed, expected, "{} under {attack}, {reference}: {record:?}", spec.name);
            }
        }
    }
}

#[test]
fn honest_clients_keep_their_bits() {
    let len = 4 * 17;
    let (_, before, honest) = answers("scaffold", &[]);
    for attack in simulated() {
        let kind = format!("attack.kind={attack}");
        let (_, state, updates) = answers("scaffold", &[&kind, "attack.clients=2"]);
        assert_eq!(state.roster[2..], before.roster[2..], "{attack}");
        for client in 2..CLIENTS {
            assert_eq!(updates.outcomes()[client], honest.outcomes()[client], "{attack}");
            for part in [UpdatePart::Model, UpdatePart::Carried("control")] {
                let (ours, theirs) =
                    (values(updates.as_ref(), client, part, len), values(honest.as_ref(), client, part, len));
                assert_eq!(ours, theirs, "{attack}, {part:?}");
            }
        }
        let own = (&state.roster[1], &updates.outcomes()[1]);
        assert_ne!(own, (&before.roster[1], &honest.outcomes()[1]), "{attack} changes what a liar sends");
    }
}

#[test]
fn scale_and_sign_flip_multiply_the_change_of_the_model_and_of_carried_vectors() {
    let len = 4 * 17;
    let (_, state, honest) = answers("scaffold", &[]);
    for (settings, factor) in [
        (&["attack.kind=scale"][..], 100.0),
        (&["attack.kind=scale", "attack.scale=3"], 3.0),
        (&["attack.kind=sign-flip"], -1.0),
        (&["attack.kind=sign-flip", "attack.scale=5"], -5.0),
    ] {
        let (_, _, updates) = answers("scaffold", settings);
        let read = |updates: &dyn Updates, part| values(updates, 0, part, len);
        let model = |updates: &dyn Updates| read(updates, UpdatePart::Model);
        let pairs = model(updates.as_ref()).into_iter().zip(model(honest.as_ref()));
        for ((ours, theirs), w) in pairs.zip(&state.params.values) {
            let expected = f64::from(*w) + factor * (f64::from(theirs) - f64::from(*w));
            assert_eq!(ours, expected as f32);
        }
        let control = UpdatePart::Carried("control");
        let pairs = read(updates.as_ref(), control).into_iter().zip(read(honest.as_ref(), control));
        pairs.for_each(|(ours, theirs)| assert_eq!(ours, (factor * f64::from(theirs)) as f32));
        // The norm in the record is that of the false update.
        let norm = |updates: &dyn Updates| updates.outcomes()[0].answer.clone().unwrap().norm();
        let ratio = norm(updates.as_ref()) / norm(honest.as_ref());
        assert!((ratio - factor.abs()).abs() < 1e-4 * factor.abs(), "{ratio}");
    }
}

/// Each honest client's model of the first round, and that of liar 0; clients 0 and 1 lie.
fn colluding(settings: &[&str]) -> (State, Vec<Vec<f32>>, Vec<f32>) {
    let len = 4 * 17;
    let (_, state, updates) = answers("fedavg", &[settings, &["attack.clients=2"]].concat());
    let model = |client| values(updates.as_ref(), client, UpdatePart::Model, len);
    assert_eq!(model(0), model(1), "liars that collude send the same");
    (state, (2..CLIENTS).map(model).collect(), model(0))
}

#[test]
fn alie_sends_the_honest_mean_minus_a_number_of_standard_deviations() {
    for (settings, z) in [
        (&["attack.kind=alie", "attack.scale=1.5"][..], 1.5),
        // Two of six: the quantile at (4 - 2) / 4.
        (&["attack.kind=alie"], 0.0),
    ] {
        let (_, honest, lie) = colluding(settings);
        for (place, sent) in lie.into_iter().enumerate() {
            let column: Vec<f64> = honest.iter().map(|model| f64::from(model[place])).collect();
            let mean = column.iter().sum::<f64>() / 4.0;
            let variance = column.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 4.0;
            assert_eq!(sent, (mean - z * variance.sqrt()) as f32, "{settings:?}");
        }
    }
}

#[test]
fn inner_product_manipulation_sends_the_reversed_mean_of_the_honest_changes() {
    for (settings, epsilon) in [
        (&["attack.kind=inner-product"][..], 0.5),
        (&["attack.kind=inner-product", "attack.scale=100"], 100.0),
    ] {
        let (state, honest, lie) = colluding(settings);
        for (place, sent) in lie.into_iter().enumerate() {
            let mean = honest.iter().map(|model| f64::from(model[place])).sum::<f64>() / 4.0;
            let w = f64::from(state.params.values[place]);
            assert_eq!(sent, (w - epsilon * (mean - w)) as f32, "{settings:?}");
        }
    }
}

#[test]
fn liars_that_collude_are_honest_in_a_round_without_honest_clients() {
    // Two of six clients take part, and client 5 alone is honest.
    let without = (1..20).map(|seed| format!("cohort.seed={seed}")).find(|seed| {
        let (_, _, updates) = answers("fedavg", &["cohort.fraction=0.34", seed]);
        updates.outcomes().iter().all(|outcome| outcome.client < 5)
    });
    let cohort = ["cohort.fraction=0.34", &without.unwrap()];
    let (_, _, honest) = answers("fedavg", &cohort);
    for kind in ALL.iter().filter(|spec| spec.colludes) {
        let lie = [&format!("attack.kind={}", kind.name), "attack.clients=5"];
        let (_, _, updates) = answers("fedavg", &[&cohort[..], &lie].concat());
        assert_eq!(updates.outcomes(), honest.outcomes(), "{}", kind.name);
    }
}

#[test]
fn gaussian_noise_has_its_scale_and_the_same_bits_in_every_repetition() {
    let noise = |settings: &[&str], client| {
        let (_, state, updates) = answers("fedavg", &[&["attack.kind=gaussian"], settings].concat());
        let sent = values(updates.as_ref(), client, UpdatePart::Model, 4 * 17);
        sent.iter().zip(&state.params.values).map(|(x, w)| f64::from(x - w)).collect::<Vec<f64>>()
    };
    let both = &["attack.clients=2", "attack.scale=2"];
    let (first, second) = (noise(both, 0), noise(both, 1));
    assert_eq!(first, noise(both, 0));
    assert_ne!(first, second, "each liar has its own numbers");
    let deviation = |noise: &[f64]| (noise.iter().map(|x| x * x).sum::<f64>() / noise.len() as f64).sqrt();
    // Of 68 numbers: the standard error is 2 / sqrt(2 · 68) = 0.17.
    assert!((deviation(&first) - 2.0).abs() < 0.7, "{}", deviation(&first));
    // The default is 1, with the same numbers.
    for (single, double) in noise(&[], 0).iter().zip(&first) {
        assert!((2.0 * single - double).abs() < 1e-5, "{single} {double}");
    }
}

#[test]
fn running_statistics_stay_honest_so_that_no_variance_is_negative() {
    let layers = r#"model.layers=["conv 2 2x2", "batchnorm", "flatten", "linear"]"#;
    let buffers = |settings: &[&str]| {
        let (_, state, updates) = answers("fedavg", &[&[layers], settings].concat());
        assert!(updates.outcomes()[0].answer.is_ok(), "{settings:?}");
        let layout = &state.params.layout;
        values(updates.as_ref(), 0, UpdatePart::Model, layout.len())[layout.trainable()..].to_vec()
    };
    let honest = buffers(&[]);
    // Mean and variance of two channels.
    assert_eq!(honest.len(), 4);
    for attack in ["scale", "gaussian", "alie", "inner-product"] {
        assert_eq!(buffers(&[&format!("attack.kind={attack}")]), honest, "{attack}");
    }
    assert_eq!(buffers(&["attack.kind=sign-flip", "attack.scale=50"]), honest);
}

#[test]
fn one_value_is_huge_or_nan_and_the_others_are_honest() {
    let len = 4 * 17;
    let (_, _, honest) = answers("fedavg", &[]);
    let (_, _, huge) = answers("fedavg", &["attack.kind=huge"]);
    let [honest, huge] = [honest, huge].map(|updates| values(updates.as_ref(), 0, UpdatePart::Model, len));
    assert_eq!(huge[len - 1], f32::MAX);
    assert_eq!(huge[..len - 1], honest[..len - 1]);
    let record = first_round("fedavg", &["attack.kind=nan"]);
    let failure = ClientFailure::NotFinite { part: "the model".into(), place: len - 1, value: "NaN".into() };
    assert_eq!(record.clients[0].failure, Some(failure));
    assert_eq!(record.clients[0].weight, None);
}

#[test]
fn flipped_labels_are_trained_on_and_counted_and_the_test_set_stays() {
    let (_, honest, _) = started("feddkw", &[]);
    let (_, setup, mut rounds) = started("feddkw", &["attack.kind=label-flip", "attack.clients=2"]);
    for client in 0..CLIENTS {
        let mut counts = honest.clients[client].counts.clone();
        if client < 2 {
            counts.reverse();
        }
        assert_eq!(setup.clients[client].counts, counts, "client {client}");
        for &row in &setup.clients[client].rows {
            let label = honest.samples.labels()[row as usize];
            let expected = if client < 2 { 3 - label } else { label };
            assert_eq!(setup.training.labels()[row as usize], expected);
        }
    }
    let test = |samples: &Samples| samples.labels()[250..].to_vec();
    assert_eq!(test(&setup.training), test(&honest.samples));
    assert_eq!(setup.samples.labels(), honest.samples.labels(), "a saved partition is of the true labels");
    assert_eq!((&setup.split_hash, &setup.data_checksum), (&honest.split_hash, &honest.data_checksum));
    rounds.round().unwrap();
    let reported = Statistic::Histogram(setup.clients[0].counts.clone());
    assert_eq!(rounds.state().profile(0).unwrap().statistic, reported);
}

#[test]
fn false_profiles_claim_what_they_say() {
    let claim = |strategy: &str, settings: &[&str]| {
        let (_, _, mut rounds) = started(strategy, settings);
        rounds.round().unwrap();
        let profile = rounds.state().profile(0).unwrap();
        (profile.size, profile.statistic.clone())
    };
    let tvd = "attack.kind=false-tvd";
    assert_eq!(claim("fedtvd", &[tvd]), (1_000_000, Statistic::Distance(0.0)));
    assert_eq!(claim("fedtvd", &[tvd, "attack.size=1003"]), (1000, Statistic::Distance(0.0)));
    assert_eq!(claim("fedavg", &[tvd]), (1_000_000, Statistic::Nothing));
    assert_eq!(claim("feddkw", &[tvd]), (1_000_000, Statistic::Histogram(vec![250_000; 4])));
    let (size, released) = claim("fedtvd-released", &[tvd]);
    let Statistic::Released(distance) = released else { panic!("{released:?}") };
    // The least possible: 1 / (2 (n + 1)).
    assert!((distance - 0.5 / (size as f64 + 1.0)).abs() < 1e-12);
    let histogram = "attack.kind=false-histogram";
    assert_eq!(claim("fedtvd", &[histogram]), (1_000_000, Statistic::Distance(0.75)));
    assert_eq!(claim("feddkw", &[histogram]), (1_000_000, Statistic::Histogram(vec![1_000_000, 0, 0, 0])));
    let honest = claim("fedtvd", &[]);
    let (size, statistic) = claim("fedtvd", &["attack.kind=vast-reach"]);
    assert_eq!(size, 1_000_000 / honest.0 * honest.0);
    assert_eq!(statistic, honest.1, "its own label distribution");
}

#[test]
fn a_recorded_distance_is_what_the_weights_were_computed_from_also_of_a_liar() {
    let distances = |strategy: &str, attack: &str| {
        let record = first_round(strategy, &[&format!("attack.kind={attack}")]);
        record.clients.iter().map(|client| client.tvd.unwrap()).collect::<Vec<_>>()
    };
    let honest = distances("fedtvd", "none");
    assert!(honest[0] > 0.0);
    for (strategy, attack, claimed) in [
        ("fedtvd", "false-tvd", 0.0),
        ("feddkw", "false-tvd", 0.0),
        ("fedtvd", "false-histogram", 0.75),
        ("fedavg", "false-tvd", honest[0]),
    ] {
        let got = distances(strategy, attack);
        assert_eq!((got[0], &got[1..]), (claimed, &honest[1..]), "{strategy} under {attack}");
    }
}

#[test]
fn a_false_histogram_shifts_an_aggregated_reference() {
    let settings = ["attack.kind=false-histogram", "labels.reference=aggregated", "attack.size=100000"];
    let (_, setup, mut rounds) = started("fedtvd", &settings);
    rounds.round().unwrap();
    let honest: u64 = setup.clients[1..].iter().map(|client| client.counts[0]).sum();
    let all: u64 = setup.clients[1..].iter().map(|client| client.counts.iter().sum::<u64>()).sum();
    let expected = (100_000 + honest) as f64 / (100_000 + all) as f64;
    assert!((rounds.state().reference.shares()[0] - expected).abs() < 1e-12);
}

#[test]
fn false_reaches_are_the_extremes_of_the_claimed_size() {
    let report = |settings: &[&str]| {
        let (experiment, state, updates) = answers("fednova", settings);
        let size = state.profile(0).unwrap().size;
        (experiment.run.local, size, updates.outcomes()[0].answer.clone().unwrap().report())
    };
    let (local, _, tiny) = report(&["attack.kind=tiny-reach"]);
    assert_eq!((tiny.steps, tiny.reach), (1, local.optimizer.lr()));
    let (local, size, vast) = report(&["attack.kind=vast-reach"]);
    assert_eq!(vast.steps, local.most_steps(size));
    assert_eq!(vast.reach, local.reaches(0.0, size)[1]);
    let share = |settings: &[&str]| first_round("fednova", settings).clients[0].weight.unwrap();
    assert!(share(&["attack.kind=vast-reach"]) > 0.99, "a vast size weighs more than all others");
}

#[test]
fn stratified_cohorts_hold_the_same_number_of_liars_in_every_round() {
    let cohorts = |settings: &[&str]| {
        let (experiment, _, mut rounds) = started("fedavg", &[&["fraction=0.5"], settings].concat());
        let cohort = |record: RoundRecord| record.clients.iter().map(|c| c.client).collect::<Vec<u32>>();
        let cohorts: Vec<_> = (0..12).map(|_| cohort(rounds.round().unwrap())).collect();
        assert_eq!(experiment.run.stratum.is_some(), settings.contains(&"cohort.liars=1"));
        cohorts
    };
    let liars = |cohort: &Vec<u32>| cohort.iter().filter(|client| **client < 2).count();
    let attack = ["attack.kind=sign-flip", "attack.clients=2"];
    let stratified = cohorts(&[&attack[..], &["cohort.liars=1"]].concat());
    assert!(stratified.iter().all(|cohort| cohort.len() == 3 && liars(cohort) == 1), "{stratified:?}");
    assert!(stratified.iter().any(|cohort| cohort.contains(&0)));
    assert!(stratified.iter().any(|cohort| cohort.contains(&1)));
    let drawn = cohorts(&attack);
    assert!(drawn.iter().any(|cohort| liars(cohort) != 1), "{drawn:?}");
    assert_eq!(drawn, cohorts(&[]), "without cohort.liars an attack selects nobody else");
}

#[test]
fn too_many_liars_for_the_split_are_refused() {
    let mut config = Config::default();
    for setting in ["clients=6", "model.name=logistic", "attack.kind=huge", "attack.clients=7"] {
        config.set(setting).unwrap();
    }
    let error = Setup::new(&Experiment::of(&config).unwrap(), &data()).unwrap_err().to_string();
    assert_eq!(error, "attack.clients = 7 is more than the 6 clients of this split");
}

#[test]
fn liars_give_the_same_bits_with_their_updates_in_a_file_and_after_a_restart() {
    for attack in ["scale", "gaussian", "alie"] {
        same_bits_after_a_restart(attack);
    }
}

fn same_bits_after_a_restart(attack: &str) {
    let kind = format!("attack.kind={attack}");
    let (experiment, setup, mut whole) = started("scaffold", &[&kind, "attack.scale=2", "attack.clients=2"]);
    let trainers = || Workers::on_cpu(&setup, 3).unwrap().trainers;
    let mut first = simulation(&experiment, &setup, trainers(), 0).unwrap();
    (0..2).for_each(|_| drop(first.round().unwrap()));
    let (state, memories) = first.checkpoint().unwrap();
    let (state, memories) = (state.to_bytes(), memories.clone());
    let mut second = simulation(&experiment, &setup, trainers(), 0).unwrap();
    second.restore(State::from_bytes(&state, &setup.layout).unwrap(), memories);
    (0..2).for_each(|_| drop(second.round().unwrap()));
    (0..4).for_each(|_| drop(whole.round().unwrap()));
    assert_eq!(whole.state().to_bytes(), second.state().to_bytes(), "{attack}");
}
