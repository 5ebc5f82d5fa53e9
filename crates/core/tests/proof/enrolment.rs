//! Enrolment: no honest client is refused, whatever its labels; impossible claims are.

use crate::federation::{local, run, strategy, vector};
use fedtvd_core::labels::{Ask, Reference, Statistic, size};
use fedtvd_core::round::{Profile, Refusal, Run, State};
use fedtvd_core::strategy::ALL;
use proptest::collection::vec;
use proptest::prelude::*;

/// A run whose strategy asks for this statistic.
fn asking(ask: Ask) -> Run {
    let spec = ALL.iter().find(|spec| strategy(spec.name).asks() == ask);
    run(spec.unwrap_or_else(|| panic!("no strategy asks for {ask:?}")).name, local(1, 8, 0.1, 0.0))
}

fn enrol(run: &Run, reference: &Reference, size: u64, statistic: Statistic) -> Result<(), Refusal> {
    let mut state = State::new(run, vector(&[0.0]), reference.clone());
    state.enrol(run, Profile::new(3, size, statistic))
}

fn distance(size: u64, distance: f64, classes: usize) -> Result<(), Refusal> {
    enrol(&asking(Ask::Distance), &Reference::uniform(classes), size, Statistic::Distance(distance))
}

fn released(size: u64, distance: f64, classes: usize) -> Result<(), Refusal> {
    enrol(&asking(Ask::Released), &Reference::uniform(classes), size, Statistic::Released(distance))
}

/// Counts of 1 to 120 classes, many of them empty, from a single sample to hundreds of millions.
fn counts() -> impl Strategy<Value = Vec<u64>> {
    let count = prop_oneof![Just(0u64), 0..5u64, 0..2_000u64, 0..8_000_000u64];
    vec(count, 1..120).prop_filter("a client has samples", |h| size(h) > 0)
}

/// A distribution over this many classes, some of which may be missing.
fn reference(classes: usize) -> impl Strategy<Value = Reference> {
    let share = prop_oneof![Just(0.0f64), 0.0..1.0f64];
    vec(share, classes).prop_filter_map("a reference has a class", |shares| {
        let sum: f64 = shares.iter().sum();
        Reference::given(shares.into_iter().map(|share| share / sum).collect()).ok()
    })
}

proptest! {
    #[test]
    fn every_honest_client_is_enrolled_against_a_uniform_reference(counts in counts()) {
        let q = Reference::uniform(counts.len());
        for ask in Ask::ALL {
            let enrolled = enrol(&asking(ask), &q, size(&counts), ask.answer(&counts, &q));
            prop_assert_eq!(enrolled, Ok(()), "{:?}", ask);
        }
    }

    #[test]
    fn every_honest_client_is_enrolled_against_any_reference(
        (counts, q) in counts().prop_filter("two classes", |h| h.len() > 1)
            .prop_flat_map(|h| { let q = reference(h.len()); (Just(h), q) }),
    ) {
        for ask in Ask::ALL {
            let enrolled = enrol(&asking(ask), &q, size(&counts), ask.answer(&counts, &q));
            prop_assert_eq!(enrolled, Ok(()), "{:?}", ask);
        }
    }

    #[test]
    fn a_distance_between_the_possible_ones_is_refused(counts in vec(0..400u64, 2..20), part in 0.1..0.9f64) {
        prop_assume!(size(&counts) > 0);
        let (q, n) = (Reference::uniform(counts.len()), size(&counts));
        let Statistic::Distance(tvd) = Ask::Distance.answer(&counts, &q) else { unreachable!() };
        // Possible distances are 1/(nC) apart.
        let lie = tvd + part / (n as f64 * counts.len() as f64);
        prop_assert!(distance(n, lie, counts.len()).is_err());
        let Statistic::Released(tvd) = Ask::Released.answer(&counts, &q) else { unreachable!() };
        let lie = tvd + part / ((n + 1) as f64 * counts.len() as f64);
        prop_assert!(released(n, lie, counts.len()).is_err());
    }

    #[test]
    fn the_most_even_counts_have_the_smallest_accepted_distance(n in 1..5_000u64, classes in 2..30usize) {
        let c = classes as u64;
        let even: Vec<u64> = (0..c).map(|k| n / c + u64::from(k < n % c)).collect();
        let q = Reference::uniform(classes);
        let Statistic::Distance(least) = Ask::Distance.answer(&even, &q) else { unreachable!() };
        prop_assert_eq!(distance(n, least, classes), Ok(()));
        // The next smaller number on the grid of possible ones.
        prop_assert!(distance(n, least - 1.0 / (n * c) as f64, classes).is_err());
    }

    #[test]
    fn no_distance_beyond_that_of_a_single_class_is_accepted(n in 1..5_000u64, classes in 2..30usize, beyond in 1..50u64) {
        // On the grid of possible distances, so that only the upper bound can refuse it.
        let (c, farthest, beyond) = (classes as f64, Reference::uniform(classes).farthest(), beyond as f64);
        prop_assert_eq!(distance(n, farthest, classes), Ok(()));
        prop_assert!(distance(n, farthest + beyond / (n as f64 * c), classes).is_err());
        let m = (n + 1) as f64;
        prop_assert_eq!(released(n, farthest - 0.5 / m, classes), Ok(()));
        prop_assert!(released(n, farthest - 0.5 / m + beyond / (m * c), classes).is_err());
    }

    #[test]
    fn no_distance_beyond_that_of_the_rarest_class_is_accepted(n in 1..5_000u64, beyond in 1e-9..1e-3f64) {
        let q = Reference::given(vec![0.1, 0.2, 0.7]).unwrap();
        let said = |statistic: Statistic| enrol(&asking(statistic.ask()), &q, n, statistic);
        prop_assert!(said(Statistic::Distance(0.9)).is_ok());
        prop_assert!(said(Statistic::Distance(0.9 + beyond)).is_err());
        // All samples in the rarest class: 1/2 (n/(n+1) - 0.1 + 0.9).
        let greatest = 0.5 * (n as f64 / (n + 1) as f64 + 0.8);
        prop_assert!(said(Statistic::Released(greatest)).is_ok());
        prop_assert!(said(Statistic::Released(greatest + beyond)).is_err());
    }

    #[test]
    fn counts_must_sum_to_the_size(counts in vec(0..90u64, 3..4), size in 1..300u64) {
        let run = asking(Ask::Histogram);
        let honest = counts.iter().sum::<u64>() == size;
        let enrolled = enrol(&run, &Reference::uniform(3), size, Statistic::Histogram(counts));
        prop_assert_eq!(enrolled.is_ok(), honest);
    }
}

#[test]
fn a_balance_that_the_size_does_not_allow_is_refused() {
    let refusal = distance(501, 0.0, 10).unwrap_err();
    assert!(matches!(refusal, Refusal::Distance { .. }), "{refusal}");
    // 501 samples of 10 classes: 1 (10 - 1) / (501 10).
    assert_eq!(distance(501, 9.0 / 5010.0, 10), Ok(()));
    assert_eq!(distance(500, 0.0, 10), Ok(()));
    // 0.5 / (n + 1), then n = 501 with its remainder: C (n + 1) d' - C/2 = 0 is the least integer.
    assert_eq!(released(500, 0.5 / 501.0, 10), Ok(()));
    assert!(released(500, 0.4 / 501.0, 10).is_err());
}

#[test]
fn values_that_are_not_distances_are_refused() {
    for lie in [-0.1, -1e-9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, 0.91] {
        assert!(matches!(distance(500, lie, 10), Err(Refusal::Distance { .. })), "{lie}");
        assert!(matches!(released(500, lie, 10), Err(Refusal::Distance { .. })), "{lie}");
    }
    assert!(matches!(distance(500, 0.123_456, 10), Err(Refusal::Impossible { .. })));
    assert!(matches!(released(500, 0.123_456, 10), Err(Refusal::Impossible { .. })));
}

#[test]
fn a_released_distance_of_zero_is_refused_at_any_size() {
    // 1/d' is the logit: a distance of 0 would make every weight NaN.
    let run = Run { largest_size: u64::MAX, ..asking(Ask::Released) };
    let said = |q: &Reference, lie| enrol(&run, q, 1_000_000_000_000, Statistic::Released(lie));
    for lie in [0.0, -0.0, 1e-300] {
        assert!(said(&Reference::uniform(10), lie).is_err(), "{lie}");
    }
    let skewed = Reference::given(vec![0.3, 0.7]).unwrap();
    assert!(said(&skewed, 0.0).is_err() && said(&skewed, -0.0).is_err());
}

#[test]
fn a_size_is_at_least_one_and_at_most_the_cap() {
    let run = Run { largest_size: 1_000, ..asking(Ask::Nothing) };
    let sized = |size| enrol(&run, &Reference::uniform(3), size, Statistic::Nothing);
    assert_eq!((sized(1), sized(1_000)), (Ok(()), Ok(())));
    for size in [0, 1_001, u64::MAX] {
        assert_eq!(sized(size), Err(Refusal::Size { client: 3, size, largest: 1_000 }));
    }
}

#[test]
fn counts_of_another_number_of_classes_or_beyond_64_bits_are_refused() {
    let run = Run { largest_size: u64::MAX, ..asking(Ask::Histogram) };
    let counted = |size, counts: &[u64]| {
        enrol(&run, &Reference::uniform(3), size, Statistic::Histogram(counts.to_vec()))
    };
    assert!(matches!(counted(4, &[2, 2]), Err(Refusal::Classes { got: 2, classes: 3, .. })));
    // The sum is 5 modulo 2^64.
    assert!(matches!(counted(5, &[u64::MAX, 5, 1]), Err(Refusal::CountsSum { .. })));
}

#[test]
fn a_profile_is_fixed_for_the_whole_run() {
    let run = asking(Ask::Nothing);
    let mut state = State::new(&run, vector(&[0.0]), Reference::uniform(3));
    let profile = |client, size| Profile::new(client, size, Statistic::Nothing);
    state.enrol(&run, profile(3, 10)).unwrap();
    state.enrol(&run, profile(1, 20)).unwrap();
    assert_eq!(state.enrol(&run, profile(3, 10)), Ok(()));
    assert_eq!(
        state.enrol(&run, profile(3, 11)),
        Err(Refusal::Changed { client: 3, what: "10 training samples at enrolment, 11 now".to_owned() })
    );
    state.round = 4;
    assert_eq!(
        state.enrol(&run, profile(3, 11)),
        Err(Refusal::Changed { client: 3, what: "10 training samples at enrolment, 11 now".to_owned() })
    );
    assert_eq!(state.roster, [profile(1, 20), profile(3, 10)]);
}

#[test]
fn a_fixed_roster_refuses_clients_after_the_first_round_and_an_open_one_accepts_them() {
    let profile = |client| Profile::new(client, 9, Statistic::Nothing);
    for fixed_roster in [true, false] {
        let run = Run { fixed_roster, ..asking(Ask::Nothing) };
        let mut state = State::new(&run, vector(&[0.0]), Reference::uniform(3));
        state.enrol(&run, profile(5)).unwrap();
        state.round = 1;
        let late = state.enrol(&run, profile(4));
        assert_eq!(late, if fixed_roster { Err(Refusal::RosterClosed { client: 4 }) } else { Ok(()) });
        assert_eq!(state.enrol(&run, profile(5)), Ok(()));
    }
}
