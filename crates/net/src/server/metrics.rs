//! What a federation does, as numbers for Prometheus, and whether it makes progress.

use crate::federation::{Coordinator, Event, Status};
use crate::identity::AllowList;
use fedtvd_core::round::RoundRecord;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use time::{Date, OffsetDateTime};

/// A federation without any progress for this long, or for the limit of its open round if that is longer, is unhealthy.
const STUCK: Duration = Duration::from_secs(3600);
/// So is one with this many rounds in a row that left the model unchanged.
const UNCHANGED: u32 = 3;
/// Counts events and rounds, since the server started.
#[derive(Clone)]
pub struct Metrics(Arc<Mutex<Counts>>);

struct Counts {
    accepted: u64,
    refused: BTreeMap<&'static str, u64>,
    rounds: u64,
    alarms: u64,
    unchanged: u32,
    bytes_up: u64,
    bytes_down: u64,
    loss: Option<f64>,
    accuracy: Option<f64>,
    median_accuracy: Option<f64>,
    round_seconds: Option<f64>,
    progress: Instant,
    /// Why the audit log cannot be written, if it cannot.
    audit_problem: Option<String>,
    /// Events that are missing in the audit log.
    audit_lost: u64,
}

/// What the server knows besides the counts.
pub(super) struct Observed<'a> {
    pub(super) status: &'a Status,
    /// Number of clients with an open connection.
    pub(super) connected: usize,
    /// The list of clients in force; none without TLS.
    pub(super) list: Option<&'a AllowList>,
    /// Why it is not that of the file, if it is not.
    pub(super) unreadable_list: Option<String>,
    /// When the server's certificate expires; none without TLS.
    pub(super) server_expires: Option<OffsetDateTime>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Counts {
            accepted: 0,
            refused: BTreeMap::new(),
            rounds: 0,
            alarms: 0,
            unchanged: 0,
            bytes_up: 0,
            bytes_down: 0,
            loss: None,
            accuracy: None,
            median_accuracy: None,
            round_seconds: None,
            progress: Instant::now(),
            audit_problem: None,
            audit_lost: 0,
        })))
    }
}

impl Metrics {
    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an event.
    pub fn event(&self, event: &Event) {
        let mut counts = self.counts();
        match event {
            Event::Accepted { .. } => counts.accepted += 1,
            Event::Handshake { code, .. } | Event::Refused { code, .. } => {
                *counts.refused.entry(code).or_default() += 1;
            }
            Event::Alarm { .. } => counts.alarms += 1,
            _ => {}
        }
        if matches!(
            event,
            Event::Accepted { .. } | Event::Enrolled { .. } | Event::Opened { .. } | Event::Closed { .. }
        ) {
            counts.progress = Instant::now();
        }
    }

    /// Counts a finished round.
    pub fn round(&self, record: &RoundRecord) {
        let mut counts = self.counts();
        counts.rounds += 1;
        counts.unchanged = if record.unchanged.is_some() { counts.unchanged + 1 } else { 0 };
        counts.bytes_up += record.bytes_up;
        counts.bytes_down += record.bytes_down;
        (counts.loss, counts.accuracy) = (record.loss, record.accuracy);
        counts.median_accuracy = record.median_accuracy;
        counts.round_seconds = Some(record.seconds);
        counts.progress = Instant::now();
    }

    /// Says whether the audit log can be written, and how many events are missing in it.
    pub fn audit(&self, problem: Option<String>, lost: u64) {
        let mut counts = self.counts();
        (counts.audit_problem, counts.audit_lost) = (problem, lost);
    }

    /// Why an operator must look at the federation, if one must.
    pub(super) fn trouble(
        &self,
        coordinator: &Coordinator,
        unreadable_list: Option<String>,
    ) -> Option<String> {
        // Before the counts are locked: events are counted by threads that may hold the coordinator's lock.
        let stopping = coordinator.inner().stop;
        let status = coordinator.status();
        let counts = self.counts();
        let idle = counts.progress.elapsed();
        if stopping {
            return Some("the server is stopping".to_owned());
        }
        if let Some(why) = unreadable_list {
            return Some(format!("the list of clients cannot be read, and revocations are not seen: {why}"));
        }
        if let Some(why) = &counts.audit_problem {
            return Some(format!("the audit log cannot be written: {why}"));
        }
        match status {
            status if status.phase == "finished" => None,
            _ if counts.unchanged >= UNCHANGED => {
                Some(format!("{} rounds in a row left the model unchanged", counts.unchanged))
            }
            status if idle >= patience(&status) => Some(format!(
                "no client enrolled or answered for {} s; waiting for clients {:?}",
                idle.as_secs(),
                status.waiting_for
            )),
            _ => None,
        }
    }

    /// All numbers in Prometheus' text format.
    pub(super) fn text(&self, observed: &Observed<'_>) -> String {
        let Observed { status, connected, list, unreadable_list, server_expires } = observed;
        let counts = self.counts();
        let mut page = Page::default();
        page.gauge("round", "Current round, counted from 1", Some(f64::from(status.round)));
        page.gauge("rounds_planned", "Number of rounds of the run", Some(f64::from(status.rounds)));
        page.gauge("clients_enrolled", "Clients that are enrolled", Some(status.roster as f64));
        page.gauge("clients_connected", "Clients with an open connection", Some(*connected as f64));
        page.gauge(
            "clients_waited_for",
            "Clients that the round waits for",
            Some(status.waiting_for.len() as f64),
        );
        page.gauge("round_open_seconds", "Age of the open round", status.open_seconds);
        page.gauge("round_deadline_seconds", "Time limit of the open round", status.deadline_seconds);
        let idle = counts.progress.elapsed().as_secs_f64();
        page.gauge(
            "seconds_since_progress",
            "Time since a client enrolled or answered, or a round ended",
            Some(idle),
        );
        page.gauge("last_round_seconds", "Duration of the last round", counts.round_seconds);
        page.gauge("accuracy", "Accuracy after the last round", counts.accuracy);
        page.gauge(
            "median_accuracy",
            "Median of the clients' accuracies after the last round, if they evaluated the model",
            counts.median_accuracy,
        );
        page.gauge("loss", "Mean loss after the last round", counts.loss);
        page.gauge(
            "unchanged_rounds",
            "Rounds in a row that left the model unchanged",
            Some(counts.unchanged.into()),
        );
        page.counter("rounds_total", "Rounds that were finished", counts.rounds);
        page.counter("updates_accepted_total", "Updates that were accepted", counts.accepted);
        page.counter("alarms_total", "Rounds that raised an alarm", counts.alarms);
        page.counter("bytes_received_total", "Bytes of updates that clients sent", counts.bytes_up);
        page.counter("bytes_sent_total", "Bytes of jobs that were sent to clients", counts.bytes_down);
        page.head("refused_total", "Refused requests and handshakes, by code", "counter");
        for (code, refused) in &counts.refused {
            let _ = writeln!(page.0, "fedtvd_refused_total{{code=\"{code}\"}} {refused}");
        }
        let now = OffsetDateTime::now_utc();
        page.gauge(
            "server_certificate_expiry_seconds",
            "Time until the server's certificate expires",
            server_expires.map(|expires| (expires - now).whole_seconds() as f64),
        );
        page.gauge(
            "client_list_readable",
            "Whether the list of clients in force is that of the file",
            list.map(|_| f64::from(u8::from(unreadable_list.is_none()))),
        );
        page.gauge(
            "audit_log_writable",
            "Whether the last event was written to the audit log",
            Some(f64::from(u8::from(counts.audit_problem.is_none()))),
        );
        page.counter(
            "audit_events_lost_total",
            "Events that could not be written to the audit log",
            counts.audit_lost,
        );
        page.head("certificate_expiry_seconds", "Time until a client's certificate expires", "gauge");
        for entry in list.iter().flat_map(|list| &list.clients).filter(|entry| !entry.revoked) {
            if let Some(left) = seconds_left(&entry.expires, now) {
                // Names of clients have letters, digits, - _ and . only.
                let name = entry.name.escape_default();
                // A client may have several certificates, and a series must be unique.
                let serial = entry.serial.as_deref().unwrap_or(&entry.fingerprint).escape_default();
                let _ = writeln!(
                    page.0,
                    "fedtvd_certificate_expiry_seconds{{client=\"{name}\",serial=\"{serial}\"}} {left}"
                );
            }
        }
        page.0
    }
}

/// How long a federation may be without progress: an hour, or the limit of its open round if that is longer.
fn patience(status: &Status) -> Duration {
    let limit =
        status.deadline_seconds.map(|limit| Duration::try_from_secs_f64(limit).unwrap_or(Duration::MAX));
    limit.map_or(STUCK, |limit| limit.max(STUCK))
}

/// Seconds until a moment that is written as YYYY-MM-DDThh:mm:ssZ, or until the end of a day that is written as YYYY-MM-DD;
/// negative if it is over.
fn seconds_left(expires: &str, now: OffsetDateTime) -> Option<i64> {
    let (day, time) = expires.split_once('T').map_or((expires, None), |(day, time)| (day, Some(time)));
    let mut parts = day.splitn(3, '-');
    let year = parts.next()?.parse().ok()?;
    let month = parts.next()?.parse::<u8>().ok()?.try_into().ok()?;
    let date = Date::from_calendar_date(year, month, parts.next()?.parse().ok()?).ok()?;
    let end = match time {
        None => date.next_day()?.midnight(),
        Some(time) => {
            let mut parts = time.strip_suffix('Z')?.splitn(3, ':').map(|part| part.parse().ok());
            date.with_hms(parts.next()??, parts.next()??, parts.next()??).ok()?
        }
    };
    Some((end.assume_utc() - now).whole_seconds())
}

/// The text of a page of metrics.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP fedtvd_{name} {help}.\n# TYPE fedtvd_{name} {kind}");
    }

    /// A value that may go down; left out if it is unknown.
    fn gauge(&mut self, name: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.head(name, help, "gauge");
            let _ = writeln!(self.0, "fedtvd_{name} {value}");
        }
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        let _ = writeln!(self.0, "fedtvd_{name} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_may_take_an_hour_or_its_limit_without_progress_whichever_is_longer() {
        let status = |limit: Option<f64>| Status {
            run: String::new(),
            strategy: String::new(),
            mode: fedtvd_core::round::Mode::Hardened,
            phase: "training".to_owned(),
            problem: None,
            round: 2,
            rounds: 9,
            open_seconds: Some(1.0),
            deadline_seconds: limit,
            needed: Some(1),
            accuracy: None,
            median_accuracy: None,
            not_evaluated: None,
            roster: 1,
            answered: Vec::new(),
            waiting_for: Vec::new(),
            waiting_for_names: Vec::new(),
            clients: Vec::new(),
        };
        let seconds = |limit| patience(&status(limit)).as_secs();
        assert_eq!([None, Some(600.0), Some(10_800.0)].map(seconds), [3_600, 3_600, 10_800]);
    }

    #[test]
    fn the_median_of_the_clients_accuracies_is_a_number_of_its_own() {
        let status = serde_json::json!({
            "run": "r", "strategy": "fedtvd", "mode": "hardened", "phase": "training", "round": 2, "rounds": 3,
            "open_seconds": null, "deadline_seconds": null, "accuracy": null, "roster": 0, "answered": [],
            "waiting_for": [], "waiting_for_names": [], "clients": []
        });
        let status: Status = serde_json::from_value(status).unwrap();
        let metrics = Metrics::default();
        let line = RoundRecord { accuracy: Some(0.9), median_accuracy: Some(0.25), ..RoundRecord::default() };
        let text = |status: &Status| {
            metrics.text(&Observed {
                status,
                connected: 0,
                list: None,
                unreadable_list: None,
                server_expires: None,
            })
        };
        metrics.round(&line);
        let page = text(&status);
        assert!(
            page.contains("\nfedtvd_accuracy 0.9\n") && page.contains("\nfedtvd_median_accuracy 0.25\n"),
            "{page}"
        );
        metrics.round(&RoundRecord { median_accuracy: None, ..line });
        assert!(!text(&status).contains("median_accuracy"), "the server evaluated the model");
    }

    #[test]
    fn a_certificate_is_valid_until_its_last_moment_or_the_end_of_its_last_day() {
        let now = OffsetDateTime::from_unix_timestamp(86_400 * 365 + 3_600).unwrap();
        assert_eq!(seconds_left("1971-01-01", now), Some(86_400 - 3_600));
        assert_eq!(seconds_left("1970-12-31", now), Some(-3_600));
        assert_eq!(seconds_left("1971-01-01T02:00:05Z", now), Some(3_605));
        assert_eq!(seconds_left("1971-01-01T00:59:59Z", now), Some(-1));
        for wrong in ["soon", "1971-01-01T02:00Z", "1971-01-01T02:00:05", "1971-13-01"] {
            assert_eq!(seconds_left(wrong, now), None, "{wrong}");
        }
    }
}
