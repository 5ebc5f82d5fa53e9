//! One contract for every registered strategy. It reads the registry and names only FedAvg, which the others modify.

use crate::exact::{Exact, Quadratic};
use crate::federation::{
    Federation, SKEWED, bits, local, quadratics, run, skewed, strategy, sums, upload, vector,
};
use fedtvd_core::labels::{Ask, Reference, Statistic};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{ClientRecord, Job, Mode, Profile, hardened, plan};
use fedtvd_core::rules::{Guide, Property, Spec, notation};
use fedtvd_core::settings::{Param, ParamKind};
use fedtvd_core::strategy::ALL;
use fedtvd_core::stream::Key;
use fedtvd_core::train::{Local, LocalRun, Schedule};
use std::collections::BTreeMap;

/// Every strategy with its defaults.
fn defaults(label: &str) -> Federation {
    skewed(run(label, local(2, 4, 0.1, 0.9)), &SKEWED)
}

/// Values at and just inside the ends of a parameter's range, and its default.
fn allowed(param: &Param) -> Vec<String> {
    match param.kind {
        ParamKind::Flag { .. } => vec!["true".into(), "false".into()],
        ParamKind::Number { default, range } => {
            let low = if range.open { range.low.next_up() } else { range.low };
            let high = if range.high.is_finite() { range.high } else { f64::MAX };
            [default, low, high].map(|value| value.to_string()).to_vec()
        }
        ParamKind::Whole { default, low, high } => {
            [default, low, high].map(|whole| whole.to_string()).to_vec()
        }
        other => panic!("{}: strategies have no parameters of kind {other}", param.name),
    }
}

/// Every label that sets one parameter to one of those values.
fn settings(spec: &Spec) -> Vec<String> {
    let set = |param: &Param| -> Vec<String> {
        allowed(param).iter().map(|value| format!("{}:{}={value}", spec.name, param.name)).collect()
    };
    std::iter::once(spec.name.to_owned()).chain(spec.params.iter().flat_map(set)).collect()
}

#[test]
fn every_strategy_is_named_explained_and_cited_once() {
    for (place, spec) in ALL.iter().enumerate() {
        assert!(
            ALL[..place].iter().all(|other| other.name != spec.name),
            "{} is registered twice",
            spec.name
        );
        assert!(spec.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", spec.name);
        assert!(spec.about.len() > 20 && spec.paper.len() > 20, "{} says too little", spec.name);
        let Guide { formula, choose, avoid, cost } = spec.guide;
        let guide = [formula, choose, avoid, cost];
        assert!(guide.iter().all(|text| text.len() > 10 && !text.ends_with('.')), "{}", spec.name);
        assert!(spec.params.iter().all(|param| param.about.len() > 20), "{}", spec.name);
        assert!(spec.lacks.iter().all(|(_, why)| why.len() > 20), "{} must say why", spec.name);
        assert!(spec.suggests.is_none_or(|name| notation::find(name).is_ok()), "{}", spec.name);
    }
}

#[test]
fn every_parameter_accepts_its_range_and_nothing_beyond() {
    for spec in ALL {
        settings(spec).iter().for_each(|label| drop(strategy(label)));
        for param in spec.params {
            let refused = |value: &str| notation::strategy(spec.name, [(param.name, value)]).is_err();
            assert!(refused("") && refused("NaN") && refused("much"), "{}.{}", spec.name, param.name);
            if let ParamKind::Whole { default, low, high } = param.kind {
                assert!((low..=high).contains(&default), "{}.{}", spec.name, param.name);
                let beyond = [(i128::from(low) - 1).to_string(), (i128::from(high) + 1).to_string()];
                assert!(beyond.iter().all(|value| refused(value)) && refused("1.5"), "{}", param.name);
            }
            let ParamKind::Number { default, range } = param.kind else { continue };
            assert!(range.contains(default), "{}.{}", spec.name, param.name);
            let below = if range.open { range.low } else { range.low.next_down() };
            for beyond in [below, range.high.next_up(), f64::INFINITY, f64::NEG_INFINITY] {
                assert!(refused(&beyond.to_string()), "{}.{} = {beyond}", spec.name, param.name);
            }
        }
    }
}

#[test]
fn every_label_parses_to_its_strategy() {
    for label in ALL.iter().flat_map(|spec| settings(spec)) {
        let first = strategy(&label);
        assert_eq!(format!("{first:?}"), format!("{:?}", strategy(&first.label)), "{label}");
    }
}

#[test]
fn weights_sum_to_one_at_both_ends_of_every_range() {
    for label in ALL.iter().flat_map(|spec| settings(spec)) {
        let federation = defaults(&label);
        let profiles: Vec<&Profile> = federation.state.roster.iter().collect();
        // All clients; two that are both far from the reference; and one alone, whose labels are all that was seen.
        for profiles in [&profiles[..], &profiles[1..3], &profiles[..1]] {
            for mode in [Mode::Paper, Mode::Hardened] {
                let weighting = federation.run.strategy.weighting.as_ref();
                let weight = hardened::shares(
                    weighting,
                    mode,
                    profiles,
                    &federation.state.reference,
                    &mut Memory::default(),
                )
                .weight;
                assert!(weight.iter().all(|s| (0.0..=1.0).contains(s)), "{label}: {weight:?}");
                // Rounding of ten weights.
                assert!((weight.iter().sum::<f64>() - 1.0).abs() < 1e-14, "{label}: {weight:?}");
            }
        }
    }
}

#[test]
fn a_model_that_no_client_changed_stays_bit_identical() {
    for spec in ALL {
        let mut federation = defaults(spec.name);
        let before = bits(federation.model());
        let jobs = plan(&federation.run, &federation.state);
        let values = federation.model().to_vec();
        // Different steps: a client may have stopped early.
        let answer = |job: &Job| (job.client, Ok(upload(job, &values, 1 + u64::from(job.client % 2))));
        let answers = jobs.iter().map(answer).collect();
        let record = federation.close(&jobs, answers);
        assert!(record.clients.iter().all(|client| client.weight.is_some()), "{}", spec.name);
        assert_eq!(bits(federation.model()), before, "{}", spec.name);
    }
}

#[test]
fn updates_in_reverse_order_of_arrival_give_the_same_bits() {
    for spec in ALL {
        let (mut forth, mut back) = (defaults(spec.name), defaults(spec.name));
        for _ in 0..3 {
            let record = forth.round();
            let jobs = plan(&back.run, &back.state);
            let mut answers = back.answers(&jobs);
            answers.reverse();
            assert_eq!(back.close(&jobs, answers), record, "{}", spec.name);
            assert_eq!(back.state.to_bytes(), forth.state.to_bytes(), "{}", spec.name);
        }
    }
}

#[test]
fn the_weights_that_enter_the_aggregate_sum_to_one_and_are_recorded_where_they_are_not_those_of_the_strategy()
{
    for label in ALL.iter().map(|spec| spec.name) {
        let record = defaults(label).round();
        let entered = |client: &ClientRecord| client.entered_weight.or(client.weight);
        let sums = sums(&record, entered);
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-12), "{label}: {sums:?}");
        let mut by_branch: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        record
            .clients
            .iter()
            .for_each(|client| by_branch.entry(client.branch).or_default().extend(entered(client)));
        let effective = by_branch.values().map(|weights| fedtvd_core::round::effective(weights)).sum();
        assert_eq!(record.effective_clients, Some(effective), "{label}");
    }
}

#[test]
fn a_client_reports_what_the_strategy_asks_for_and_nothing_more() {
    let q = Reference::uniform(3);
    for spec in ALL {
        let mut federation = defaults(spec.name);
        let Federation { run, state, sites, .. } = &mut federation;
        let asked = run.strategy.asks();
        let recipe = (spec.build)(&fedtvd_core::rules::Settings::defaults(spec));
        let uses_labels =
            recipe.weighting.is_some() || recipe.selection.is_some() || recipe.matching.is_some();
        assert!(uses_labels || asked == Ask::Nothing, "{} needs no statistic", spec.name);
        for ask in Ask::ALL {
            let statistic = ask.answer(&sites[1].counts, &q);
            let own = statistic.ask() == asked;
            let profile = Profile::new(99, 10, statistic);
            assert_eq!(state.clone().enrol(run, profile).is_ok(), own, "{} and {ask:?}", spec.name);
        }
        assert!(state.roster.iter().all(|profile| profile.statistic.ask() == asked), "{}", spec.name);
        let histogram = |profile: &Profile| matches!(profile.statistic, Statistic::Histogram(_));
        assert!(asked == Ask::Histogram || !state.roster.iter().any(histogram), "{}", spec.name);
        let carries: Vec<&str> = run.strategy.needs().carries.iter().map(|carried| carried.name).collect();
        let jobs = plan(&federation.run, &federation.state);
        for (_, upload) in federation.answers(&jobs) {
            let sent: Vec<String> =
                upload.unwrap().carried.arrays().map(|(name, _)| name.to_owned()).collect();
            assert_eq!(sent, carries, "{}", spec.name);
        }
    }
}

#[test]
fn identical_clients_equal_centralised_training_if_a_method_agrees_and_trains_plainly() {
    let departs = [Property::AgreesOnEqualClients, Property::TrainsPlainly];
    let whole = |spec: &Spec| strategy(spec.name).sharing.stays().is_none();
    let plain =
        |spec: &&&Spec| whole(spec) && !spec.lacks.iter().any(|(property, _)| departs.contains(property));
    let row = (vec![1.0, 2.0], vec![1.0, -1.0]);
    let order = Local { schedule: Schedule::exponential(0.9), epoch_decay: 0.8, ..local(3, 4, 0.1, 0.9) };
    let mut central = vector(&[0.5, 0.25]);
    let mut trainer = Exact::new(Quadratic { rows: vec![row.clone()] });
    for round in 0..3 {
        let order = order.in_round(round);
        let pass = order.pass(Key::of(0), None, None);
        central = LocalRun::run(&central, &[0; 12], &order, &pass, None, None, &mut trainer).unwrap().params;
    }
    for spec in ALL.iter().filter(plain) {
        let counts = vec![vec![6, 6]; 5];
        let mut federation = quadratics(run(spec.name, order), vec![row.clone(); 5], &[0.5, 0.25], &counts);
        (0..3).for_each(|_| drop(federation.round()));
        assert_eq!(bits(federation.model()), bits(&central.values), "{}", spec.name);
    }
}

#[test]
fn every_strategy_has_the_general_properties_or_states_why_not() {
    for spec in ALL {
        for property in Property::ALL {
            let lacks = spec.lacks.iter().any(|(lacking, _)| *lacking == property);
            assert_eq!(holds(property, spec.name), !lacks, "{} and {property:?}", spec.name);
        }
    }
}

fn holds(property: Property, label: &str) -> bool {
    match property {
        Property::AgreesOnEqualClients => agrees_on_equal_clients(label),
        Property::TrainsPlainly => trains_plainly(label),
        Property::EqualWeightsForEqualClients => weighs_equal_clients_alike(label),
        Property::StaysBetweenTheClients => stays_between(label),
        Property::AveragesBuffers => averages_buffers(label),
    }
}

/// Five clients with the same single row: the next model is bit-identical to every client's.
fn agrees_on_equal_clients(label: &str) -> bool {
    let counts = [6; 5].map(|n| vec![n, n]);
    let row = (vec![1.0, 2.0], vec![1.0, -1.0]);
    let mut federation = quadratics(run(label, local(3, 4, 0.1, 0.9)), vec![row; 5], &[0.5, 0.25], &counts);
    (0..3).all(|_| {
        let jobs = plan(&federation.run, &federation.state);
        let answers = federation.answers(&jobs);
        let models: Vec<_> =
            answers.iter().map(|(_, upload)| upload.clone().unwrap().params.values).collect();
        federation.close(&jobs, answers);
        models.iter().all(|model| bits(model) == bits(federation.model()))
    })
}

/// Every client's model in the first two rounds equals that of plain SGD on cross-entropy for the same job.
fn trains_plainly(label: &str) -> bool {
    let mut federation = defaults(label);
    (0..2).all(|_| {
        let jobs = plan(&federation.run, &federation.state);
        let answers = federation.answers(&jobs);
        let same = jobs.iter().zip(&answers).all(|(job, (_, answer))| {
            let upload = answer.as_ref().unwrap();
            bits(&federation.plainly_trained(job, upload.report.branch)) == bits(&upload.params.values)
        });
        federation.close(&jobs, answers);
        same
    })
}

/// Five clients of equal size and labels.
fn weighs_equal_clients_alike(label: &str) -> bool {
    let mut federation = skewed(run(label, local(1, 4, 0.1, 0.9)), &[[5, 1, 3]; 5]);
    let record = federation.round();
    record.clients.iter().all(|client| client.weight == Some(0.2))
}

/// Each parameter of the next model lies between the smallest and the largest of the clients', even if some clients
/// made one step and others all of theirs, some are far from the others in one parameter, and they disagree about another.
/// In two rounds, as momentum begins with the second.
fn stays_between(label: &str) -> bool {
    let mut federation = defaults(label);
    (0..2).all(|_| {
        let jobs = plan(&federation.run, &federation.state);
        let base = federation.model().to_vec();
        let change = |place: usize, job: &Job| match (place, job.client as f32) {
            (0, k) => 1.0 + 10.0 * k,
            (1, k) => 100.0 * (1.0 - 2.0 * (k % 2.0)),
            (_, k) => 1.0 + 1e-4 * k,
        };
        let model =
            |job: &Job| -> Vec<f32> { base.iter().enumerate().map(|(i, w)| w + change(i, job)).collect() };
        let steps = |job: &Job| 1 + u64::from(job.client % 2);
        let models: Vec<Vec<f32>> = jobs.iter().map(model).collect();
        let answer = |(job, model): (&Job, &Vec<f32>)| (job.client, Ok(upload(job, model, steps(job))));
        federation.close(&jobs, jobs.iter().zip(&models).map(answer).collect());
        federation.model().iter().enumerate().all(|(i, next)| {
            let of_clients = || models.iter().map(|model| model[i]);
            of_clients().any(|x| x <= *next) && of_clients().any(|x| x >= *next)
        })
    })
}

/// There are buffers, and they are the clients' mean, weighted by the weights of the round.
fn averages_buffers(label: &str) -> bool {
    let mut federation = defaults(label);
    let jobs = plan(&federation.run, &federation.state);
    let answers = federation.answers(&jobs);
    let models: Vec<_> = answers.iter().map(|(_, upload)| upload.clone().unwrap().params.values).collect();
    let record = federation.close(&jobs, answers);
    let layout = &federation.state.params.layout;
    let mut buffers = layout.trainable()..layout.len();
    let branch = federation.state.branch_of(0);
    !buffers.is_empty()
        && buffers.all(|i| {
            let here = models
                .iter()
                .zip(&record.clients)
                .filter(|(_, client)| client.branch.is_none_or(|own| own == branch));
            let weighted = here.map(|(model, client)| client.weight.unwrap() * f64::from(model[i]));
            weighted.sum::<f64>() as f32 == federation.model()[i]
        })
}
