//! A server that tries to exhaust a site's memory. The client is a process of its own, whose peak the system reports.

use crate::double::{CLASSES, Double, Step, data, network, welcome};
use fedtvd_core::labels::Reference;
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{Layout, Network, Params};
use fedtvd_core::round::{Job, Offer};
use fedtvd_core::stream::Key;
use fedtvd_core::train::{ClassWeights, Local};
use fedtvd_net::client::{self, Options, Policy};
use fedtvd_net::wire::{self, LARGEST_MESSAGE, work};
use prost::bytes::Bytes;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// How much more than usual a site may take, in bytes.
const ALLOWED: u64 = 100_000_000;
/// The environment variable that tells the process of a client where the server is.
const SERVER: &str = "FEDTVD_TEST_SERVER";
/// The one that sets its policy's `memory-megabytes`, and the one that sets its number of rows.
const MEMORY: &str = "FEDTVD_TEST_MEMORY";
const ROWS: &str = "FEDTVD_TEST_ROWS";
/// How much more than usual and than its policy allows a site may take, in bytes: what the allocator keeps of freed buffers,
/// and messages on their way.
const MARGIN: u64 = 20 << 20;
/// A text that just fits into a message.
const LONG: usize = LARGEST_MESSAGE - 1000;

/// This test is the process of a client, started by the other one.
#[tokio::test]
#[ignore = "the client's process in another test"]
async fn a_client_prints_its_peak_memory_at_its_end() {
    let Ok(server) = std::env::var(SERVER) else { return };
    let folder = tempfile::tempdir().unwrap();
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let data = data(number(ROWS, 40) as usize);
    let options = Options::new(server, Double::security(), data, folder.path().to_owned());
    let memory_megabytes = number(MEMORY, Policy::default().memory_megabytes);
    let policy = Policy { memory_megabytes, ..Policy::default() };
    let options = Options { give_up: Some(Duration::from_secs(1)), policy, ..options };
    let outcome = client::join(options, &|_| {}).await;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("peak {} {}", peak.trim().trim_end_matches(" kB"), outcome.is_ok());
}

/// The peak memory of a client of this server, in bytes, and whether it stayed to the end.
async fn peak(welcome: wire::Welcome, steps: Vec<Step>) -> (u64, bool) {
    let (taken, stayed, _) = limited(welcome, steps, Policy::default().memory_megabytes, 40).await;
    (taken, stayed)
}

/// The same of a client with this policy and number of rows; and how many updates it sent.
async fn limited(
    welcome: wire::Welcome,
    steps: Vec<Step>,
    megabytes: u64,
    rows: usize,
) -> (u64, bool, usize) {
    let (double, server) = Double::start(welcome, steps).await;
    let client = "site_memory::a_client_prints_its_peak_memory_at_its_end";
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--ignored", "--exact", client, "--nocapture"]).env(SERVER, server);
    process.env(MEMORY, megabytes.to_string()).env(ROWS, rows.to_string());
    let output = tokio::task::spawn_blocking(move || process.output().unwrap()).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let line =
        text.lines().find_map(|line| line.split_once("peak ")).unwrap_or_else(|| panic!("{text}{errors}"));
    let (peak, stayed) = line.1.split_once(' ').unwrap();
    let updates = double.received().iter().filter(|message| message.method == "Upload").count();
    (1024 * peak.parse::<u64>().unwrap(), stayed == "true", updates)
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

/// A network with these layers before the last one.
fn layered(mut layers: Vec<serde_json::Value>) -> Network {
    layers.push(serde_json::json!({"layer": "linear", "name": "fc", "out": CLASSES}));
    Network { layers: serde_json::from_value(layers.into()).unwrap(), ..network() }
}

fn linear(name: &str, out: usize) -> serde_json::Value {
    serde_json::json!({"layer": "linear", "name": name, "out": out})
}

/// A job of the given strategy for this network.
fn job(network: &Network, batch: usize, strategy: &str) -> Step {
    let layout = Arc::new(Layout::of(network).unwrap());
    let mut carried = Memory::default();
    if strategy == "scaffold" {
        carried.put("control", vec![0f32; layout.trainable()]);
    }
    let offer = Offer {
        round: 0,
        strategy: strategy.to_owned(),
        local: Local { epochs: 1, batch, ..Local::default() },
        class_weights: ClassWeights::Equal,
        reference: Reference::uniform(CLASSES),
        branch: 0,
        params: Arc::new(Params::zeros(layout)),
        others: Vec::new(),
        carried: Arc::new(carried),
        own: Arc::default(),
    };
    let bytes =
        Job { client: 0, key: Key::of(1), accepted: None, matching: None, offer: Arc::new(offer) }.to_bytes();
    let chunks = bytes.chunks(wire::CHUNK).map(|chunk| work::Item::Chunk(chunk.to_vec().into()));
    let first = work::Item::Train(wire::Transfer { round: 0, bytes: bytes.len() as u64 });
    Step::Messages([first].into_iter().chain(chunks).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_job_makes_a_site_take_more_memory_than_its_policy_allows() {
    const MEGABYTES: u64 = 150;
    let (usual, _) = peak(welcome(), vec![survey(), train(Local::default())]).await;
    let dropout = serde_json::json!({"layer": "dropout", "rate": 0.1});
    let wide = layered(vec![linear("a", 8000), serde_json::json!({"layer": "relu"})]);
    let dropping = layered([vec![linear("a", 3000)], vec![dropout; 6]].concat());
    let square = |units| layered(vec![linear("a", units), linear("b", units)]);
    // Batches that grow until the policy refuses one; and models that leave room for training, but not for all vectors.
    let growing = |network: &Network| -> Vec<Step> {
        (1..=15).map(|hundreds| job(network, 100 * hundreds, "fedavg")).collect()
    };
    let attacks = [
        ("growing batches", growing(&wide), wide, 1500, 1),
        ("growing batches with dropout", growing(&dropping), dropping, 1500, 1),
        ("a model of 11 MB", vec![job(&square(1700), 32, "scaffold")], square(1700), 40, 1),
        ("a model of 27 MB", vec![job(&square(2600), 32, "scaffold")], square(2600), 40, 0),
        ("a model of 27 MB", vec![job(&square(2600), 32, "fedavg")], square(2600), 40, 0),
    ];
    for (what, jobs, network, rows, least) in attacks {
        let welcome = wire::Welcome { network: serde_json::to_string(&network).unwrap(), ..welcome() };
        let steps = [vec![survey()], jobs].concat();
        let (taken, _, updates) = limited(welcome, steps, MEGABYTES, rows).await;
        println!("{what}: {} MB more than usual, {updates} updates", taken.saturating_sub(usual) >> 20);
        assert!(updates >= least, "{what}: {updates} updates");
        assert!(
            taken < usual + (MEGABYTES << 20) + MARGIN,
            "{what}: {taken} bytes; usually {usual}, and {MEGABYTES} MB are allowed"
        );
    }
}
