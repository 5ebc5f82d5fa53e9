//! `sent.jsonl`: every message that left the site, in plain words and with its size, written before the message is sent. Only
//! requests for work, which say nothing, are counted first and listed later: with the next message, every hour, and at the end.
//!
//! It is also the site's memory ([`Remembered`]). Whoever deletes it lets the site answer again. Clients that run at the same
//! time with the same file see what the others have sent.

use crate::client::JoinError;
use crate::client::outgoing::Outgoing;
use crate::client::policy::Policy;
use crate::client::sent_memory::Remembered;
use crate::utc;
use fedtvd_core::labels::Ask;
use fedtvd_run::directory::FileError;
use fedtvd_run::directory::files::{doing, make_folder, private};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
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
/// The request that says why there is no update.
pub(crate) const FAIL: &str = "Fail";
/// The request that sends the result of an evaluation.
pub(crate) const EVALUATION: &str = "Judge";
/// The request that sends an update.
pub(crate) const UPLOAD: &str = "Upload";
/// Requests for work are listed at least this often.
const LISTED_EVERY: Duration = Duration::from_secs(3600);

/// The log of one site.
#[derive(Debug)]
pub(crate) struct SentLog {
    path: PathBuf,
    authority: String,
    data: String,
    policy: Policy,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    server: String,
    run: String,
    /// Requests for work that are not listed yet, and their size.
    pulls: (u64, u64),
    /// When requests for work were last listed.
    listed: Instant,
    /// Number of bytes of the file that were read.
    read: u64,
    remembered: Remembered,
}

impl SentLog {
    /// Opens the log and recalls what was sent before.
    pub(crate) fn open(
        path: PathBuf,
        authority: String,
        data: String,
        policy: Policy,
    ) -> Result<Self, FileError> {
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let remembered = Remembered::new(&authority, &data);
        let (server, run) = (String::new(), String::new());
        let inner = Inner { server, run, pulls: (0, 0), listed: Instant::now(), read: 0, remembered };
        let log = Self { path, authority, data, policy, inner: Mutex::new(inner) };
        log.refresh(&mut log.inner())?;
        Ok(log)
    }

    /// The address of the server that messages are sent to from now on.
    pub(crate) fn connect(&self, server: &str) {
        self.inner().server = server.to_owned();
    }

    /// The server has named its run.
    pub(crate) fn enter(&self, run: &str) {
        self.inner().run = run.to_owned();
    }

    /// Checks a survey: the statistic, and whether this reference is one too many.
    pub(crate) fn check_survey(&self, ask: Ask, reference: &str) -> Result<(), JoinError> {
        self.policy.check_statistic(ask)?;
        if matches!(ask, Ask::Distance | Ask::Released) {
            let mut inner = self.inner();
            self.refresh(&mut inner)?;
            inner.remembered.check_reference(&self.policy, reference)?;
        }
        Ok(())
    }

    /// Number of references that the data set was compared with, for this authority.
    pub(crate) fn references(&self) -> usize {
        self.inner().remembered.references()
    }

    /// Number of jobs of today that were answered, with an update or without; an update that is sent again after a lost
    /// connection counts once.
    pub(crate) fn jobs_today(&self) -> Result<u64, FileError> {
        let mut inner = self.inner();
        self.refresh(&mut inner)?;
        Ok(inner.remembered.jobs_today())
    }

    /// Number of evaluations of today.
    pub(crate) fn evaluations_today(&self) -> Result<u64, FileError> {
        let mut inner = self.inner();
        self.refresh(&mut inner)?;
        Ok(inner.remembered.evaluations_today())
    }

    /// Lists a message. It must not be sent if this fails.
    pub(crate) fn record(&self, outgoing: Outgoing) -> Result<(), FileError> {
        let mut inner = self.inner();
        if outgoing.message != PULL {
            return self.write(&mut inner, Some(outgoing));
        }
        inner.pulls.0 += 1;
        inner.pulls.1 += outgoing.bytes as u64;
        if inner.listed.elapsed() >= LISTED_EVERY { self.write(&mut inner, None) } else { Ok(()) }
    }

    /// Appends the requests for work so far, and a message, if the policy still allows it.
    fn write(&self, inner: &mut Inner, outgoing: Option<Outgoing>) -> Result<(), FileError> {
        let mut file = self.refresh(inner)?;
        let mut lines = Vec::new();
        if let (count @ 1.., bytes) = inner.pulls {
            let content = "requests for work, without content".to_owned();
            lines.push(self.line(inner, PULL, content, (count, bytes), None));
        }
        if let Some(Outgoing { message, content, bytes, reference }) = outgoing {
            let line = self.line(inner, message, content, (1, bytes as u64), reference);
            let allowed = inner.remembered.check(&self.policy, &line);
            allowed.map_err(|violation| doing("listing in", &self.path)(io::Error::other(violation)))?;
            lines.push(line);
        }
        let text: String = lines
            .iter()
            .map(|line| serde_json::to_string(line).expect("a line is plain data") + "\n")
            .collect();
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        written.map_err(doing("writing", &self.path))?;
        lines.iter().for_each(|line| inner.remembered.add(line));
        inner.read += text.len() as u64;
        (inner.pulls, inner.listed) = ((0, 0), Instant::now());
        Ok(())
    }

    /// Reads what other clients of the site have listed since. Returns the file, which is locked until it is dropped.
    fn refresh(&self, inner: &mut Inner) -> Result<File, FileError> {
        let opened = private().create(true).read(true).append(true).open(&self.path);
        let mut file =
            opened.and_then(|file| file.lock().map(|()| file)).map_err(doing("opening", &self.path))?;
        let mut text = String::new();
        let read = file.seek(SeekFrom::Start(inner.read)).and_then(|_| file.read_to_string(&mut text));
        read.map_err(doing("reading", &self.path))?;
        // A line without its end was cut off by a crash, before its message was sent.
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        if complete < text.len() {
            file.set_len(inner.read + complete as u64).map_err(doing("writing", &self.path))?;
        }
        for line in text[..complete].lines() {
            let line = serde_json::from_str(line).map_err(|error| {
                let why = format!("damaged line {line:?} ({error}): without it, the site does not know what it has disclosed");
                doing("reading", &self.path)(io::Error::new(io::ErrorKind::InvalidData, why))
            })?;
            inner.remembered.add(&line);
        }
        inner.read += complete as u64;
        Ok(file)
    }

    fn line(
        &self,
        inner: &Inner,
        message: &str,
        content: String,
        (count, bytes): (u64, u64),
        reference: Option<String>,
    ) -> SentLine {
        let (authority, data) = (self.authority.clone(), self.data.clone());
        let (server, run) = (inner.server.clone(), inner.run.clone());
        let (time, message) = (now(), message.to_owned());
        SentLine { time, server, authority, data, run, message, content, count, bytes, reference }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SentLog {
    fn drop(&mut self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.pulls.0 > 0 {
            // Requests for work say nothing; that they cannot be listed at the end has no remedy.
            let _ = self.write(&mut inner, None);
        }
    }
}

/// The time as 2026-01-31T12:00:00Z.
fn now() -> String {
    utc::seconds(OffsetDateTime::now_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::sent_memory::today;
    use std::path::Path;

    fn open(folder: &Path, authority: &str, data: &str, policy: Policy) -> Result<SentLog, FileError> {
        SentLog::open(folder.join("sent.jsonl"), authority.into(), data.into(), policy)
    }

    fn log(folder: &Path, authority: &str, data: &str) -> SentLog {
        open(folder, authority, data, Policy::default()).unwrap()
    }

    fn enrolment(reference: &str) -> Outgoing {
        Outgoing { message: "Enrol", reference: Some(reference.to_owned()), ..Outgoing::default() }
    }

    fn update(hash: &str) -> Outgoing {
        let content = format!("update of round 1: SHA-256 {hash}");
        Outgoing { message: UPLOAD, content, ..Outgoing::default() }
    }

    fn lines(folder: &Path) -> Vec<SentLine> {
        let text = std::fs::read_to_string(folder.join("sent.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn one_reference_is_answered_per_data_set_and_authority_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let first = log(folder.path(), "ca", "table.csv");
        first.check_survey(Ask::Distance, "q1").unwrap();
        first.record(enrolment("q1")).unwrap();
        for log in [&first, &log(folder.path(), "ca", "table.csv")] {
            log.check_survey(Ask::Distance, "q1").unwrap();
            log.check_survey(Ask::Nothing, "q2").unwrap();
            let error = log.check_survey(Ask::Distance, "q2").unwrap_err().to_string();
            assert!(error.ends_with("compared with 1 for the same authority (references = 1)"), "{error}");
        }
        log(folder.path(), "another", "table.csv").check_survey(Ask::Distance, "q2").unwrap();
        log(folder.path(), "ca", "other.csv").check_survey(Ask::Distance, "q2").unwrap();
        let statistics = vec![Ask::Distance, Ask::Histogram];
        let policy = Policy { statistics, ..Policy::default() };
        let log = open(folder.path(), "ca", "table.csv", policy).unwrap();
        log.check_survey(Ask::Distance, "q2").unwrap();
    }

    #[test]
    fn clients_that_run_at_the_same_time_disclose_together_what_one_may() {
        let folder = tempfile::tempdir().unwrap();
        let policy = Policy { rounds_per_day: 2, ..Policy::default() };
        let [one, other] = [(); 2].map(|()| open(folder.path(), "ca", "table.csv", policy.clone()).unwrap());
        one.record(enrolment("q1")).unwrap();
        other.check_survey(Ask::Distance, "q2").unwrap_err();
        // Both had checked before either of them was listed.
        let error = other.record(enrolment("q2")).unwrap_err().to_string();
        assert!(error.contains("compared with 1 for the same authority"), "{error}");
        one.record(update("a")).unwrap();
        other.record(update("b")).unwrap();
        assert_eq!(one.jobs_today().unwrap(), 2);
        assert!(one.record(update("c")).is_err());
        one.record(update("b")).unwrap();
    }

    #[test]
    fn updates_of_today_are_counted_also_after_a_restart_and_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let first = log(folder.path(), "ca", "table.csv");
        let announced = "announcement of the update of round 1: 7 bytes, SHA-256 z".to_owned();
        first.record(Outgoing { message: UPLOAD, content: announced, ..Outgoing::default() }).unwrap();
        for hash in ["a", "b", "b", "c"] {
            first.record(update(hash)).unwrap();
        }
        assert_eq!(first.jobs_today().unwrap(), 3);
        drop(first);
        let path = folder.path().join("sent.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let (announced, rest) = text.split_once('\n').unwrap();
        let rest = rest.replacen(&today(), "2020-01-01", 1);
        std::fs::write(&path, format!("{announced}\n{rest}{{\"time\":\"20")).unwrap();
        let second = log(folder.path(), "ca", "table.csv");
        assert_eq!(second.jobs_today().unwrap(), 2);
        second.record(update("d")).unwrap();
        assert_eq!(log(folder.path(), "ca", "table.csv").jobs_today().unwrap(), 3);
        assert_eq!(lines(folder.path()).len(), 6, "the torn line is gone");
    }

    #[test]
    fn a_damaged_line_stops_the_client_since_it_may_be_of_a_disclosure() {
        let folder = tempfile::tempdir().unwrap();
        log(folder.path(), "ca", "table.csv").record(enrolment("q1")).unwrap();
        log(folder.path(), "ca", "table.csv").record(update("a")).unwrap();
        let path = folder.path().join("sent.jsonl");
        let text = std::fs::read_to_string(&path).unwrap().replacen("\"time\"", "\"tame\"", 1);
        std::fs::write(&path, text).unwrap();
        let error = open(folder.path(), "ca", "table.csv", Policy::default()).unwrap_err().to_string();
        assert!(error.contains("damaged line"), "{error}");
    }

    #[test]
    fn requests_for_work_are_counted_and_listed_before_the_next_message_and_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(folder.path(), "ca", "table.csv");
        log.connect("host:1");
        log.enter("r1");
        let pull = || log.record(Outgoing { message: PULL, bytes: 4, ..Outgoing::default() }).unwrap();
        (0..5).for_each(|_| pull());
        log.record(Outgoing { message: "Fail", content: "why".into(), bytes: 9, reference: None }).unwrap();
        pull();
        drop(log);
        let lines = lines(folder.path());
        let listed: Vec<_> =
            lines.iter().map(|line| (line.message.as_str(), line.count, line.bytes)).collect();
        assert_eq!(listed, [("Pull", 5, 20), ("Fail", 1, 9), ("Pull", 1, 4)]);
        assert!(
            lines.iter().all(|line| line.run == "r1" && line.server == "host:1" && line.data == "table.csv")
        );
    }
}
