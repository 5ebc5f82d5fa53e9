//! Measures the server's memory while many clients upload at the same time: they train nothing and send the model back
//! unchanged. Prints the server's memory before, and its peak during the uploads.
//!
//! ```text
//! cargo run --release --example uploads -- ADDRESS_FILE CERTS SERVER_PID NAME… LAST_NAME
//! ```
//!
//! The last client delays its update until the others' are on disk, so that the round stays open and only uploads are
//! measured.

use fedtvd_core::model::{Layout, Network};
use fedtvd_core::round::{Job, Report, Upload};
use fedtvd_core::train::Evaluation;
use fedtvd_net::client::{Connection, Security, Task};
use fedtvd_net::wire;
use fedtvd_run::directory::sha256;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Barrier;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// When all have their job, and when all but the last have sent.
#[derive(Clone)]
struct Moments {
    ready: Arc<Barrier>,
    sent: Arc<Barrier>,
    server: String,
}

/// A figure of the server's memory, in bytes, as reported by Linux.
fn memory(server: &str, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{server}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).unwrap_or_default();
    line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) * 1024
}

async fn client(address: String, folder: PathBuf, moments: Moments, last: bool) -> Outcome {
    let mut link = Connection::dial(&address, &Security::client(&folder)?).await?;
    let welcome = link.hello().await?;
    let network: Network = serde_json::from_str(&welcome.network)?;
    let layout = Arc::new(Layout::of(&network)?);
    loop {
        match link.pull(&welcome.run).await? {
            Task::Survey(_) => {
                let (run, size, holdout) = (welcome.run.clone(), 100, 0);
                // A hundred samples, ten of each of ten classes.
                let statistic = "{\"distance\":0.0}".to_owned();
                link.enrol(wire::Enrolment { run, size, statistic, holdout }).await?;
            }
            Task::Train(round, bytes) => {
                let job = Job::from_bytes(&bytes, &layout)?;
                drop(bytes);
                let [reach, _] = job.offer.local.reaches(0.0, 100);
                let report =
                    Report { round, steps: 1, reach, losses: [1.0, 1.0], remembers: true, branch: 0 };
                let params = job.offer.params.as_ref().clone();
                let upload = Upload { client: job.client, params, carried: Default::default(), report };
                let bytes = upload.to_bytes();
                let (run, hash) = (welcome.run.clone(), sha256(&bytes));
                let (client, length) = (upload.client, bytes.len() as u64);
                let ticket = wire::Ticket { run, round, client, hash, bytes: length, continues: true };
                drop(job);
                moments.ready.wait().await;
                if last {
                    // Resets the peak.
                    std::fs::write(format!("/proc/{}/clear_refs", moments.server), "5")?;
                    let before = memory(&moments.server, "VmRSS");
                    moments.ready.wait().await;
                    moments.sent.wait().await;
                    println!("{} {}", before, memory(&moments.server, "VmHWM"));
                    link.upload(ticket, bytes.into()).await?;
                } else {
                    moments.ready.wait().await;
                    let started = Instant::now();
                    link.upload(ticket, bytes.into()).await?;
                    eprintln!("{:.2} s", started.elapsed().as_secs_f64());
                    moments.sent.wait().await;
                }
            }
            Task::Finished(_) => return Ok(()),
            Task::Evaluate(round, _) => {
                link.evaluate(&welcome.run, round, Evaluation::empty(network.classes).into()).await?;
            }
            Task::Wait | Task::TooLarge { .. } => {}
        }
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: uploads ADDRESS_FILE CERTS SERVER_PID NAME… LAST_NAME";
    let mut next = || arguments.next().ok_or(usage);
    let (address, certs, server) = (next()?, next()?, next()?);
    let address = std::fs::read_to_string(address)?.trim().to_owned();
    let names: Vec<String> = arguments.collect();
    let barrier = || Arc::new(Barrier::new(names.len()));
    let moments = Moments { ready: barrier(), sent: barrier(), server };
    let start = |(place, name): (usize, &String)| {
        let folder = Path::new(&certs).join("clients").join(name);
        tokio::spawn(client(address.clone(), folder, moments.clone(), place + 1 == names.len()))
    };
    let clients: Vec<_> = names.iter().enumerate().map(start).collect();
    for client in clients {
        client.await??;
    }
    Ok(())
}
