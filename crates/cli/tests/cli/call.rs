//! A program that calls subcommands as functions.

use fedtvd_cli::{CallFailure, Called, Host, News, RoundNews, call};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What a call amounts to, with the rounds and notes that it told; it is stopped after `last` rounds, if any.
fn called(arguments: &[&str], last: Option<u32>) -> (Called, Vec<RoundNews>, Vec<String>) {
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let told: Arc<Mutex<(Vec<RoundNews>, Vec<String>)>> = Arc::default();
    let own = Arc::clone(&told);
    let tell = Box::new(move |news: News<'_>| {
        let mut told = own.lock().expect("no listener panics");
        match news {
            News::Note(note) => told.1.push(note.to_owned()),
            News::Round(round) => {
                stop.store(last == Some(round.round), Ordering::Relaxed);
                told.0.push(round);
            }
        }
    });
    let arguments = arguments.iter().map(Into::into).collect::<Vec<_>>();
    let called = call(arguments, Host { stop, tell });
    let (rounds, notes) = told.lock().expect("no listener panics").clone();
    (called, rounds, notes)
}

const SMALL: [&str; 8] =
    ["--set", "rounds=3", "--set", "clients=20", "--set", "fraction=0.2", "--set", "model.name=logistic"];

#[test]
fn a_call_gives_the_json_document_and_tells_each_round() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("run").display().to_string();
    let (run, rounds, _) = called(&[&["run", "--out", &place], &SMALL[..]].concat(), None);
    assert_eq!(run.failure, None);
    let summary: serde_json::Value = serde_json::from_str(&run.document).unwrap();
    assert_eq!((&summary["rounds"], &summary["directory"]), (&3.into(), &place.as_str().into()));
    let told: Vec<(u32, u32, &str)> =
        rounds.iter().map(|told| (told.round, told.rounds, told.name.as_str())).collect();
    assert_eq!(told, [0, 1, 2, 3].map(|round| (round, 3, "fedtvd seed 1")));
    assert_eq!(rounds[3].accuracy, summary["accuracy"].as_f64());
}

#[test]
fn a_call_stops_when_its_flag_is_set_and_another_one_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("run").display().to_string();
    let (run, ..) = called(&[&["run", "--out", &place], &SMALL[..]].concat(), Some(2));
    let why = format!("stopped after round 2, progress is saved; to resume: fedtvd resume {place}");
    assert_eq!(run, Called { document: String::new(), failure: Some(CallFailure { request: false, why }) });
    let (resumed, rounds, _) = called(&["resume", &place], None);
    assert!(resumed.failure.is_none() && resumed.document.contains("\"rounds\": 3"));
    assert_eq!(rounds.iter().map(|told| told.round).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_comparison_tells_the_rounds_of_every_run_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("cmp").display().to_string();
    let arguments = ["compare", "--out", &place, "--strategies", "fedavg,uniform", "--seeds", "1"];
    let (comparison, rounds, _) = called(&[&arguments, &SMALL[..]].concat(), None);
    let document: serde_json::Value = serde_json::from_str(&comparison.document).unwrap();
    assert_eq!(document["summary"][1]["strategy"], "uniform");
    let last = |run: usize| rounds.iter().filter(|told| told.run == run).map(|told| told.round).max();
    assert_eq!((last(0), last(1), rounds[0].runs), (Some(3), Some(3), 2));
    assert!(rounds.iter().any(|told| told.name == "uniform seed 1"));
}

#[test]
fn a_call_that_fails_has_the_sentence_of_the_command() {
    let sentence = |arguments: &[&str]| called(arguments, None).0.failure.unwrap();
    let wrong = sentence(&["run", "--set", "alhpa=1"]);
    let why = "there is no key alhpa; did you mean split.alpha?".to_owned();
    assert_eq!(wrong, CallFailure { request: true, why });
    assert!(sentence(&["runn"]).why.starts_with("error: unrecognized subcommand 'runn'"));
}
