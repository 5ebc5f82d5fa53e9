//! A server that tries to exhaust a site's memory. The client is a process of its own, whose peak the system reports.

use crate::double::{CLASSES, Double, Step, data, network, welcome};
use fedtvd_core::labels::Reference;
use fedtvd_core::model::Network;
use fedtvd_core::train::Local;
use fedtvd_net::client::{self, Options};
use fedtvd_net::wire::{self, LARGEST_MESSAGE, work};
use prost::bytes::Bytes;
use std::process::Command;
use std::time::Duration;

/// How much more than usual a site may take, in bytes.
const ALLOWED: u64 = 100_000_000;
/// The environment variable that tells the process of a client where the server is.
const SERVER: &str = "FEDTVD_TEST_SERVER";
/// A text that just fits into a message.
const LONG: usize = LARGEST_MESSAGE - 1000;

/// This test is the process of a client, started by the other one.
#[tokio::test]
#[ignore = "the client's process in another test"]
async fn a_client_prints_its_peak_memory_at_its_end() {
    let Ok(server) = std::env::var(SERVER) else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(server, Double::security(), data(40), folder.path().to_owned());
    let options = Options { give_up: Some(Duration::from_secs(1)), ..options };
    let outcome = client::join(options, &|_| {}).await;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("peak {} {}", peak.trim().trim_end_matches(" kB"), outcome.is_ok());
}

/// The peak memory of a client of this server, in bytes, and whether it stayed to the end.
async fn peak(welcome: wire::Welcome, steps: Vec<Step>) -> (u64, bool) {
    let (_double, server) = Double::start(welcome, steps).await;
    let client = "site_memory::a_client_prints_its_peak_memory_at_its_end";
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--ignored", "--exact", client, "--nocapture"]).env(SERVER, server);
    let output = tokio::task::spawn_blocking(move || process.output().unwrap()).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let line =
        text.lines().find_map(|line| line.split_once("peak ")).unwrap_or_else(|| panic!("{text}{errors}"));
    let (peak, stayed) = line.1.split_once(' ').unwrap();
    (1024 * peak.parse::<u64>().unwrap(), stayed == "true")
}

fn survey() -> Step {
    Step::Survey("\"distance\"", Reference::uniform(CLASSES))
}

fn train(local: Local) -> Step {
    Step::Train(local, "fedtvd")
}

/// A transfer of this announced length with one chunk of another length.
fn chunk(announced: u64, length: usize) -> Step {
    Step::Messages(vec![
        work::Item::Train(wire::Transfer { round: 0, bytes: announced }),
        work::Item::Chunk(Bytes::from(vec![0; length])),
    ])
}

/// A model with this many layers.
fn deep(layers: usize) -> String {
    let relu = serde_json::json!({"layer": "relu"});
    let mut all = vec![relu; layers];
    all.push(serde_json::json!({"layer": "linear", "name": "fc", "out": CLASSES}));
    serde_json::to_string(&Network { layers: serde_json::from_value(all.into()).unwrap(), ..network() })
        .unwrap()
}

fn attacks() -> Vec<(&'static str, wire::Welcome, Vec<Step>)> {
    let long = || "x".repeat(LONG);
    let greeting = |change: &dyn Fn(&mut wire::Welcome)| {
        let mut welcome = welcome();
        change(&mut welcome);
        welcome
    };
    let evaluate = work::Item::Evaluate(wire::Transfer { round: 0, bytes: 3 << 30 });
    let reference = format!("[{}1]", "0,".repeat(LONG / 2 - 10));
    let wide = wire::Survey { ask: "\"distance\"".into(), reference };
    let greedy = Local { epochs: 2_000_000_000, ..Local::default() };
    let broad = Local { batch: usize::MAX >> 8, ..Local::default() };
    vec![
        ("a job of 3 GB", welcome(), vec![survey(), Step::Endless(3 << 30)]),
        ("a model of 3 GB", welcome(), vec![survey(), Step::Messages(vec![evaluate])]),
        ("chunks without end", welcome(), vec![survey(), Step::Endless(500), Step::Endless(1 << 20)]),
        ("a chunk of 256 MB", welcome(), vec![survey(), chunk(500, 256 << 20)]),
        ("a name of 256 MB", greeting(&|one| one.name = "x".repeat(256 << 20)), vec![]),
        ("a long name", greeting(&|one| one.name = long()), vec![survey()]),
        ("a long model", greeting(&|one| one.network = long()), vec![survey()]),
        ("a deep model", greeting(&|one| one.network = deep(LONG / 20)), vec![survey()]),
        ("a long schema", greeting(&|one| one.schema = long()), vec![survey()]),
        ("many classes", greeting(&|one| one.classes = vec![String::new(); LONG / 2]), vec![survey()]),
        (
            "a vast shift of images",
            greeting(&|one| one.crop = 1 << 63),
            vec![survey(), train(Local::default())],
        ),
        ("2 billion epochs", welcome(), vec![survey(), train(greedy)]),
        ("a vast batch", welcome(), vec![survey(), train(broad)]),
        // Four are answered on a connection, and connections follow each other less and less often.
        ("many surveys", welcome(), vec![survey(); 16]),
        ("a wide survey", welcome(), vec![Step::Messages(vec![work::Item::Survey(wide)]); 8]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_server_makes_a_site_take_a_hundred_megabytes_more_than_usual() {
    let steps = vec![survey(), train(Local::default()), Step::Evaluate];
    let (usual, stayed) = peak(welcome(), steps).await;
    assert!(stayed && usual > 0);
    let mut clients = tokio::task::JoinSet::new();
    for (what, welcome, steps) in attacks() {
        clients.spawn(async move { (what, peak(welcome, steps).await) });
    }
    while let Some(ended) = clients.join_next().await {
        let (what, (taken, _)) = ended.unwrap();
        assert!(taken < usual + ALLOWED, "{what}: {taken} bytes; usually {usual}");
    }
}
