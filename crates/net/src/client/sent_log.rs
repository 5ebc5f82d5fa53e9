//! `sent.jsonl`: every message that left the site, in plain words and with its size, written before the message is sent.
//!
//! It is also the site's memory: which references its label distribution was compared with, in all runs, and how many
//! updates it sent today. Whoever deletes it lets the site answer again.

use crate::client::outgoing::Outgoing;
use crate::client::policy::{Policy, Violation};
use fedtvd_core::labels::Ask;
use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::{doing, make_folder, private};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use time::OffsetDateTime;

/// One line: a message, or several requests for work in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentLine {
    /// When it was sent, in UTC.
    pub time: String,
    /// The server's address.
    pub server: String,
    /// SHA-256 of the authority's certificate; empty without TLS.
    pub authority: String,
    /// The site's data.
    pub data: String,
    /// The run; empty before the server has named it.
    pub run: String,
    /// The request, by its name in the protocol.
    pub message: String,
    /// What it says.
    pub content: String,
    /// Number of messages of this kind in a row.
    pub count: u64,
    /// Size of all of them, without the transport's own.
    pub bytes: u64,
    /// SHA-256 of the reference distribution to which a distance was disclosed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reference: Option<String>,
}

/// The requests by which a site asks for work; they are counted and listed with the next message.
const PULL: &str = "Pull";
/// The request that sends an update.
pub(crate) const UPLOAD: &str = "Upload";

/// The log of one site towards one server.
#[derive(Debug)]
pub(crate) struct SentLog {
    path: PathBuf,
    server: String,
    authority: String,
    data: String,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    run: String,
    /// Requests for work that are not listed yet, and their size.
    pulls: (u64, u64),
    /// References that this site's distribution was compared with, for this data set and authority.
    references: BTreeSet<String>,
    /// The day, and the hashes of the updates sent on it.
    today: (String, BTreeSet<String>),
}

impl SentLog {
    /// Opens the log and recalls what was sent before.
    pub(crate) fn open(
        path: PathBuf,
        server: String,
        authority: String,
        data: String,
    ) -> Result<Self, FileError> {
        let mut inner = Inner::default();
        inner.today.0 = today();
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.map_err(doing("reading", &path))?,
        };
        // A line that was cut off by a crash is not of a message that was sent.
        for line in text.lines().filter_map(|line| serde_json::from_str::<SentLine>(line).ok()) {
            if line.data == data && line.authority == authority {
                inner.references.extend(line.reference);
            }
            if line.data == data && line.message == UPLOAD && line.time.starts_with(&inner.today.0) {
                inner.today.1.insert(hash_of(&line.content));
            }
        }
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        if !text.is_empty() && !text.ends_with('\n') {
            let end = OpenOptions::new().append(true).open(&path).and_then(|mut file| file.write_all(b"\n"));
            end.map_err(doing("writing", &path))?;
        }
        Ok(Self { path, server, authority, data, inner: Mutex::new(inner) })
    }

    /// The server has named its run.
    pub(crate) fn enter(&self, run: &str) {
        self.inner().run = run.to_owned();
    }

    /// Checks a survey: the statistic, and whether this reference is one too many.
    pub(crate) fn check_survey(&self, policy: &Policy, ask: Ask, reference: &str) -> Result<(), Violation> {
        policy.check_statistic(ask)?;
        let inner = self.inner();
        let counts = matches!(ask, Ask::Distance | Ask::Released) && !policy.histogram();
        if counts && !inner.references.contains(reference) && inner.references.len() >= policy.references {
            return Err(Violation {
                asked: format!(
                    "a distance to another reference distribution: this data set was compared with {} for the same authority",
                    inner.references.len()
                ),
                key: "references",
                allowed: policy.references.to_string(),
                passing: false,
            });
        }
        Ok(())
    }

    /// Updates sent today; one that is sent again after a lost connection counts once.
    pub(crate) fn updates_today(&self) -> u64 {
        self.inner().today().len() as u64
    }

    /// Lists a message. It must not be sent if this fails.
    pub(crate) fn record(&self, outgoing: Outgoing) -> Result<(), FileError> {
        let Outgoing { message, content, bytes, reference } = outgoing;
        let mut inner = self.inner();
        if message == PULL {
            inner.pulls.0 += 1;
            inner.pulls.1 += bytes as u64;
            return Ok(());
        }
        let mut lines = Vec::new();
        if let (count @ 1.., bytes) = std::mem::take(&mut inner.pulls) {
            let content = "requests for work, without content".to_owned();
            lines.push(self.line(&inner.run, PULL, content, (count, bytes), None));
        }
        lines.push(self.line(&inner.run, message, content.clone(), (1, bytes as u64), reference.clone()));
        let text: String = lines
            .iter()
            .map(|line| serde_json::to_string(line).expect("a line is plain data") + "\n")
            .collect();
        let written = private().create(true).append(true).open(&self.path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_data()
        });
        written.map_err(doing("writing", &self.path))?;
        inner.references.extend(reference);
        if message == UPLOAD {
            inner.today().insert(hash_of(&content));
        }
        Ok(())
    }

    fn line(
        &self,
        run: &str,
        message: &str,
        content: String,
        (count, bytes): (u64, u64),
        reference: Option<String>,
    ) -> SentLine {
        let (server, authority, data) = (self.server.clone(), self.authority.clone(), self.data.clone());
        let (time, run, message) = (now(), run.to_owned(), message.to_owned());
        SentLine { time, server, authority, data, run, message, content, count, bytes, reference }
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The updates of today.
    fn today(&mut self) -> &mut BTreeSet<String> {
        let day = today();
        if self.today.0 != day {
            self.today = (day, BTreeSet::new());
        }
        &mut self.today.1
    }
}

/// The hash of an update, with which its lines end.
fn hash_of(content: &str) -> String {
    content.rsplit(' ').next().unwrap_or_default().to_owned()
}

/// The time as 2026-01-31T12:00:00Z.
fn now() -> String {
    let now = OffsetDateTime::now_utc();
    format!("{}T{:02}:{:02}:{:02}Z", now.date(), now.hour(), now.minute(), now.second())
}

fn today() -> String {
    OffsetDateTime::now_utc().date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(folder: &std::path::Path, authority: &str, data: &str) -> SentLog {
        SentLog::open(folder.join("sent.jsonl"), "host:1".into(), authority.into(), data.into()).unwrap()
    }

    fn enrolment(reference: &str) -> Outgoing {
        Outgoing { message: "Enrol", reference: Some(reference.to_owned()), ..Outgoing::default() }
    }

    #[test]
    fn one_reference_is_answered_per_data_set_and_authority_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let policy = Policy::default();
        let first = log(folder.path(), "ca", "table.csv");
        assert_eq!(first.check_survey(&policy, Ask::Distance, "q1"), Ok(()));
        first.record(enrolment("q1")).unwrap();
        for log in [&first, &log(folder.path(), "ca", "table.csv")] {
            assert_eq!(log.check_survey(&policy, Ask::Distance, "q1"), Ok(()), "the same question again");
            assert_eq!(log.check_survey(&policy, Ask::Nothing, "q2"), Ok(()));
            let error = log.check_survey(&policy, Ask::Distance, "q2").unwrap_err().to_string();
            assert!(error.ends_with("compared with 1 for the same authority (references = 1)"), "{error}");
        }
        assert_eq!(
            log(folder.path(), "another", "table.csv").check_survey(&policy, Ask::Distance, "q2"),
            Ok(())
        );
        assert_eq!(log(folder.path(), "ca", "other.csv").check_survey(&policy, Ask::Distance, "q2"), Ok(()));
        let open = Policy { statistics: vec![Ask::Distance, Ask::Histogram], ..policy };
        assert_eq!(first.check_survey(&open, Ask::Distance, "q2"), Ok(()), "a histogram tells more");
    }

    #[test]
    fn updates_of_today_are_counted_also_after_a_restart_and_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let first = log(folder.path(), "ca", "table.csv");
        let update =
            |hash: &str| Outgoing { message: UPLOAD, content: hash.to_owned(), ..Outgoing::default() };
        for hash in ["a", "b", "b", "c"] {
            first.record(update(hash)).unwrap();
        }
        let path = folder.path().join("sent.jsonl");
        let text = std::fs::read_to_string(&path).unwrap().replacen(&today(), "2020-01-01", 1);
        std::fs::write(&path, text + "{\"time\":\"20").unwrap();
        let second = log(folder.path(), "ca", "table.csv");
        assert_eq!((first.updates_today(), second.updates_today()), (3, 2));
        second.record(update("d")).unwrap();
        assert_eq!(log(folder.path(), "ca", "table.csv").updates_today(), 3, "the torn line was ended");
    }

    #[test]
    fn requests_for_work_are_counted_and_listed_before_the_next_message() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(folder.path(), "ca", "table.csv");
        log.enter("r1");
        for _ in 0..5 {
            log.record(Outgoing { message: PULL, bytes: 4, ..Outgoing::default() }).unwrap();
        }
        log.record(Outgoing { message: "Fail", content: "why".into(), bytes: 9, reference: None }).unwrap();
        let text = std::fs::read_to_string(folder.path().join("sent.jsonl")).unwrap();
        let lines: Vec<SentLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let listed: Vec<_> =
            lines.iter().map(|line| (line.message.as_str(), line.count, line.bytes)).collect();
        assert_eq!(listed, [("Pull", 5, 20), ("Fail", 1, 9)]);
        assert!(lines.iter().all(|line| line.run == "r1" && line.data == "table.csv"));
    }
}
