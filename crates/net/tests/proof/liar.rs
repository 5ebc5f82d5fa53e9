//! One client of four lies, with a valid certificate. In paper mode it destroys, takes over or misreports the model; in
//! hardened mode it does not.

use crate::puppet::{Puppet, counts};
use crate::stage::{Running, Stage, config};
use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::round::RoundRecord;
use fedtvd_core::train::Evaluation;
use fedtvd_net::client::Task;
use fedtvd_net::federation::Options;
use fedtvd_net::wire::Enrolment;
use fedtvd_run::directory::RunDirectory;

const CLIENTS: u32 = 4;
const LIAR: usize = 3;

fn serve(stage: &Stage, mode: &str, more: &[&str], options: Options) -> Running {
    let mode = format!("strategy.mode={mode}");
    let settings = [&["model.name=logistic", "cohort.fraction=1", &mode], more].concat();
    let options = Options { roster: Some((0..CLIENTS).collect()), workers: 1, ..options };
    stage.serve("run", &config(&settings), options)
}

async fn crowd(stage: &Stage, running: &Running) -> Vec<Puppet> {
    let mut puppets = Vec::new();
    for client in 0..CLIENTS {
        puppets.push(running.puppet(stage, client).await);
    }
    puppets
}

fn lines(stage: &Stage) -> Vec<RoundRecord> {
    RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap()
}

/// The largest value of the model after two rounds: one with an update of 3.4e38, then one in which the honest clients
/// fail, as they do on a broken model, and the liar sends a model of sevens.
async fn poisoned(stage: &Stage, mode: &str) -> f32 {
    let running = serve(stage, mode, &["rounds=3"], Options::default());
    let mut puppets = crowd(stage, &running).await;
    for puppet in &mut puppets {
        puppet.enrol().await.unwrap();
    }
    for (place, puppet) in puppets.iter_mut().enumerate() {
        let job = puppet.job().await;
        let mut upload = puppet.one_hot(&job);
        if place == LIAR {
            upload.params.values[5] = f32::MAX;
        }
        puppet.send(0, upload.to_bytes()).await.unwrap();
    }
    for (place, puppet) in puppets.iter_mut().enumerate() {
        let job = puppet.job().await;
        if place != LIAR {
            let run = puppet.welcome.run.clone();
            puppet.link.fail(&run, 1, "the loss became NaN in epoch 0".to_owned()).await.unwrap();
            continue;
        }
        let mut upload = puppet.one_hot(&job);
        upload.params.values.fill(7.0);
        puppet.send(1, upload.to_bytes()).await.unwrap();
    }
    let model = puppets[0].job().await.offer.params.values.clone();
    running.stop();
    model.into_iter().fold(0.0, |most, value| most.max(value.abs()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_update_and_a_lone_liar_decide_the_model_in_paper_mode_and_not_in_hardened_mode() {
    let stage = Stage::new(CLIENTS as usize);
    assert_eq!(poisoned(&stage, "paper").await, 7.0, "the liar's own model is the global one");
    assert!(lines(&stage)[0].clients[LIAR].weight.is_some());

    let stage = Stage::new(CLIENTS as usize);
    let largest = poisoned(&stage, "hardened").await;
    let lines = lines(&stage);
    let screened = lines[0].clients[LIAR].screened.as_ref().unwrap();
    // Honest values are at most 1, and the liar's weight at most 0.4; one value has all of its change.
    assert!(
        f64::from(largest) < 0.6 + 0.4 * screened.bound && screened.bound < 11.0,
        "{largest} {screened:?}"
    );
    assert!(screened.factor < 1e-37 && screened.part == "the model", "{screened:?}");
    assert_eq!(lines[1].unchanged.as_deref(), Some("1 of 3 needed updates were accepted"));
    assert_eq!(lines[0].model_hash, lines[1].model_hash);
}

/// Accuracy and median accuracy where three honest clients find a quarter of their 20 samples classified correctly, on a
/// model whose loss is NaN, and the liar claims that all of a million are.
async fn misreported(mode: &str) -> (Option<f64>, Option<f64>) {
    let (accuracy, median, loss) = misreported_with_loss(mode).await;
    assert_eq!(loss, None, "{mode}: the loss of honest clients is not finite");
    (accuracy, median)
}

async fn misreported_with_loss(mode: &str) -> (Option<f64>, Option<f64>, Option<f64>) {
    let stage = Stage::new(CLIENTS as usize);
    let options = Options { clients_evaluate: true, ..Options::default() };
    let running = serve(&stage, mode, &["rounds=1"], options);
    let mut puppets = crowd(&stage, &running).await;
    // In paper mode the operator's list allows a hold-out of 1,000.
    let claimed = if mode == "hardened" { 1_000_000 } else { 1000 };
    for (place, puppet) in puppets.iter_mut().enumerate() {
        let own = puppet.enrolment(&counts(puppet.client), &Reference::uniform(10), Ask::Distance);
        let holdout = if place == LIAR { claimed } else { 20 };
        puppet.link.enrol(Enrolment { holdout, ..own.clone() }).await.unwrap();
        let changed = puppet.link.enrol(Enrolment { holdout: holdout + 1, ..own }).await;
        assert!(changed.is_err(), "a hold-out is fixed at enrolment");
    }
    for puppet in &mut puppets {
        let job = puppet.job().await;
        let bytes = puppet.one_hot(&job).to_bytes();
        puppet.send(0, bytes).await.unwrap();
    }
    for (place, puppet) in puppets.iter_mut().enumerate() {
        let run = puppet.welcome.run.clone();
        while !matches!(puppet.link.pull(&run).await.unwrap(), Task::Evaluate(..)) {}
        let mut found = Evaluation::empty(10);
        if place == LIAR {
            found.confusion[0] = claimed;
        } else {
            (found.loss, found.confusion[0], found.confusion[1]) = (f64::NAN, 5, 15);
        }
        puppet.link.evaluate(&run, 0, found.into()).await.unwrap();
    }
    drop(puppets);
    tokio::task::block_in_place(|| running.finish());
    let line = lines(&stage).remove(0);
    (line.accuracy, line.median_accuracy, line.loss)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_liar_that_invents_samples_decides_the_accuracy_in_paper_mode_and_not_in_hardened_mode() {
    // 15 and 1000 of 1060.
    assert_eq!(misreported("paper").await, (Some(1015.0 / 1060.0), Some(0.25)));
    let (accuracy, median) = misreported("hardened").await;
    // One of four: 3/4 of 1/4 and 1/4 of 1.
    assert!((accuracy.unwrap() - 0.4375).abs() < 1e-12, "{accuracy:?}");
    assert_eq!(median, Some(0.25));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_histogram_of_a_million_samples_of_one_class_does_not_decide_the_aggregated_reference() {
    let stage = Stage::new(CLIENTS as usize);
    let running = serve(&stage, "hardened", &["labels.reference=aggregated", "rounds=1"], Options::default());
    let mut puppets = crowd(&stage, &running).await;
    let mut lie = vec![0; 10];
    lie[0] = 1_000_000;
    for (place, puppet) in puppets.iter_mut().enumerate() {
        let counts = if place == LIAR { lie.clone() } else { vec![10; 10] };
        let own = puppet.enrolment(&counts, &Reference::uniform(10), Ask::Histogram);
        // The operator listed 1,000 samples for each; a larger site is not refused, but counts as listed at most.
        puppet.link.enrol(own).await.unwrap();
    }
    let run = puppets[0].welcome.run.clone();
    let survey = loop {
        match puppets[0].link.pull(&run).await.unwrap() {
            Task::Survey(survey) => break survey,
            Task::Wait => {}
            other => panic!("{other:?} instead of a survey"),
        }
    };
    let reference: Reference = serde_json::from_str(&survey.reference).unwrap();
    // The median size is 100: 3/4 of 1/10 and 1/4 of 1.
    assert!((reference.shares()[0] - 0.325).abs() < 1e-12, "{reference:?}");
    running.stop();
}
