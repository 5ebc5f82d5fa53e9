//! Hardened mode: no accepted claim gives a client a weight above min(1.6/K, 0.4).

use crate::federation::{SKEWED, local, run, skewed, upload, vector};
use crate::in_memory::InMemory;
use fedtvd_core::labels::{Ask, Reference, Statistic, size};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::hardened::shares;
use fedtvd_core::round::{Mode, Profile, Run, State, close, plan};
use fedtvd_core::strategy::ALL;
use proptest::collection::vec;
use proptest::prelude::*;

const CLASSES: usize = 10;

/// Every registered strategy; those with a lambda also by labels alone and by size alone.
fn labels() -> Vec<String> {
    let mut labels = Vec::new();
    for spec in ALL {
        labels.push(spec.name.to_owned());
        if spec.params.iter().any(|param| param.name == "lambda") {
            labels.extend([format!("{}:lambda=1", spec.name), format!("{}:lambda=0", spec.name)]);
        }
    }
    labels
}

/// The roster of clients that enrolment accepts.
fn enrolled(run: &Run, q: &Reference, profiles: impl IntoIterator<Item = Profile>) -> Vec<Profile> {
    let mut state = State::new(run, vector(&[0.0]), q.clone());
    profiles.into_iter().for_each(|profile| drop(state.enrol(run, profile)));
    state.roster
}

fn weights(run: &Run, roster: &[Profile], mode: Mode) -> Vec<f64> {
    let profiles: Vec<&Profile> = roster.iter().collect();
    shares(
        run.strategy.weighting.as_ref(),
        mode,
        &profiles,
        &Reference::uniform(CLASSES),
        &mut Memory::default(),
    )
    .weight
}

/// The profile of an honest client with these counts.
fn honest(client: u32, ask: Ask, counts: &[u64], q: &Reference) -> Profile {
    Profile::new(client, size(counts), ask.answer(counts, q))
}

fn label_counts() -> impl Strategy<Value = Vec<u64>> {
    let count = prop_oneof![Just(0u64), 0..50u64, 0..100_000u64];
    vec(count, CLASSES).prop_filter("a client has samples", |h| size(h) > 0)
}

/// A uniform reference, against which claims are checked exactly, or one against which only their range is checked.
fn reference() -> impl Strategy<Value = Reference> {
    let skewed: Vec<f64> = (1..=CLASSES).map(|c| c as f64 / 55.0).collect();
    prop_oneof![Just(Reference::uniform(CLASSES)), Just(Reference::given(skewed).expect("it sums to 1"))]
}

proptest! {
    #[test]
    fn one_liar_of_ten_has_a_weight_of_at_most_0_16_and_one_of_three_of_0_4(
        others in prop_oneof![vec(label_counts(), 9), vec(label_counts(), 2)],
        pretended in label_counts(),
        times in prop_oneof![Just(1u64), Just(1_000_000_000)],
        claim in prop_oneof![Just(None), (0.0..0.99f64).prop_map(Some), Just(Some(0.0))],
        place in 0..3u32,
        q in reference(),
    ) {
        for label in labels() {
            let run = Run { largest_size: u64::MAX, ..run(&label, local(1, 8, 0.1, 0.0)) };
            let ask = run.strategy.asks();
            let pretended: Vec<u64> = pretended.iter().map(|h| h * times).collect();
            let mut liar = honest(place, ask, &pretended, &q);
            if let (Statistic::Distance(d) | Statistic::Released(d), Some(claim)) =
                (&mut liar.statistic, claim)
            {
                *d = claim;
            }
            let ids = (0..).filter(|id| *id != place);
            let truth = ids.zip(&others).map(|(id, counts)| honest(id, ask, counts, &q));
            let roster = enrolled(&run, &q, truth.chain([liar]));
            if roster.len() <= others.len() {
                // The claim was refused.
                continue;
            }
            let s = weights(&run, &roster, Mode::Hardened);
            let cap = if others.len() == 9 { 0.16 } else { 0.4 };
            // Division by a sum of up to ten rounded weights.
            prop_assert!(s.iter().all(|s| *s <= cap + 1e-15), "{}: {:?}", label, s);
            prop_assert!((s.iter().sum::<f64>() - 1.0).abs() < 1e-14, "{}: {:?}", label, s);
        }
    }

    #[test]
    fn hardened_mode_caps_sizes_and_keeps_quality_shares(counts in vec(label_counts(), 2..12)) {
        let q = Reference::uniform(CLASSES);
        for label in labels() {
            let run = run(&label, local(1, 8, 0.1, 0.0));
            let ask = run.strategy.asks();
            let profiles = counts.iter().enumerate().map(|(k, h)| honest(k as u32, ask, h, &q));
            let roster = enrolled(&run, &q, profiles);
            let refs: Vec<&Profile> = roster.iter().collect();
            let of = |mode| shares(run.strategy.weighting.as_ref(), mode, &refs, &q, &mut Memory::default());
            let (hardened, paper) = (of(Mode::Hardened), of(Mode::Paper));
            prop_assert_eq!(hardened.quality, paper.quality, "{}", label);
            let mut sizes: Vec<u64> = roster.iter().map(|profile| profile.size).collect();
            sizes.sort_unstable();
            let n = sizes.len();
            let median = sizes[(n - 1) / 2].midpoint(sizes[n / 2]);
            let capped: Vec<f64> = roster.iter().map(|profile| profile.size.min(median) as f64).collect();
            let total: f64 = capped.iter().sum();
            for (share, capped) in hardened.size.iter().zip(&capped) {
                // One division.
                prop_assert!((share - capped / total).abs() < 1e-15, "{}: {:?}", label, hardened.size);
            }
            let cap = (1.6 / n as f64).min(0.4).max(1.0 / n as f64);
            prop_assert!(hardened.weight.iter().all(|s| *s <= cap + 1e-15), "{}: {:?}", label, hardened.weight);
        }
    }
}

/// Nine clients with a hundred samples of one class, and one that claims a billion balanced samples.
fn boaster(label: &str) -> (Run, Vec<Profile>) {
    let run = run(label, local(1, 8, 0.1, 0.0));
    let (ask, q) = (run.strategy.asks(), Reference::uniform(CLASSES));
    let one_class: Vec<u64> = (0..CLASSES).map(|c| if c == 0 { 100 } else { 0 }).collect();
    let truth = (0..9).map(|id| honest(id, ask, &one_class, &q));
    let lie = honest(9, ask, &[100_000_000; CLASSES], &q);
    let roster = enrolled(&run, &q, truth.chain([lie]));
    assert_eq!(roster.len(), 10);
    (run, roster)
}

#[test]
fn a_round_in_hardened_mode_uses_the_capped_weights() {
    for label in labels() {
        let mut order = run(&label, local(1, 8, 0.1, 0.0));
        (order.mode, order.screen) = (Mode::Hardened, 20.0);
        // Sizes 18, 10, 22, 9 and 3: the median is 10, the cap 1.6/5.
        let record = skewed(order, &SKEWED).round();
        let s: Vec<f64> = record.clients.iter().map(|client| client.weight.unwrap()).collect();
        assert!(s.iter().all(|s| *s <= 0.32 + 1e-15), "{label}: {s:?}");
        assert_eq!(record.clients[2].size_share, Some(10.0 / 42.0), "{label}");
        assert_eq!(record.clients[2].size, 22, "{label}: the record holds the reported size");
    }
}

#[test]
fn in_paper_mode_fedtvd_gives_a_liar_three_fifths_of_the_weight_and_fedavg_all_of_it() {
    let (run, roster) = boaster("fedtvd");
    let s = weights(&run, &roster, Mode::Paper);
    // 1/2 e^0.9 / (e^0.9 + 9) + 1/2: the largest quality share of ten classes and all of the size.
    assert!((s[9] - 0.607).abs() < 5e-4, "{s:?}");
    let (run, roster) = boaster("fedavg");
    let s = weights(&run, &roster, Mode::Paper);
    assert!(s[9] > 0.999_999, "{s:?}");
}

#[test]
fn in_hardened_mode_the_same_liar_never_exceeds_the_cap_under_any_strategy() {
    for label in labels() {
        let (run, roster) = boaster(&label);
        let s = weights(&run, &roster, Mode::Hardened);
        assert!(s[9] <= 0.16 + 1e-15, "{label}: {s:?}");
    }
}

#[test]
fn a_liar_that_claims_a_vast_reach_cannot_blow_up_the_other_updates() {
    // Nine honest clients of 10 samples move from 0 to 1; the tenth claims 10^8 samples and stays at 0.
    let q = Reference::uniform(2);
    let moved = |mode| {
        let mut run = run("fednova", local(1, 10, 0.1, 0.0));
        run.mode = mode;
        let mut state = State::new(&run, vector(&[0.0]), q.clone());
        for client in 0..10 {
            let size = if client == 9 { 100_000_000 } else { 10 };
            state.enrol(&run, Profile::new(client, size, Statistic::Nothing)).unwrap();
        }
        let jobs = plan(&run, &state);
        let answers = jobs.iter().map(|job| {
            let (value, steps) = if job.client == 9 { (0.0, 10_000_000) } else { (1.0, 1) };
            (job.client, Ok(upload(job, &[value], steps)))
        });
        let (next, _) =
            close(&run, &state, &jobs, &InMemory::new(&run, &state, &jobs, answers.collect())).unwrap();
        next.params.values[0]
    };
    // In paper mode the liar's reach of 0.1 x 10^7 multiplies each honest update: f_k = s_k r_eff / r_k is 1 for each
    // of the nine, so that the model lands at 9, far beyond any client's model.
    assert!((moved(Mode::Paper) - 9.0).abs() < 1e-3, "{}", moved(Mode::Paper));
    // With capped sizes all weights are equal, and the liar's reach counts as one and a half of the others' 0.1:
    // r_eff = 0.9 x 0.1 + 0.1 x 0.15, so that nine of ten move by 1.05.
    assert!((moved(Mode::Hardened) - 0.9 * 1.05).abs() < 1e-6, "{}", moved(Mode::Hardened));
}
