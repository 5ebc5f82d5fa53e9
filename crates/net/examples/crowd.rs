//! Many clients in one process, each with its own certificate and connection. They train nothing: each update is the
//! model with a small change that differs between clients. A client that loses its connection waits as a real one does
//! and connects again, until the federation is over.
//!
//! ```text
//! cargo run --release --example crowd -- ADDRESS_FILE CERTS NAMES_FILE
//! ```
//!
//! Prints one JSON object at the end: how many clients reached the end, how many updates were acknowledged, how many
//! connections were made, and how often which reason ended an attempt.

use fedtvd_core::labels::{Ask, Reference};
use fedtvd_core::model::{Layout, Network};
use fedtvd_core::round::{Job, Report, Upload};
use fedtvd_net::client::{Backoff, Connection, Security, Task};
use fedtvd_net::wire;
use fedtvd_run::directory::sha256;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Label counts of every client.
const COUNTS: [u64; 10] = [10; 10];

/// What happened to all clients.
#[derive(Default, serde::Serialize)]
struct Tally {
    finished: u64,
    receipts: u64,
    connections: u64,
    reasons: BTreeMap<String, u64>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Tally>>);

impl Shared {
    fn count(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// An update that a client could have trained.
fn update(job: &Job) -> Vec<u8> {
    let [reach, _] = job.offer.local.reaches(0.0, COUNTS.iter().sum());
    let report =
        Report { round: job.offer.round, steps: 1, reach, losses: [1.0, 0.9], remembers: true, branch: 0 };
    let mut params = job.offer.params.as_ref().clone();
    for (place, value) in params.values.iter_mut().enumerate() {
        *value += 1e-3 * (f64::from(job.client) + place as f64).sin() as f32;
    }
    Upload { client: job.client, params, carried: Default::default(), report }.to_bytes()
}

/// One connection: works until the federation is over.
async fn work(address: &Path, security: &Security, backoff: &mut Backoff, shared: &Shared) -> Outcome<()> {
    let address = std::fs::read_to_string(address)?.trim().to_owned();
    let mut connection = Connection::dial(&address, security).await?;
    shared.count(|tally| tally.connections += 1);
    let welcome = connection.hello().await?;
    let network: Network = serde_json::from_str(&welcome.network)?;
    let layout = Arc::new(Layout::of(&network)?);
    loop {
        match connection.pull(&welcome.run).await? {
            Task::Wait => backoff.reset(),
            Task::Survey(survey) => {
                let ask: Ask = serde_json::from_str(&survey.ask)?;
                let reference: Reference = serde_json::from_str(&survey.reference)?;
                let statistic = serde_json::to_string(&ask.answer(&COUNTS, &reference))?;
                let (run, size) = (welcome.run.clone(), COUNTS.iter().sum());
                connection.enrol(wire::Enrolment { run, size, statistic, holdout: 0 }).await?;
            }
            Task::Train(round, job) => {
                let bytes = update(&Job::from_bytes(&job, &layout)?);
                let (run, client, hash) = (welcome.run.clone(), welcome.client, sha256(&bytes));
                let length = bytes.len() as u64;
                let ticket = wire::Ticket { run, round, client, hash, bytes: length, continues: true };
                connection.upload(ticket, bytes.into()).await?;
                shared.count(|tally| tally.receipts += 1);
                backoff.reset();
            }
            Task::Finished(_) => return Ok(()),
            other @ (Task::Evaluate(..) | Task::TooLarge { .. }) => {
                return Err(format!("asked for {other:?}").into());
            }
        }
    }
}

async fn client(address: PathBuf, security: Security, shared: Shared) {
    let mut backoff = Backoff::default();
    while let Err(error) = work(&address, &security, &mut backoff, &shared).await {
        let reason = error.to_string();
        shared.count(|tally| *tally.reasons.entry(reason).or_default() += 1);
        tokio::time::sleep(backoff.delay()).await;
    }
    shared.count(|tally| tally.finished += 1);
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: crowd ADDRESS_FILE CERTS NAMES_FILE");
    let (address, certs, names) = (PathBuf::from(next()?), next()?, next()?);
    let shared = Shared::default();
    let mut clients = tokio::task::JoinSet::new();
    for name in std::fs::read_to_string(names)?.lines() {
        let security = Security::client(&Path::new(&certs).join("clients").join(name))?;
        clients.spawn(client(address.clone(), security, shared.clone()));
    }
    while let Some(ended) = clients.join_next().await {
        ended?;
    }
    shared.count(|tally| println!("{}", serde_json::to_string(tally).unwrap_or_default()));
    Ok(())
}
