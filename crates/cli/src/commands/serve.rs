//! `fedtvd serve [CONFIG or RUN]`: the server of a federation, and the status of a running one.

use crate::commands::run::{conclude, failure as run_failure};
use crate::ignored::{self, Purpose};
use crate::output::event_log::{EventLog, Format};
use crate::request::{
    Configured, DeviceOption, Failure, Output, eprint_line, mean_loss, per_cent, quoted, workers_on,
};
use anyhow::{Context as _, anyhow};
use clap::Args;
use fedtvd_core::round::{ClientFailure, ClientId, ClientRecord, Mode, RoundRecord, Screened};
use fedtvd_net::client::Security;
use fedtvd_net::federation::{
    Audit, Coordinator, Deadline, Event, FederationError, Log, Options, Ready, Work, ask, farewell, prepare,
};
use fedtvd_net::identity::AllowList;
use fedtvd_net::server::{Keys, Metrics, RateLimited, Server, Signal, survive_hangups};
use fedtvd_run::collapse::magnitude;
use fedtvd_run::configuration::Config;
use fedtvd_run::directory::RunDirectory;
use fedtvd_run::runner::{End, Runner};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Run the server of a federation, or resume it after an interruption.
#[derive(Args)]
#[command(mut_arg("config", |arg| arg.value_name("CONFIG or RUN").help(
    "Configuration file in TOML; keys that are left out have defaults. Or the run directory of a federation, to resume it"
)))]
pub(crate) struct Serve {
    #[command(flatten)]
    configured: Configured,
    /// Run directory; an existing federation in it is resumed [default: federation]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go back to the model after this round and continue with the next one; 0 for the start. Later rounds move to
    /// OUT/rolled-back. To resume after that, leave the option out
    #[arg(long, value_name = "ROUND", conflicts_with = "status")]
    rollback: Option<u32>,
    /// Address to listen on; with port 0, a free port is chosen and written to OUT/federation/address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7443")]
    listen: SocketAddr,
    /// Folder of the certificate authority, as created by fedtvd certs init
    #[arg(long, value_name = "DIR", default_value = "certs")]
    certs: PathBuf,
    /// File with one client name per line; the first round starts when all of them have joined; a resumed federation
    /// keeps its roster
    #[arg(long, value_name = "FILE")]
    roster: Option<PathBuf>,
    /// Without a roster: number of clients to wait for before the first round; others can join later [default: as few
    /// as strategy.mode allows: 3 if hardened, 1 if paper]
    #[arg(long, value_name = "N", conflicts_with = "roster")]
    least: Option<usize>,
    /// Time limit of a round: aggregate the updates that have arrived by then; none to wait for all clients [default: three
    /// times the slowest client's time in the last ten rounds, at least 600 s, at most six times that of round 1; none in
    /// round 1]
    #[arg(long, value_name = "SECONDS")]
    deadline: Option<Deadline>,
    /// Evaluate the model on the clients' held-out data, even if the server has a test set
    #[arg(long)]
    no_test_set: bool,
    /// Time to keep serving after the last round, so that absent clients learn that training is over
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    farewell: u32,
    /// Maximum number of concurrent slow uploads, which take about 0.2 MB of memory each; fast uploads run two at a time
    #[arg(long, value_name = "N", default_value_t = 32)]
    uploads: usize,
    /// Number of threads that evaluate the model [default: all cores]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    #[command(flatten)]
    device: DeviceOption,
    /// No TLS and no authentication; only for clients on this machine
    #[arg(long, conflicts_with = "certs")]
    plaintext: bool,
    /// Show the status of the server that is running with this --out
    #[arg(long, conflicts_with_all = ["set", "data", "listen", "roster", "least", "deadline", "no_test_set", "farewell", "uploads", "workers", "device", "metrics"])]
    status: bool,
    /// Answer /metrics (for Prometheus) and /health over HTTP, without authentication, at this address, such as
    /// 127.0.0.1:9464; with port 0, a free port is chosen
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Format of log lines on stderr
    #[arg(long, value_enum, default_value_t = Format::Text)]
    log: Format,
    #[command(flatten)]
    output: Output,
}

/// The result of a server that was asked to stop.
#[derive(Serialize)]
struct Stopped {
    stopped_after: u32,
    rounds: u32,
    directory: PathBuf,
    resume: String,
}

impl Serve {
    pub(crate) fn answer(&self) -> Result<(), Failure> {
        let out = self.out()?;
        if self.status {
            return self.ask(&out);
        }
        if self.plaintext && !self.listen.ip().is_loopback() {
            return Err(Failure::Request(anyhow!(
                "--plaintext is not allowed with {}: it is for clients on this machine; listen on 127.0.0.1, or use TLS",
                self.listen
            )));
        }
        survive_hangups().map_err(Failure::work)?;
        let keys = if self.plaintext { Ok(Keys::none()) } else { Keys::open(&self.certs) };
        let keys = keys.map_err(Failure::request)?;
        let config = self.config()?;
        let ignored = self.ignored(config.as_ref())?;
        let device = self.device.device_of(&out)?;
        let options = Options {
            roster: self.roster.as_deref().map(|path| self.members(path)).transpose()?,
            least: self.least,
            deadline: self.deadline.unwrap_or_default(),
            clients_evaluate: self.no_test_set,
            workers: workers_on(&device, self.workers)?,
            device,
            names: self.names(),
            rollback: self.rollback,
        };
        let folder = out.join("federation");
        let events = Arc::new(EventLog::new(folder.join("log.jsonl"), self.log, self.output.quiet));
        let audit = Arc::new(Audit::new(&folder).map_err(Failure::work)?);
        let metrics = Metrics::default();
        let limited = RateLimited::new({
            let (events, audit, metrics) = (Arc::clone(&events), Arc::clone(&audit), metrics.clone());
            Arc::new(move |event: &Event| {
                let problem = audit.event(event);
                report(problem, &audit, &events, &metrics);
                events.write(event);
            })
        });
        // Refusals without a line of their own are counted, too.
        let log: Log = {
            let (limited, metrics) = (limited.clone(), metrics.clone());
            Arc::new(move |event: &Event| {
                metrics.event(event);
                limited.event(event);
            })
        };
        let prepared = prepare(config.as_ref(), &self.configured.places(), &out, options, log.clone());
        let Ready { coordinator, work } = prepared.map_err(failure)?;
        audit.open().map_err(Failure::work)?;
        let listener = TcpListener::bind(self.listen)
            .with_context(|| format!("listening on {}", self.listen))
            .map_err(Failure::Work)?;
        let server = Server::start(&coordinator, keys, listener, self.uploads).map_err(Failure::work)?;
        handle_signals(&server, &coordinator, &events).map_err(Failure::work)?;
        let address = server.address().to_string();
        fedtvd_run::directory::files::write(&folder.join("address"), address.as_bytes())
            .map_err(Failure::work)?;
        log(&Event::Listening { address });
        self.monitor(&server, &metrics, &log)?;
        let summary = match work {
            Work::Farewell(summary) => {
                let note = format!(
                    "the run is finished; serving for another {} s so that clients learn of it",
                    self.farewell
                );
                log(&Event::Note { note });
                summary
            }
            Work::Rounds(runner) => {
                let model = |line: &RoundRecord| {
                    let problem = audit.model(line.round, &line.model_hash, line.unchanged.as_deref());
                    report(problem, &audit, &events, &metrics);
                    metrics.round(line);
                };
                let end = self.rounds(runner, &ignored, &log, &model);
                limited.flush();
                match end? {
                    End::Done(summary) => summary,
                    End::Stopped(rounds) => {
                        return self.stopped(rounds, coordinator.status().rounds, &out, &log);
                    }
                }
            }
        };
        farewell(&coordinator, &out, &summary, Duration::from_secs(self.farewell.into())).map_err(failure)?;
        drop(server);
        limited.flush();
        log(&Event::Note { note: format!("finished after round {}", summary.rounds) });
        conclude(&summary, self.output)
    }

    /// The run directory.
    fn out(&self) -> Result<PathBuf, Failure> {
        match (self.configured.directory(), &self.out) {
            (None, out) => Ok(out.clone().unwrap_or_else(|| PathBuf::from("federation"))),
            (Some(run), Some(out)) if run != out => Err(Failure::Request(anyhow!(
                "{} and --out {} are two run directories; name one of them",
                run.display(),
                out.display()
            ))),
            (Some(run), _) if RunDirectory::open(run).map_err(Failure::request)?.is_federation() => {
                Ok(run.to_owned())
            }
            (Some(run), _) => Err(Failure::request(FederationError::Simulation(run.display().to_string()))),
        }
    }

    /// The configuration that is asked for; `None` to keep that of the run directory.
    fn config(&self) -> Result<Option<Config>, Failure> {
        match self.configured.directory() {
            Some(_) if !self.configured.has_changes() => Ok(None),
            Some(run) => self.configured.read_over(&run.join("config.toml")).map(Some),
            None if self.configured.changes_nothing() => Ok(None),
            None => self.configured.read().map(Some),
        }
    }

    /// Notes on what is ignored.
    fn ignored(&self, config: Option<&Config>) -> Result<Vec<String>, Failure> {
        let Some(config) = config else { return Ok(Vec::new()) };
        let text = match (self.configured.directory(), self.configured.file()) {
            (None, Some(file)) => std::fs::read_to_string(file).map_err(Failure::request)?,
            _ => String::new(),
        };
        let configs = [config.for_federation()];
        ignored::checked((&self.configured, &text), "serve", &configs, Purpose::Federation)
    }

    /// Runs the remaining rounds, and passes each one's record to `model`.
    fn rounds(
        &self,
        runner: Runner,
        ignored: &[String],
        log: &Log,
        model: &dyn Fn(&RoundRecord),
    ) -> Result<End, Failure> {
        let experiment = runner.experiment();
        let (label, mode, rounds) = (&experiment.run.strategy.label, &experiment.run.mode, experiment.rounds);
        log(&Event::Note { note: format!("{label} in {mode:?} mode, {rounds} rounds").to_lowercase() });
        ignored.iter().for_each(|note| log(&Event::Note { note: note.clone() }));
        if *mode == Mode::Paper {
            let note = "paper mode: clients are trusted, and a single one of them can destroy or take over the model; \
                        without strategy.mode in the configuration a federation is hardened";
            log(&Event::Note { note: note.to_owned() });
        }
        let show = &mut |line: &RoundRecord| {
            self.show(line);
            model(line);
            for (client, why) in
                line.clients.iter().filter_map(|client| Some((client.client, screened(client)?)))
            {
                log(&Event::Screened { client, round: line.round, why });
            }
            if let Some(alarm) = line.alarm.clone() {
                log(&Event::Alarm { round: line.round, alarm });
            }
        };
        runner.run(&AtomicBool::new(false), show).map_err(run_failure)
    }

    /// Answers requests for metrics, if asked to.
    fn monitor(&self, server: &Server, metrics: &Metrics, log: &Log) -> Result<(), Failure> {
        let Some(address) = self.metrics else { return Ok(()) };
        let listener = TcpListener::bind(address)
            .with_context(|| format!("listening on {address} for --metrics"))
            .map_err(Failure::Work)?;
        let at = server.monitor(listener, metrics.clone()).map_err(Failure::work)?;
        let open = match at.ip().is_loopback() {
            true => "",
            false => "; anyone who can reach this address can read them",
        };
        log(&Event::Note { note: format!("metrics and health at http://{at}{open}") });
        Ok(())
    }

    /// Says what is saved and how to resume.
    fn stopped(&self, after: u32, rounds: u32, out: &Path, log: &Log) -> Result<(), Failure> {
        let run = quoted(&out.display().to_string());
        let resume = match self.rollback {
            None => format!("fedtvd serve {run} with the same options"),
            Some(_) => format!("fedtvd serve {run} with the same options, but without --rollback"),
        };
        let note = format!(
            "stopped after round {after} of {rounds}; its model and all acknowledged updates are saved in {run}; to \
             resume: {resume}"
        );
        log(&Event::Note { note });
        let view = Stopped { stopped_after: after, rounds, directory: out.to_owned(), resume };
        if self.output.json { self.output.answer(&view, String::new) } else { Ok(()) }
    }

    /// The clients' names by number, as far as they have certificates.
    fn names(&self) -> BTreeMap<ClientId, String> {
        let list = if self.plaintext { None } else { AllowList::read(&self.certs.join("clients.toml")).ok() };
        let clients = list.into_iter().flat_map(|list| list.clients);
        clients.map(|listed| (listed.id, listed.name)).collect()
    }

    /// The ids of the clients listed in a file, one name per line.
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
            None if self.plaintext => {
                name.parse().map_err(|_| anyhow!("{name} is not the number of a client"))
            }
            None => Err(anyhow!("{}: {name} has no certificate", path.display())),
        };
        names.map(|name| number(name).map_err(Failure::Request)).collect()
    }

    fn show(&self, line: &RoundRecord) {
        if self.output.quiet {
            return;
        }
        match self.log {
            Format::Json => eprint_line(serde_json::to_string(line).unwrap_or_default()),
            Format::Text => eprint_line(result(line)),
        }
    }

    /// Asks a running server for its status.
    fn ask(&self, out: &Path) -> Result<(), Failure> {
        let path = out.join("federation/address");
        let address = std::fs::read_to_string(&path)
            .with_context(|| {
                format!("no server has been started in {}: reading {}", out.display(), path.display())
            })
            .map_err(Failure::Request)?;
        let security = if self.plaintext {
            Security::Claimed("operator".to_owned())
        } else {
            Security::operator(&self.certs).map_err(Failure::request)?
        };
        let mut address: SocketAddr =
            address.trim().parse().with_context(|| path.display().to_string()).map_err(Failure::Work)?;
        // 0.0.0.0 means all addresses of this machine.
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let address = address.to_string();
        let status = ask(&address, &security);
        let status = status
            .with_context(|| {
                let run = quoted(&out.display().to_string());
                // Only what is certain: a server may run and not answer.
                match RunDirectory::open(out).and_then(|run| run.summary()) {
                    Ok(Some(summary)) => format!(
                        "the run in {run} is finished after round {}, so that its server has ended (fedtvd evaluate {run} shows the \
                         result); asking it at {address}",
                        summary.rounds
                    ),
                    _ => format!("asking the server of {run} at {address}; if it is not running: fedtvd serve {run} with its options"),
                }
            })
            .map_err(Failure::Work)?;
        self.output.answer(&status, || status.text())
    }
}

/// Tells the operator whether the audit log can be written.
fn report(problem: Option<String>, audit: &Audit, events: &EventLog, metrics: &Metrics) {
    metrics.audit(audit.problem(), audit.missing_events());
    if let Some(note) = problem {
        events.write_even_if_quiet(&Event::Note { note });
    }
}

/// SIGTERM and Ctrl-C stop the server after saving, and at once if repeated; SIGHUP reads the list of clients again and
/// reopens the log.
fn handle_signals(
    server: &Server,
    coordinator: &Arc<Coordinator>,
    events: &Arc<EventLog>,
) -> std::io::Result<()> {
    let (stopping, events, reload) = (Arc::clone(coordinator), Arc::clone(events), server.reloader());
    let asked = AtomicBool::new(false);
    server.on_signals(move |signal| match signal {
        Signal::Stop if asked.swap(true, Ordering::Relaxed) => std::process::exit(1),
        Signal::Stop => stopping.stop(),
        Signal::Reload => {
            events.reopen();
            reload();
        }
    })
}

/// The result of a round in one line.
fn result(line: &RoundRecord) -> String {
    let (round, seconds) = (line.round, line.seconds);
    if line.accuracy.is_none() {
        return format!("round {round}: not evaluated  {seconds:.2} s");
    }
    let median = match line.median_accuracy {
        None => String::new(),
        median => format!(" (median of the clients {})", per_cent(median, 2)),
    };
    let (accuracy, loss) = (per_cent(line.accuracy, 2), mean_loss(line.loss));
    format!("round {round}: accuracy {accuracy}{median}  loss {loss}  {seconds:.2} s")
}

/// What screening did to a client's update, if it did anything.
fn screened(client: &ClientRecord) -> Option<String> {
    match (&client.failure, &client.screened) {
        (Some(failure @ ClientFailure::BeyondBound { .. }), _) => Some(format!("update rejected: {failure}")),
        (_, Some(screened)) => Some(scaled_down(screened)),
        _ => None,
    }
}

fn scaled_down(Screened { part, norm, bound, factor }: &Screened) -> String {
    let [norm, bound, factor] = [norm, bound, factor].map(|value| magnitude(*value));
    format!(
        "update scaled down by a factor of {factor}: the change of {part} has norm {norm}, above the bound of {bound}"
    )
}

fn failure(error: FederationError) -> Failure {
    match error {
        FederationError::Run(error) => run_failure(error),
        FederationError::Ledger(_) | FederationError::SchemaChanged { .. } => Failure::work(error),
        other => Failure::request(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_clients_accuracies_stands_beside_the_accuracy() {
        let line = RoundRecord { round: 3, accuracy: Some(0.5), loss: Some(1.25), ..RoundRecord::default() };
        assert_eq!(result(&line), "round 3: accuracy 50.00 %  loss 1.2500  0.00 s");
        let judged = RoundRecord { median_accuracy: Some(0.412), ..line };
        let said = "round 3: accuracy 50.00 % (median of the clients 41.20 %)  loss 1.2500  0.00 s";
        assert_eq!(result(&judged), said);
        assert_eq!(result(&RoundRecord::default()), "round 0: not evaluated  0.00 s");
    }

    #[test]
    fn numbers_of_screening_have_no_exponent_unless_they_are_very_large_or_small() {
        let screened = Screened { part: "model".to_owned(), norm: 1.098, bound: 0.784, factor: 0.714 };
        assert_eq!(
            scaled_down(&screened),
            "update scaled down by a factor of 0.714: the change of model has norm 1.098, above the bound of 0.784"
        );
        let huge = Screened { norm: 3.4e38, factor: 2e-38, ..screened };
        let said = scaled_down(&huge);
        assert!(said.contains("a factor of 2.0e-38") && said.contains("norm 3.4e38"), "{said}");
    }
}
