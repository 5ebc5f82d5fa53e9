//! How long rounds wait, as the log and the status show it.

use crate::roster::{SETTINGS, answer};
use crate::stage::{Stage, config};
use fedtvd_net::client::Security;
use fedtvd_net::federation::{Event, Options, ask};

#[tokio::test(flavor = "multi_thread")]
async fn rounds_after_the_first_have_a_measured_deadline_which_a_restart_remembers() {
    let stage = Stage::new(1);
    let options = || Options { least: Some(1), workers: 1, ..Options::default() };
    let running = stage.serve("run", &config(&SETTINGS), options());
    let mut zero = running.puppet(&stage, 0).await;
    answer(&mut zero).await;
    zero.job().await;
    let limits = |events: &[Event]| -> Vec<_> {
        let limit = |event: &Event| match event {
            Event::Opened { round, deadline_seconds, .. } => Some((*round, *deadline_seconds)),
            _ => None,
        };
        events.iter().filter_map(limit).collect()
    };
    assert_eq!(limits(&stage.events()), [(1, None), (2, Some(600.0))]);
    let operator = Security::operator(&stage.path("certs")).unwrap();
    let status = tokio::task::block_in_place(|| ask(&running.address(), &operator)).unwrap();
    assert_eq!(status.deadline_seconds, Some(600.0));
    assert!(status.text().contains("closes after 600 s at the latest"), "{}", status.text());
    drop(zero);
    tokio::task::block_in_place(|| running.stop());
    let running = stage.serve("run", &config(&SETTINGS), options());
    let mut zero = running.puppet(&stage, 0).await;
    zero.job().await;
    assert_eq!(limits(&stage.events()).last(), Some(&(2, Some(600.0))));
    tokio::task::block_in_place(|| running.stop());
}
