//! Properties of server optimisers that hold for arbitrary changes and any number of rounds.

use crate::federation::{SKEWED, bits, local, mean_step, run, skewed, strategy};
use fedtvd_core::memory::Memory;
use proptest::collection::vec;
use proptest::prelude::*;

/// Mean changes of several rounds: large, small and none.
fn changes() -> impl Strategy<Value = Vec<Vec<f64>>> {
    let change = prop_oneof![Just(0.0), -3.0..3.0f64, -1e-6..1e-6f64, -1e6..1e6f64];
    vec(vec(change, 4), 1..12)
}

/// v before and after each round, and the change of the round.
fn second_moments(label: &str, tau: f64, changes: &[Vec<f64>]) -> Vec<[f64; 3]> {
    let server = strategy(label).server;
    let (mut memory, mut before) = (Memory::default(), vec![tau * tau; 4]);
    let mut seen = Vec::new();
    for change in changes {
        // From zero, so that the mean is the change itself.
        server.step(&mean_step(&[0.0; 4], change), &mut memory);
        let after = memory.f64("v").unwrap().to_vec();
        seen.extend(before.iter().zip(&after).zip(change).map(|((&old, &new), &d)| [old, new, d]));
        before = after;
    }
    seen
}

proptest! {
    #[test]
    fn the_second_moment_of_fedadagrad_never_decreases(changes in changes(), tau in 1e-6..1.0f64) {
        for [old, new, d] in second_moments(&format!("fedadagrad:tau={tau}"), tau, &changes) {
            prop_assert!(new >= old, "{} became {} after {}", old, new, d);
        }
    }

    #[test]
    fn the_second_moment_of_fedyogi_changes_by_at_most_a_share_of_the_squared_change(
        changes in changes(), tau in 1e-6..1.0f64, beta2 in 0.0..0.9999f64,
    ) {
        let label = format!("fedyogi:tau={tau}:beta2={beta2}");
        for [old, new, d] in second_moments(&label, tau, &changes) {
            let most = (1.0 - beta2) * d * d;
            // Rounding of the sum, which is relative to the larger of its terms.
            prop_assert!((new - old).abs() <= most + 2.0 * f64::EPSILON * old.max(new), "{} {} {}", old, new, d);
            prop_assert!(new >= 0.0);
        }
    }
}

#[test]
fn the_second_moment_of_fedyogi_stays_where_it_equals_the_squared_change() {
    // v starts at tau² = 0.25.
    for ([old, new, d], expected) in second_moments("fedyogi:tau=0.5", 0.5, &[vec![0.5, -0.5, 0.75, 0.25]])
        .iter()
        .zip([0.25, 0.25, 0.25 + 0.01 * 0.5625, 0.25 - 0.01 * 0.0625])
    {
        assert!((new - expected).abs() < 1e-15, "{old} became {new} after {d}");
    }
}

#[test]
fn server_sgd_with_lr_one_and_no_momentum_is_fedavg_bit_for_bit() {
    let models = |label: &str| {
        let mut federation = skewed(run(label, local(2, 4, 0.1, 0.9)), &SKEWED);
        let rounds: Vec<Vec<u32>> = (0..6)
            .map(|_| {
                federation.round();
                bits(federation.model())
            })
            .collect();
        rounds
    };
    let fedavg = models("fedavg");
    assert_eq!(models("fedavgm:beta=0:lr=1"), fedavg);
    let momentum = models("fedavgm:lr=1:beta=0.5");
    assert_eq!(momentum[0], fedavg[0], "there is no momentum before the first round");
    assert_ne!(momentum[1], fedavg[1]);
}

proptest! {
    #[test]
    fn a_step_of_server_sgd_with_lr_one_and_no_momentum_is_the_mean_for_any_numbers(
        base in vec(prop_oneof![-2.0..2.0f32, -1e-20..1e-20f32, -1e20..1e20f32], 8),
        mean in vec(prop_oneof![-2.0..2.0f64, -1e-20..1e-20f64, -1e20..1e20f64], 8),
    ) {
        let next = strategy("fedavgm:lr=1:beta=0").server.step(&mean_step(&base, &mean), &mut Memory::default());
        prop_assert_eq!(bits(&next), bits(&mean.iter().map(|&x| x as f32).collect::<Vec<_>>()));
    }
}
