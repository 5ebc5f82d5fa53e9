//! No finite update moves the model further than the bound of its round, under any strategy; a result that is not
//! finite, or that rests on too few clients, changes nothing.

use crate::federation::{Answers, Federation, SKEWED, local, run, skewed, upload, vector};
use crate::in_memory::InMemory;
use fedtvd_core::labels::{Reference, Statistic};
use fedtvd_core::round::hardened::reference;
use fedtvd_core::round::{ClientFailure, Job, Mode, Profile, RoundRecord, Run, State, Upload, close, plan};
use fedtvd_core::strategy::ALL;
use proptest::collection::vec;
use proptest::prelude::*;

const LIAR: u32 = 2;

/// Clients of very different sizes: a bound that none of them reaches by honest training.
fn hardened(label: &str) -> Run {
    Run { mode: Mode::Hardened, screen: 20.0, ..run(label, local(2, 4, 0.1, 0.9)) }
}

/// Every strategy, and compositions of rules that see an update at different places.
fn labels() -> Vec<String> {
    let alone = ALL.iter().map(|spec| spec.name.to_owned());
    alone.chain(["fedtvd+fednova+fedadam", "fedprox+fedtvd+balanced"].map(str::to_owned)).collect()
}

/// A federation after one honest round, with the jobs and honest answers of the next.
fn second_round(run: Run) -> (Federation, Vec<Job>, Answers) {
    let mut federation = skewed(run, &SKEWED);
    let record = federation.round();
    assert_eq!(record.unchanged, None);
    let jobs = plan(&federation.run, &federation.state);
    let answers = federation.answers(&jobs);
    (federation, jobs, answers)
}

fn closed(federation: &Federation, jobs: &[Job], answers: Answers) -> (State, RoundRecord) {
    let updates = InMemory::new(&federation.run, &federation.state, jobs, answers);
    close(&federation.run, &federation.state, jobs, &updates).unwrap()
}

fn with_lie(answers: &Answers, lie: impl Fn(&mut Upload)) -> Answers {
    let mut answers = answers.clone();
    let liar = answers.iter_mut().find(|(client, _)| *client == LIAR).unwrap();
    lie(liar.1.as_mut().unwrap());
    answers
}

/// The change of the first `trainable` values.
fn moved(before: &State, after: &State) -> f64 {
    let pairs = before.params.trainable().iter().zip(after.params.trainable());
    pairs.map(|(&w, &x)| (f64::from(x) - f64::from(w)).powi(2)).sum::<f64>().sqrt()
}

/// The state apart from its round.
fn content(state: &State) -> Vec<u8> {
    State { round: 0, ..state.clone() }.to_bytes()
}

#[test]
fn one_huge_value_counts_as_an_update_at_the_bound_or_not_at_all() {
    for label in labels() {
        let (federation, jobs, answers) = second_round(hardened(&label));
        let rejects = federation.run.strategy.needs_roster();
        for place in [3, federation.model().len() - 1] {
            let lies = with_lie(&answers, |upload| upload.params.values[place] = f32::MAX);
            let (next, record) = closed(&federation, &jobs, lies);
            let liar = &record.clients[LIAR as usize];
            if rejects {
                assert!(matches!(liar.failure, Some(ClientFailure::BeyondBound { .. })), "{label}: {liar:?}");
                let screened = liar.screened.as_ref().unwrap();
                assert!(screened.factor == 0.0 && screened.norm > 1e30 && screened.bound < 1e3, "{liar:?}");
                let without = answers.iter().filter(|(client, _)| *client != LIAR).cloned().collect();
                let (honest, _) = closed(&federation, &jobs, without);
                assert_eq!(next.params, honest.params, "{label}");
                assert_eq!(next.carried, honest.carried, "{label}");
                continue;
            }
            let screened = liar.screened.clone().unwrap_or_else(|| panic!("{label}: {liar:?}"));
            assert!(screened.factor < 1e-30 && screened.norm > 1e30, "{label}: {screened:?}");
            // The same state as if the liar had sent what was left of its update.
            let scaled = with_lie(&answers, |upload| {
                upload.params.values[place] = f32::MAX;
                for (x, &w) in upload.params.values.iter_mut().zip(&federation.state.params.values) {
                    *x = (f64::from(w) + screened.factor * (f64::from(*x) - f64::from(w))) as f32;
                }
            });
            let (expected, record) = closed(&federation, &jobs, scaled);
            assert_eq!(next.params, expected.params, "{label}");
            assert_eq!((&next.server, &next.weighting), (&expected.server, &expected.weighting), "{label}");
            let within = record.clients[LIAR as usize].screened.as_ref();
            // Rounding to f32 may leave it a little above the bound.
            assert!(within.is_none_or(|screened| screened.factor > 1.0 - 1e-6), "{label}: {within:?}");
        }
    }
}

#[test]
fn in_paper_mode_the_same_value_destroys_the_model() {
    let (mut federation, jobs, answers) = second_round(hardened("fedavg"));
    federation.run.mode = Mode::Paper;
    let lies = with_lie(&answers, |upload| upload.params.values[3] = f32::MAX);
    let (next, _) = closed(&federation, &jobs, lies);
    assert!(moved(&federation.state, &next) > 1e37);
}

#[test]
fn a_huge_carried_change_is_rejected_with_its_model_and_c_stays_the_mean_of_the_clients() {
    let (mut federation, jobs, answers) = second_round(hardened("scaffold"));
    let lies = with_lie(&answers, |upload| upload.carried.put("control", vec![1e30f32; 6]));
    let record = federation.close(&jobs, lies);
    let failure = record.clients[LIAR as usize].failure.as_ref().unwrap().to_string();
    assert!(failure.starts_with("the change of control has norm"), "{failure}");
    let c = federation.state.carried.f32("control").unwrap();
    for (place, &c) in c.iter().enumerate() {
        let of = |client| federation.memory(client).unwrap().f32("control").unwrap()[place];
        let mean = (0..5).map(|client| f64::from(of(client))).sum::<f64>() / 5.0;
        assert!((f64::from(c) - mean).abs() < 1e-6, "{c} is not {mean}");
    }
}

#[test]
fn a_claim_of_one_step_does_not_amplify_an_update_under_fednova() {
    let (mut federation, jobs, answers) = second_round(hardened("fednova"));
    federation.run.screen = 6.0;
    let (honest, _) = closed(&federation, &jobs, answers.clone());
    let tiny = |upload: &mut Upload| {
        (upload.report.steps, upload.report.reach) = (1, jobs[0].offer.local.reaches(0.0, 22)[0]);
    };
    let (next, record) = closed(&federation, &jobs, with_lie(&answers, tiny));
    assert!(record.clients[LIAR as usize].screened.is_some(), "{record:?}");
    federation.run.mode = Mode::Paper;
    let (fooled, _) = closed(&federation, &jobs, with_lie(&answers, tiny));
    let [honest, next, fooled] = [honest, next, fooled].map(|state| moved(&federation.state, &state));
    assert!(next < 2.0 * honest && fooled > 4.0 * honest, "{honest} {next} {fooled}");
}

/// Clients of 10 samples each with these models, from a model of zeros.
fn round_of(run: &Run, models: &[Vec<f32>]) -> (State, State, RoundRecord) {
    let width = models[0].len();
    let mut state = State::new(run, vector(&vec![0.0; width]), Reference::uniform(2));
    for client in 0..models.len() as u32 {
        let statistic = run.strategy.asks().answer(&[5, 5], &state.reference);
        state.enrol(run, Profile::new(client, 10, statistic)).unwrap();
    }
    let jobs = plan(run, &state);
    let answers = jobs.iter().zip(models).map(|(job, model)| (job.client, Ok(upload(job, model, 1))));
    let updates = InMemory::new(run, &state, &jobs, answers.collect());
    let (next, record) = close(run, &state, &jobs, &updates).unwrap();
    (state, next, record)
}

proptest! {
    #[test]
    fn an_update_that_counts_has_at_most_the_norm_of_the_bound(
        honest in vec(vec(-1.0..1.0f32, 4), 2..10),
        lie in vec(prop_oneof![-1e3..1e3f32, any::<f32>().prop_filter("finite", |x| x.is_finite())], 4),
        screen in 0.5..5.0f64,
    ) {
        let models: Vec<Vec<f32>> = honest.iter().cloned().chain([lie]).collect();
        for label in ["fedavg", "fedtvd", "fednova", "median"] {
            let run = Run { mode: Mode::Hardened, screen, ..run(label, local(1, 10, 0.1, 0.0)) };
            let (before, after, record) = round_of(&run, &models);
            let mut norms: Vec<f64> = record.clients.iter().map(|client| client.norm.unwrap()).collect();
            norms.sort_by(f64::total_cmp);
            let middle = (norms.len() - 1) / 2;
            let median = norms[middle];
            let mut gaps: Vec<f64> = norms.iter().map(|norm| (norm - median).abs()).collect();
            gaps.sort_by(f64::total_cmp);
            let bound = median + (screen * gaps[middle]).max(0.5 * median);
            for client in &record.clients {
                let factor = client.screened.as_ref().map_or(1.0, |screened| screened.factor);
                prop_assert!(factor * client.norm.unwrap() <= bound * (1.0 + 1e-9), "{} {:?}", label, client);
            }
            if label != "median" {
                // A mean of changes of at most this norm, each rounded to f32.
                prop_assert!(moved(&before, &after) <= bound * (1.0 + 1e-5) + 1e-6, "{}", label);
            }
        }
    }

    #[test]
    fn without_an_update_beyond_the_bound_screening_changes_no_bit(
        honest in vec(vec(0.95..1.05f32, 4), 3..10),
    ) {
        for label in labels() {
            let screened = Run { mode: Mode::Hardened, ..run(&label, local(1, 10, 0.1, 0.0)) };
            let open = Run { screen: 1e6, ..screened.clone() };
            let (_, one, _) = round_of(&screened, &honest);
            let (_, other, _) = round_of(&open, &honest);
            prop_assert_eq!(one.to_bytes(), other.to_bytes(), "{}", label);
        }
    }
}

#[test]
fn a_result_that_is_not_finite_leaves_the_entire_state_unchanged_in_every_mode() {
    let huge = |upload: &mut Upload| upload.params.values[0] = f32::MAX;
    let control = |upload: &mut Upload| upload.carried.put("control", vec![f32::MAX; 6]);
    for (label, lie, what) in [
        ("fedavg:server_lr=10", &huge as &dyn Fn(&mut Upload), "first.weight"),
        ("fednova", &huge, "first.weight"),
        ("scaffold", &control, "the carried vector control"),
    ] {
        for mode in [Mode::Paper, Mode::Hardened] {
            let (mut federation, jobs, mut answers) = second_round(hardened(label));
            (federation.run.mode, federation.run.screen) = (mode, f64::MAX);
            let uploads = answers.iter_mut().filter_map(|(_, answer)| answer.as_mut().ok());
            uploads.for_each(lie);
            if label == "scaffold" {
                // c grows by the weighted sum of the changes: it is at the limit after one round, and beyond it after two.
                let record = federation.close(&jobs, answers.clone());
                assert_eq!(record.unchanged, None);
                let uploads = answers.iter_mut().filter_map(|(_, answer)| answer.as_mut().ok());
                uploads.for_each(|upload| upload.report.round += 1);
            }
            let (next, record) = closed(&federation, &plan(&federation.run, &federation.state), answers);
            let expected = format!("after this round {what} would hold inf at 0");
            assert_eq!(record.unchanged, Some(expected), "{label} {mode:?}");
            assert_eq!(content(&next), content(&federation.state), "{label} {mode:?}");
            assert_eq!(next.round, federation.state.round + 1);
            assert!(record.clients.iter().all(|client| client.weight.is_none()), "{label}");
        }
    }
}

#[test]
fn a_liar_that_is_alone_in_its_round_cannot_put_its_own_model_in_place() {
    for (mode, changed) in [(Mode::Paper, true), (Mode::Hardened, false)] {
        let (mut federation, jobs, answers) = second_round(hardened("fedtvd"));
        federation.run.mode = mode;
        // The honest clients fail, as they do on a model that the liar has broken.
        let failed = |(client, answer): (u32, _)| match client {
            LIAR => (client, answer),
            _ => (client, Err(ClientFailure::Training("the loss became NaN in epoch 0".to_owned()))),
        };
        let (next, record) = closed(&federation, &jobs, answers.into_iter().map(failed).collect());
        assert_eq!(content(&next) != content(&federation.state), changed, "{mode:?}");
        assert_eq!(record.unchanged.is_none(), changed, "{mode:?}: {:?}", record.unchanged);
    }
}

#[test]
fn hardened_rounds_need_three_clients_and_half_of_the_cohort() {
    let models = |count: usize| vec![vec![1.0f32]; count];
    for (cohort, answers, quorum) in [(3, 2, 3), (5, 3, 3), (10, 4, 5), (10, 5, 5), (11, 5, 6)] {
        let run = Run { mode: Mode::Hardened, ..run("fedavg", local(1, 10, 0.1, 0.0)) };
        let mut state = State::new(&run, vector(&[0.0]), Reference::uniform(2));
        for client in 0..cohort {
            state.enrol(&run, Profile::new(client, 10, Statistic::Nothing)).unwrap();
        }
        let jobs = plan(&run, &state);
        let answered = jobs.iter().take(answers).zip(models(answers));
        let answered = answered.map(|(job, model)| (job.client, Ok(upload(job, &model, 1)))).collect();
        let updates = InMemory::new(&run, &state, &jobs, answered);
        let (next, record) = close(&run, &state, &jobs, &updates).unwrap();
        let expected =
            (answers < quorum).then(|| format!("{answers} of {quorum} needed updates were accepted"));
        assert_eq!(record.unchanged, expected, "{answers} of {cohort}");
        assert_eq!(content(&next) == content(&state), answers < quorum, "{answers} of {cohort}");
    }
}

#[test]
fn extra_clients_join_the_cohort_and_are_not_needed() {
    let plain = Run { mode: Mode::Hardened, fraction: 0.4, ..run("fedavg", local(1, 10, 0.1, 0.0)) };
    let mut state = State::new(&plain, vector(&[0.0]), Reference::uniform(2));
    for client in 0..10 {
        state.enrol(&plain, Profile::new(client, 10, Statistic::Nothing)).unwrap();
    }
    let run = Run { extra: 5, ..plain.clone() };
    let (cohort, jobs) = (plan(&plain, &state), plan(&run, &state));
    assert_eq!((cohort.len(), jobs.len()), (4, 9));
    assert!(cohort.iter().all(|job| jobs.iter().any(|asked| asked.client == job.client)));
    // Four of nine would not be half of the clients asked.
    let answered = jobs.iter().take(4).map(|job| (job.client, Ok(upload(job, &[1.0], 1)))).collect();
    let (_, record) = close(&run, &state, &jobs, &InMemory::new(&run, &state, &jobs, answered)).unwrap();
    assert_eq!((record.unchanged, record.extra), (None, Some(5)));
    let late = record.clients.iter().filter(|client| client.failure == Some(ClientFailure::Absent));
    assert_eq!(late.count(), 5);
    // More than there are are not asked.
    let all = Run { extra: 100, ..plain };
    assert_eq!(plan(&all, &state).len(), 10);
}

#[test]
fn one_enrolment_of_a_million_samples_does_not_decide_the_aggregated_reference() {
    let honest: [u64; 2] = [50, 50];
    let liar: [u64; 2] = [1_000_000, 0];
    let clients = [(100, honest.as_slice()), (100, &honest), (100, &honest), (1_000_000, &liar)];
    let paper = reference(Mode::Paper, &clients).unwrap();
    assert!(paper.shares()[0] > 0.999, "{paper:?}");
    // Capped at the median of 100, the liar is one of four: 3/4 of 1/2 and 1/4 of 1.
    let hardened = reference(Mode::Hardened, &clients).unwrap();
    assert!((hardened.shares()[0] - 0.625).abs() < 1e-12, "{hardened:?}");
    // A size listed for it counts, too: min(10, 100) of 310.
    let listed = [(100, honest.as_slice()), (100, &honest), (100, &honest), (10, &liar)];
    let hardened = reference(Mode::Hardened, &listed).unwrap();
    assert!((hardened.shares()[0] - (150.0 + 10.0) / 310.0).abs() < 1e-12, "{hardened:?}");
}

#[test]
fn clients_with_memory_whose_norms_grow_are_rejected_for_a_while_and_not_for_ever() {
    let run = Run { mode: Mode::Hardened, ..run("scaffold", local(1, 10, 0.1, 0.0)) };
    let mut state = State::new(&run, vector(&[0.0]), Reference::uniform(2));
    for client in 0..4 {
        state.enrol(&run, Profile::new(client, 10, Statistic::Nothing)).unwrap();
    }
    let mut unchanged = Vec::new();
    for round in 0..12 {
        let jobs = plan(&run, &state);
        let change = if round < 5 { 1.0 } else { 4.0 };
        let answers = jobs.iter().map(|job| {
            let mut upload = upload(job, &[state.params.values[0] + change], 1);
            upload.carried.put("control", vec![change]);
            (job.client, Ok(upload))
        });
        let updates = InMemory::new(&run, &state, &jobs, answers.collect());
        let (next, record) = close(&run, &state, &jobs, &updates).unwrap();
        unchanged.push(record.unchanged.is_some());
        state = next;
    }
    assert!(unchanged[5] && !unchanged[..5].contains(&true), "{unchanged:?}");
    assert!(!unchanged[9..].contains(&true), "the history has followed: {unchanged:?}");
}
