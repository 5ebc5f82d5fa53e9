//! The same bits before and after a resume, wherever a run is stopped.

use crate::federation::{Answers, Federation, SKEWED, local, run, skewed};
use fedtvd_core::labels::Statistic;
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{ClientFailure, Job, RoundRecord, State, Upload, plan, restored};
use fedtvd_core::strategy::ALL;
use fedtvd_core::train::{Adam, ClassWeights, Local, Optimizer, Schedule};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Three of five clients in a round.
fn partial(label: &str) -> Federation {
    let mut order = run(label, local(2, 4, 0.1, 0.9));
    order.fraction = 0.6;
    order.local.schedule = Schedule::exponential(0.9);
    skewed(order, &SKEWED)
}

/// The same federation in a new process: everything that changes is decoded from bytes.
fn reloaded(old: &Federation, label: &str) -> Federation {
    let mut new = partial(label);
    let layout = Arc::clone(&old.state.params.layout);
    new.state = State::from_bytes(&old.state.to_bytes(), &layout).unwrap();
    let memory = |(at, memory): (_, &Memory)| (at, Memory::from_bytes(&memory.to_bytes()).unwrap());
    new.memories = old.memories.iter().map(|(at, kept)| memory((*at, kept))).collect::<BTreeMap<_, _>>();
    new
}

/// A round whose jobs and updates travel as bytes, jobs as a head and the numbers of their offer.
fn remote_round(federation: &mut Federation) -> RoundRecord {
    let layout = Arc::clone(&federation.state.params.layout);
    let jobs = plan(&federation.run, &federation.state);
    let sent: Vec<Vec<u8>> = jobs.iter().map(|job| [job.head(), job.numbers()].concat()).collect();
    assert_eq!(sent, jobs.iter().map(Job::to_bytes).collect::<Vec<_>>());
    let sent: Vec<Job> = sent.iter().map(|bytes| Job::from_bytes(bytes, &layout).unwrap()).collect();
    let answers: Answers = federation
        .answers(&sent)
        .into_iter()
        .map(|(client, upload)| {
            (client, upload.map(|upload| Upload::from_bytes(&upload.to_bytes(), &layout).unwrap()))
        })
        .collect();
    federation.close(&jobs, answers)
}

#[test]
fn rounds_from_a_reloaded_state_give_the_same_bits() {
    for label in ALL.iter().map(|spec| spec.name).chain(["scaffold+fedtvd+balanced+fedadam"]) {
        let (mut straight, mut stopped) = (partial(label), partial(label));
        for round in 0..8 {
            if round % 2 == 1 {
                stopped = reloaded(&stopped, label);
                assert_eq!(restored::check(&stopped.run, &stopped.state), Ok(()), "{label}, round {round}");
            }
            assert_eq!(stopped.round(), straight.round(), "{label}, round {round}");
            assert_eq!(stopped.state.to_bytes(), straight.state.to_bytes(), "{label}, round {round}");
        }
    }
}

#[test]
fn jobs_and_updates_that_travel_as_bytes_give_the_same_bits() {
    for spec in ALL {
        let (mut near, mut far) = (partial(spec.name), partial(spec.name));
        for _ in 0..4 {
            assert_eq!(remote_round(&mut far), near.round(), "{}", spec.name);
            assert_eq!(far.state.to_bytes(), near.state.to_bytes(), "{}", spec.name);
        }
    }
}

#[test]
fn class_weights_travel_in_jobs_and_leave_no_trace_in_jobs_without_them() {
    let (mut near, mut far) = (partial("fedavg"), partial("fedavg"));
    let layout = Arc::clone(&near.state.params.layout);
    let header = |federation: &Federation| {
        let head = plan(&federation.run, &federation.state)[0].head();
        String::from_utf8_lossy(&head).contains("class_weights")
    };
    assert!(!header(&near));
    for weights in [ClassWeights::Inverse, ClassWeights::given(vec![0.1, 5.0, 1.0]).unwrap()] {
        (near.run.class_weights, far.run.class_weights) = (weights.clone(), weights.clone());
        assert!(header(&far));
        let job = plan(&far.run, &far.state)[0].to_bytes();
        assert_eq!(Job::from_bytes(&job, &layout).unwrap().offer.class_weights, weights);
        assert_eq!(remote_round(&mut far), near.round());
        assert_eq!(far.state.to_bytes(), near.state.to_bytes());
    }
}

#[test]
fn options_of_training_travel_in_jobs_and_leave_no_trace_in_jobs_without_them() {
    let (mut near, mut far) = (partial("fedprox"), partial("fedprox"));
    let layout = Arc::clone(&near.state.params.layout);
    let head = |federation: &Federation| {
        let head = plan(&federation.run, &federation.state)[0].head();
        String::from_utf8_lossy(&head).into_owned()
    };
    // Older clients refuse jobs with fields that they do not know.
    let fields = ["adam", "clip", "label_smoothing"].map(|field| format!("\\\"{field}\\\":"));
    assert!(fields.iter().all(|field| !head(&near).contains(field)), "{}", head(&near));
    let adam = Adam { lr: 0.01, beta1: 0.8, beta2: 0.95, eps: 1e-6, weight_decay: 0.1 };
    for optimizer in [Optimizer::Adam(adam), Optimizer::AdamW(adam)] {
        let local = Local { optimizer, clip: Some(0.5), smoothing: 0.1, ..near.run.local };
        (near.run.local, far.run.local) = (local, local);
        assert!(fields.iter().all(|field| head(&far).contains(field)), "{}", head(&far));
        let jobs = plan(&far.run, &far.state);
        assert_eq!(Job::from_bytes(&jobs[0].to_bytes(), &layout).unwrap().offer.local, jobs[0].offer.local);
        assert_eq!(remote_round(&mut far), near.round());
        assert_eq!(far.state.to_bytes(), near.state.to_bytes());
    }
}

#[test]
fn a_client_refuses_a_job_whose_strategy_needs_another_optimiser() {
    let adam = Adam { lr: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.0 };
    for spec in ALL {
        let mut federation = partial(spec.name);
        federation.run.local.optimizer = Optimizer::Adam(adam);
        let jobs = plan(&federation.run, &federation.state);
        let needs_sgd = federation.run.strategy.needs_sgd();
        for (_, answer) in federation.answers(&jobs) {
            match (&answer, needs_sgd) {
                (Ok(_), None) => {}
                (Err(ClientFailure::BadJob(why)), Some(reason)) => assert!(why.contains(reason), "{why}"),
                _ => panic!("{}: {answer:?}", spec.name),
            }
        }
    }
}

#[test]
fn a_crash_between_plan_and_close_loses_nothing() {
    for spec in ALL {
        let (mut straight, mut crashed) = (partial(spec.name), partial(spec.name));
        for _ in 0..3 {
            // The jobs were done, but the answers were lost; the clients' memories of them must not be used.
            let jobs = plan(&crashed.run, &crashed.state);
            drop(crashed.answers(&jobs));
            assert_eq!(crashed.round(), straight.round(), "{}", spec.name);
            assert_eq!(crashed.state.to_bytes(), straight.state.to_bytes(), "{}", spec.name);
        }
    }
}

#[test]
fn a_memory_advances_only_with_an_accepted_update() {
    for spec in ALL {
        let mut federation = partial(spec.name);
        federation.run.fraction = 1.0;
        federation.round();
        let remembers = federation.run.strategy.needs().remembers;
        assert_eq!(federation.state.accepted.len(), if remembers { 5 } else { 0 }, "{}", spec.name);
        let jobs = plan(&federation.run, &federation.state);
        let mut answers = federation.answers(&jobs);
        answers[1].1.as_mut().unwrap().params.values[0] = f32::NAN;
        federation.close(&jobs, answers);
        let next = plan(&federation.run, &federation.state);
        let named: Vec<Option<u32>> = next.iter().map(|job| job.accepted).collect();
        let expected = [Some(1), Some(0), Some(1), Some(1), Some(1)];
        assert_eq!(named, if remembers { expected } else { [None; 5] }, "{}", spec.name);
    }
}

#[test]
fn a_client_that_lost_its_memory_starts_without_one_and_the_record_says_so() {
    for spec in ALL {
        let mut federation = partial(spec.name);
        federation.run.fraction = 1.0;
        federation.round();
        federation.memories.retain(|(client, _), _| *client != 3);
        let record = federation.round();
        let strategy = &federation.run.strategy;
        // A client without its own part of the model has nothing to train, until it gets the initial values again.
        let stops = strategy.sharing.stays().is_some();
        for client in record.clients {
            let lost = client.client == 3;
            assert_eq!(client.forgot, lost && !stops && strategy.needs().remembers, "{}", spec.name);
            let failure = (lost && stops).then_some(ClientFailure::LostOwnPart);
            assert_eq!(client.failure, failure, "{}", spec.name);
        }
        if stops {
            let record = federation.round();
            assert!(record.clients.iter().all(|client| client.failure.is_none()), "{}", spec.name);
        }
    }
}

#[test]
fn a_state_that_does_not_fit_its_run_is_refused_with_what_is_wrong() {
    let refusal = |label: &str, damage: &dyn Fn(&mut State)| {
        let mut federation = partial(label);
        federation.round();
        damage(&mut federation.state);
        restored::check(&federation.run, &federation.state).unwrap_err().to_string()
    };
    let short = refusal("centred-clipping", &|state| state.combining.put("centre", vec![0f32; 1]));
    assert!(short.starts_with("the combination's vector \"centre\" has 1 numbers; "), "{short}");
    let long = refusal("feddyn", &|state| state.server.put("h", vec![0f64; 1000]));
    assert!(long.starts_with("the server's vector \"h\" has 1000 numbers; "), "{long}");
    let lost = refusal("scaffold", &|state| state.carried = Arc::default());
    assert!(lost.starts_with("the carried vector \"control\" has 0 numbers; "), "{lost}");
    let profile = refusal("joint", &|state| state.roster[0].statistic = Statistic::Nothing);
    assert!(profile.starts_with("its roster is wrong: client 0 sent "), "{profile}");
    let classes = refusal("joint", &|state| state.roster[0].statistic = Statistic::Histogram(vec![1, 2]));
    assert!(classes.contains("counts of 2 classes"), "{classes}");
    let twice = refusal("fedavg", &|state| state.roster[1].client = state.roster[0].client);
    assert_eq!(twice, "client 0 is not in its place in the roster");
    let nan = refusal("fedavgm", &|state| {
        let mut m = state.server.f64("m").map(<[f64]>::to_vec).unwrap();
        m[0] = f64::NAN;
        state.server.put("m", m);
    });
    assert!(nan.contains("the server's memory m would hold NaN"), "{nan}");
}
