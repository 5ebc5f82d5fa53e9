//! Weights and cohorts from the labels of several clients together: `joint` and `complete`.

use crate::federation::{SKEWED, local, run, skewed, strategy};
use crate::vectors::{counts, number, numbers, read};
use fedtvd_core::labels::{Reference, size};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::hardened::shares;
use fedtvd_core::round::{Mode, Profile, Run, State, plan};
use std::collections::BTreeMap;

/// Clients that know one class each, twenty per class.
fn specialists(label: &str) -> (Run, State) {
    let run = Run { fraction: 0.1, ..run(label, local(1, 8, 0.1, 0.0)) };
    let mut state = State::new(&run, crate::federation::vector(&[0.0]), Reference::uniform(5));
    for client in 0..100 {
        let mut counts = vec![0; 5];
        counts[client as usize % 5] = 30;
        let statistic = run.strategy.asks().answer(&counts, &state.reference);
        state.enrol(&run, Profile::new(client, 30, statistic)).unwrap();
    }
    (run, state)
}

/// How many clients of each class a round asks.
fn classes(run: &Run, state: &State) -> [usize; 5] {
    let mut classes = [0; 5];
    plan(run, state).iter().for_each(|job| classes[job.client as usize % 5] += 1);
    classes
}

#[test]
fn joint_weights_are_those_of_a_general_solver() {
    let golden = read(include_str!("../golden/joint_weights.json"));
    for case in golden["cases"].as_array().unwrap() {
        let q = Reference::given(numbers(&case["Q"])).unwrap();
        let strategy = strategy(&format!("joint:rho={}:size={}", number(&case["rho"]), case["size"]));
        let profile = |(k, row): (usize, &serde_json::Value)| {
            let counts = counts(row);
            Profile::new(k as u32, size(&counts), strategy.asks().answer(&counts, &q))
        };
        let profiles: Vec<Profile> =
            case["counts"].as_array().unwrap().iter().enumerate().map(profile).collect();
        let profiles: Vec<&Profile> = profiles.iter().collect();
        let got =
            shares(strategy.weighting.as_ref(), Mode::Paper, &profiles, &q, &mut Memory::default()).weight;
        for (got, want) in got.iter().zip(numbers(&case["weights"])) {
            // The general solver stops earlier than ours.
            assert!((got - want).abs() < 2e-5, "{} {got} {want}", case["rho"]);
        }
    }
}

#[test]
fn a_complete_cohort_holds_every_class_where_a_random_one_misses_some() {
    let (run, mut state) = specialists("complete");
    let (random, _) = specialists("uniform");
    let mut missed = [0, 0];
    for round in 0..50 {
        state.round = round;
        let cohort = classes(&run, &state);
        assert_eq!(cohort.iter().sum::<usize>(), 10);
        missed[0] += cohort.iter().filter(|count| **count == 0).count();
        missed[1] += classes(&random, &state).iter().filter(|count| **count == 0).count();
    }
    assert_eq!(missed[0], 0, "complete cohorts");
    // A class is missed by a random cohort of 10 of 100 with a chance of about 0.095: 24 times in 50 rounds.
    assert!(missed[1] > 10, "random cohorts missed {} classes", missed[1]);
}

#[test]
fn every_client_is_asked_with_a_chance_bounded_below_whatever_its_labels() {
    let (run, mut state) = specialists("complete:random=0.3");
    // A hundred clients of class 0 for one of each other class: greedy places hardly ever need them.
    let mut asked: BTreeMap<u32, u32> = BTreeMap::new();
    for profile in &mut state.roster {
        let class = if profile.client < 4 { profile.client as usize + 1 } else { 0 };
        let mut counts = vec![0; 5];
        counts[class] = 30;
        profile.statistic = run.strategy.asks().answer(&counts, &state.reference);
    }
    for round in 0..2000 {
        state.round = round;
        plan(&run, &state).iter().for_each(|job| *asked.entry(job.client).or_default() += 1);
    }
    // Three of ten places are random: at least 0.03 per round, 60 in 2000 rounds, with a standard deviation of 7.6.
    assert_eq!(asked.len(), 100);
    assert!(asked.values().all(|times| *times >= 30), "{asked:?}");
}

#[test]
fn one_candidate_is_a_random_cohort_and_the_same_state_gives_the_same_cohort() {
    let cohort = |label: &str| {
        let (run, state) = specialists(label);
        plan(&run, &state).iter().map(|job| job.client).collect::<Vec<_>>()
    };
    assert_eq!(cohort("complete:candidates=1"), cohort("fedavg"));
    assert_eq!(cohort("complete:random=1"), cohort("fedavg"));
    assert_eq!(cohort("complete"), cohort("complete"));
}

#[test]
fn label_counts_that_the_selection_needs_give_the_weighting_what_it_asks_for() {
    let weights = |label: &str| {
        let record = skewed(run(label, local(1, 4, 0.1, 0.0)), &SKEWED).round();
        record
            .clients
            .iter()
            .map(|client| (client.weight, client.quality_share, client.tvd))
            .collect::<Vec<_>>()
    };
    // All clients are asked, so that the cohorts are the same.
    assert_eq!(weights("fedtvd+complete"), weights("fedtvd"));
    let released = |label: &str| weights(label).iter().map(|w| w.0).collect::<Vec<_>>();
    assert_eq!(released("fedtvd-released+complete"), released("fedtvd-released"));
}
