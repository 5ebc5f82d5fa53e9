//! `fedtvd serve [CONFIG]`: the server of a federation, and questions to a running one.

use crate::commands::run::{failure as run_failure, finished};
use crate::request::{Configured, Failure, Output, per_cent, tell, workers};
use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use fedtvd_core::round::{ClientId, RoundRecord};
use fedtvd_net::client::Security;
use fedtvd_net::federation::{
    Event, FederationError, Log as EventLog, Options, Ready, Work, ask, farewell, prepare,
};
use fedtvd_net::identity::AllowList;
use fedtvd_net::server::{Keys, Server, rate_limited};
use fedtvd_run::directory::Summary;
use fedtvd_run::runner::{End, Runner};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Serve a federation, or go on with one after a stop or a crash.
#[derive(Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    configured: Configured,
    /// The run directory; one that holds a federation is gone on with
    #[arg(long, value_name = "DIR", default_value = "federation")]
    out: PathBuf,
    /// Address to listen on; port 0 is any free one, which OUT/federation/address then holds
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7443")]
    listen: SocketAddr,
    /// Folder of the authority, as fedtvd certs init makes it
    #[arg(long, value_name = "DIR", default_value = "certs")]
    certs: PathBuf,
    /// Wait for exactly these clients: a file with one name per line; a run that is gone on with keeps its own
    #[arg(long, value_name = "FILE")]
    roster: Option<PathBuf>,
    /// Without a roster: start with so many clients; others may join later
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "roster")]
    least: usize,
    /// Close a round after so many seconds with the updates that are there; otherwise wait for all that were asked
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<f64>,
    /// Judge the model by the clients' hold-outs even where the server has a test set
    #[arg(long)]
    no_test_set: bool,
    /// After the last round: wait so many seconds for clients that have not been told yet; on a run that is done, too
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    farewell: u32,
    /// Updates that are received at a time where lines are slow, for a fifth of a megabyte each; where they are fast,
    /// two at a time
    #[arg(long, value_name = "N", default_value_t = 32)]
    uploads: usize,
    /// Threads that evaluate the model; all cores unless given
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Speak without TLS, to clients on this machine only, and believe who they say they are
    #[arg(long)]
    plaintext: bool,
    /// Ask the server that is running on OUT how it stands
    #[arg(long)]
    status: bool,
    /// Write events to stderr in this form
    #[arg(long, value_enum, default_value_t = Log::Text)]
    log: Log,
    #[command(flatten)]
    output: Output,
}

/// The form of a log line.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Log {
    /// A sentence
    Text,
    /// A JSON object
    Json,
}

impl Serve {
    /// Answers.
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        if self.status {
            return self.ask();
        }
        if self.plaintext && !self.listen.ip().is_loopback() {
            return Err(Failure::Request(anyhow!(
                "--plaintext is for this machine only, not {}; leave it out, or listen on 127.0.0.1",
                self.listen
            )));
        }
        let keys = if self.plaintext { Ok(Keys::none()) } else { Keys::open(&self.certs) };
        let keys = keys.map_err(Failure::request)?;
        let config = if self.configured.changes_nothing() { None } else { Some(self.configured.read()?) };
        let options = Options {
            roster: self.roster.as_deref().map(|path| self.members(path)).transpose()?,
            least: self.least,
            deadline: self.deadline.map(Duration::try_from_secs_f64).transpose().map_err(Failure::request)?,
            clients_evaluate: self.no_test_set,
            workers: workers(self.workers)?,
        };
        let folder = self.out.join("federation");
        let log = rate_limited(self.logger(&folder));
        let prepared = prepare(config.as_ref(), &self.configured.places(), &self.out, options, log.clone());
        let Ready { coordinator, work } = prepared.map_err(failure)?;
        let listener = TcpListener::bind(self.listen)
            .with_context(|| format!("listening on {}", self.listen))
            .map_err(Failure::Work)?;
        let server = Server::start(&coordinator, keys, listener, self.uploads).map_err(Failure::work)?;
        let address = server.address().to_string();
        fedtvd_run::directory::files::write(&folder.join("address"), address.as_bytes())
            .map_err(Failure::work)?;
        log(&Event::Listening { address });
        let stopping = Arc::clone(&coordinator);
        let pressed = AtomicBool::new(false);
        ctrlc::set_handler(move || {
            if pressed.swap(true, std::sync::atomic::Ordering::Relaxed) {
                std::process::exit(1);
            }
            stopping.stop();
        })
        .context("listening for Ctrl-C")
        .map_err(Failure::Work)?;
        let summary = match work {
            Work::Farewell(summary) => {
                let note = format!("the run is done; clients that ask are told so, {} s long", self.farewell);
                log(&Event::Note { note });
                summary
            }
            Work::Rounds(runner) => self.rounds(runner, &log)?,
        };
        farewell(&coordinator, &self.out, &summary, Duration::from_secs(self.farewell.into()))
            .map_err(failure)?;
        drop(server);
        self.output.answer(&summary, || finished(&summary))
    }

    /// Drives the rounds to the last.
    fn rounds(&self, runner: Runner, log: &EventLog) -> Result<Summary, Failure> {
        let experiment = runner.experiment();
        let (label, mode, rounds) = (&experiment.run.strategy.label, &experiment.run.mode, experiment.rounds);
        log(&Event::Note { note: format!("{label} in {mode:?} mode, {rounds} rounds").to_lowercase() });
        match runner.run(&AtomicBool::new(false), &mut |line| self.show(line)).map_err(run_failure)? {
            End::Done(summary) => Ok(summary),
            End::Stopped(rounds) => Err(Failure::Work(anyhow!(
                "stopped after round {rounds}; every update that was acknowledged is kept. The same command goes on with it"
            ))),
        }
    }

    /// The numbers of the clients that a file names, one per line.
    fn members(&self, path: &Path) -> Result<BTreeSet<ClientId>, Failure> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("reading {}", path.display()))
            .map_err(Failure::Request)?;
        let names = text.lines().map(str::trim).filter(|name| !name.is_empty() && !name.starts_with('#'));
        let list = if self.plaintext {
            AllowList::default()
        } else {
            AllowList::read(&self.certs.join("clients.toml")).map_err(Failure::request)?
        };
        let number = |name: &str| match list.number(name) {
            Some(number) => Ok(number),
            None if self.plaintext => name.parse().map_err(|_| anyhow!("{name} is no client's number")),
            None => Err(anyhow!("{}: there is no certificate of {name}", path.display())),
        };
        names.map(|name| number(name).map_err(Failure::Request)).collect()
    }

    /// Events go to stderr and, with their time, to a file of the run directory.
    fn logger(&self, folder: &Path) -> EventLog {
        let (quiet, form) = (self.output.quiet, self.log);
        let path = folder.join("log.jsonl");
        let file: Mutex<Option<File>> = Mutex::new(None);
        Arc::new(move |event: &Event| {
            let time = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0.0, |time| time.as_secs_f64());
            let mut json = serde_json::to_value(event).unwrap_or_default();
            json["time"] = time.into();
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            if file.is_none() {
                *file = OpenOptions::new().create(true).append(true).open(&path).ok();
            }
            if let Some(file) = &mut *file {
                // A full disk must not end the federation for want of a log.
                let _ = writeln!(file, "{json}");
            }
            match form {
                _ if quiet => {}
                Log::Text => tell(event),
                Log::Json => tell(json),
            }
        })
    }

    fn show(&self, line: &RoundRecord) {
        if self.output.quiet {
            return;
        }
        match self.log {
            Log::Json => tell(serde_json::to_string(line).unwrap_or_default()),
            Log::Text if line.accuracy.is_none() => {
                tell(format_args!(
                    "round {}: the model was not evaluated  {:.2} s",
                    line.round, line.seconds
                ));
            }
            Log::Text => tell(format_args!(
                "round {}: accuracy {}  loss {:.4}  {:.2} s",
                line.round,
                per_cent(line.accuracy, 2),
                line.loss.unwrap_or_default(),
                line.seconds
            )),
        }
    }

    /// Asks a running server.
    fn ask(&self) -> Result<(), Failure> {
        let path = self.out.join("federation/address");
        let address = std::fs::read_to_string(&path)
            .with_context(|| {
                format!("no server has listened for {}: reading {}", self.out.display(), path.display())
            })
            .map_err(Failure::Request)?;
        let security = if self.plaintext {
            Security::Claimed("operator".to_owned())
        } else {
            Security::operator(&self.certs).map_err(Failure::request)?
        };
        let mut address: SocketAddr =
            address.trim().parse().with_context(|| path.display().to_string()).map_err(Failure::Work)?;
        // The server listens on all addresses of this machine where it says 0.0.0.0.
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let address = address.to_string();
        let status = ask(&address, &security);
        let status = status.with_context(|| format!("asking {address}")).map_err(Failure::Work)?;
        self.output.answer(&status, || status.text())
    }
}

fn failure(error: FederationError) -> Failure {
    match error {
        FederationError::Run(error) => run_failure(error),
        FederationError::Ledger(_) => Failure::work(error),
        other => Failure::request(other),
    }
}
