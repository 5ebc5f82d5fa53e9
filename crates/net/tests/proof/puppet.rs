//! A client whose every message is controlled by the test.

use fedtvd_core::labels::{Ask, Reference, size};
use fedtvd_core::memory::Memory;
use fedtvd_core::model::{Layout, Network, Params};
use fedtvd_core::round::{ClientId, Job, Report, Upload};
use fedtvd_net::client::{Connection, ConnectionError, Security, Task};
use fedtvd_net::wire;
use fedtvd_run::directory::sha256;
use std::sync::Arc;

pub(crate) struct Puppet {
    pub(crate) link: Connection,
    pub(crate) welcome: wire::Welcome,
    pub(crate) layout: Arc<Layout>,
    pub(crate) client: ClientId,
}

/// Label counts of a client over ten classes, different for each client.
pub(crate) fn counts(client: ClientId) -> Vec<u64> {
    (0..10).map(|class| 1 + u64::from((client * 7 + class * client) % 11)).collect()
}

impl Puppet {
    pub(crate) async fn dial(
        address: &str,
        security: &Security,
        client: ClientId,
    ) -> Result<Self, ConnectionError> {
        let mut link = Connection::dial(address, security).await?;
        let welcome = link.hello().await?;
        let network: Network = serde_json::from_str(&welcome.network).unwrap();
        let layout = Arc::new(Layout::of(&network).unwrap());
        Ok(Self { link, welcome, layout, client })
    }

    /// Enrols with [`counts`].
    pub(crate) async fn enrol(&mut self) -> Result<(), ConnectionError> {
        let enrolment = self.enrolment(&counts(self.client), &Reference::uniform(10), Ask::Distance);
        self.link.enrol(enrolment).await
    }

    pub(crate) fn enrolment(&self, counts: &[u64], reference: &Reference, ask: Ask) -> wire::Enrolment {
        let statistic = serde_json::to_string(&ask.answer(counts, reference)).unwrap();
        wire::Enrolment { run: self.welcome.run.clone(), size: size(counts), statistic, holdout: 0 }
    }

    /// The next job; enrols and waits as long as it takes.
    pub(crate) async fn job(&mut self) -> Job {
        loop {
            match self.link.pull(&self.welcome.run).await.unwrap() {
                Task::Train(_, bytes) => return Job::from_bytes(&bytes, &self.layout).unwrap(),
                Task::Survey(_) => self.enrol().await.unwrap(),
                Task::Wait => {}
                other => panic!("{other:?} instead of a job"),
            }
        }
    }

    /// The update e_k: 1 at the client's index, 0 elsewhere, with a minimal honest report.
    pub(crate) fn one_hot(&self, job: &Job) -> Upload {
        let mut params = Params::zeros(Arc::clone(&self.layout));
        params.values[self.client as usize] = 1.0;
        let [reach, _] = job.offer.local.reaches(0.0, size(&counts(self.client)));
        let report = Report {
            round: job.offer.round,
            steps: 1,
            reach,
            losses: [1.0, 0.5],
            remembers: true,
            branch: 0,
        };
        Upload { client: self.client, params, carried: Memory::default(), report }
    }

    pub(crate) fn ticket(&self, round: u32, bytes: &[u8]) -> wire::Ticket {
        let (run, client) = (self.welcome.run.clone(), self.client);
        wire::Ticket { run, round, client, hash: sha256(bytes), bytes: bytes.len() as u64, continues: false }
    }

    /// Sends bytes as the update of a round.
    pub(crate) async fn send(&mut self, round: u32, bytes: Vec<u8>) -> Result<bool, ConnectionError> {
        let ticket = self.ticket(round, &bytes);
        self.link.upload(ticket, bytes.into()).await.map(|receipt| receipt.already)
    }
}

/// The code of a refusal.
pub(crate) fn code<T: std::fmt::Debug>(answer: Result<T, ConnectionError>) -> String {
    match answer {
        Err(ConnectionError::Refused { code, .. }) => code,
        Err(ConnectionError::Tls { code, .. }) => code.to_owned(),
        other => panic!("{other:?} instead of a refusal"),
    }
}
