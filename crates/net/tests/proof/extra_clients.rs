//! Over-selection: a round asks more clients than it needs, and closes without the slowest.

use crate::puppet::{Puppet, code};
use crate::stage::{Running, Stage, config};
use fedtvd_core::round::ClientFailure;
use fedtvd_data::set::Places;
use fedtvd_net::client::Task;
use fedtvd_net::federation::{Event, Options};
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::simulation::Resources;
use fedtvd_run::verify::verify;
use std::time::Duration;

const SETTINGS: [&str; 5] =
    ["rounds=1", "local.epochs=1", "model.name=logistic", "cohort.fraction=0.5", "cohort.extra=2"];

fn options() -> Options {
    Options { roster: Some((0..6).collect()), workers: 1, ..Options::default() }
}

/// The clients that the first round asks.
async fn asked(stage: &Stage, running: &Running) -> Vec<Puppet> {
    let mut puppets: Vec<Puppet> = Vec::new();
    for client in 0..6 {
        let mut puppet = running.puppet(stage, client).await;
        puppet.enrol().await.unwrap();
        puppets.push(puppet);
    }
    let asked = tokio::task::block_in_place(|| {
        stage.until(|event| match event {
            Event::Opened { asked, .. } => Some(asked.clone()),
            _ => None,
        })
    });
    puppets.retain(|puppet| asked.contains(&puppet.client));
    puppets
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_closes_with_as_many_updates_as_the_cohort_has_and_tells_the_others_that_they_are_late() {
    let stage = Stage::new(6);
    let running = stage.serve("run", &config(&SETTINGS), options());
    let mut puppets = asked(&stage, &running).await;
    let asked: Vec<_> = puppets.iter().map(|puppet| puppet.client).collect();
    assert_eq!(asked.len(), 5);
    let mut updates = Vec::new();
    for puppet in &mut puppets {
        let job = puppet.job().await;
        updates.push(puppet.one_hot(&job).to_bytes());
    }
    for place in 0..3 {
        let status = running.coordinator.status();
        assert_eq!(
            (status.phase.as_str(), status.needed, status.answered.len()),
            ("training", Some(3), place)
        );
        let line = format!("{place} updates of 5 clients; closes with 3\n");
        assert!(status.text().contains(&line), "{}", status.text());
        puppets[place].send(0, updates[place].clone()).await.unwrap();
    }
    let mut tries = 0;
    while running.coordinator.status().phase == "training" {
        tries += 1;
        assert!(tries < 1000, "the round stays open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let late = stage.events().into_iter().find_map(|event| match event {
        Event::Closed { accepted: 3, late, .. } => Some(late),
        _ => None,
    });
    assert_eq!(late.unwrap(), asked[3..]);
    assert_eq!(code(puppets[3].send(0, updates[3].clone()).await), "late");
    // The other one learns it when it asks for work.
    let run = puppets[4].welcome.run.clone();
    assert!(matches!(puppets[4].link.pull(&run).await, Ok(Task::Finished(_))));
    tokio::task::block_in_place(|| running.finish());
    let verified = verify(&stage.path("run"), &Places::new(None), Resources::workers(1), None, &mut |_| {});
    assert!(verified.unwrap_err().to_string().starts_with("cohort.extra = 2: "));
    let line = &RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap()[0];
    assert_eq!((line.extra, &line.unchanged), (Some(2), &None));
    let failures: Vec<_> = line.clients.iter().map(|client| client.failure.clone()).collect();
    let absent = ClientFailure::Absent.to_string();
    let said: Vec<Option<String>> =
        failures.iter().map(|one| one.as_ref().map(ToString::to_string)).collect();
    assert_eq!(said, [None, None, None, Some(absent.clone()), Some(absent)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_client_does_not_count_towards_the_updates_that_a_round_needs() {
    let stage = Stage::new(6);
    let running = stage.serve("run", &config(&SETTINGS), options());
    let mut puppets = asked(&stage, &running).await;
    for (place, puppet) in puppets.iter_mut().enumerate() {
        let job = puppet.job().await;
        let run = puppet.welcome.run.clone();
        match place {
            0 | 1 => puppet.link.fail(&run, 0, "no memory".to_owned()).await.unwrap(),
            _ => {
                assert_eq!(running.coordinator.status().phase, "training");
                let bytes = puppet.one_hot(&job).to_bytes();
                puppet.send(0, bytes).await.unwrap();
            }
        }
    }
    tokio::task::block_in_place(|| running.finish());
    let line = &RunDirectory::open(&stage.path("run")).unwrap().lines().unwrap()[0];
    assert_eq!(line.clients.iter().filter(|client| client.failure.is_none()).count(), 3);
}

#[test]
fn extra_clients_are_refused_where_the_cohort_is_everybody() {
    let stage = Stage::new(6);
    let whole = config(&[&SETTINGS[..3], &["cohort.fraction=1", "cohort.extra=1"]].concat());
    let error = stage.try_prepare("run", &whole, options()).err().unwrap().to_string();
    assert!(error.contains("cohort.fraction = 1 selects all of them"), "{error}");
    let many = config(&[&SETTINGS[..4], &["cohort.extra=4"]].concat());
    let error = stage.try_prepare("run", &many, options()).err().unwrap().to_string();
    assert!(error.contains("selects 3 of 6 clients; set cohort.extra to 3 or less"), "{error}");
    assert!(!stage.path("run").exists());
}
