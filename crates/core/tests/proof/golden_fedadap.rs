//! Golden FedAdap: learning rates and the end of a round follow the losses on a hold-out; FedNova takes the reach into account.

use crate::federation::{local, quadratics, run, strategy};
use crate::vectors::{number, read, same};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::Params;
use fedtvd_core::round::{ClientData, Job, Report, Upload, plan};
use fedtvd_core::rules::{Task, Trained};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{Evaluation, Local, Optimizer, Pass, PassReport, Schedule, TrainFailure, Trainer};
use serde_json::Value;

/// A trainer whose gradient is 1 everywhere, and whose evaluations find given losses one after the other.
struct Scripted {
    losses: Vec<f64>,
    lrs: Vec<f64>,
    velocity: f32,
}

impl Scripted {
    fn new(losses: &[f64]) -> Self {
        Self { losses: losses.to_vec(), lrs: Vec::new(), velocity: 0.0 }
    }
}

impl Trainer for Scripted {
    fn pass(&mut self, params: &mut Params, _: &[u32], pass: &Pass<'_>) -> Result<PassReport, TrainFailure> {
        let Optimizer::Sgd(sgd) = pass.optimizer else { panic!("these tests use SGD") };
        if !pass.keep_state {
            self.velocity = 0.0;
        }
        self.velocity = sgd.momentum as f32 * self.velocity + 1.0;
        params.values.iter_mut().for_each(|w| *w -= sgd.lr as f32 * self.velocity);
        assert_eq!((pass.epochs, pass.first_epoch as usize), (1, self.lrs.len()));
        self.lrs.push(sgd.lr);
        Ok(PassReport { steps: 1, losses: [1.0; 2], statistics: None })
    }

    fn logits(&mut self, _: &Params, _: &[u32]) -> Result<Vec<f32>, TrainFailure> {
        unreachable!("FedAdap needs no logits")
    }

    fn gradient(&mut self, _: &Params, _: &[u32], _: &Pass<'_>) -> Result<Vec<f32>, TrainFailure> {
        unreachable!("FedAdap needs no gradient")
    }

    fn evaluate(&mut self, _: &Params, rows: &[u32], _: Option<&[f32]>) -> Result<Evaluation, TrainFailure> {
        assert_eq!(rows, [7, 8], "the hold-out");
        // A sum over both samples.
        let loss = 2.0 * self.losses[self.lrs.len() - 1];
        Ok(Evaluation { loss, confusion: vec![2] })
    }
}

/// What a client with a hold-out of two samples trains.
fn trained(label: &str, job: (&Params, &Local), memory: Option<&Memory>, trainer: &mut Scripted) -> Trained {
    let client = ClientData { rows: vec![0], holdout: vec![7, 8], counts: vec![1] };
    let (carried, (base, local)) = (Memory::default(), job);
    let pass = local.pass(Key::of(1), None, None);
    let task = Task { base, carried: &carried, client: &client, local, pass };
    strategy(label).local.train(&task, memory, trainer).unwrap()
}

fn start() -> Params {
    crate::federation::vector(&[0.0])
}

fn order() -> Local {
    local(11, 8, 0.01, 0.0)
}

#[test]
fn learning_rates_and_the_last_epoch_are_the_golden_ones() {
    let golden = read(include_str!("../golden/fedadap.json"));
    for case in ["plateau", "improving"] {
        let trace = golden[case]["trace"].as_array().unwrap();
        let column = |name: &str| trace.iter().map(|epoch| number(&epoch[name])).collect::<Vec<f64>>();
        let mut trainer = Scripted::new(&column("val_loss"));
        let trained = trained("fedadap", (&start(), &order()), None, &mut trainer);
        same(&trainer.lrs, &Value::from(column("lr_used")), case);
        // The golden trace ends where the round does, or with its eleventh epoch.
        let last = golden[case]["stopped_after_epoch"].as_u64().unwrap_or(11);
        assert_eq!((trained.steps, trainer.lrs.len() as u64), (last, last), "{case}");
        same(&[trained.reach], &Value::from(vec![trainer.lrs.iter().sum::<f64>()]), "Σ η_j");
        let memory = trained.memory.arrays().count();
        assert_eq!(memory, 0, "everything starts anew in each round");
    }
}

#[test]
fn the_first_test_is_relative_and_the_second_one_absolute() {
    // Large losses that fall by 0.5 % of the best one: no progress for the learning rate, but enough not to stop.
    let large: Vec<f64> = (0..11).map(|epoch| 100.0 * 0.995f64.powi(epoch)).collect();
    let mut trainer = Scripted::new(&large);
    trained("fedadap:lr_threshold=0.06", (&start(), &order()), None, &mut trainer);
    assert_eq!((trainer.lrs.len(), trainer.lrs[10] < 0.01), (11, true));
    // Small losses that fall by 5 % of the best one but by less than 0.01: the other way round.
    let small: Vec<f64> = (0..11).map(|epoch| 0.01 * 0.95f64.powi(epoch)).collect();
    let mut trainer = Scripted::new(&small);
    trained("fedadap", (&start(), &order()), None, &mut trainer);
    assert_eq!(trainer.lrs, [0.01; 7]);
}

#[test]
fn a_learning_rate_falls_to_its_floor_and_never_rises_to_it() {
    let flat = [1.0; 11];
    let lrs = |label: &str, lr: f64| {
        let mut trainer = Scripted::new(&flat);
        trained(label, (&start(), &local(11, 8, lr, 0.0)), None, &mut trainer);
        trainer.lrs
    };
    let label = "fedadap:lr_patience=0:factor=0.1:min_lr=0.002:stop_patience=1000";
    assert_eq!(lrs(label, 0.01)[..4], [0.01, 0.01, 0.002, 0.002]);
    assert_eq!(lrs(label, 0.001), [0.001; 11]);
}

#[test]
fn a_kept_learning_rate_is_taken_up_again_within_that_of_the_round() {
    let label = "fedadap:persist_lr=true";
    let flat = [1.0; 7];
    let mut first = Scripted::new(&flat);
    let memory = trained(label, (&start(), &order()), None, &mut first).memory;
    assert_eq!(memory.f64("lr"), Some(&[0.009000000000000001][..]));
    let next = |lr: f64| {
        let mut trainer = Scripted::new(&flat);
        trained(label, (&start(), &local(11, 8, lr, 0.0)), Some(&memory), &mut trainer);
        trainer.lrs[0]
    };
    assert_eq!((next(0.01), next(0.005)), (0.009000000000000001, 0.005));
}

/// Two clients with gradients of one stop after 8 and after 11 epochs: FedAvg would move by the mean of their own ways,
/// FedNova by the mean reach times the mean normalised change.
#[test]
fn fednova_divides_by_the_reach_of_rounds_that_end_early() {
    let golden = read(include_str!("../golden/fedadap.json"));
    let losses = |case: &str| -> Vec<f64> {
        golden[case]["trace"].as_array().unwrap().iter().map(|epoch| number(&epoch["val_loss"])).collect()
    };
    let problem = vec![(vec![1.0], vec![0.0]); 2];
    for momentum in [0.0, 0.9] {
        let order = local(11, 8, 0.01, momentum);
        let mut federation =
            quadratics(run("fedadap+fednova", order), problem.clone(), &[0.5], &[vec![2], vec![6]]);
        let jobs = plan(&federation.run, &federation.state);
        // The second client's gradient is 3, the first one's 1.
        let answer = |(job, case, gradient): (&Job, &str, f32)| {
            let mut trainer = Scripted::new(&losses(case));
            let Trained { mut params, steps, reach, losses, .. } =
                trained("fedadap", (&job.offer.params, &job.offer.local), None, &mut trainer);
            params.values[0] = 0.5 + gradient * (params.values[0] - 0.5);
            let report = Report { round: 0, steps, reach, losses, remembers: true, branch: 0 };
            let upload = Upload { client: job.client, params, carried: Memory::default(), report };
            (reach, (job.client, Ok(upload)))
        };
        let (reaches, answers): (Vec<f64>, Vec<_>) =
            [(&jobs[0], "plateau", 1.0), (&jobs[1], "improving", 3.0)].into_iter().map(answer).unzip();
        assert!(reaches[0] < reaches[1], "{reaches:?}");
        if momentum == 0.0 {
            // 6 epochs with 0.01 and 2 with 0.009; 11 with 0.01.
            same(&reaches, &Value::from(vec![0.078, 0.11]), "reaches");
        }
        let record = federation.close(&jobs, answers);
        assert!(record.clients.iter().all(|client| client.failure.is_none()), "{record:?}");
        let effective = 0.25 * reaches[0] + 0.75 * reaches[1];
        let next = 0.5 - effective * (0.25 * 1.0 + 0.75 * 3.0);
        assert!((f64::from(federation.model()[0]) - next).abs() < 1e-6, "{momentum}");
    }
}

#[test]
fn a_kept_learning_rate_passes_the_servers_checks_and_a_smaller_one_does_not() {
    for (label, reach, accepted) in [
        ("fedadap:persist_lr=true", 0.0001, true),
        ("fedadap:persist_lr=true", 0.00009, false),
        ("fedadap", 0.0001, false),
    ] {
        let order = local(11, 8, 0.01, 0.0);
        let problem = vec![(vec![1.0], vec![0.0])];
        let mut federation = quadratics(run(label, order), problem, &[0.5], &[vec![2]]);
        let jobs = plan(&federation.run, &federation.state);
        let mut upload = crate::federation::upload(&jobs[0], &[0.4], 1);
        upload.report.reach = reach;
        let record = federation.close(&jobs, vec![(0, Ok(upload))]);
        assert_eq!(record.clients[0].failure.is_none(), accepted, "{label} {reach}");
    }
}

#[test]
fn a_round_with_a_learning_rate_of_its_own_starts_from_that() {
    let order = Local { schedule: Schedule::exponential(0.5), ..order() }.in_round(1);
    let mut trainer = Scripted::new(&[1.0; 7]);
    trained("fedadap", (&start(), &order), None, &mut trainer);
    assert_eq!(trainer.lrs[0], 0.005);
}
