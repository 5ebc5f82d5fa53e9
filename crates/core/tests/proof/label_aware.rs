//! Weights and cohorts from the labels of several clients together: `joint` and `complete`.

use crate::federation::{SKEWED, local, run, skewed, strategy};
use crate::vectors::{counts, number, numbers, read};
use fedtvd_core::labels::{Reference, size};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::hardened::shares;
use fedtvd_core::round::{Mode, Profile, Run, State, plan};

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
fn a_client_that_no_greedy_place_takes_is_asked_with_the_chance_of_the_random_places() {
    // Fifty clients with all classes and one with a single class: with all of them as candidates, a greedy place never takes it.
    let asked = |label: &str| {
        let run = Run { fraction: 0.2, ..run(label, local(1, 8, 0.1, 0.0)) };
        let mut state = State::new(&run, crate::federation::vector(&[0.0]), Reference::uniform(5));
        for client in 0..51 {
            let counts = if client == 50 { [30, 0, 0, 0, 0] } else { [6; 5] };
            let statistic = run.strategy.asks().answer(&counts, &state.reference);
            state.enrol(&run, Profile::new(client, 30, statistic)).unwrap();
        }
        let rounds = (0..2000).map(|round| {
            state.round = round;
            let jobs = plan(&run, &state);
            assert_eq!(jobs.len(), 10);
            usize::from(jobs.iter().any(|job| job.client == 50))
        });
        rounds.sum::<usize>()
    };
    // Random places are the first 1 and the first 3 of 51: 39 and 118 times expected, with standard deviations of 6 and 11.
    assert!((20..=58).contains(&asked("complete:candidates=100:random=0")), "the first place is random");
    assert!((85..=151).contains(&asked("complete:candidates=100:random=0.3")));
}

/// The cohort that a selection makes of clients with these label counts, in this order.
fn cohort<const C: usize>(label: &str, counts: &[[u64; C]], count: usize, reference: [f64; C]) -> Vec<u32> {
    let reference = Reference::given(reference.to_vec()).unwrap();
    let strategy = strategy(label);
    let profile = |(client, counts): (usize, &[u64; C])| {
        Profile::new(client as u32, size(counts), strategy.asks().answer(counts, &reference))
    };
    let profiles: Vec<Profile> = counts.iter().enumerate().map(profile).collect();
    strategy.selection.cohort(&profiles.iter().collect::<Vec<_>>(), count, &reference, Mode::Paper)
}

#[test]
fn each_place_takes_the_candidate_that_brings_the_mean_distribution_nearest_to_the_reference() {
    // Client 0 is drawn at random: P = (1, 0). Means with the others: (0.55, 0.45), (0.75, 0.25) and (0.5, 0.5).
    let counts = [[10, 0], [1, 9], [500, 500], [0, 1]];
    assert_eq!(cohort("complete", &counts, 2, [0.5, 0.5]), [0, 3]);
    assert_eq!(cohort("complete", &counts, 2, [0.75, 0.25]), [0, 2]);
    assert_eq!(cohort("complete", &counts, 2, [0.6, 0.4]), [0, 1]);
    // The distance is the TVD: with client 2 the mean is (19, 1, 10) / 30, a TVD of 0.3 from Q and a squared distance of 0.18; with
    // client 1 it is (0.6435, 0.1785, 0.178), 0.310 and 0.145.
    let three = [[9, 0, 0], [287, 357, 356], [4, 1, 10]];
    assert_eq!(cohort("complete", &three, 2, [1.0 / 3.0; 3]), [0, 2]);
    // With one random place, the third place: (1, 0) + (0.5, 0.5) so far; with (0.1, 0.9) the mean is (0.533, 0.467), with
    // (0, 1) it is (0.5, 0.5).
    assert_eq!(cohort("complete:random=0", &counts, 3, [0.75, 0.25]), [0, 2, 1]);
    assert_eq!(cohort("complete:random=0", &counts, 9, [0.75, 0.25]), [0, 2, 1, 3]);
}

#[test]
fn of_equal_candidates_the_first_is_taken_and_the_others_go_to_the_end() {
    // Two candidates for each place: 1 and 2 are equal, so 1 is taken; then 3 and 4 are compared before 2.
    let counts = [[10, 0], [0, 7], [0, 9], [10, 0], [0, 10]];
    assert_eq!(cohort("complete:candidates=2", &counts, 3, [0.5, 0.5]), [0, 1, 3]);
    assert_eq!(cohort("complete:candidates=2", &counts, 4, [0.5, 0.5]), [0, 1, 3, 2]);
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

#[test]
fn in_hardened_mode_at_least_half_of_a_complete_cohort_is_random() {
    // Clients 0 and 1 are drawn at random; 4, which alone has the missing class, is not among the candidates of two places.
    let counts = [[10, 0], [10, 0], [10, 0], [10, 0], [0, 10]];
    let cohort = |mode| {
        let reference = Reference::uniform(2);
        let strategy = strategy("complete");
        let profile = |(client, counts): (usize, &[u64; 2])| {
            Profile::new(client as u32, size(counts), strategy.asks().answer(counts, &reference))
        };
        let profiles: Vec<Profile> = counts.iter().enumerate().map(profile).collect();
        strategy.selection.cohort(&profiles.iter().collect::<Vec<_>>(), 3, &reference, mode)
    };
    assert_eq!(cohort(Mode::Paper), [0, 4, 1]);
    assert_eq!(cohort(Mode::Hardened), [0, 1, 4]);
}
