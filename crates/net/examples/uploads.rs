//! Clients that send their updates at the same moment, for measuring what a server needs: they train nothing and send
//! the model back as it came.
//!
//! ```text
//! cargo run --release --example uploads -- ADDRESS_FILE CERTS NAME…
//! ```

use fedtvd_core::job::Job;
use fedtvd_core::layout::Layout;
use fedtvd_core::network::Network;
use fedtvd_core::trainer::Evaluation;
use fedtvd_core::updates::{Report, Upload};
use fedtvd_net::link::{Link, Security, Task};
use fedtvd_net::wire;
use fedtvd_run::digest::sha256;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Barrier;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

async fn client(address: String, folder: std::path::PathBuf, ready: Arc<Barrier>) -> Outcome {
    let mut link = Link::dial(&address, &Security::client(&folder)?).await?;
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
                let report = Report { round, steps: 1, reach, losses: [1.0, 1.0], remembers: true };
                let params = job.offer.params.as_ref().clone();
                let upload = Upload { client: job.client, params, carried: Default::default(), report };
                let bytes = upload.to_bytes();
                let (run, hash) = (welcome.run.clone(), sha256(&bytes));
                let ticket = wire::Ticket { run, round, client: job.client, hash, bytes: bytes.len() as u64 };
                ready.wait().await;
                let started = Instant::now();
                link.upload(ticket, bytes.into()).await?;
                eprintln!("client {}: {:.2} s", job.client, started.elapsed().as_secs_f64());
            }
            Task::Finished(_) => return Ok(()),
            Task::Judge(round, _) => {
                link.judge(&welcome.run, round, Evaluation::empty(network.classes)).await?;
            }
            Task::Wait => {}
        }
    }
}

#[tokio::main]
async fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: uploads ADDRESS_FILE CERTS NAME…";
    let (address, certs) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let address = std::fs::read_to_string(address)?.trim().to_owned();
    let names: Vec<String> = arguments.collect();
    let ready = Arc::new(Barrier::new(names.len()));
    let start = |name: &String| {
        let folder = Path::new(&certs).join("clients").join(name);
        tokio::spawn(client(address.clone(), folder, Arc::clone(&ready)))
    };
    let clients: Vec<_> = names.iter().map(start).collect();
    for client in clients {
        client.await??;
    }
    Ok(())
}
