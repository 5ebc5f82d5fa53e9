//! A rejected update has the same effect as no answer, under every strategy; below the quorum nothing changes.

use crate::federation::{Answers, Federation, SKEWED, local, run, skewed};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{ClientFailure as Failure, ClientRecord, Job, Upload, plan};
use fedtvd_core::strategy::ALL;

/// A faulty update, and the failure that it must be rejected with.
type Lie = (&'static str, fn(&mut Upload), fn(&Failure) -> bool);

const LIES: [Lie; 16] = [
    ("a NaN", |u| u.params.values[3] = f32::NAN, not_finite),
    ("an infinite number", |u| u.params.values[0] = f32::NEG_INFINITY, not_finite),
    ("an infinite last value", |u| *u.params.values.last_mut().unwrap() = f32::INFINITY, not_finite),
    ("a short model", |u| u.params.values.truncate(1), wrong_shape),
    ("a long model", |u| u.params.values.push(0.0), wrong_shape),
    ("no model", |u| u.params.values.clear(), wrong_shape),
    ("one step too many", |u| u.report.steps = 13, steps),
    ("no step", |u| u.report.steps = 0, steps),
    ("a tiny reach", |u| u.report.reach *= 1e-6, reach),
    ("a huge reach", |u| u.report.reach *= 1e6, reach),
    ("a negative reach", |u| u.report.reach *= -1.0, reach),
    ("a NaN as reach", |u| u.report.reach = f64::NAN, reach),
    ("an old round", |u| u.report.round -= 1, wrong_round),
    ("a future round", |u| u.report.round += 1, wrong_round),
    ("an infinite loss", |u| u.report.losses[1] = f64::INFINITY, not_finite),
    ("a NaN as loss", |u| u.report.losses[0] = f64::NAN, not_finite),
];

fn not_finite(failure: &Failure) -> bool {
    matches!(failure, Failure::NotFinite { .. })
}

fn wrong_shape(failure: &Failure) -> bool {
    matches!(failure, Failure::WrongShape { .. })
}

fn steps(failure: &Failure) -> bool {
    // 22 samples in batches of 4 are 6 steps; two epochs are 12.
    matches!(failure, Failure::Steps { most: 12, .. })
}

fn reach(failure: &Failure) -> bool {
    matches!(failure, Failure::Reach { .. })
}

fn wrong_round(failure: &Failure) -> bool {
    matches!(failure, Failure::WrongRound { expected: 1, .. })
}

/// The third client lies. It is the largest, so its update would matter.
const LIAR: u32 = 2;

/// A federation after one round, with the jobs and honest answers of the next.
fn second_round(label: &str) -> (Federation, Vec<Job>, Answers) {
    second_round_of(label, &SKEWED)
}

fn second_round_of(label: &str, counts: &[[u64; 3]]) -> (Federation, Vec<Job>, Answers) {
    let mut federation = skewed(run(label, local(2, 4, 0.1, 0.9)), counts);
    federation.round();
    let jobs = plan(&federation.run, &federation.state);
    let answers = federation.answers(&jobs);
    (federation, jobs, answers)
}

/// The bytes of the state after the round with the records of the other clients, and the liar's record.
type Closed = ((Vec<u8>, Vec<ClientRecord>), ClientRecord);

fn closed(federation: &Federation, jobs: &[Job], answers: Answers) -> Closed {
    let updates = crate::in_memory::InMemory::new(&federation.run, &federation.state, jobs, answers);
    let (next, mut record) =
        fedtvd_core::round::close(&federation.run, &federation.state, jobs, &updates).unwrap();
    let place = record.clients.iter().position(|client| client.client == LIAR).unwrap();
    let liar = record.clients.remove(place);
    assert_eq!(liar.weight.is_none(), liar.failure.is_some());
    ((next.to_bytes(), record.clients), liar)
}

fn lied(answers: &Answers, lie: impl Fn(&mut Upload)) -> Answers {
    let mut answers = answers.clone();
    for (client, answer) in &mut answers {
        if *client == LIAR {
            lie(answer.as_mut().unwrap());
        }
    }
    answers
}

#[test]
fn a_rejected_update_gives_the_same_bytes_as_a_round_without_it() {
    for spec in ALL {
        let (federation, jobs, answers) = second_round(spec.name);
        let (honest, liar) = closed(&federation, &jobs, answers.clone());
        assert_eq!(liar.failure, None);
        let absent: Answers = answers.iter().filter(|(client, _)| *client != LIAR).cloned().collect();
        let (without, absent) = closed(&federation, &jobs, absent);
        assert_eq!(absent.failure, Some(Failure::Absent));
        assert_ne!(honest.1, without.1, "{}: an honest update of the client has an effect", spec.name);
        // Krum does not select every client.
        if liar.entered_weight.or(liar.weight) != Some(0.0) {
            assert_ne!(honest.0, without.0, "{}: an update that enters changes the state", spec.name);
        }
        for (what, lie, expected) in LIES {
            let (others, liar) = closed(&federation, &jobs, lied(&answers, lie));
            let failure = liar.failure.unwrap_or_else(|| panic!("{}: {what} was accepted", spec.name));
            assert!(expected(&failure), "{}: {what} is {failure}", spec.name);
            assert_eq!(others, without, "{}: {what} affected the aggregate", spec.name);
        }
        if federation.state.params.tensor("bn.running_var").is_some() {
            let lie = lied(&answers, |u| *u.params.values.last_mut().unwrap() = -1e-6);
            let (others, liar) = closed(&federation, &jobs, lie);
            assert!(matches!(liar.failure, Some(Failure::NegativeVariance { .. })), "{}", spec.name);
            assert_eq!(others, without, "{}: a negative variance affected the aggregate", spec.name);
        }
        for carried in federation.run.strategy.needs().carries {
            let name = carried.name;
            let put = |values: Vec<f32>| lied(&answers, move |u| u.carried.put(name, values.clone()));
            for wrong in [put(vec![f32::NAN; 6]), put(vec![0.0; 5]), lied(&answers, forget)] {
                let (others, liar) = closed(&federation, &jobs, wrong);
                let failure = liar.failure.unwrap();
                assert!(not_finite(&failure) || wrong_shape(&failure), "{}: {failure}", spec.name);
                assert_eq!(others, without, "{}: a carried vector affected the aggregate", spec.name);
            }
        }
    }
}

fn forget(upload: &mut Upload) {
    upload.carried = Memory::default();
}

#[test]
fn a_client_that_failed_is_recorded_with_its_reason() {
    for spec in ALL {
        let (federation, jobs, mut answers) = second_round(spec.name);
        let reason = Failure::Training("the loss became NaN in epoch 1".into());
        answers[LIAR as usize].1 = Err(reason.clone());
        let (others, liar) = closed(&federation, &jobs, answers.clone());
        assert_eq!(liar.failure, Some(reason));
        answers.retain(|(client, _)| *client != LIAR);
        assert_eq!(others, closed(&federation, &jobs, answers).0, "{}", spec.name);
    }
}

#[test]
fn answers_of_clients_that_were_not_asked_do_not_count() {
    // Five are left, the fewest that every rule takes.
    let six = [&SKEWED[..], &[[3, 2, 1]]].concat();
    for spec in ALL {
        let (federation, mut jobs, answers) = second_round_of(spec.name, &six);
        let absent: Answers = answers.iter().filter(|(client, _)| *client != 4).cloned().collect();
        jobs.retain(|job| job.client != 4);
        let without = closed(&federation, &jobs, absent);
        assert_eq!(closed(&federation, &jobs, answers), without, "{}", spec.name);
    }
}

#[test]
fn below_its_quorum_a_round_changes_nothing_and_its_record_says_so() {
    for spec in ALL {
        let (mut federation, jobs, answers) = second_round(spec.name);
        federation.run.quorum = 5;
        let mut expected = federation.state.clone();
        expected.round += 1;
        let record = federation.close(&jobs, lied(&answers, LIES[0].1));
        assert_eq!(federation.state.to_bytes(), expected.to_bytes(), "{}", spec.name);
        assert_eq!(record.unchanged.as_deref(), Some("4 of 5 needed updates were accepted"));
        assert!(record.clients.iter().all(|client| client.weight.is_none()) && record.clients.len() == 5);
        assert_eq!(record.effective_clients, None);
    }
}

#[test]
fn a_round_without_updates_changes_nothing_even_without_a_quorum() {
    for spec in ALL {
        let (mut federation, jobs, _) = second_round(spec.name);
        federation.run.quorum = 0;
        let mut expected = federation.state.clone();
        expected.round += 1;
        let record = federation.close(&jobs, vec![]);
        assert_eq!(federation.state.to_bytes(), expected.to_bytes(), "{}", spec.name);
        let needed = federation.run.strategy.combine.least_clients();
        let reason = format!("0 of {needed} needed updates were accepted");
        assert_eq!(record.unchanged, Some(reason), "{}", spec.name);
    }
}

#[test]
fn a_proximal_term_bounds_the_accepted_reach() {
    // lr mu = 1.5: the first step reaches lr, the second goes halfway back.
    let mut federation = skewed(run("fedprox:mu=15+fednova", local(2, 32, 0.1, 0.0)), &SKEWED);
    let jobs = plan(&federation.run, &federation.state);
    let answers = federation.answers(&jobs);
    assert_eq!(closed(&federation, &jobs, answers.clone()).1.failure, None);
    // What two steps without the term would have reached.
    let (_, liar) = closed(&federation, &jobs, lied(&answers, |upload| upload.report.reach = 0.2));
    assert!(liar.failure.is_some_and(|failure| reach(&failure)));
}

#[test]
fn a_proximal_term_so_strong_that_steps_oscillate_never_divides_by_zero() {
    // lr mu = 2: every second step returns to the start, where the reach is 0.
    let label = "fedprox:mu=20+fednova";
    let mut federation = skewed(run(label, local(2, 32, 0.1, 0.0)), &SKEWED);
    let before = federation.model().to_vec();
    let record = federation.round();
    assert!(record.clients.iter().all(|client| matches!(client.failure, Some(Failure::Reach { .. }))));
    assert_eq!(federation.model(), before);
}
