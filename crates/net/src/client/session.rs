//! One connection of a client, from Hello to its end, and what outlives it.

use crate::client::agreement::{check_announced_reference, check_welcome};
use crate::client::backoff::Backoff;
use crate::client::enrol::enrol;
use crate::client::join::{JoinError, Options, Progress, address, blocking};
use crate::client::newest_server;
use crate::client::policy::Violation;
use crate::client::sent_log::SentLog;
use crate::client::site::{Answer, Site, check_run};
use crate::client::site_table::SiteTable;
use crate::client::{Connection, ConnectionError, SiteError, Task};
use crate::wire;
use fedtvd_run::directory::{FileError, sha256};
use prost::bytes::Bytes;
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::CertificateDer;

/// What a client keeps between connections.
pub(crate) struct Session<'a> {
    options: &'a Options,
    report: &'a (dyn Fn(&Progress) + Sync),
    pub(crate) backoff: Backoff,
    /// Whether it has ever joined: then a server with other data or another model is a mistake that may be mended.
    pub(crate) joined: bool,
    unsent: Option<Unsent>,
    table: SiteTable,
    sent: Arc<SentLog>,
    /// The certificate of the last connection.
    presented: Option<CertificateDer<'static>>,
}

/// The result of a job that the server has not acknowledged yet, so that the same job is not trained twice.
struct Unsent {
    /// Hash of the job.
    job: String,
    /// The update's bytes, or why there are none.
    update: Result<Bytes, String>,
}

/// Surveys that are answered on one connection: a second one follows when the reference is known.
const SURVEYS: u32 = 4;

/// Refusals after which the server asks for the same again.
const REPEATED: [&str; 4] = ["too-long", "too-short", "bad-hash", "bad-counts"];

impl<'a> Session<'a> {
    /// A client that has not connected yet.
    pub(crate) fn new(
        options: &'a Options,
        report: &'a (dyn Fn(&Progress) + Sync),
    ) -> Result<Self, FileError> {
        let (backoff, table, sent) = (Backoff::default(), SiteTable::default(), options.sent_log()?);
        Ok(Self { options, report, backoff, joined: false, unsent: None, table, sent, presented: None })
    }

    /// Whether the site's folder has another certificate than the last connection presented.
    pub(crate) fn certificate_renewed(&self) -> bool {
        self.options.security.certificate() != self.presented
    }

    /// Connects and works until the federation is over or the connection ends.
    pub(crate) async fn connect(&mut self) -> Result<wire::Finished, JoinError> {
        let address = address(&self.options.server)?;
        self.sent.connect(&address);
        self.presented = self.options.security.certificate();
        let mut connection = Connection::dial(&address, &self.options.security).await?.listed(&self.sent);
        let welcome = connection.hello().await?;
        check_run(&welcome.run)?;
        self.sent.enter(&welcome.run);
        self.follow_newest(&mut connection, &welcome).await?;
        let worked = self.work(&welcome, &mut connection).await;
        let reason = match &worked {
            Err(JoinError::Policy(violation) | JoinError::Site(SiteError::Policy(violation))) => {
                Some(violation.to_string())
            }
            Err(JoinError::Site(error)) => error.reason_for_server().map(str::to_owned),
            _ => None,
        };
        if let Some(reason) = reason {
            // The server's operator should know; if it cannot be told, the site's own error stands.
            let _ = connection.decline(&welcome.run, reason).await;
        }
        worked
    }

    async fn work(
        &mut self,
        welcome: &wire::Welcome,
        connection: &mut Connection,
    ) -> Result<wire::Finished, JoinError> {
        let (options, report) = (self.options, self.report);
        check_welcome(&options.policy, welcome)?;
        check_announced_reference(&self.sent, welcome)?;
        let data = self.table.data(welcome, options, connection, report).await?;
        let mut site = {
            let (welcome, options) = (welcome.clone(), options.clone());
            blocking(move || Site::new(&welcome, &options, &data)).await?
        };
        connection.receive_at_most(site.largest_job());
        let run = welcome.run.clone();
        report(&Progress::Joined(welcome.clone()));
        self.joined = true;
        let mut surveys = 0;
        loop {
            let task = connection.pull(&run).await?;
            self.backoff.connected();
            match task {
                // Only accepted work, or no work at all, counts as a success: a server that refuses everything is asked
                // less and less often.
                Task::Wait => self.backoff.reset(),
                Task::Finished(finished) => return Ok(finished),
                Task::Survey(survey) => {
                    surveys += 1;
                    if surveys > SURVEYS {
                        return Err(ConnectionError::Lost(
                            "the server asks for surveys without end".to_owned(),
                        )
                        .into());
                    }
                    enrol(connection, &mut site, &run, &survey, &self.sent).await?;
                }
                Task::TooLarge { round, bytes } => {
                    // Model, carried vectors and head of this model are smaller, whatever the policy allows.
                    let most = site.largest_job();
                    let why = format!("a job or model of {bytes} bytes; this model's has at most {most}");
                    connection.fail(&run, round, why.clone()).await?;
                    return Err(SiteError::Unreadable { what: "a job", why }.into());
                }
                Task::Evaluate(round, model) => {
                    self.check_evaluation(welcome)?;
                    let found;
                    (site, found) = blocking(move || {
                        let found = site.evaluate(&model);
                        (site, found)
                    })
                    .await;
                    let evaluated = match found {
                        Ok(found) => connection.evaluate(&run, round, found).await,
                        Err(why) => Err(ConnectionError::Lost(format!("the model cannot be read: {why}"))),
                    };
                    self.settle(evaluated).await?;
                }
                Task::Train(round, job) => site = self.train(site, round, job, welcome, connection).await?,
            }
        }
    }

    /// Checks a request to evaluate a model. The client connects again, less and less often, while it is not allowed.
    fn check_evaluation(&self, welcome: &wire::Welcome) -> Result<(), JoinError> {
        if !welcome.clients_evaluate {
            let why = "the server asks for an evaluation, which it has not announced".to_owned();
            return Err(ConnectionError::Lost(why).into());
        }
        let allowed = self.options.policy.check_evaluations(self.sent.evaluations_today()?);
        Ok(allowed.map_err(|violation| ConnectionError::Lost(violation.to_string()))?)
    }

    /// Trains, unless it was done before, and sends the update.
    async fn train(
        &mut self,
        mut site: Site,
        round: u32,
        job: Vec<u8>,
        welcome: &wire::Welcome,
        connection: &mut Connection,
    ) -> Result<Site, JoinError> {
        let (run, hash) = (&welcome.run, sha256(&job));
        if self.unsent.as_ref().is_none_or(|unsent| unsent.job != hash) {
            if let Err(violation) = self.options.policy.check_rounds(self.sent.jobs_today()?) {
                self.refuse(connection, run, round, violation).await?;
                return Ok(site);
            }
            // An update that the server no longer asks for would take memory beside the new one.
            self.unsent = None;
            (self.report)(&Progress::Training(round.saturating_add(1)));
            let trained;
            (site, trained) = blocking(move || {
                let trained = site.train(&job);
                (site, trained)
            })
            .await;
            let update = match trained? {
                Answer::Update(bytes) => Ok(Bytes::from(bytes)),
                Answer::Failure(failure) => Err(failure.to_string()),
                Answer::Refused(violation) => {
                    self.refuse(connection, run, round, violation).await?;
                    return Ok(site);
                }
            };
            self.unsent = Some(Unsent { job: hash, update });
        }
        let Some(Unsent { update, .. }) = &self.unsent else { return Ok(site) };
        let sent = match update {
            Err(failure) => connection.fail(run, round, failure.clone()).await,
            Ok(bytes) => {
                let (client, hash, length) = (welcome.client, sha256(bytes), bytes.len() as u64);
                let ticket =
                    wire::Ticket { run: run.clone(), round, client, hash, bytes: length, continues: true };
                let sent = connection.upload(ticket, bytes.clone()).await;
                sent.map(|_| (self.report)(&Progress::Sent(round.saturating_add(1))))
            }
        };
        if sent.is_ok() {
            self.unsent = None;
        }
        self.settle(sent).await?;
        Ok(site)
    }

    /// Refuses a job that the site's policy does not allow; the client stays only if it may be allowed on another day.
    async fn refuse(
        &self,
        connection: &mut Connection,
        run: &str,
        round: u32,
        violation: Violation,
    ) -> Result<(), JoinError> {
        connection.fail(run, round, violation.to_string()).await?;
        if violation.passing {
            (self.report)(&Progress::Declined(round.saturating_add(1), violation));
            return Ok(());
        }
        Err(violation.into())
    }

    /// Refuses to work for a server that was started before another one of this run, after telling it so.
    async fn follow_newest(
        &self,
        connection: &mut Connection,
        welcome: &wire::Welcome,
    ) -> Result<(), JoinError> {
        let folder = &self.options.folder;
        let known = newest_server::largest(folder, welcome);
        let Some(lease) = connection.lease else {
            return known.map_or(Ok(()), |_| Err(newest_server::outdated(folder, welcome).into()));
        };
        if newest_server::from_the_future(lease) {
            return Err(newest_server::wrong_clock(lease).into());
        }
        connection.largest_lease = known.max(Some(lease));
        if known.is_some_and(|known| known > lease) {
            // The server refuses this request and logs it for its operator.
            let _ = connection.pull(&welcome.run).await;
            return Err(newest_server::outdated(folder, welcome).into());
        }
        if known != Some(lease)
            && let Err(error) = newest_server::remember(folder, welcome, lease)
        {
            // Without a folder to write to, the client works as before, but cannot recognise a copy of the server.
            (self.report)(&Progress::Read(vec![format!("the newest server is not remembered: {error}")]));
        }
        Ok(())
    }

    /// Reports the refusal of one piece of work, which is not a reason to leave.
    async fn settle(&mut self, done: Result<(), ConnectionError>) -> Result<(), JoinError> {
        match done {
            Ok(()) => {
                self.backoff.reset();
                Ok(())
            }
            Err(error @ ConnectionError::Refused { passing: false, .. })
                if JoinError::Connection(error.clone()).passing() =>
            {
                let asked_again = matches!(&error, ConnectionError::Refused { code, .. } if REPEATED.contains(&code.as_str()));
                (self.report)(&Progress::Refused(error));
                if asked_again {
                    tokio::time::sleep(self.backoff.delay()).await;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
