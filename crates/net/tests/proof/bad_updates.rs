//! Bad updates: each has its own error, and the model is the same as if it had never been sent.

use crate::puppet::{Puppet, code};
use crate::stage::{Running, Stage, config};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{Job, Upload};
use fedtvd_net::client::ConnectionError;
use fedtvd_net::federation::Options;
use fedtvd_net::wire;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn serve(stage: &Stage, out: &str) -> Running {
    // A batch norm, so that there are variances; SCAFFOLD, so that there are carried vectors.
    let layers = r#"model.layers=["conv 2 5x5 stride 4", "batchnorm", "relu", "flatten", "linear"]"#;
    let settings = [layers, "strategy.name=scaffold+fedtvd", "cohort.fraction=1", "rounds=1"];
    let options = Options { roster: Some((0..3).collect()), workers: 1, ..Options::default() };
    stage.serve(out, &config(&settings), options)
}

/// A good update in which all values differ.
fn good(puppet: &Puppet, job: &Job) -> Upload {
    let mut upload = puppet.one_hot(job);
    let seed = puppet.client as f32;
    for (place, value) in upload.params.values.iter_mut().enumerate() {
        *value = (place as f32 + seed).sin().abs();
    }
    let control = |len| (0..len).map(|place| (place as f32 * 0.1 + seed).cos()).collect::<Vec<f32>>();
    for (name, array) in job.offer.carried.arrays() {
        upload.carried.put(name, control(array.len()));
    }
    upload
}

/// Decodes an update's bytes, changes them, and encodes them again.
fn forged(upload: &Upload, change: impl FnOnce(&mut Value, &mut Vec<u8>)) -> Vec<u8> {
    let bytes = upload.to_bytes();
    let end = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let mut head: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
    let mut data = bytes[end..].to_vec();
    change(&mut head, &mut data);
    let text = serde_json::to_vec(&head).unwrap();
    [&(text.len() as u64).to_le_bytes()[..], &text, &data].concat()
}

/// The same for the header, which is text inside the head.
fn reheaded(upload: &Upload, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    forged(upload, |head, _| {
        let mut header: Value =
            serde_json::from_str(head["__metadata__"]["fedtvd"].as_str().unwrap()).unwrap();
        change(&mut header);
        head["__metadata__"]["fedtvd"] = json!(header.to_string());
    })
}

/// Bad updates with a good ticket: a description and their bytes.
fn bad(puppet: &Puppet, job: &Job) -> Vec<(&'static str, Vec<u8>)> {
    let whole = good(puppet, job);
    let changed = |change: &dyn Fn(&mut Upload)| {
        let mut upload = whole.clone();
        change(&mut upload);
        upload.to_bytes()
    };
    let len = whole.params.values.len();
    let layout = &puppet.layout;
    let variance = layout.tensors().iter().find(|tensor| tensor.name.ends_with("running_var")).unwrap();
    let variance = variance.range().start;
    let bytes = whole.to_bytes();
    let head = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let with = |range: std::ops::Range<usize>, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[range].copy_from_slice(new);
        bytes
    };
    let report = |field: &'static str, value: Value| {
        reheaded(&whole, |header| header["header"]["report"][field] = value)
    };
    vec![
        // Values.
        ("NaN in the model", changed(&|u| u.params.values[5] = f32::NAN)),
        ("infinity in the model", changed(&|u| u.params.values[len - 9] = f32::INFINITY)),
        ("negative infinity", changed(&|u| u.params.values[0] = f32::NEG_INFINITY)),
        (
            "NaN in a carried vector",
            changed(&|u| {
                let mut control = u.carried.f32("control").unwrap().to_vec();
                control[3] = f32::NAN;
                u.carried.put("control", control);
            }),
        ),
        ("a negative variance", changed(&|u| u.params.values[variance] = -1.0)),
        // Reports.
        ("no steps", changed(&|u| u.report.steps = 0)),
        ("too many steps", changed(&|u| u.report.steps = 1_000_000)),
        ("the largest number of steps", changed(&|u| u.report.steps = u64::MAX)),
        ("no reach", changed(&|u| u.report.reach = 0.0)),
        ("a negative reach", changed(&|u| u.report.reach = -0.01)),
        ("a tiny reach", changed(&|u| u.report.reach = 1e-30)),
        ("a huge reach", changed(&|u| u.report.reach = 1e30)),
        ("another round inside", changed(&|u| u.report.round = 4)),
        ("another client inside", changed(&|u| u.client = 2)),
        ("a reach that is null", report("reach", Value::Null)),
        ("a reach that is text", report("reach", json!("far"))),
        ("negative steps", report("steps", json!(-3))),
        ("half a step", report("steps", json!(0.5))),
        ("one loss", report("losses", json!([1.0]))),
        ("a loss that is null", report("losses", json!([null, 1.0]))),
        ("a round beyond 32 bits", report("round", json!(1u64 << 40))),
        ("a memory that is a number", report("remembers", json!(1))),
        ("no report", reheaded(&whole, |h| drop(h["header"].as_object_mut().unwrap().remove("report")))),
        ("an unknown field", reheaded(&whole, |h| h["header"]["weight"] = json!(100.0))),
        ("a negative client", reheaded(&whole, |h| h["header"]["client"] = json!(-1))),
        // The format.
        ("another version", reheaded(&whole, |h| h["version"] = json!(99))),
        ("another kind", reheaded(&whole, |h| h["kind"] = json!("state"))),
        ("no kind", reheaded(&whole, |h| drop(h.as_object_mut().unwrap().remove("kind")))),
        ("no header", forged(&whole, |head, _| drop(head.as_object_mut().unwrap().remove("__metadata__")))),
        ("a header that is not JSON", forged(&whole, |head, _| head["__metadata__"]["fedtvd"] = json!("{"))),
        (
            "another type of numbers",
            forged(&whole, |head, _| {
                head["model"]["dtype"] = json!("I32");
            }),
        ),
        ("an unknown type", forged(&whole, |head, _| head["model"]["dtype"] = json!("F33"))),
        (
            "a matrix",
            forged(&whole, |head, _| {
                let shape = &mut head["carried/control"]["shape"];
                *shape = json!([1, shape[0]]);
            }),
        ),
        ("a shape that is too long", forged(&whole, |head, _| head["model"]["shape"] = json!([len + 1]))),
        ("the largest shape", forged(&whole, |head, _| head["model"]["shape"] = json!([u64::MAX]))),
        (
            "a model of two values",
            forged(&whole, |head, data| {
                let start = head["model"]["data_offsets"][0].as_u64().unwrap();
                head["model"] = json!({"dtype": "F32", "shape": [2], "data_offsets": [start, start + 8]});
                let rest = data.len() as u64;
                head["padding"] = json!({"dtype": "F32", "shape": [(rest - start - 8) / 4], "data_offsets": [start + 8, rest]});
            }),
        ),
        (
            "an extra tensor",
            forged(&whole, |head, data| {
                let end = data.len();
                head["surprise"] = json!({"dtype": "F32", "shape": [1], "data_offsets": [end, end + 4]});
                data.extend([0; 4]);
            }),
        ),
        (
            "a name with a path",
            forged(&whole, |head, data| {
                let end = data.len();
                head["../../model"] = json!({"dtype": "F32", "shape": [1], "data_offsets": [end, end + 4]});
                data.extend([0; 4]);
            }),
        ),
        (
            "an extra carried vector",
            forged(&whole, |head, data| {
                let end = data.len();
                head["carried/more"] = json!({"dtype": "F32", "shape": [1], "data_offsets": [end, end + 4]});
                data.extend([0; 4]);
            }),
        ),
        (
            "a model under another name",
            forged(&whole, |head, _| {
                let model = head.as_object_mut().unwrap().remove("model").unwrap();
                head["carried/model"] = model;
            }),
        ),
        (
            "offsets with a gap",
            forged(&whole, |head, data| {
                let place = &mut head["model"]["data_offsets"];
                *place = json!([place[0].as_u64().unwrap() + 4, place[1].as_u64().unwrap() + 4]);
                data.extend([0; 4]);
            }),
        ),
        ("a head longer than the file", with(0..8, &60_000u64.to_le_bytes())),
        ("the longest head", with(0..8, &u64::MAX.to_le_bytes())),
        ("an empty head", with(0..8, &0u64.to_le_bytes())),
        ("a head that is not text", with(8..12, &[0xff; 4])),
        ("a head cut short", with(0..8, &(head as u64 - 9).to_le_bytes())),
        ("ones", vec![1; bytes.len()]),
        ("bytes after the end", [bytes.clone(), vec![0; 16]].concat()),
        ("no carried vector", {
            let mut upload = whole.clone();
            upload.carried = Memory::default();
            let short = upload.to_bytes();
            let end = 8 + u64::from_le_bytes(*short.first_chunk().unwrap()) as usize;
            let mut head: Value = serde_json::from_slice(&short[8..end]).unwrap();
            // As long as a complete one, so that its ticket is valid.
            head["__metadata__"]["padding"] = json!(" ".repeat(4 * layout.trainable() + 100));
            let text = serde_json::to_vec(&head).unwrap();
            [&(text.len() as u64).to_le_bytes()[..], &text, &short[end..]].concat()
        }),
    ]
}

async fn honest(puppets: &mut [Puppet]) {
    for puppet in puppets {
        let job = puppet.job().await;
        let bytes = good(puppet, &job).to_bytes();
        assert!(!puppet.send(0, bytes).await.unwrap());
    }
}

async fn crowd(stage: &Stage, running: &Running) -> Vec<Puppet> {
    let mut puppets = Vec::new();
    for client in 0..3 {
        let mut puppet = running.puppet(stage, client).await;
        puppet.enrol().await.unwrap();
        puppets.push(puppet);
    }
    puppets
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_update_has_its_own_error_and_no_effect_on_the_model() {
    let stage = Stage::new(3);
    let running = serve(&stage, "clean");
    honest(&mut crowd(&stage, &running).await).await;
    tokio::task::block_in_place(|| running.finish());

    let running = serve(&stage, "attacked");
    let mut puppets = crowd(&stage, &running).await;
    let job = puppets[1].job().await;
    let liar = &mut puppets[1];
    let mut errors = BTreeSet::new();
    let mut own = |what: &str, error: ConnectionError| {
        let text = error.to_string();
        assert!(errors.insert(text.clone()), "{what} has the same error as another update: {text}");
    };
    for (what, bytes) in bad(liar, &job) {
        let error = liar.send(0, bytes).await.expect_err(what);
        let ConnectionError::Refused { code, .. } = &error else { panic!("{what}: {error}") };
        assert!(code.starts_with("update-"), "{what}: {error}");
        own(what, error);
    }
    // Tickets.
    let whole = good(liar, &job).to_bytes();
    let ticket = liar.ticket(0, &whole);
    let tickets: [(&str, &str, wire::Ticket); 9] = [
        ("another run", "wrong-run", wire::Ticket { run: "other".into(), ..ticket.clone() }),
        ("another client", "wrong-client", wire::Ticket { client: 2, ..ticket.clone() }),
        ("a later round", "early", wire::Ticket { round: 3, ..ticket.clone() }),
        ("no hash", "bad-hash", wire::Ticket { hash: String::new(), ..ticket.clone() }),
        ("a hash in capitals", "bad-hash", wire::Ticket { hash: "A".repeat(64), ..ticket.clone() }),
        ("a hash with a path", "bad-hash", wire::Ticket { hash: "../".repeat(21) + "x", ..ticket.clone() }),
        ("no bytes", "too-short", wire::Ticket { bytes: 0, ..ticket.clone() }),
        ("the largest number of bytes", "too-long", wire::Ticket { bytes: u64::MAX, ..ticket.clone() }),
        ("ten gigabytes", "too-long", wire::Ticket { bytes: 10_000_000_000, ..ticket.clone() }),
    ];
    for (what, expected, ticket) in tickets {
        let error = liar.link.upload(ticket, whole.clone().into()).await.expect_err(what);
        assert_eq!(code::<()>(Err(error.clone())), expected, "{what}");
        own(what, error);
    }
    // Bytes that do not match the ticket.
    let cases: [(&str, &str, Vec<u8>); 3] = [
        ("cut off", "truncated", whole[..whole.len() - 5].to_vec()),
        ("too much", "overrun", [&whole[..], &[1]].concat()),
        ("one bit", "wrong-hash", {
            let mut bytes = whole.clone();
            bytes[whole.len() - 1] ^= 1;
            bytes
        }),
    ];
    for (what, expected, bytes) in cases {
        let error = liar.link.upload(ticket.clone(), bytes.into()).await.expect_err(what);
        assert_eq!(code::<()>(Err(error.clone())), expected, "{what}");
        own(what, error);
    }
    assert!(errors.len() >= 40, "{} bad updates", errors.len());
    // The client sends its good update before the others' answers close the round.
    assert!(!liar.send(0, whole).await.unwrap());
    puppets.remove(1);
    honest(&mut puppets).await;
    drop(puppets);
    tokio::task::block_in_place(|| running.finish());
    assert_eq!(stage.model("attacked"), stage.model("clean"));
    let lines = |out: &str| {
        let text = std::fs::read_to_string(stage.path(out).join("rounds.jsonl")).unwrap();
        let mut line: Value = serde_json::from_str(text.trim()).unwrap();
        line["seconds"] = Value::Null;
        line["bytes_down"] = Value::Null;
        line
    };
    assert_eq!(lines("attacked"), lines("clean"));
}
